"""Factor: solutions, factors and determinants in four scalar types, against dense LAPACK."""

from __future__ import annotations

import pickle
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal.cpu.host_system import direct
from frontal.factor.determinant import permutation_sign

from ..conftest import fronts_cost, scaled_residual

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random_system(dtype, method: str, n: int = 90, seed: int = 0) -> sp.csc_array:
    """A sparse matrix that Cholesky or LU fits, n by n, condition of a few hundred."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=4 / max(n, 4), random_state=rng, dtype=np.float64)
    if np.issubdtype(dtype, np.complexfloating):
        A = A + 1j * sp.random_array((n, n), density=4 / max(n, 4), random_state=rng)
    if method == "cholesky":
        A = A @ A.conj().T + sp.eye_array(n)
    else:
        A = A + sp.diags_array(rng.uniform(0.5, 2, n))
    return sp.csc_array(A.astype(dtype))


@pytest.fixture(scope="module", params=DTYPES, ids=lambda t: np.dtype(t).name)
def dtype(request):
    return request.param


@pytest.fixture(scope="module", params=["cholesky", "lu"])
def method(request):
    return request.param


@pytest.fixture(scope="module")
def system(dtype, method):
    """A matrix and its factor, with many fronts, most of several pivot columns."""
    A = random_system(dtype, method)
    with fronts_cost(3e-8):
        factor = frontal.factorize(A)
    assert factor.analysis.n_fronts >= 15
    return A, factor


def rhs(A, k, seed=1):
    rng = np.random.default_rng(seed)
    shape = (A.shape[0],) if k == 0 else (A.shape[0], k)
    B = rng.standard_normal(shape)
    if np.iscomplexobj(A.data):
        B = B + 1j * rng.standard_normal(shape)
    return B.astype(A.dtype)


def test_the_method_fits_the_matrix(system, method, dtype):
    A, factor = system
    assert factor.analysis.method == method
    assert factor.dtype == dtype
    assert factor.shape == A.shape
    assert factor.nnz == factor.analysis.nnz_factor


@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("k", [0, 1, 2, 7, 33, 70])
def test_solve(system, trans, k):
    A, factor = system
    op = {"N": A, "T": A.T, "H": A.conj().T}[trans]
    B = rhs(A, k)
    X, info = factor.solve(B, trans, return_info=True)
    eps = float(np.finfo(A.dtype).eps)
    assert X.shape == B.shape
    assert X.dtype == A.dtype
    assert scaled_residual(op, X, B) <= 4 * eps
    assert info.backward_error <= 4 * eps
    assert info.componentwise_error <= 1000 * eps
    dense = np.linalg.solve(op.toarray().astype(np.complex128), B.astype(np.complex128))
    condition = np.linalg.cond(A.toarray().astype(np.complex128))
    assert np.abs(X - dense).max() <= 4 * condition * eps * np.abs(dense).max()


def test_unrefined_solution_is_already_good(system):
    A, factor = system
    b = rhs(A, 0)
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        x = factor.solve(b, trans, refine=0)
        assert scaled_residual(op, x, b) <= 100 * np.finfo(A.dtype).eps


def test_factors_multiply_to_the_matrix(system, method):
    A, factor = system
    n = A.shape[0]
    L, U = factor.L, factor.U
    Pr = sp.csc_array((np.ones(n), (factor.perm_r, np.arange(n))))
    Pc = sp.csc_array((np.ones(n), (np.arange(n), factor.perm_c)))
    error = abs(Pr @ A @ Pc - L @ U).max()
    assert error <= 50 * n * np.finfo(A.dtype).eps * abs(A).max()
    assert sp.tril(L, format="csc").nnz == L.nnz
    assert sp.triu(U, format="csc").nnz == U.nnz
    if method == "lu":
        assert np.allclose(L.diagonal(), 1)
    else:
        dense = scipy.linalg.cholesky((Pr @ A @ Pc).toarray(), lower=True)
        assert (
            np.abs(L.toarray() - dense).max() <= 1e3 * np.finfo(A.dtype).eps * np.abs(dense).max()
        )


@pytest.mark.parametrize("trans", "NTH")
def test_direct_solution_of_each_op(dtype, method, trans):
    A = random_system(dtype, method)
    if method == "lu":  # scaled by rows and columns that differ
        size = 2.0 ** np.random.default_rng(2).integers(-9, 9, A.shape[0])
        A = sp.csc_array((sp.diags_array(size) @ A).astype(dtype))
    factor, b = frontal.factorize(A, backend="cpu"), rhs(A, 2)
    X = direct(factor._numbers.factor, b, trans)
    op = {"N": A, "T": A.T, "H": A.conj().T}[trans]
    for j in range(2):
        assert scaled_residual(op, X[:, j], b[:, j]) <= 1e3 * np.finfo(A.dtype).eps


def test_determinant(system):
    A, factor = system
    sign, logdet = factor.slogdet()
    dense_sign, dense_logdet = np.linalg.slogdet(A.toarray().astype(np.complex128))
    eps = float(np.finfo(A.dtype).eps)
    assert logdet == pytest.approx(dense_logdet, rel=1e3 * eps)
    assert abs(sign - dense_sign) <= 1e4 * eps


def test_sign_of_a_permutation():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 4, 5, 8, 9):
        for _ in range(10):
            perm = rng.permutation(n).astype(np.int32)
            assert permutation_sign(perm) == round(np.linalg.det(np.eye(n)[perm]))


def test_sign_of_the_determinant_in_any_order():
    A = random_system(np.float64, "lu", 20)
    wanted, rng = np.linalg.slogdet(A.toarray())[0], np.random.default_rng(1)
    for _ in range(8):
        factor = frontal.factorize(A, kind="general", ordering=rng.permutation(20))
        assert factor.slogdet()[0] == wanted


def test_refactorize_in_place(system):
    A, original = system
    factor = original.copy()
    b = rhs(A, 0)
    before = original.solve(b)
    B = sp.csc_array((2 * A.data, A.indices, A.indptr), shape=A.shape)
    assert factor.refactorize(B) is factor
    assert np.allclose(factor.solve(b), before / 2, rtol=1e-3, atol=1e-5)
    assert np.array_equal(original.solve(b), before)  # the copy is independent
    factor.refactorize(A.data)
    assert np.array_equal(factor.solve(b), before)


def test_analysis_factorizes_other_values(system, dtype):
    A, factor = system
    analysis = pickle.loads(pickle.dumps(factor.analysis))
    twin = analysis.factorize(A)
    assert np.array_equal(twin.solve(rhs(A, 3)), factor.solve(rhs(A, 3)))
    with pytest.raises(ValueError, match="pattern differs"):
        analysis.factorize(A + sp.eye_array(A.shape[0], k=40))
    with pytest.raises(ValueError, match="n = 90"):
        analysis.factorize(sp.eye_array(5))


def test_pickle(system):
    A, factor = system
    twin = pickle.loads(pickle.dumps(factor))
    assert np.array_equal(twin.solve(rhs(A, 2)), factor.solve(rhs(A, 2)))
    assert twin.info["nnz_factor"] == factor.info["nnz_factor"]


def test_pickles_of_other_versions_are_refused(monkeypatch):
    factor = frontal.factorize(random_system(np.float64, "cholesky"))
    for made in (factor, factor.analysis):
        here = pickle.dumps(made)
        for cut in (0, 1, 100, len(here) // 2, len(here) - 1):
            with pytest.raises((EOFError, pickle.UnpicklingError)):
                pickle.loads(here[:cut])
        monkeypatch.setattr("frontal.files.versioned_pickle.__version__", "0.0.9")
        there = pickle.dumps(made)
        with pytest.raises(pickle.UnpicklingError, match=r"but frontal 0\.0\.9 is installed"):
            pickle.loads(here)
        monkeypatch.undo()
        with pytest.raises(pickle.UnpicklingError, match=r"written by frontal 0\.0\.9"):
            pickle.loads(there)


def test_pickles_of_version_02_are_refused_with_a_reason():
    """The first class beside `Analysis` in such a pickle is of a module that was renamed."""
    pickled = b"\x80\x04cfrontal.factor.analysis\nAnalysis\ncfrontal.symbolic.symbolic\nSymbolic\n."
    with pytest.raises(ImportError, match=r"frontal 0\.2 or before.*write it again"):
        pickle.loads(pickled)


def test_linear_operator_and_call(system):
    A, factor = system
    operator = factor.as_linear_operator()
    b = rhs(A, 0)
    assert np.array_equal(operator @ b, factor(b))
    assert np.array_equal(operator.H @ b, factor.solve(b, "H"))
    assert (operator @ rhs(A, 4)).shape == (A.shape[0], 4)


def test_values_are_copied():
    A = random_system(np.float64, "cholesky")
    factor = frontal.factorize(A)
    b = rhs(A, 0)
    before = factor.solve(b)
    A.data[:] = np.nan
    assert np.array_equal(factor.solve(b), before)


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(0, 60),
    seed=st.integers(0, 999),
    method=st.sampled_from(["cholesky", "lu"]),
    merging=st.booleans(),
)
def test_random_systems(n, seed, method, merging):
    A = random_system(np.float64, method, n, seed)
    x = np.random.default_rng(seed).standard_normal(n)
    with nullcontext() if merging else fronts_cost():
        y, info = frontal.solve(A, A @ x, return_info=True)
    assert info.backward_error <= 1e-15
    assert scaled_residual(A, y, A @ x) <= 1e-15


def test_mixed_scalar_types():
    A = random_system(np.float32, "cholesky")
    factor = frontal.factorize(A)
    b = np.random.default_rng(0).standard_normal(90)
    x, info = factor.solve(b, return_info=True)
    assert x.dtype == np.float64
    assert info.backward_error <= 2e-16  # a single-precision factor, refined in double
    z = factor.solve(b + 1j * b[::-1])
    assert z.dtype == np.complex128
    assert np.allclose(z.real, x)
    assert np.allclose(z.imag, factor.solve(b[::-1].copy()))


def test_unknown_trans():
    factor = frontal.factorize(random_system(np.float64, "lu"))
    with pytest.raises(ValueError, match="trans is 'C'"):
        factor.solve(np.ones(90), "C")


def test_logdet_of_a_negative_determinant():
    factor = frontal.factorize(sp.csc_array([[0.0, 2.0], [3.0, 1.0]]))
    assert factor.slogdet()[0] == -1
    with pytest.raises(ValueError, match="not positive"):
        factor.logdet()
