"""The CPU's numeric phase at its edges: NaN pivots, large fronts in tiles, members that raise."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.backend import choose
from frontal.compile import tile_queue
from frontal.cpu import backend as cpu
from frontal.cpu import eliminate, shared_state
from frontal.cpu.threads import run_team

from ..conftest import all_is_over, scaled_residual
from ..matrices import dominant_dense, tiled_fronts, tridiagonal

# --- NaN that nobody looked for --------------------------------------------------------------

SMALL = tridiagonal(5, -1.0, 3.0, -1.0)
DENSE = dominant_dense(200)
PLACES = [(0, 0), (-1, -1), (1, 0)]  # the first and the last pivot, one that a product spoils


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("A", [SMALL, DENSE, problems.poisson2d(9)], ids=["loops", "BLAS", "tree"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_nan_pivots_are_refused_unseen(A, place):
    """Also where nothing looks at the values of A before."""
    bad, (i, j) = A.tolil(copy=True), place
    bad[i, j] = bad[j, i] = np.nan
    bad = sp.csc_array(bad)
    for kind, error in (
        ("spd", frontal.NotPositiveDefiniteError),
        ("general", frontal.SingularMatrixError),
    ):
        analysis = frontal.analyze(A, kind=kind, backend="cpu")
        with pytest.raises(error):
            analysis.factorize(bad, check_finite=False)
        factor = analysis.factorize(A)
        with pytest.raises(error):
            factor.refactorize(bad, check_finite=False)


@pytest.mark.parametrize("A", [SMALL, DENSE], ids=["loops", "BLAS"])
def test_nan_pivot_of_the_last_front_counts_as_replaced(A):
    """The backend reports it; no pivot repairs it."""
    engine = frontal.analyze(A, kind="general", backend="cpu").engine
    values = sp.csc_array(A).data.copy()
    assert engine.factorize(values, None).perturbed == 0
    values[-1] = np.nan
    assert engine.factorize(values, None).perturbed == 1


# --- fronts that are tiled -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_tiles_of_large_fronts_give_the_same_bits(monkeypatch, kind):
    """Whoever takes them: fronts of order 640 and above, with a contribution block, are shared."""
    monkeypatch.setattr(cpu, "_INLINE_FLOPS", 0)
    A = tiled_fronts(kind)
    b = np.cos(np.arange(A.shape[0]))
    analysis = frontal.analyze(A, kind=kind, ordering="natural", backend="cpu")
    k, m = analysis.front_sizes()
    shared = (k + m >= eliminate.MIN_TILED_ORDER) & (k > 256) & (m > 256)
    below = np.bincount(analysis.plan.parent + 1, minlength=k.size + 1)[1:]
    assert sorted(below[shared] > 0) == [False, True]
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setenv("FRONTAL_NUM_THREADS", str(threads))
        choose._engines.pop(analysis, None)
        factor = analysis.factorize(A)
        assert factor.analysis is analysis
        x = factor.solve(b, refine=0)
        assert scaled_residual(A, x, b) <= 1e-13
        found.append((factor.L.data, factor.U.data, factor.perm_r, x))
    for other in found[1:]:
        for mine, first in zip(other, found[0], strict=True):
            assert np.array_equal(mine, first)


@pytest.mark.parametrize("column", [0, 255, 256, 300])
def test_the_column_that_fails_in_a_later_block_is_told(column):
    A = np.full((310, 310), 0.5) + 310 * np.eye(310)
    A[column, column] = -1e6
    with pytest.raises(frontal.NotPositiveDefiniteError) as caught:
        frontal.factorize(sp.csc_array(A), kind="spd", ordering="natural", backend="cpu")
    assert caught.value.column == column


# --- new values ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_new_values_leave_nothing_of_the_old(kind):
    """Not their scalar type, and not the norms that errors are measured by."""
    A, b = DENSE, np.cos(np.arange(200.0))
    factor = frontal.factorize(A.astype(np.float32), kind=kind, backend="cpu")
    growth = factor.growth
    _, first = factor.solve(b, return_info=True)
    B = sp.csc_array(A * 2.0**30)
    assert factor.refactorize(B).dtype == np.float64
    x, info = factor.solve(b, refine=0, return_info=True)
    assert scaled_residual(B, x, b) <= 1e-15
    assert info.backward_error == pytest.approx(scaled_residual(B, x, b), rel=0.5, abs=0)
    assert info.componentwise_error <= 1e-14
    assert factor.growth == pytest.approx(growth * (1 if kind == "general" else 2.0**-15), rel=1e-5)
    assert first.backward_error <= 1e-15


@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_backward_errors_are_those_of_the_system_solved(trans):
    """Rows of A are far larger than its columns."""
    rng = np.random.default_rng(0)
    A = sp.csc_array(
        np.diag(rng.uniform(1, 2, 60)) + 1e3 * np.outer(np.arange(60) == 7, np.ones(60))
    )
    b = rng.standard_normal(60)
    x, info = frontal.factorize(A * (1 + 1j), backend="cpu").solve(b, trans, return_info=True)
    op = {"N": A * (1 + 1j), "T": A.T * (1 + 1j), "H": A.T * (1 - 1j)}[trans]
    assert info.backward_error == pytest.approx(scaled_residual(op, x, b), rel=0.5, abs=0)


# --- members of a team -----------------------------------------------------------------------


def crew(member, threads=3, progress=None):
    """Run a team that is told to end; its state, and the error that came of it."""
    state = np.zeros(tile_queue.STATE_SIZE, np.int64)
    error = None
    try:
        run_team(lambda rank: member(rank, state), threads, state, 7, progress)
    except BaseException as raised:
        error = raised
    return state, error


def told(state, word=tile_queue.QUIT, seconds=5.0) -> bool:
    """Wait until a member is told to end; whether it was."""
    end = time.monotonic() + seconds
    while not state[word] and time.monotonic() < end:
        time.sleep(1e-3)
    return bool(state[word])


@pytest.mark.parametrize("culprit", [0, 2])
def test_a_member_that_raises_ends_the_others(culprit):
    ended = []

    def member(rank, state):
        if rank == culprit:
            raise MemoryError("no scratch")
        ended.append(told(state))

    with all_is_over():
        state, error = crew(member)
    assert isinstance(error, MemoryError)
    assert str(error) == "no scratch"
    assert state[shared_state.INTERRUPT]
    assert ended == [True, True]


def test_the_first_error_is_told():
    def member(rank, state):
        if rank == 1:
            raise KeyError("first")
        told(state)
        raise ValueError("second")

    assert isinstance(crew(member)[1], KeyError)


def test_progress_that_raises_ends_the_team():
    """The members are waited for: they write to arrays of the factorization."""
    ended = []

    def member(rank, state):
        assert told(state, shared_state.INTERRUPT)
        time.sleep(0.05)
        ended.append(rank)

    def progress(*_):
        raise RuntimeError("no more")

    error = crew(member, progress=progress)[1]
    assert isinstance(error, RuntimeError)
    assert sorted(ended) == [0, 1, 2]


@pytest.mark.parametrize("culprit", [0, 1])
def test_a_factorization_with_a_member_that_raises(monkeypatch, culprit):
    run = cpu.run

    def broken(*given):
        if given[4] == (culprit == 0):  # the leader, or a helper
            raise ArithmeticError("no scratch")
        return run(*given)

    monkeypatch.setattr(cpu, "_INLINE_FLOPS", 0)
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "2")
    A = problems.poisson2d(20)
    analysis = frontal.analyze(A, kind="spd", backend="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(cpu, "run", broken)
        with pytest.raises(ArithmeticError, match="no scratch"):
            analysis.factorize(A)
    x = np.ones(400)
    assert np.allclose(analysis.factorize(A).solve(A @ x), x)
