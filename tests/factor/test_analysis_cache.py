"""The folder of analyses: found again for the same pattern and choices alone, and bounded."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import frontal
from frontal import problems
from frontal.files import atomic_write
from frontal.symbolic import disk_cache

from .test_analysis_files import POISSON, assert_same


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FRONTAL_ANALYSIS_CACHE", str(tmp_path / "kept"))
    monkeypatch.setattr(disk_cache, "MIN_CACHED_COLUMNS", 30)
    return tmp_path / "kept"


def files(folder):
    return sorted(folder.glob("*.analysis"))


def found(A, **choices):
    """An analysis, and whether it came from the folder."""
    analysis = frontal.analyze(A, backend="cpu", **choices)
    return analysis, set(analysis.seconds) == {"cache"}


def test_found_again(folder):
    for k, (A, choices) in enumerate(
        [
            (POISSON, {}),
            (POISSON, {"kind": "general"}),
            (POISSON, {"reuse": 100}),
            (POISSON, {"ordering": "rcm"}),
            (POISSON, {"ordering": np.arange(36)}),
            (POISSON, {"ordering": np.arange(36)[::-1]}),
            (problems.poisson2d(7), {}),
            (problems.kkt(40), {}),
        ]
    ):
        fresh, was_kept = found(A, **choices)
        assert not was_kept
        again, was_kept = found(A, **choices)
        assert was_kept
        assert len(files(folder)) == k + 1
        fresh.seconds.clear(), again.seconds.clear()
        assert_same(fresh, again)
    (again, was_kept), single = found(2 * POISSON), found(POISSON.astype(np.float32))[0]
    assert was_kept, "a diagonal that is not tiny is all that matters of values"
    assert (again.dtype, single.dtype) == (np.float64, np.float32)
    assert found(problems.poisson2d(5))[1] is False, "so small ones are not looked for"
    assert len(files(folder)) == 8


def test_values_that_a_matching_looks_at(folder, monkeypatch):
    A, B = problems.permuted(problems.convdiff2d(6), symmetric=False), None
    assert [found(A)[1], found(A)[1]] == [False, True]
    B = A.copy()
    B.data[:] = np.random.default_rng(0).standard_normal(B.nnz)
    assert [found(B)[1], found(B)[1]] == [False, True]
    assert np.any(found(A)[0].matching.rows != found(B)[0].matching.rows)
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "17")  # by which dissections are chosen
    assert not found(A)[1]
    monkeypatch.setattr(disk_cache, "SOURCES", "of another version")
    assert not found(A)[1]


@pytest.mark.parametrize("damage", ["cut", "other", "directory"])
def test_broken_files_are_replaced(folder, damage, caplog):
    found(POISSON)
    found(POISSON, kind="general")
    path, other = files(folder)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
        other.write_bytes(b"")
    elif damage == "other":
        path.write_bytes(other.read_bytes())
    else:
        for one in (path, other):
            one.unlink()
            one.mkdir()
    again = [found(POISSON)[1], found(POISSON, kind="general")[1]]
    assert sum(again) == (damage == "other")
    found_next = found(POISSON)[1] and found(POISSON, kind="general")[1]
    assert found_next == (damage != "directory")
    assert ("removing" in caplog.text) == (damage != "directory")


def test_those_used_longest_ago_go_first(folder, monkeypatch):
    orders = [np.roll(np.arange(36), k) for k in range(4)]
    for k, order in enumerate(orders[:3]):
        found(POISSON, ordering=order)
        newest = max(files(folder), key=lambda p: p.stat().st_mtime_ns)
        os.utime(newest, (k, k))
    assert found(POISSON, ordering=orders[0])[1]  # used just now
    size = sum(p.stat().st_size for p in files(folder))
    unfinished, fresh = (
        folder / f"a{atomic_write.UNFINISHED}",
        folder / f"b{atomic_write.UNFINISHED}",
    )
    for path in (unfinished, fresh):
        path.write_bytes(b"")
    os.utime(unfinished, (0, 0))
    monkeypatch.setenv("FRONTAL_ANALYSIS_CACHE_BYTES", str(size + 500))  # headers differ
    found(POISSON, ordering=orders[3])
    assert len(files(folder)) == 3
    assert (unfinished.exists(), fresh.exists()) == (False, True)
    assert [found(POISSON, ordering=orders[k])[1] for k in (0, 2, 3)] == [True] * 3
    monkeypatch.setenv("FRONTAL_ANALYSIS_CACHE_BYTES", "100")
    assert not found(POISSON, ordering=orders[1])[1]
    assert len(files(folder)) == 3
    monkeypatch.setenv("FRONTAL_ANALYSIS_CACHE_BYTES", "1 GB")
    with pytest.raises(ValueError, match="BYTES is '1 GB'; give a positive integer"):
        found(POISSON)


def test_a_folder_that_cannot_be_written(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FRONTAL_ANALYSIS_CACHE", str(tmp_path / "file" / "inside"))
    assert not found(POISSON)[1]
    assert not found(POISSON)[1]


def test_processes_at_once(folder):
    """Two of them write, read and remove in one folder that has room for one file."""
    folder.mkdir()
    code = (
        "import frontal, numpy as np\n"
        "from frontal.symbolic import disk_cache\n"
        "disk_cache.MIN_CACHED_COLUMNS = 1\n"
        "A = frontal.problems.poisson2d(6)\n"
        "for k in range(60):\n"
        "    analysis = frontal.analyze(A, ordering=np.roll(np.arange(36), k % 3), backend='cpu')\n"
        "    assert analysis.ordering.perm[0] == (-(k % 3)) % 36, k\n"
    )
    env = {**os.environ, "FRONTAL_ANALYSIS_CACHE_BYTES": "9000"}
    crew = [subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=env) for _ in "ab"]
    assert [process.wait(120) for process in crew] == [0, 0]
    assert all(path.suffix == ".analysis" for path in folder.iterdir())
