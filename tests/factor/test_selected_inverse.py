"""Entries of the inverse, by fronts and by solves: all methods, patterns and refusals."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import problems
from frontal.backend.protocol import DelayFailure
from frontal.cpu.backend import CpuBackend
from frontal.numeric.method import LDLH, LDLT, LU

from ..conftest import fronts_cost
from ..matrices import (
    path_laplacian,
    scaled_values,
    solid_system,
    tiled_fronts,
    tridiagonal,
    with_values,
    zero_diagonal_system,
)

pytestmark = pytest.mark.filterwarnings("error::frontal.PerformanceWarning")  # solves instead

KINDS = ("spd", "symmetric", "hermitian", "general")
METHODS = {"symmetric": LDLT, "hermitian": LDLH, "general": LU}
DTYPES = ("f4", "f8", "c8", "c16")
APART = -1.0  # seconds a front: the more the better
GROWTH = 10 * np.finfo("f4").eps ** (-1 / 3)  # largest amplification of errors by pivots


def random_matrix(kind, dtype, n, density, seed):
    """Return a regular matrix with zeros on the diagonal unless it is positive definite."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((n, n)) * (rng.random((n, n)) < density)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((n, n)) * (a != 0)
    if kind == "spd":
        return sp.csc_array((a @ a.conj().T + np.eye(n)).astype(dtype))
    if kind == "general":
        return sp.csc_array((a + 2 * np.eye(n)[rng.permutation(n)]).astype(dtype))
    a = a + (a.conj().T if kind == "hermitian" else a.T)
    return sp.csc_array((a + np.diag(rng.standard_normal(n))).astype(dtype))


def dense_inverse(A):
    return np.linalg.inv(A.toarray().astype(np.result_type(A.dtype, "f8")))


def error(A, found, wanted, X):
    """Largest error, in roundings of the largest entry times the condition number."""
    scale = np.abs(A.toarray()).sum(axis=0).max() * np.abs(X).sum(axis=0).max() * np.abs(X).max()
    return np.abs(found - wanted).max(initial=0.0) / (np.finfo(A.dtype).eps * scale)


def check_all(factor, A, growth=20.0):
    """Compare all queries with the dense inverse."""
    X, n = dense_inverse(A), A.shape[0]
    i, j = np.indices((n, n))
    assert factor.diag_inv().dtype == A.dtype
    assert error(A, factor.diag_inv(), X.diagonal(), X) <= growth
    assert error(A, factor.inverse_entries(i, j), X, X) <= growth
    for pattern, source in (("A", A), (A.T, A.T)):
        Z, source = factor.selected_inverse(pattern), source.tocsc()
        source.sort_indices()
        assert np.array_equal(Z.indptr, source.indptr)
        assert np.array_equal(Z.indices, source.indices)
        row, column = source.tocoo().coords
        assert error(A, Z.data, X[row, column], X) <= growth
    Z = factor.selected_inverse("factor")
    stored = with_values(Z, np.ones(Z.nnz)).toarray()
    assert stored.max() == 1
    assert np.count_nonzero(stored) >= np.count_nonzero(A.toarray())
    assert error(A, Z.toarray(), X * stored, X) <= growth
    trace = factor.trace_inv(A)
    assert abs(trace - n) <= growth * n * np.finfo(A.dtype).eps * np.linalg.cond(A.toarray())


@given(
    st.sampled_from(KINDS),
    st.sampled_from(DTYPES),
    st.integers(1, 60),
    st.floats(0.0, 4.0),
    st.integers(0, 10_000),
)
@settings(max_examples=80, deadline=None)
def test_random_patterns_give_the_dense_inverse(kind, dtype, n, degree, seed):
    A = random_matrix(kind, dtype, n, min(1.0, degree / n), seed)
    if not np.linalg.cond(A.toarray()) < 1e4:
        return
    indefinite = kind in ("symmetric", "hermitian")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", frontal.PerformanceWarning)
        check_all(frontal.factorize(A, kind=kind), A, GROWTH if indefinite else 20.0)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "density"), [(40, 1.0), (200, 1.0), (300, 0.01)])
def test_dense_and_large_patterns_give_the_dense_inverse(kind, dtype, n, density):
    A = random_matrix(kind, dtype, n, density, 3)
    factor = frontal.factorize(A, kind=kind)
    check_all(factor, A, 20.0 if kind in ("spd", "general") else GROWTH)
    if kind in ("symmetric", "hermitian") and n == 200:
        assert factor.has_pairs


