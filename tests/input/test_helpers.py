"""Processes that compile beside the first call: they do, and nothing depends on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import types
from numba.core.dispatcher import Dispatcher

from frontal.compile import jit, locks, manifest, worker, workers
from frontal.machine.resources import available_memory
from tests import signatures

DOUBLE = np.dtype("f8")
ROOT = Path(__file__).resolve().parents[2]
SMALL = (
    "frontal.matrix.norms:least",
    "frontal.ordering.etree:_inverse",
    "frontal.backend.protocol:_offsets",
)
COUNT = """
import json, sys
import numpy as np
from numba.core.dispatcher import Dispatcher
import frontal
from frontal.compile import manifest
from frontal.problems import {problem}
listed = manifest.known()
known = {{(i.function, listed.signature(i)) for i in listed.items if "{kind}" in i.kinds}}
A = {problem}({size})
frontal.solve(A, np.ones(A.shape[0]), backend="cpu")
used = {{
    (f"{{d.py_func.__module__}}:{{d.py_func.__qualname__}}{{called}}", tuple(s))
    for name, m in [*sys.modules.items()] if name.startswith("frontal")
    for outer in vars(m).values() if isinstance(outer, Dispatcher)
    for called in ("", ":called") if not called or hasattr(outer, "for_callers")
    for d in [outer.for_callers() if called else outer] for s in d.overloads
}}
print(json.dumps([len(used), sorted(f for f, s in used - known)]))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache, of which this process knows nothing yet."""
    monkeypatch.setenv("FRONTAL_HELPERS", "1")
    monkeypatch.setattr(jit, "_FOLDER", tmp_path / "cache")
    monkeypatch.setattr(workers, "_asked", set())
    monkeypatch.setattr(workers, "_pools", [])
    monkeypatch.setattr(locks, "active", None)
    yield tmp_path / "cache"
    for pool in workers._pools:
        pool.end()


@pytest.fixture
def short_list(tmp_path, monkeypatch):
    """A list of functions that are compiled soon; helpers read it too."""
    types, items = manifest.known()
    kind = "cpu cholesky float64"
    few = [item for item in items if item.function in SMALL and not item.needs]
    few = [item._replace(kinds=(kind,)) for item in few if kind in item.kinds]
    unknown = set(SMALL) - {item.function for item in few}
    assert not unknown, f"SMALL names functions that are not in the list of {kind}: {unknown}"
    monkeypatch.setattr(signatures, "FILE", tmp_path / "signatures.json")
    signatures.write(types, few)
    code = f"""; from frontal.compile import manifest, worker; from pathlib import Path; {""}"""
    code += f"manifest.FILE = Path({str(tmp_path / 'signatures.json')!r}); worker._LISTEN = 0.1"
    begin, end = workers._CODE.split("; from frontal.compile import worker;")
    monkeypatch.setattr(workers, "_CODE", f"{begin}{code};{end}")
    return few


def codes(folder):
    return sorted(path.name.rpartition("-")[0] for path in folder.glob("*.nbc"))


def test_what_helpers_compile_is_found(folder, short_list):
    workers.compile_for("cpu", "cholesky", DOUBLE)
    (pool,) = workers._pools
    pool.wait()
    assert codes(folder) == sorted(item.function.replace(":", ".") for item in short_list)
    assert worker.is_done("cpu cholesky float64")
    assert [process.returncode for process in pool._workers] == [0]  # no zombie
    assert not pool._folder.exists()
    assert locks.active is None
    for item in short_list:  # a process that needs it compiles nothing
        function = numba.njit(nogil=False, error_model="numpy")(
            manifest.named(item.function).py_func
        )
        function._cache = jit.DiskCache(function.py_func, folder, outer=True)
        function.compile(manifest.known().signature(item))
        hits, misses = function.stats.cache_hits, function.stats.cache_misses
        assert (sum(hits.values()), sum(misses.values())) == (1, 0)


def test_one_pool_for_each_kind(folder, monkeypatch):
    begun = []

    def start(number, *kinds):
        begun.append(kinds)
        raise OSError

    monkeypatch.setattr(workers, "_start", start)
    for method in ("cholesky", "cholesky", "lu"):
        workers.compile_for("cpu", method, DOUBLE)
    workers._asked.clear()  # as another process
    workers.compile_for("cpu", "lu", DOUBLE)
    assert begun == [("cpu cholesky float64",), ("cpu lu float64",)]


def test_kind_of_killed_worker_is_compiled_by_another_process(folder, monkeypatch):
    monkeypatch.setattr(workers, "_CODE", "import time; time.sleep(60)")
    workers.compile_for("cpu", "lu", DOUBLE)
    (pool,) = workers._pools
    assert not worker.is_done("cpu lu float64")
    pool.end()
    assert not worker.mark_of("cpu lu float64").exists()


def test_request_of_running_workers_starts_no_pool(folder, monkeypatch):
    monkeypatch.setattr(workers, "_CODE", "import time; time.sleep(60)")
    workers.compile_for("cpu", "lu", DOUBLE)
    workers.compile_for("cpu", "dissection")
    (pool,) = workers._pools
    requested = sorted(path.name for path in pool._folder.iterdir())
    assert requested == ["kind cpu dissection", "kind cpu lu float64"]
    pool.end()
    workers.compile_for("cpu", "cholesky", DOUBLE)
    assert workers._pools[0] is not pool


def test_none(folder, monkeypatch):
    monkeypatch.setattr(workers, "_start", None)  # nobody calls it
    monkeypatch.setattr(workers, "_first", True)
    monkeypatch.setenv("FRONTAL_HELPERS", "0")
    workers.begin()
    workers.compile_for("cpu", "lu", DOUBLE)
    workers.compile_all(["cpu lu float64"], 2)
    assert not folder.exists()
    monkeypatch.delenv("FRONTAL_HELPERS")
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "1")
    assert workers.count() == 0
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "64")
    assert workers.count() == workers.MAX_PROCESSES or available_memory() < 10**10
    folder.write_text("no folder")
    monkeypatch.setattr(workers, "_first", True)
    workers._asked.clear()
    workers.begin()
    workers.compile_for("cpu", "lu", DOUBLE)


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_who_does_not_answer_is_not_waited_for(folder, monkeypatch, how):
    monkeypatch.setattr(workers, "_CODE", "import time; time.sleep(60)")
    monkeypatch.setattr(locks, "MAX_WAIT_SECONDS", 0.2)
    pool = workers._start(1)
    (pool._folder / "f").write_text("0")
    if how == "dies":
        pool._workers[0].kill()
    assert not pool._locks.take("f")
    began = time.monotonic()
    pool._locks.wait("f")
    assert time.monotonic() - began < 5
    pool.wait()  # who hung was ended
    assert pool._workers[0].returncode != 0


def test_helpers_end_with_their_parent(folder):
    code = (
        "import os, time; from frontal.compile import workers; pool = workers._start(1)\n"
        "print(pool._workers[0].pid, pool._folder, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    pid, claims = parent.stdout.readline().split()
    parent.kill()
    parent.communicate()
    until = time.monotonic() + 60
    while time.monotonic() < until and _runs(int(pid)):
        time.sleep(0.05)
    assert not _runs(int(pid))
    assert not Path(os.fsdecode(claims)).exists()


def _runs(pid: int) -> bool:
    if not Path("/proc").exists():
        pytest.skip("no list of processes here")
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_an_interrupt_ends_them(folder):
    pool = workers._start(1)
    helper, until = pool._workers[0], time.monotonic() + 10
    while helper.poll() is None and time.monotonic() < until:  # imports may swallow one
        time.sleep(0.1)
        helper.send_signal(signal.SIGINT)
    pool.wait()
    assert helper.returncode != 0


def test_the_chain_of_callers_decides():
    items = [
        manifest.Item(name, (), seconds, needs, ())
        for name, seconds, needs in (("a", 1, ()), ("b", 1, ()), ("c", 5, (1,)), ("d", 0, (0, 2)))
    ]
    assert manifest.Manifest([], items).levels() == [1, 6, 5, 0]


def test_types_are_written_and_read():
    table = signatures.Table()
    for kind in (types.boolean, types.none, types.float32[::1],
                 types.Array(types.int8, 1, "A", readonly=True)):  # fmt: skip
        place = table.place(kind)
        assert manifest.Manifest(table.rows, []).type(place) == kind
    with pytest.raises(signatures.UnknownTypeError):
        table.place(types.unicode_type)


def test_the_list_is_sound():
    """Functions are there, and types can be made; `python -m tests.signatures` renews it."""
    rows, items = known = manifest.known()
    assert len(items) > 100
    for place, item in enumerate(items):
        assert isinstance(manifest.named(item.function), Dispatcher)
        assert max(item.needs, default=-1) < place
        assert all({*item.kinds} <= {*items[need].kinds} for need in item.needs)
    for place, row in enumerate(rows):
        assert rows[signatures.Table(rows).place(known.type(place))] == row


@pytest.mark.parametrize(("problem", "size", "kind"), [
    ("poisson2d", 40, "cpu cholesky float64"), ("convdiff2d", 40, "cpu lu float64"),
])  # fmt: skip
def test_the_list_is_up_to_date(problem, size, kind):
    """At most a tenth of what Python calls for a system is missing."""
    code = COUNT.format(problem=problem, size=size, kind=kind)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    used, missing = json.loads(done.stdout)
    assert used > 20
    assert len(missing) < 0.1 * used, f"{missing}: run python -m tests.signatures"
