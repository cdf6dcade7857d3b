"""Plain vectors, solved for in one compiled call: the same bits and the same words as otherwise."""

from __future__ import annotations

import gc
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import frontal
from frontal.compile.jit import jit
from frontal.cpu.blas import routines
from frontal.cpu.small import gil_handoff, warmup
from frontal.cpu.small import solve as at_once_of_all
from frontal.cpu.small.solve import MAX_SMALL_UNKNOWNS
from frontal.errors import (
    FactorFreedError,
    FactorInvalidError,
    IllConditionedWarning,
    NonFiniteInputError,
)
from frontal.factor.factor_condition import factor_condition
from frontal.factor.solve import FactorSolver
from frontal.numeric.condition import CERTIFIED, ESTIMATED

from ..conftest import TYPES
from ..matrices import dominant_system, tridiagonal

KINDS = ["spd", "symmetric", "hermitian", "general"]


@pytest.fixture(autouse=True)
def from_the_first_call(monkeypatch):
    """What is done at once is, however few calls there were."""
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 0)
    monkeypatch.setattr("frontal.cpu.small.warmup.GENERAL_FACTORIZATIONS", 0)


def by_the_way_of_all(factor, b, trans):
    """What is solved where nothing is done at once."""
    return factor._numbers.solver.solve(b, trans, None, None)[0]


@pytest.fixture
def at_once(monkeypatch):
    """How many solutions were found at once."""
    found = []
    original = FactorSolver.solve_fast

    def watched(self, b, trans):
        x = original(self, b, trans)
        found.append(x is not None)
        return x

    monkeypatch.setattr(FactorSolver, "solve_fast", watched)
    return found


@pytest.mark.parametrize("dtype", TYPES)
@settings(max_examples=30, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    n=st.integers(1, 60),
    kind=st.sampled_from(KINDS),
    trans=st.sampled_from("NTH"),
    seed=st.integers(0, 2**32 - 1),
)
def test_bits_are_those_of_all_solves(dtype, n, kind, trans, seed):
    A, b = dominant_system(n, kind, dtype, seed)
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    first = factor.solve(b, trans)
    for right in (b, 3 * b, b[::-1].copy()):
        x = factor.solve(right, trans)
        assert x.dtype == A.dtype
        assert x.flags.owndata
        np.testing.assert_array_equal(x, by_the_way_of_all(factor, right, trans))
    np.testing.assert_array_equal(factor.solve(b, trans), first)


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_plain_vectors_are_solved_at_once(at_once, kind, dtype, trans):
    A, b = dominant_system(40, kind, dtype, 0)
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    for _ in range(3):
        factor.solve(b, trans)
    assert at_once == [True, True, True]


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_first_solutions_are_judged_alike(monkeypatch, at_once, dtype, kind, trans):
    """Bits and condition numbers, where all columns of the inverse are formed and where not."""
    single = np.dtype(dtype) == np.complex64  # the last bits were seen to differ
    rounding = 4 * float(np.finfo(dtype).eps) if single else 0.0
    for n in (1, 2, 4, 5, 33):
        A, b = dominant_system(n, kind, dtype, n)
        factor = frontal.factorize(A, kind=kind, backend="cpu")
        other = factor.copy()
        monkeypatch.setattr(other._numbers.factor, "condition_fast", lambda *_: None)
        x = factor.solve(b, trans)
        np.testing.assert_array_equal(x, by_the_way_of_all(other, b, trans))
        found, expected = (one._numbers.solver.verdict.conditions for one in (factor, other))
        assert found
        assert found.keys() == expected.keys()
        for side, condition in found.items():
            assert condition.certified == expected[side].certified
            assert condition.value == pytest.approx(expected[side].value, rel=rounding, abs=0.0)
    assert all(at_once)