def test_diagonal_and_scalar_matrices_are_inverted_exactly():
    for values in ([4.0], [1.0, -2.0, 0.5], [1.0, 2.0, 4.0]):
        A = sp.csc_array(sp.diags_array(values))
        for kind in ("auto", "symmetric", "general"):
            factor = frontal.factorize(A, kind=kind)
            for found in (factor.diag_inv(), factor.selected_inverse("factor").diagonal()):
                np.testing.assert_allclose(found, 1 / np.array(values), rtol=4e-16)
    assert frontal.factorize(sp.csc_array((0, 0))).diag_inv().shape == (0,)


@pytest.mark.parametrize("kind", ["spd", "symmetric", "general"])
def test_forest_with_many_roots_gives_the_dense_inverse(kind):
    blocks = [random_matrix(kind, "f8", n, 0.3, n) for n in (1, 7, 30, 2, 19)]
    A = sp.csc_array(sp.block_diag(blocks))
    factor = frontal.factorize(A, kind=kind)
    check_all(factor, A, GROWTH)
    assert factor.inverse_entries(0, 58) == 0


@pytest.mark.parametrize("kind", METHODS)
def test_delayed_columns_give_the_dense_inverse(kind, with_fronts):
    A = zero_diagonal_system(METHODS[kind], "c16", 120, 0.03, 3, zeros=0.9)
    with fronts_cost(APART):
        factor = frontal.factorize(A, kind=kind, ordering="natural", backend="cpu")
    assert factor.analysis.amendments == 1 or kind == "general"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", frontal.PerformanceWarning)
        check_all(factor, A, GROWTH)
        check_all(factor.refactorize(A), A, GROWTH)


