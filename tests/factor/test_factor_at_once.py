"""Small systems, factorized in one compiled call: the same numbers and words as otherwise."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.cpu.backend import CpuBackend
from frontal.cpu.factor import CpuFactor
from frontal.cpu.small.warmup import CallCounter
from frontal.errors import (
    FactorInvalidError,
    NonFiniteInputError,
    NotPositiveDefiniteError,
    SingularMatrixError,
)

from ..conftest import TYPES
from ..matrices import dominant_system, path_laplacian, tridiagonal
from .test_at_once import KINDS


@pytest.fixture(autouse=True)
def from_the_first_call(monkeypatch):
    """What is done at once is, however few calls there were."""
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 0)
    monkeypatch.setattr("frontal.cpu.small.warmup.GENERAL_FACTORIZATIONS", 0)


@pytest.fixture
def at_once(monkeypatch):
    """Switches the one call off and on, and tells for each try whether it gave a factor."""
    original, again, found = CpuBackend.factorize_fast, CpuFactor.refactorizer, []

    def watched(self, *given):
        if not watched.on:
            return None
        factor = original(self, *given)
        found.append(factor is not None)
        return factor

    def watched_again(self, *given):
        make = again(self, *given)
        return make and (lambda matrix: watched_factor(make, matrix))

    def watched_factor(make, matrix):
        factor = make(matrix) if watched.on else None
        found.append(factor is not None)
        return factor

    watched.on, watched.found = True, found
    monkeypatch.setattr(CpuBackend, "factorize_fast", watched)
    monkeypatch.setattr(CpuFactor, "refactorizer", watched_again)
    return watched


def assert_alike(factor, other):
    """The same factors, to the last bit, and all that is known of them."""
    one, two = factor._numbers.factor, other._numbers.factor
    for a, b in (
        (one.pivots, two.pivots),
        (one.subdiagonal(), two.subdiagonal()),
        (factor.L.data, other.L.data),
        (one.nulls, two.nulls),
        (one.matrix.data, two.matrix.data),
    ):
        np.testing.assert_array_equal(a, b)
    assert one.scaling == two.scaling
    assert one.matrix.norms == two.matrix.norms
    assert one.matrix.hermitian == two.matrix.hermitian
    known, two.known = one.health().pivot_ratio, None
    np.testing.assert_allclose(known, two.health().pivot_ratio, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TYPES)
def test_factors_are_those_of_all_factorizations(at_once, dtype, kind):
    for n in (1, 2, 5, 40, 150):
        A, b = dominant_system(n, kind, dtype, n)
        if kind != "spd":  # rows and columns of all sizes, which are scaled
            size = sp.diags_array(2.0 ** np.random.default_rng(n).integers(-9, 9, n)).astype(dtype)
            A = sp.csc_array(size @ A @ size)
        at_once.on = True
        factor = frontal.factorize(A, kind=kind, backend="cpu")
        at_once.on = False
        other = frontal.factorize(A, kind=kind, backend="cpu")
        assert_alike(factor, other)
        for scale in (3.0, 0.7):
            at_once.on = True
            factor.refactorize(A.data * A.dtype.type(scale))
            at_once.on = False
            other.refactorize(A.data * A.dtype.type(scale))
            assert_alike(factor, other)
            np.testing.assert_array_equal(factor.solve(b), other.solve(b))
    assert np.mean(at_once.found) > 0.8


@pytest.mark.usefixtures("with_fronts")
def test_a_chain_is_factorized_at_once(at_once):
    A = tridiagonal(1000, -1.0, 2.1, -0.5)
    factor = frontal.factorize(A, backend="cpu")
    factor.refactorize(2 * A.data)
    assert at_once.found == [True, True]


def said(run):
    """Errors and warnings of a call, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run()
            error = ""
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    return error, [str(w.message) for w in caught]