def test_a_large_estimate_without_dominant_rows_is_followed_by_a_bound():
    """Its bound of 2^45 silences solutions that the margin of an estimate would not."""
    A = sp.csc_array(sp.eye_array(44) - 2 * sp.eye_array(44, k=1))
    numeric = frontal.factorize(A, kind="general", backend="cpu")._numbers.factor
    assert numeric.condition_fast("N", CERTIFIED) == (pytest.approx(2.0**45, rel=0.01), True)
    estimate, certified = numeric.condition_fast("N", ESTIMATED)
    assert not certified
    assert estimate <= 2.0**45


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [t for t in TYPES if np.finfo(t).bits == 64])
def test_estimates_are_those_of_all_factors(monkeypatch, dtype, kind, trans):
    A, _ = dominant_system(33, kind, dtype, 3)
    numeric = frontal.factorize(A, kind=kind, backend="cpu")._numbers.factor
    found, certified = numeric.condition_fast(trans, ESTIMATED)
    monkeypatch.setattr(numeric, "condition_fast", lambda *_: None)
    expected = factor_condition(numeric, trans, np.dtype(dtype), certify=False)
    assert not certified
    assert found == pytest.approx(expected.value, rel=1e-12, abs=0.0)


def test_fronts_that_call_blas_too(at_once):
    A = frontal.problems.poisson2d(60)
    assert A.shape[0] <= MAX_SMALL_UNKNOWNS
    factor, b = frontal.factorize(A, backend="cpu"), np.arange(A.shape[0], dtype=float)
    x = [factor.solve(b) for _ in range(2)]
    assert at_once == [True, True]
    np.testing.assert_array_equal(*x)


@pytest.mark.parametrize(
    "given",
    [
        lambda b: np.repeat(b, 2)[::2],
        lambda b: b.reshape(-1, 1),
        lambda b: np.stack([b, b, -b], axis=1),
        lambda b: np.asfortranarray(np.stack([b, b, -b], axis=1)),
        lambda b: b.astype(np.float32),
        lambda b: b.astype(np.complex128),
        lambda b: b.astype(">f8"),
        lambda b: list(b),
        lambda b: np.rint(b).astype(np.int64),
        lambda b: np.frombuffer(b.tobytes()),
        lambda b: np.frombuffer(b"0" + b.tobytes(), np.uint8)[1:].view(np.float64),
        lambda b: sp.csc_array(b.reshape(-1, 1)),
        lambda b: b.view(np.matrix).T,
    ],
)
def test_other_right_hand_sides_are_as_before(at_once, given):
    A, b = dominant_system(30, "general", np.float64, 1)
    factor = frontal.factorize(A, backend="cpu")
    factor.solve(b)
    right = given(b)
    x = factor.solve(right)
    assert at_once == [True, False]
    y = by_the_way_of_all(factor, right, "N")
    assert type(x) is type(y)
    x, y = (z.toarray() if sp.issparse(z) else z for z in (x, y))
    np.testing.assert_array_equal(x, y)


def test_what_is_wrong_is_told_as_before():
    A, b = dominant_system(30, "general", np.float64, 2)
    factor = frontal.factorize(A, backend="cpu")
    for _ in range(2):
        factor.solve(b)
        for bad in (np.nan, np.inf, -np.inf):
            c = b.copy()
            c[7] = bad
            with pytest.raises(NonFiniteInputError, match="7"):
                factor.solve(c)
        with pytest.raises(ValueError, match="trans"):
            factor.solve(b, "C")
        with pytest.raises(ValueError, match="shape"):
            factor.solve(b[:-1])
    with pytest.raises(NonFiniteInputError):
        factor.refactorize(np.full(A.nnz, np.nan))
    with pytest.raises(FactorInvalidError):
        factor.solve(b)
    factor.refactorize(A)
    factor.free()
    with pytest.raises(FactorFreedError):
        factor.solve(b)


