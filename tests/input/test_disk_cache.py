"""Compiled code on disk: found again, and compiled anew where a file is damaged or not readable."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import textwrap
import zlib

import numba
import numpy as np
import pytest

from frontal.compile import cache, jit, linking

SOURCE = """
    import frontal.compile.jit as _jit

    @_jit.jit
    def twice(x):
        return x + x

    def results():
        values = twice(2), twice(2.5)
        stats = twice.stats
        return *values, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
"""
DAMAGE = {
    "cut short": lambda content: content[: len(content) // 2],
    "almost complete": lambda content: content[:-1],
    "empty": lambda content: b"",
    "garbage": lambda content: bytes(np.random.default_rng(0).bytes(len(content))),
    "text": lambda content: b"version https://git-lfs" * 9,
    "one letter": lambda content: b"nest".join(content.rsplit(b"text", 1)),
}
COMPILED, FOUND = (4, 5.0, 0, 2), (4, 5.0, 2, 0)


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start anew: a module with a compiled function is loaded and its function called."""
    monkeypatch.setattr(jit, "_FOLDER", tmp_path / "cache")
    monkeypatch.syspath_prepend(tmp_path)
    source = tmp_path / "doubled.py"
    source.write_text(textwrap.dedent(SOURCE))

    def run():
        names = {"__name__": "doubled"}
        exec(compile(source.read_text(), str(source), "exec"), names)
        return names["results"]()

    return run


def files(tmp_path):
    return sorted(path for path in (tmp_path / "cache").rglob("*") if path.is_file())


def test_compiled_once(start, tmp_path):
    assert start() == COMPILED
    before = {path: path.stat().st_mtime_ns for path in files(tmp_path)}
    assert start() == FOUND
    assert {path: path.stat().st_mtime_ns for path in files(tmp_path)} == before
    assert all(path.suffix in (".nbc", ".nbi") for path in before)


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_files_are_replaced(start, tmp_path, how):
    start()
    for path in files(tmp_path):
        path.write_bytes(DAMAGE[how](path.read_bytes()))
    assert start() == COMPILED
    assert start() == FOUND


def test_one_damaged_file_does_not_touch_the_others(start, tmp_path):
    start()
    files(tmp_path)[-1].write_bytes(b"")
    assert start() == (4, 5.0, 1, 1)
    assert start() == FOUND


def test_code_of_other_types_is_refused(start, tmp_path):
    start()
    first, second = (path for path in files(tmp_path) if path.suffix == ".nbc")
    first.write_bytes(second.read_bytes())  # as after a race of two writers
    assert start() == (4, 5.0, 1, 1)
    assert start() == FOUND


def test_another_version_of_numba_compiles_anew(start, monkeypatch):
    start()
    monkeypatch.setattr(numba, "__version__", "0.1")
    assert start() == COMPILED


def test_a_folder_that_cannot_be_written(start, tmp_path, monkeypatch):
    start()
    kept = files(tmp_path)

    def refuse(*arguments, **options):
        raise PermissionError(13, "read only")

    kept[0].write_bytes(b"damaged")
    with monkeypatch.context() as patch:  # permissions do not hold back a superuser
        patch.setattr(os, "replace", refuse)
        assert start() == (4, 5.0, 1, 1)
        assert start() == (4, 5.0, 1, 1)
        assert files(tmp_path) == kept
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(jit, "_FOLDER", tmp_path / "file" / "inside")
    assert start() == COMPILED


def test_a_file_that_cannot_be_read(start, tmp_path):
    start()
    path = files(tmp_path)[0]
    path.unlink()
    path.mkdir()
    assert start() == (4, 5.0, 1, 1)


def test_writers_at_once(start, tmp_path):
    source = tmp_path / "doubled.py"
    code = (
        "import sys, pathlib, frontal.compile.jit as _jit\n"
        f"_jit._FOLDER = pathlib.Path({str(tmp_path / 'cache')!r})\n"
        f"sys.path.insert(0, {str(source.parent)!r})\n"
        "import doubled\n"
        "assert doubled.results()[:2] == (4, 5.0)\n"
    )
    crew = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(60) for process in crew] == [0, 0]
    assert start() == FOUND


PARTS = """
    import frontal.compile.jit as _jit

    @_jit.inner
    def more(x):
        return x + 1

    @_jit.inner
    def doubled_more(x):
        return 2 * more(x)

    @_jit.jit
    def first(x):
        return doubled_more(x)

    @_jit.jit
    def second(x):
        return doubled_more(x) + more(x)

    @_jit.jit
    def third(x):
        return second(x)

    def results(name):
        value = globals()[name](3)
        return value, *(sum(f.stats.cache_hits.values()) for f in (more, doubled_more))
"""


@pytest.fixture
def parts(start, tmp_path):
    """Start anew with functions that only compiled code calls."""
    if "pipeline_class" not in jit._INNER:
        pytest.skip("no parts with this version of Numba")
    source = tmp_path / "parts.py"
    source.write_text(textwrap.dedent(PARTS))

    def run(name):
        names = {"__name__": "parts"}
        exec(compile(source.read_text(), str(source), "exec"), names)
        cache._units.clear()
        return names["results"](name)

    return run


INNER = {"doubled_more": ["part"], "more": ["part"]}


def kinds(tmp_path):
    found = {}
    for path in files(tmp_path):
        _, code = pickle.loads(path.read_bytes()[4:])
        found.setdefault(path.name.split(".")[1].split("-")[0], []).append(code[0][1])
    return {name: sorted(listed) for name, listed in found.items()}