def test_inaccurate_entries_are_replaced_by_solutions():
    """In the order of the matrix, errors by small pivots are multiplied from front to front."""
    A = zero_diagonal_system(LDLH, "c16", 120, 0.03, 3, zeros=0.9)
    with fronts_cost(APART):
        factor = frontal.factorize(A, kind="hermitian", ordering="natural", backend="cpu")
    X = dense_inverse(A)
    with pytest.warns(frontal.PerformanceWarning, match="by solves"):
        assert error(A, factor.diag_inv(), X.diagonal(), X) <= 20
    with pytest.warns(frontal.PerformanceWarning, match="by solves"):
        Z = factor.selected_inverse("factor")
    assert error(A, Z.data, X[Z.tocoo().coords], X) <= 20
    with pytest.warns(frontal.PerformanceWarning, match="by solves"):
        found = factor.quadratic_diag(A)
    np.testing.assert_allclose(found, A.diagonal(), atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_refactorize_gives_the_inverse_of_new_values(kind):
    A = random_matrix(kind, "f8", 50, 0.06, 8)
    factor = frontal.factorize(A, kind=kind)
    factor.diag_inv()
    B = with_values(A, scaled_values(A, 1, seed=2)[0])
    check_all(factor.refactorize(B), B, GROWTH)


def test_factor_by_columns_is_repeated_by_fronts_once(monkeypatch):
    A = sp.csc_array(tridiagonal(300, 1.0, 3.0, -0.5))
    factor = frontal.factorize(A, kind="general", backend="cpu")
    assert factor.analysis.by_columns
    check_all(factor, A)
    fronts = factor._numbers._frontal
    factor.diag_inv()
    assert factor._numbers._frontal is fronts
    assert pickle.loads(pickle.dumps(factor))._numbers._frontal is None
    B = with_values(A, 2 * A.data)
    check_all(factor.refactorize(B), B)
    check_all(factor.copy(), B)


def test_matched_and_scaled_matrix_gives_the_dense_inverse(with_fronts):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((80, 80)) * (rng.random((80, 80)) < 0.03)
    a[np.arange(80), rng.permutation(80)] += 5
    scale = [2.0 ** rng.integers(-60, 60, 80) for _ in range(2)]
    A = sp.csc_array(a * scale[0][:, None] * scale[1])
    factor = frontal.factorize(A, kind="general")
    assert not np.array_equal(factor.analysis.perm, factor.analysis.row_perm)
    X = np.linalg.inv(a) / scale[0] / scale[1][:, None]
    size = np.abs(np.linalg.inv(a)).max() / scale[0] / scale[1][:, None]
    i, j = np.indices(A.shape)
    assert (np.abs(factor.inverse_entries(i, j) - X) <= 1e-12 * size).all()
    assert abs(factor.trace_inv(A) - 80) < 1e-9


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_extreme_scales_do_not_overflow(kind):
    scale = 2.0 ** np.array([-500, 500, 300, -300])
    a = np.array([[2.0, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, 1], [0, 0, 1, 2]])
    A = sp.csc_array(a * scale[:, None] * scale)
    found = frontal.factorize(A, kind=kind).diag_inv()
    wanted = np.linalg.inv(a).diagonal() / scale / scale
    np.testing.assert_allclose(found, wanted, rtol=1e-14)
    tiny = sp.csc_array(sp.diags_array([1e-310, 1.0]))
    with pytest.raises(frontal.SolutionOverflowError):
        frontal.factorize(tiny, kind=kind).diag_inv()


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_tiled_fronts_give_the_dense_inverse(kind):
    A = tiled_fronts(kind)
    factor, X = frontal.factorize(A, kind=kind, ordering="natural"), dense_inverse(A)
    assert (np.diff(factor.analysis.plan.start) > 256).any()
    row, column = A.tocoo().coords
    assert error(A, factor.selected_inverse().tocoo().data, X[row, column], X) <= 20


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_pairs_across_tiles_give_the_dense_inverse(dtype):
    """A dense front of 2x2 pivots, whose strips and tiles begin inside of pairs."""
    n = 650
    pairs = np.kron(np.eye(n // 2), [[0.0, 1.0], [1.0, 0.0]]).astype(dtype)
    pairs = np.pad(pairs, (1, 0))  # pairs begin at odd columns
    pairs[0, 0] = 1
    noise = np.random.default_rng(0).standard_normal(pairs.shape) * 1e-4
    pairs = pairs + noise + noise.T + (1j * (noise - noise.T) if dtype == "c16" else 0)
    A = sp.csc_array(pairs)
    factor = frontal.factorize(A, kind="hermitian", ordering="natural", backend="cpu")
    assert factor.D.diagonal(1)[63::64].all()
    X = dense_inverse(A)
    assert error(A, factor.selected_inverse().toarray(), X, X) <= 20


@pytest.mark.parametrize("kind", ["spd", "symmetric", "general"])
def test_threads_and_runs_give_the_same_bits(kind, monkeypatch, with_fronts):
    monkeypatch.setattr("frontal.cpu.inverse.selected._INLINE_FLOPS", 0)
    A = solid_system(kind, n=9)
    tiled = tiled_fronts("general" if kind == "general" else "spd")
    for matrix, options in ((A, {}), (tiled, {"ordering": "natural"})):
        factor = frontal.factorize(matrix, kind=kind, **options)
        found = []
        for threads in (1, 2, 3, 2):
            monkeypatch.setenv("FRONTAL_NUM_THREADS", str(threads))
            found.append(factor.selected_inverse().data)
        assert all(np.array_equal(x, found[0]) for x in found[1:])


@pytest.mark.parametrize("kind", ["spd", "symmetric", "general"])
def test_few_entries_are_those_of_the_whole_diagonal(kind):
    A = solid_system(kind)
    factor = frontal.factorize(A, kind=kind)
    places = np.array([5, 100, 100, 511])
    assert np.array_equal(factor.inverse_entries(places, places), factor.diag_inv()[places])
    assert factor.inverse_entries([], []).shape == (0,)
    assert factor.inverse_entries([[3]], [4, 5]).shape == (1, 2)


def test_explicit_zeros_are_answered():
    A = sp.csc_array(tridiagonal(30, 1.0, 4.0, 1.0))
    A.data[A.indices != np.repeat(np.arange(30), np.diff(A.indptr))] *= np.arange(58) % 3 > 0
    factor, X = frontal.factorize(A), dense_inverse(A)
    Z = factor.selected_inverse()
    assert Z.nnz == A.nnz == 88
    row, column = A.nonzero()
    np.testing.assert_allclose(Z.toarray()[row, column], X[row, column], rtol=1e-14)
    B = sp.coo_array(([0.0, 2.0, 1.0], ([3, 3, 29], [4, 4, 0])), shape=(30, 30))
    Z = factor.selected_inverse(B)
    assert Z.nnz == 2
    np.testing.assert_allclose([Z[3, 4], Z[29, 0]], [X[3, 4], X[29, 0]], atol=1e-16)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("kind", ["spd", "symmetric", "general"])
def test_quadratic_forms_are_those_of_the_dense_inverse(kind, dtype):
    A = random_matrix(kind, dtype, 90, 0.02, 5)
    rng, factor, X = np.random.default_rng(2), frontal.factorize(A, kind=kind), dense_inverse(A)
    M = rng.standard_normal((70, 90)) * (rng.random((70, 90)) < 0.02)
    M[3], M[4], M[5] = 0, rng.standard_normal(90), A.toarray()[7].real
    M = M + (1j * M[:, ::-1] if dtype == "c16" else 0)
    found = factor.quadratic_diag(sp.csr_array(M))
    wanted = np.einsum("ij,jk,ik->i", M, X, M.conj())
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    B = sp.coo_array(M[:, :70])
    B = sp.coo_array((B.data, B.coords), shape=(90, 90))
    assert abs(factor.trace_inv(B) - np.trace(X @ B.toarray())) < 1e-9 * np.abs(X).sum()


def test_report_compares_the_diagonal_with_solutions(monkeypatch):
    factor = frontal.factorize(problems.poisson2d(12))
    diagonal, info = factor.diag_inv(return_info=True)
    assert info.positive
    assert len(set(info.columns)) == 4
    assert info.error < 1e-14
    monkeypatch.setattr("frontal.factor.selected_inverse.inverse_entries", lambda *_: -diagonal)
    with pytest.warns(frontal.IllConditionedWarning, match="not positive"):
        _, info = factor.diag_inv(return_info=True)
    assert not info.positive
    assert info.error > 1
    assert frontal.factorize(solid_system("general")).diag_inv(return_info=True)[1].positive is None


def test_singular_and_perturbed_factors_are_refused(monkeypatch):
    factor = frontal.factorize(path_laplacian(20), singular="allow")
    queries = [
        lambda: factor.diag_inv(),
        lambda: factor.selected_inverse("factor"),
        lambda: factor.inverse_entries(0, 19),
        lambda: factor.trace_inv(path_laplacian(20)),
        lambda: factor.quadratic_diag(sp.csr_array(np.ones((1, 20)))),
    ]
    for query in queries:
        with pytest.raises(frontal.InverseInaccurateError, match="depends on the others") as caught:
            query()
        assert caught.value.null_columns.size == 1
    factor = frontal.factorize(problems.poisson2d(4))
    monkeypatch.setattr(factor._numbers.factor, "perturbed", 2)
    with pytest.raises(frontal.InverseInaccurateError, match="2 of its pivots were replaced"):
        factor.diag_inv()


def test_mixed_precision_is_replaced_by_double():
    A = problems.poisson2d(15)
    factor = frontal.factorize(A, precision="mixed")
    assert factor.dtype == np.float32
    np.testing.assert_allclose(factor.diag_inv(), dense_inverse(A).diagonal(), rtol=1e-13)
    assert factor.dtype == np.float64


@pytest.mark.parametrize("kind", ["spd", "symmetric", "general"])
def test_ill_conditioned_matrix_warns(kind):
    A = path_laplacian(10)
    A[0, 0] += 2e-14
    factor = frontal.factorize(A, kind=kind)
    with pytest.warns(frontal.IllConditionedWarning, match="two correct digits"):
        factor.diag_inv()


def test_invalid_arguments_and_lost_factors_raise():
    A = problems.poisson2d(4)
    factor = frontal.factorize(A)
    for call, kind in (
        (lambda: factor.inverse_entries(0, 16), IndexError),
        (lambda: factor.inverse_entries(-1, 0), IndexError),
        (lambda: factor.inverse_entries(0.5, 0), TypeError),
        (lambda: factor.inverse_entries([0, 1], [0, 1, 2]), ValueError),
        (lambda: factor.selected_inverse("L"), ValueError),
        (lambda: factor.selected_inverse(np.eye(16)), TypeError),
        (lambda: factor.selected_inverse(sp.eye_array(15)), ValueError),
        (lambda: factor.trace_inv(sp.csr_array((16, 15))), ValueError),
        (lambda: factor.quadratic_diag(sp.csr_array((3, 15))), ValueError),
    ):
        with pytest.raises(kind):
            call()
    factor.free()
    with pytest.raises(frontal.FactorFreedError):
        factor.diag_inv()


def test_memory_is_checked_before_it_is_allocated(monkeypatch):
    factor = frontal.factorize(problems.poisson2d(6))
    monkeypatch.setattr("frontal.backend.host_memory._UNCHECKED_BYTES", 0)
    monkeypatch.setattr("frontal.backend.host_memory.available_memory", lambda: 100)
    with pytest.raises(frontal.FactorMemoryError):
        factor.diag_inv()


def test_replaced_pivots_of_a_factorization_are_refused(monkeypatch, with_fronts):
    A = zero_diagonal_system(LU, "f8", 60, 0.05, 1)
    factorize = CpuBackend.factorize

    def without_delays(self, *args, delaying=True, **options):
        if delaying:
            raise DelayFailure
        return factorize(self, *args, delaying=False, **options)

    monkeypatch.setattr(CpuBackend, "factorize", without_delays)
    with fronts_cost(APART):
        factor = frontal.factorize(A, kind="general", ordering="natural", singular="allow")
    if factor.info["perturbed_pivots"]:
        with pytest.raises(frontal.InverseInaccurateError):
            factor.diag_inv()