def test_each_solution_of_a_nearly_singular_matrix_is_warned_of():
    A = sp.csc_array([[1.0, 1.0], [1.0, 1.0 + 4e-15]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        factor = frontal.factorize(A, kind="general", singular="warn", backend="cpu")
    for _ in range(3):
        with pytest.warns(IllConditionedWarning):
            factor.solve(np.array([1.0, 2.0]))


def test_warned_of_once_and_again_by_the_condition_alone():
    """No pivot is small, and the errors are: only the condition tells."""
    n = 60
    A = sp.csc_array(sp.diags_array([1.0, -2.0], offsets=[0, 1], shape=(n, n)))
    b = A @ np.ones(n)
    factor = frontal.factorize(A, kind="general", backend="cpu")
    words = []
    for _ in range(3):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            factor.solve(b)
        words.append([str(w.message) for w in caught])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        by_the_way_of_all(factor, b, "N")
    assert words == [[str(w.message) for w in caught]] * 3
    assert words[0]


@pytest.mark.parametrize("size", [0.0, 5e-324, 1e-300, 1e300, 1.7e308])
def test_sizes_near_the_borders(size):
    A, b = dominant_system(20, "spd", np.float64, 3)
    factor = frontal.factorize(A, backend="cpu")
    factor.solve(b)
    right = np.full(20, size)
    for _ in range(2):
        with warnings.catch_warnings(record=True) as first:
            warnings.simplefilter("always")
            x = factor.solve(right)
        with warnings.catch_warnings(record=True) as second:
            warnings.simplefilter("always")
            y = by_the_way_of_all(factor, right, "N")
        np.testing.assert_array_equal(x, y)
        assert [str(w.message) for w in first] == [str(w.message) for w in second]


@pytest.mark.parametrize("kind", KINDS)
def test_a_solution_that_needs_refinement_is_refined(at_once, kind):
    """What the factors alone give is not good enough: A is far from what they are of.

    The one call refines where its residuals have the bits of the general path.
    """
    A, b = dominant_system(40, kind, np.float64, 4)
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    factor.solve(b)
    inner = factor._numbers.factor
    inner.panels *= 1 + 1e-6
    at_once.clear()
    for _ in range(2):
        x, info = factor.solve(b, return_info=True)
        assert info.refinement_steps > 0
        np.testing.assert_array_equal(factor.solve(b), x)
    assert any(at_once) is (kind != "general")


@pytest.mark.parametrize("kind", KINDS)
def test_next_factors_are_passed_over_after_a_failure(monkeypatch, kind):
    """More of them after each, up to fifteen, as those of one matrix often all need refinement."""
    (A, b), tried, fails = dominant_system(40, kind, np.float64, 6), [], True
    real = at_once_of_all._solve_small

    def solve_at_once(table, wide, b, x, how):
        tried.extend([0] * (b.size > 0))
        return (-1.0, -1.0, False) if fails and b.size else real(table, wide, b, x, how)

    monkeypatch.setattr(at_once_of_all, "_solve_small", solve_at_once)
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    for k in range(70):
        fails = k < 40 or k == 65
        wanted = np.linalg.solve(A.toarray() * (k + 1), b)
        tried.clear()
        x = factor.refactorize(A * (k + 1)).solve(b)
        np.testing.assert_allclose(x, wanted, rtol=1e-11)
        assert bool(tried) == (k in (0, 2, 6, 14, 30) or k in range(46, 66) or k > 66)


def test_good_solutions_of_a_factor_that_was_passed_over_are_followed_by_others(at_once):
    (A, b) = dominant_system(40, "general", np.float64, 6)
    factor = frontal.factorize(A, backend="cpu")
    numeric = factor._numbers.factor
    factor.solve(b)
    numeric._small_solvers["N"].hopeful = False
    at_once.clear()
    x = factor.solve(b)
    assert not any(at_once)
    np.testing.assert_array_equal(factor.solve(b), x)
    assert any(at_once)


def test_factors_in_single_of_a_matrix_in_double_are_left_alone(at_once):
    A, b = dominant_system(40, "general", np.float64, 5)
    factor = frontal.factorize(A, backend="cpu", precision="mixed")
    x = [factor.solve(b) for _ in range(3)]
    assert not any(at_once)
    np.testing.assert_array_equal(x[0], x[2])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_arrays_are_of_the_types_they_are_read_as(monkeypatch, dtype, kind):
    """Compiled code finds them by their addresses, which tell of no type."""
    given = []
    monkeypatch.setattr(at_once_of_all, "_describe", lambda *of: given.append(of[1:]))
    monkeypatch.setattr(at_once_of_all, "_solve_small", lambda *of: (-1.0, -1.0, False))
    A, b = dominant_system(9, kind, dtype, 1)
    factors = [frontal.factorize(A, kind=kind)]
    with warmup.never():
        factors.append(frontal.factorize(A, kind=kind))
    for factor in factors:
        for trans in "NTH":
            factor.solve(b, trans)
    assert given
    real = np.finfo(dtype).dtype
    letters = {"i": "i4", "l": "i8", "d": "f8", "w": np.dtype(dtype), "r": real}
    wanted = [np.dtype(letters[x]) for x in "ililwiwwlwr" + "idid" + "liwd" + "l"]
    for factors, _, matrix, _, turn in given:
        fields = *factors[:8], *factors[8], *factors[9:], *matrix, turn
        arrays = [x for x in fields if isinstance(x, np.ndarray)]
        assert [x.dtype for x in arrays] == wanted
        assert all(x.ndim == 1 and x.flags.c_contiguous for x in arrays)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_factors_of_a_plan_are_described_as_the_first_that_solved(monkeypatch, dtype, kind):
    """What a factorization writes for solutions to come names its own arrays, and no others."""
    A, b = dominant_system(40, kind, dtype, 7)
    first = frontal.analyze(A, kind=kind, backend="cpu").factorize(A)
    first.solve(b)
    kept = [weakref.ref(x) for x in (first._numbers.factor.panels, first._numbers.factor.matrix)]
    described, original = [], at_once_of_all._describe
    monkeypatch.setattr(
        at_once_of_all, "_describe", lambda *of: (described.append(of), original(*of))
    )
    analysis = first.analysis
    del first
    gc.collect()
    assert [ref() for ref in kept] == [None, None]
    rng = np.random.default_rng(1)
    pairs = []
    for scale in (0.5, 3.0):
        B = A.copy()
        B.data *= B.data.real.dtype.type(scale)
        if kind == "general":
            B.data *= rng.uniform(0.9, 1.1, B.nnz).astype(B.data.real.dtype)
        pairs.append((analysis.factorize(B), B))
    pairs[0][0].solve(b)
    for factor, B in [*pairs, (pairs[0][0], pairs[1][1])]:
        if (factor.A != B).nnz:
            factor.refactorize(B)
        x = factor._numbers.solver.solve_fast(b, "N")
        assert x is not None
        np.testing.assert_array_equal(x, by_the_way_of_all(factor, b, "N"))
        np.testing.assert_allclose(B @ x, b, atol=1e3 * np.finfo(dtype).eps * abs(b).max())
    assert bool(described) == (kind in ("symmetric", "hermitian"))  # D is not written


@jit
def _come_back(turn, others_run):
    turn[0] = 1
    gil_handoff.enter_python(turn, others_run)


def test_threads_that_left_make_others_wait_once_and_not_for_long():
    """Whoever finds the turn taken by nobody goes on; the solutions are those of one thread."""
    A = tridiagonal(300, -1.0, 2.5, -1.0)
    b = np.ones(300)
    factor = frontal.factorize(A)
    wanted = [factor.solve(b) for _ in range(40)][-1]
    gil_handoff.TURN[0] = 1  # of a thread that has ended
    with ThreadPoolExecutor(4) as pool:
        for x in pool.map(lambda _: factor.solve(b), range(200)):
            np.testing.assert_array_equal(x, wanted)
    _come_back(gil_handoff.TURN, routines(A.dtype).table[8])  # while that one holds the turn
    gil_handoff.TURN[0] = 1
    values = [factor.refactorize(A.data).solve(b) for _ in range(40)]
    np.testing.assert_array_equal(values[-1], wanted)