def test_parts_are_found_by_other_callers(parts, tmp_path):
    assert parts("first") == (8, 0, 0)
    assert len(files(tmp_path)) == 3
    assert parts("second") == (12, 1, 1)
    assert parts("second") == (12, 0, 0)  # nothing but the whole is read


def test_callee_for_python_has_no_machine_code_until_python_calls(parts, tmp_path):
    assert parts("third") == (12, 0, 0)
    assert kinds(tmp_path) == {"third": ["whole"], "second": ["part"]} | INNER
    assert parts("second") == (12, 1, 1)
    assert kinds(tmp_path) == {"third": ["whole"], "second": ["part", "whole"]} | INNER
    assert parts("third") == (12, 0, 0)


def test_a_part_whose_callee_has_been_compiled_since(parts, tmp_path):
    parts("first")
    (path,) = (path for path in files(tmp_path) if path.name.startswith("parts.more"))
    key, code = pickle.loads(path.read_bytes()[4:])
    body = pickle.dumps((key, ((code[0][0] + " again", *code[0][1:]), *code[1:])))
    path.write_bytes(zlib.crc32(body).to_bytes(4, "little") + body)
    assert parts("second") == (12, 1, 0)
    (path,) = (path for path in files(tmp_path) if path.name.startswith("parts.second"))
    path.unlink()
    assert parts("second") == (12, 1, 1)


def test_callers_are_put_together_before_what_they_call():
    top, middle, bottom = (object.__new__(linking.BitcodeUnit) for _ in range(3))
    top._linking_libraries, middle._linking_libraries = [bottom, middle], [bottom]
    bottom._linking_libraries = []
    assert linking.reached(top) == [top, middle, bottom]


def test_numba_is_left_as_it_was(parts):
    @jit.jit
    def wrong(x):
        return x.nothing

    from frontal.compile.numba_patches import PATCHES

    owners = [owner for owner, _, _ in PATCHES]
    before = [dict(vars(owner)) for owner in owners]
    parts("first")
    with pytest.raises(numba.TypingError):
        wrong(3)
    for owner, old in zip(owners, before, strict=True):
        methods = (item for item in vars(owner).items() if not item[0].startswith("__"))
        now = {name: value for name, value in methods if callable(value) or type(value) is property}
        assert now.items() <= old.items()
    assert gc.isenabled()


SYSTEM = """
    import sys

    import numba

    if "stock" in sys.argv:
        numba.version_info = numba.version_info._replace(short=(0, 0))

    import numpy as np

    import frontal
    from frontal import problems
    from frontal.compile import jit

    A = problems.poisson2d(12)
    print(frontal.solve(A, np.linspace(1, 2, A.shape[0]), backend="cpu").tobytes().hex())
    print(jit.IS_TRIED)
"""


def test_numba_as_it_is_gives_the_same_bits(parts):
    """Without patches, as with a version of Numba that this package is not tested with."""
    home = jit._cache_folder().parent
    (patched, tried), (stock, untried) = (
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(SYSTEM), how],
            env=os.environ | {"FRONTAL_CACHE_DIR": str(home / how)},
            capture_output=True, text=True, check=True,
        ).stdout.splitlines()
        for how in ("", "stock")
    )  # fmt: skip
    assert (tried, untried) == ("True", "False")
    assert patched == stock


SHARED = """
    import frontal.compile.jit as _jit
    import numba
    import numpy as np

    def smallest(n):
        x = np.zeros(n)
        x[::2] = np.arange(n)[::2]
        x.sort()
        return x[0] + np.median(x)

    ours, theirs = _jit.jit(smallest), numba.njit(error_model="numpy")(smallest)
    first, second = (ours, theirs) if FIRST else (theirs, ours)
    print(first(9), second(9), smallest(9))
"""


@pytest.mark.parametrize("first", [True, False])
def test_functions_of_numba_are_shared_with_others(tmp_path, first):
    """What is compiled without machine code of its own serves those who need it."""
    source = tmp_path / "shared.py"
    source.write_text(textwrap.dedent(SHARED).replace("FIRST", str(first)))
    kept = os.environ | {"FRONTAL_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, source]
    done = subprocess.run(command, capture_output=True, text=True, env=kept, check=True)
    assert len({*done.stdout.split()}) == 1


FOUND_AGAIN = """
    import sys

    import frontal.compile.jit as _jit
    import numpy as np

    @_jit.jit
    def largest(n):
        x = np.zeros(n)
        x[::2] = np.arange(n)[::2]
        return x, x.max()

    x, most = largest(9)
    hits, loaded = sum(largest.stats.cache_hits.values()), "numba.np.linalg" in sys.modules

    @_jit.jit
    def with_closures(n):
        first, last = [largest(n + k)[1] for k in range(2)], largest(n)[0] + n
        double = lambda value: 2 * value
        return double(first[1]), last[-1]

    print(hits, loaded, most, x.sum(), *with_closures(4))
"""


def test_code_is_loaded_without_a_compiler_and_compiled_into_callers(tmp_path):
    source = tmp_path / "found.py"
    source.write_text(textwrap.dedent(FOUND_AGAIN))
    alone = os.environ | {"FRONTAL_CACHE_DIR": str(tmp_path / "cache")}
    answers = [
        subprocess.run([sys.executable, source], env=alone, check=True, capture_output=True).stdout
        for _ in range(2)
    ]
    assert answers == [b"0 True 8.0 20.0 8.0 4.0\n", b"1 False 8.0 20.0 8.0 4.0\n"]
