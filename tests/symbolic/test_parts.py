"""Lists that threads work on in parts: the same results for any parts, and errors that arrive."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.machine import threads
from frontal.matrix.canonical import canonical
from frontal.matrix.symmetry import compare_triangles
from frontal.problems import convdiff2d, poisson2d
from frontal.symbolic.diagonal import tiny_diagonal


@pytest.fixture(params=[2, 5])
def cut(request, monkeypatch):
    """Parts of few entries."""

    def cut():
        monkeypatch.setattr(threads, "MIN_PARALLEL_ENTRIES", 16)
        monkeypatch.setenv("FRONTAL_NUM_THREADS", str(request.param))

    return cut


def hub(A):
    """A matrix with one more row and column, both full."""
    ones = np.ones((A.shape[0], 1))
    return sp.csc_array(sp.block_array([[A, ones], [ones.T, [[4.0 * ones.size]]]]))


@pytest.mark.parametrize("ordering", ["amd", "natural"])
@pytest.mark.parametrize(
    "A", [poisson2d(17), hub(poisson2d(9)), convdiff2d(12)], ids=["grid", "hub", "general"]
)
def test_an_analysis_is_the_same(A, cut, ordering):
    whole = frontal.analyze(A, backend="cpu", ordering=ordering)
    cut()
    assert threads.bounds_of(A.indptr).size > 2
    found = frontal.analyze(A, backend="cpu", ordering=ordering)
    for name, array in whole.plan._asdict().items():
        other = getattr(found.plan, name)
        assert other.dtype == array.dtype
        np.testing.assert_array_equal(other, array, err_msg=name)
    np.testing.assert_array_equal(found.perm, whole.perm)


@pytest.mark.parametrize("own", [1.0, 1e-9, 0.0, None, np.nan, np.inf])
@pytest.mark.parametrize("elsewhere", [1.0, 1e12])
def test_tiny_diagonal_entries_are_the_same(own, elsewhere, cut):
    A = poisson2d(9).tolil()
    A[3, 4] = A[4, 3] = elsewhere
    A[40, 40] = 0.0 if own is None else own
    A = sp.csc_array(A)
    if own is None:
        A.eliminate_zeros()
    whole = tiny_diagonal(A)
    assert whole[40] == (own not in (1.0, np.inf))
    cut()
    np.testing.assert_array_equal(tiny_diagonal(A), whole)


@pytest.mark.parametrize("place", [(3, 40), (40, 3), (20, 25), (80, 80)])
def test_one_entry_without_its_mirror_is_found(place, cut):
    A = poisson2d(9).tolil()
    cut()
    A[place] = 7.0 if place[0] != place[1] else 0.0
    matrix = canonical(sp.csc_array(A))
    assert matrix.hermitian == (place[0] == place[1])
    pattern = sp.csc_array(A)
    pattern.sort_indices()
    of = pattern.indptr.astype(np.int64), pattern.indices
    assert bool(compare_triangles(*of, None, False, 0.0)) == (place[0] == place[1])


def test_an_error_of_any_part_arrives(cut):
    cut()
    pointer, done = np.arange(1000), []
    last = threads.bounds_of(pointer)[1:-1].tolist()

    def work(first, end):
        if end in last:
            raise MemoryError(str(end))
        done.append(end)

    with pytest.raises(MemoryError, match=str(last[0])):
        threads.parallel_for(work, pointer)
    assert done == [999]


def test_work_that_was_begun_is_over_on_leaving():
    begun, go = threading.Event(), threading.Event()

    def work():
        begun.set()
        go.wait(10)
        raise MemoryError("of a thread")

    def interrupted():
        with waiting:
            begun.wait(10)
            threading.Timer(0.05, go.set).start()
            raise KeyboardInterrupt

    waiting = threads.BackgroundTask(work)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert waiting._job.over.is_set
    with pytest.raises(MemoryError, match="of a thread"):
        waiting.result()