def odd_matrices():
    """Matrices of which there is something to be said, or whose columns move."""
    n, rng = 30, np.random.default_rng(0)
    line = tridiagonal(n, -1.0, 2.0, -1.0)
    negative = line.copy()
    negative.data[45] = -3.0
    yield "indefinite", negative
    free = path_laplacian(n)
    yield "singular", free
    yield "next to singular", sp.csc_array(free + 1e-13 * sp.eye_array(n))
    yield "of zeros", sp.csc_array(0 * line)
    zero = sp.csc_array(sp.kron(sp.eye_array(n // 2), [[0.0, 1.0], [1.0, 0.0]]))
    yield (
        "without a diagonal",
        sp.csc_array(zero + sp.diags_array([1e-3], offsets=[3], shape=(n, n))),
    )
    far = sp.diags_array(10.0 ** rng.uniform(-9, 9, n))
    other = sp.random_array((n, n), density=0.2, random_state=rng)
    yield "of all sizes", sp.csc_array(far @ (other + 1e-9 * sp.eye_array(n)) @ far)
    yield "near the largest number", sp.csc_array(1e307 * line)
    yield "near the least number", sp.csc_array(1e-307 * line)
    yield "with NaN", sp.csc_array(line * np.where(np.arange(n) == 7, np.nan, 1.0))


@pytest.mark.parametrize("kind", ["auto", "general"])
@pytest.mark.parametrize(("name", "A"), [pytest.param(*of, id=of[0]) for of in odd_matrices()])
def test_what_is_unusual_is_told_as_before(at_once, kind, name, A):
    b, told = np.arange(1.0, A.shape[0] + 1), []
    for on in (True, False):
        at_once.on = on
        x = []

        def run(x=x):
            factor = frontal.factorize(A, kind=kind, backend="cpu", check_finite=False)
            x.append(factor.solve(b))
            factor.refactorize(0.5 * A.data)
            x.append(factor.solve(b))

        told.append((said(run), x))
    (words, x), (expected, y) = told
    assert words == expected
    for one, two in zip(x, y, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_small_pivots_are_left_to_those_who_look_closer(at_once, kind):
    A = dict(odd_matrices())["next to singular"]
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    assert factor._numbers.factor.health().pivot_ratio < 1e-8
    factor.refactorize(A.data)
    assert at_once.found == [False, False]


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_values_of_all_sizes_are_scaled_by_those_who_look_closer(at_once, kind):
    """Their scaling is that of a matching, which the values before had no need of."""
    n, rng = 8, np.random.default_rng(0)
    A = rng.uniform(1, 2, (n, n)) + n * np.eye(n)
    B = 10.0 ** rng.uniform(-9, 9, (n, n)) * (1 - np.eye(n)) + 1e-30 * np.eye(n)
    A, B = (sp.csc_array(M + (M.T if kind == "symmetric" else 0)) for M in (A, B))
    factor = frontal.factorize(A, kind=kind, backend="cpu").refactorize(B)
    assert at_once.found == [True, False]
    at_once.on = False
    assert_alike(factor, frontal.factorize(A, kind=kind, backend="cpu").refactorize(B))


def test_a_failure_leaves_no_factor(at_once):
    A, b = dominant_system(30, "spd", np.float64, 2)
    factor = frontal.factorize(A, kind="spd", backend="cpu")
    for bad, error in ((-1.0, NotPositiveDefiniteError), (np.nan, NonFiniteInputError)):
        with pytest.raises(error):
            factor.refactorize(bad * A.data)
        with pytest.raises(FactorInvalidError):
            factor.solve(b)
    with pytest.raises(SingularMatrixError):
        frontal.factorize(A, kind="general", backend="cpu").refactorize(0 * A.data)
    factor.refactorize(A.data)
    np.testing.assert_allclose(A @ factor.solve(b), b, rtol=1e-12)


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_copies_and_matrices_of_before_stay(kind):
    A, b = dominant_system(30, kind, np.float64, 3)
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    copy, given, x = factor.copy(), factor.A, factor.solve(b)
    values = 3 * A.data
    factor.refactorize(values)
    values[:] = np.nan
    np.testing.assert_array_equal(copy.solve(b), x)
    np.testing.assert_array_equal(given.data, A.data)
    np.testing.assert_allclose(factor.solve(b), x / 3, rtol=1e-13)


@pytest.mark.parametrize("kind", ["spd", "symmetric", "general"])
def test_threads_with_one_analysis(kind):
    """They share the pattern, and no room that one of them works in."""
    A, b = dominant_system(200, kind, np.float64, 4)
    analysis = frontal.analyze(A, kind=kind, backend="cpu")
    scales = np.arange(1.0, 6.0)
    expected = [analysis.factorize(sp.csc_array(s * A)).solve(b) for s in scales]
    wrong = []

    def work(i):
        factor = analysis.factorize(sp.csc_array(scales[i] * A))
        for turn in range(60):
            j = (i + turn) % scales.size
            factor.refactorize(scales[j] * A.data)
            if not np.array_equal(factor.solve(b), expected[j]):
                wrong.append((i, turn))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(scales.size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_code_of_its_own_is_for_those_who_call_often(monkeypatch, at_once):
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 3)
    monkeypatch.setattr("frontal.cpu.backend._often", CallCounter())
    A, b = dominant_system(30, "spd", np.float64, 5)
    factor = frontal.factorize(A, backend="cpu")
    x = [factor.refactorize(A.data).solve(b) for _ in range(4)]
    assert at_once.found == [False, False, False, True, True]
    np.testing.assert_array_equal(x[0], x[-1])
