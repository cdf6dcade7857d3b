"""Compiled code on disk: found again, and compiled anew where a file is damaged or not readable."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numba
import numpy as np
import pytest

from frontal import _jit

SOURCE = """
    import frontal._jit as _jit

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
    monkeypatch.setattr(_jit, "_FOLDER", tmp_path / "cache")
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
    monkeypatch.setattr(_jit, "_FOLDER", tmp_path / "file" / "inside")
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
        "import sys, pathlib, frontal._jit as _jit\n"
        f"_jit._FOLDER = pathlib.Path({str(tmp_path / 'cache')!r})\n"
        f"sys.path.insert(0, {str(source.parent)!r})\n"
        "import doubled\n"
        "assert doubled.results()[:2] == (4, 5.0)\n"
    )
    crew = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(60) for process in crew] == [0, 0]
    assert start() == FOUND
