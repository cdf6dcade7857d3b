"""What systems of each kind compile: ``python -m tests.signatures`` writes `signatures.json`.

Each kind has a process with an empty cache: some minutes in all, and some more where kernels of a
GPU are emulated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba.core import event
from numba.core.dispatcher import Dispatcher

import frontal
from frontal import gpu
from frontal.cli import warm
from frontal.compile.cache import DiskCache
from frontal.compile.manifest import Item, Table, UnknownTypeError, known, write
from frontal.gpu.runtime import device as devices
from frontal.gpu.runtime.staging import MIN_STAGED_BYTES, Staging

from .emulation.compiling import COMPILER
from .emulation.copies import FakeCuda
from .emulation.device import EmulatedDevice

DTYPES = ("float64", "complex128", "float32", "complex64")
TASKS = {task.name: task for task in (*warm.ORDERINGS, *warm.tasks(DTYPES, ["cpu", "gpu"]))}
RECORD = "--record"


def solve(task: warm.Task) -> None:
    """Do what a user does first with a system of a kind."""
    if task in warm.ORDERINGS:
        warm.run(task)
        return
    if task.backend == "gpu":  # what large systems need besides
        cuda, array = FakeCuda(), np.zeros(MIN_STAGED_BYTES)
        copies = Staging(cuda, 0, cuda.calls)
        copies.send([array], [array.ctypes.data], cuda.free)
        copies.fetch(array.ctypes.data, array, cuda.free)
    A = warm._matrix(task)
    b = np.ones(A.shape[0], A.dtype)
    kind = {"ldlt": "symmetric", "ldlh": "hermitian"}.get(task.what, "auto")
    frontal.solve(A, b, kind=kind, backend=task.backend)
    frontal.factorize(A, kind=kind, backend=task.backend).refactorize(A).solve(b)


class Recorder(event.Listener):
    """Lists what is compiled, in the order in which that ends, and what it took."""

    def __init__(self) -> None:
        self.table, self.rows = Table(), []
        self._open: list[tuple[float, list[int], list[float]]] = []

    def on_start(self, event: Any) -> None:
        """Begin a function."""
        self._open.append((time.thread_time(), [], []))

    def on_end(self, event: Any) -> None:
        """List a function, or leave it to its caller where it has no place of its own."""
        began, needs, inside = self._open.pop()
        took = time.thread_time() - began
        row = self._row(event.data["dispatcher"], event.data["args"])
        if row is not None:
            self.rows.append([*row, round(max(took - sum(inside), 0.01), 2), sorted(set(needs))])
            inside, needs = [took], [len(self.rows) - 1]
        if self._open:
            self._open[-1][1].extend(needs)
            self._open[-1][2].extend(inside)

    def _row(self, of: Dispatcher, arguments: tuple[Any, ...]) -> list[Any] | None:
        function = of.py_func
        if not isinstance(of._cache, DiskCache) or "<" in function.__qualname__:
            return None
        try:
            places = [self.table.place(kind) for kind in arguments]
        except UnknownTypeError:
            return None
        return [f"{function.__module__}:{function.__qualname__}", places]


def record(kind: str) -> None:
    """Print what one kind compiles, on an emulated device where there is no GPU."""
    if TASKS[kind].backend == "gpu" and not gpu.available():
        emulated = EmulatedDevice()
        devices.device_of = lambda array=None: emulated
    recorder = Recorder()
    event.register("numba:compile", recorder)
    solve(TASKS[kind])
    json.dump([recorder.table.rows, recorder.rows], sys.stdout)


def recorded(kind: str) -> list[Any]:
    """What `record` prints in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        alone = {"FRONTAL_CACHE_DIR": folder, "FRONTAL_HELPERS": "0"}
        command = [sys.executable, "-m", "tests.signatures", RECORD, kind]
        done = subprocess.run(command, env=os.environ | alone, capture_output=True, check=True)
    return json.loads(done.stdout)


def read(kind: str) -> list[Any]:
    """What the file has of a kind, or of the analysis of all, in the form of `record`."""
    table, items = known()
    mine = [k for k, item in enumerate(items) if kind in item.kinds]
    if not mine:
        systems = {
            name
            for item in items
            for name in item.kinds
            if name not in {task.name for task in warm.ORDERINGS}
        }
        mine = [k for k, item in enumerate(items) if systems <= {*item.kinds}]
    places = {k: place for place, k in enumerate(mine)}
    rows = [
        [*items[k][:3], [places[need] for need in items[k].needs if need in places]] for k in mine
    ]
    return [table.rows, rows]


def merged(found: dict[str, list[Any]]) -> tuple[Table, list[Item]]:
    """The lists of all kinds as one."""
    table, items, places = Table(), [], {}
    for kind, (types, rows) in found.items():
        old, mine = Table(types), []
        for function, arguments, seconds, needs in rows:
            now = tuple(table.place(old.type(place)) for place in arguments)
            place = places.setdefault((function, now), len(items))
            mine.append(place)
            if place == len(items):
                items.append(Item(function, now, 0.0, (), ()))
            was = items[place]
            called = {*was.needs, *(mine[need] for need in needs if mine[need] < place)}
            items[place] = was._replace(
                seconds=max(was.seconds, seconds),
                needs=tuple(sorted(called)),
                kinds=tuple(dict.fromkeys((*was.kinds, kind))),
            )
    return table, items


def main() -> None:
    """Record all kinds, as many at once as there are cores; a GPU's only if it can be emulated."""
    there = gpu.available() or COMPILER is not None
    of = [recorded if there or task.backend == "cpu" else read for task in TASKS.values()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(TASKS, pool.map(lambda do, kind: do(kind), of, TASKS), strict=True))
    write(*merged(found))


if __name__ == "__main__":
    record(sys.argv[2]) if sys.argv[1:2] == [RECORD] else main()
