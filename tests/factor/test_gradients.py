"""Derivatives of solutions: by dense algebra, in each order of values, kind and type."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.factor.state import FactorState

from ..gradient_tools import KINDS, N, check, system, vectors


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_types_and_sides(kind, dtype, trans):
    A, _ = system(kind, dtype)
    check(A, kind, trans, N if trans == "N" else (N, 3))


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("kind", ["spd", "general"])
def test_complex_vectors_of_a_real_matrix(kind, trans):
    A, _ = system(kind, "f8")
    check(A, kind, trans, (N, 2), vector="c16")


def repeated(A):
    """COO with each entry in two parts, in a random order."""
    coo, rng = A.tocoo(), np.random.default_rng(2)
    order = rng.permutation(2 * coo.nnz)
    row, col = np.tile(coo.row, 2)[order], np.tile(coo.col, 2)[order]
    return sp.coo_array((np.tile(coo.data / 2, 2)[order], (row, col)), shape=A.shape)


def unsorted(A):
    """CSR with the columns of each row in descending order."""
    csr = A.tocsr()
    rows = np.repeat(np.arange(A.shape[0]), np.diff(csr.indptr))
    order = np.lexsort((-csr.indices, rows))
    return sp.csr_array((csr.data[order], csr.indices[order], csr.indptr), shape=A.shape)


@pytest.mark.parametrize("form", [sp.csr_array, repeated, unsorted, lambda A: A.tobsr((3, 3))])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_values_in_the_order_of_the_matrix(form, dtype):
    check(form(system("general", dtype)[0]), "general", "N", N)


@pytest.mark.parametrize("kind", ["spd", "symmetric", "hermitian"])
@pytest.mark.parametrize("triangle", ["lower", "upper"])
@pytest.mark.parametrize("form", [sp.csc_array, sp.csr_array, sp.coo_array])
def test_one_stored_triangle(kind, triangle, form):
    A, _ = system(kind, "c16")
    half = sp.tril(A) if triangle == "lower" else sp.triu(A)
    for trans in "NTH":
        check(form(half), kind, trans, N, triangle=triangle)


def test_gradients_of_symmetric_matrices_are_symmetric():
    for kind, dtype in [("spd", "f8"), ("symmetric", "c16"), ("hermitian", "c16")]:
        A, _ = system(kind, dtype)
        A.data = check(A, kind, "N", N)
        mirror = A.T if kind == "symmetric" else A.conj().T
        assert abs(A - mirror).max() <= 1e-15 * abs(A).max()


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_without_a_promise_of_symmetry_each_value_counts_alone(dtype):
    A, rng = system("hermitian", dtype)
    factor, rhs = frontal.factorize(A), vectors(rng, N, dtype)
    assert factor.analysis.kind == ("symmetric" if dtype == "f8" else "hermitian")
    alone = frontal.factorize(A, kind="general")
    values_bar, wanted = (one.solve_vjp(one.solve(rhs), rhs)[0] for one in (factor, alone))
    np.testing.assert_allclose(values_bar, wanted, rtol=0, atol=1e-13 * abs(wanted).max())


def test_gradients_are_of_the_values_of_the_last_refactorization():
    A, rng = system("general", "f8")
    factor, rhs = frontal.factorize(A, kind="general"), vectors(rng, N, "f8")
    factor.refactorize(2 * A.data)
    values_bar, b_bar = factor.solve_vjp(factor.solve(rhs), rhs)
    twice = frontal.factorize(2 * A, kind="general")
    wanted = twice.solve_vjp(twice.solve(rhs), rhs)
    assert np.array_equal(values_bar, wanted[0])
    assert np.array_equal(b_bar, wanted[1])


def test_a_stale_solution_is_refused():
    A = problems.poisson2d(4)
    factor = frontal.factorize(A)
    x, version = factor.solve(np.ones(16)), factor.version
    factor.solve_vjp(x, x, version=version)
    factor.refactorize(A)
    with pytest.raises(frontal.StaleFactorError, match=r"of version 0 .* version 1 now"):
        factor.solve_vjp(x, x, version=version)
    with pytest.raises(frontal.StaleFactorError):
        factor.solve_jvp(x, A.data, version=version)
    factor.solve_jvp(x, A.data, version=factor.version)


def test_a_failed_refactorization_is_a_new_version():
    A = problems.poisson2d(3)
    factor = frontal.factorize(A)
    with pytest.raises(frontal.NonFiniteInputError):
        factor.refactorize(np.full(A.nnz, np.nan))
    factor.refactorize(A)
    assert factor.version == 2


def test_no_derivatives_of_a_singular_matrix():
    A = sp.csc_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    factor, b = frontal.factorize(A, singular="allow"), np.array([1.0, 0.0, -1.0])
    x = factor.solve(b)
    with pytest.raises(frontal.SingularMatrixError, match="rank is 2 of 3"):
        factor.solve_vjp(x, b)
    with pytest.raises(frontal.SingularMatrixError):
        factor.solve_jvp(x, b_dot=b)


def test_a_copy_has_the_version_of_its_original():
    A = problems.poisson2d(4)
    factor = frontal.factorize(A)
    x, version = factor.solve(np.ones(16)), factor.version
    factor.refactorize(2 * A)
    for twin in factor.copy(), factor.to_cpu():
        with pytest.raises(frontal.StaleFactorError):
            twin.solve_vjp(x, x, version=version)


def test_factors_of_a_batch_have_its_order_of_values():
    """Also one that was factorized alone, as the pivots of the others are none for it."""
    A = unsorted(system("general", "f8")[0])
    rhs = np.random.default_rng(0).standard_normal(N)
    weak = A.data.copy()
    weak[A.indices == np.repeat(np.arange(N), np.diff(A.indptr))] *= 1e-13
    factors = frontal.factorize_batch(A, np.stack([A.data, 2 * A.data, weak]), kind="general")
    listed = frontal.factorize_batch([A, 2 * A, sp.csr_array((weak, A.indices, A.indptr))])
    for several in factors, listed:
        for i, values in enumerate((A.data, 2 * A.data, weak)):
            alone = frontal.factorize(sp.csr_array((values, A.indices, A.indptr)), kind="general")
            for one in several[i], several[i].copy().refactorize(values):
                found, _ = one.solve_vjp(one.solve(rhs), rhs)
                wanted, _ = alone.solve_vjp(alone.solve(rhs), rhs)
                np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * abs(wanted).max())


def test_numbers_that_are_none():
    A = problems.convdiff2d(3)
    factor, x = frontal.factorize(A), np.ones(9)
    masked = np.ma.masked_greater(np.arange(9.0), 7)
    for call in (
        lambda: factor.solve_vjp(masked, x),
        lambda: factor.solve_vjp(x, masked),
        lambda: factor.solve_jvp(x, np.ma.masked_greater(A.data, 1)),
        lambda: factor.inverse_entries(np.ma.masked_greater(np.arange(9), 7), 0),
    ):
        with pytest.raises(ValueError, match="masked"):
            call()
    with pytest.raises(frontal.NonFiniteInputError, match=r"x\[4\] is nan"):
        factor.solve_vjp(np.where(np.arange(9) == 4, np.nan, 1.0), x)
    tiny = frontal.factorize(sp.diags_array(np.full(3, 1e-200)).tocsc())
    with pytest.raises(frontal.SolutionOverflowError):
        tiny.solve_vjp(np.full(3, 1e200), np.ones(3))
    for g in np.nan, np.ones(3), 1j:
        with pytest.raises(ValueError, match="a finite real number is needed"):
            factor.logdet_vjp(g)
    bad = A.copy()
    bad.data[5] = np.inf
    for call in factor.trace_inv, factor.quadratic_diag:
        with pytest.raises(frontal.NonFiniteInputError, match="is inf"):
            call(bad)
    large = sp.csc_array(([2**53 + 1], ([0], [0])), shape=(9, 9))
    with pytest.raises(ValueError, match="integer"):
        factor.trace_inv(large)


def test_queries_leave_their_arguments_alone():
    factor = frontal.factorize(problems.poisson2d(3))
    M = sp.csr_array(([1.0, 2.0, 3.0, 1.0], [4, 0, 2, 2], [0, 2, 4]), shape=(2, 9))
    parts = [part.copy() for part in (M.data, M.indices, M.indptr)]
    wanted = np.diag(M @ np.linalg.inv(factor.A.toarray()) @ M.T.toarray())
    np.testing.assert_allclose(factor.quadratic_diag(M), wanted, rtol=1e-13)
    for part, before in zip((M.data, M.indices, M.indptr), parts, strict=True):
        assert np.array_equal(part, before)


def test_a_phase_that_is_one_up_to_rounding_is_positive():
    A, _ = system("hermitian", "c16")
    A = sp.csc_array(A.conj().T @ A)
    factor = frontal.factorize(A, kind="general")
    wanted = frontal.factorize(A, kind="spd").logdet()
    assert abs(factor.logdet() - wanted) < 1e-12 * abs(wanted)
    batch = frontal.factorize_batch(A, A.data[None], kind="general")
    assert abs(batch.logdet()[0] - wanted) < 1e-12 * abs(wanted)
    with pytest.raises(ValueError, match="not positive"):
        frontal.factorize((1 + 1e-3j) * A, kind="general").logdet()


def test_bad_input():
    A = problems.convdiff2d(3)
    factor, x = frontal.factorize(A), np.ones(9)
    with pytest.raises(ValueError, match=r"x_bar has shape \(8,\), but x has shape \(9,\)"):
        factor.solve_vjp(x, np.ones(8))
    with pytest.raises(ValueError, match="b_dot has shape"):
        factor.solve_jvp(x, b_dot=np.ones((9, 1)))
    with pytest.raises(ValueError, match="values given"):
        factor.solve_jvp(x, np.ones(3))
    with pytest.raises(TypeError, match="but A is real"):
        factor.solve_jvp(x, 1j * A.data)
    with pytest.raises(ValueError, match="trans is 'C'"):
        factor.solve_vjp(x, x, "C")
    with pytest.raises(ValueError, match="no array with one value for each entry"):
        frontal.factorize(sp.dia_array(A)).solve_vjp(x, x)


def test_lists_no_vectors_and_one_part_of_a_change():
    A = problems.convdiff2d(3)
    factor, ones = frontal.factorize(A), np.ones(9)
    x = factor.solve(ones)
    values_bar, b_bar = factor.solve_vjp(x.tolist(), [1.0] * 9)
    assert np.array_equal(values_bar, factor.solve_vjp(x, ones)[0])
    assert np.array_equal(factor.solve_jvp(x, b_dot=ones), x)
    assert not factor.solve_jvp(x).any()
    nothing = np.empty((9, 0))
    values_bar, b_bar = factor.solve_vjp(nothing, nothing)
    assert not values_bar.any()
    assert b_bar.shape == (9, 0)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_determinants(kind, dtype):
    """Along random changes; also of one triangle, and of values in another order."""
    A, rng = system(kind, dtype)
    inverse = np.linalg.inv(A.toarray())
    change = vectors(rng, (N, N), dtype) * (A.toarray() != 0)
    if kind != "general":
        change = change + (change.T if kind == "symmetric" else change.conj().T)
    wanted = float(np.trace(inverse @ change).real)
    halves = [(sp.tril, "lower"), (sp.triu, "upper")] if kind != "general" else []
    for part, triangle in [(sp.csr_array, None), *halves]:
        stored = sp.coo_array(part(A))
        factor = frontal.factorize(stored, kind=kind, triangle=triangle)
        gradient = factor.logdet_vjp(3.0)
        assert gradient.dtype == A.dtype
        along = np.vdot(gradient, change[stored.coords]).real / 3
        assert abs(along - wanted) <= 1e-12 * abs(inverse).max() * abs(change).sum()


@pytest.mark.parametrize(("kind", "dtype"), [("spd", "f8"), ("symmetric", "f8"), ("spd", "c16")])
def test_an_adjoint_that_is_the_matrix_is_not_judged_anew(kind, dtype):
    """But a complex transpose is: it is another matrix."""
    A, rng = system(kind, dtype)
    factor, b = frontal.factorize(A, kind=kind), vectors(rng, N, dtype)
    x = factor.solve(b)
    assert np.array_equal(factor.solve(b, "H"), x)
    assert len(factor._numbers.solver.verdict.conditions) == 1
    if dtype == "f8":
        assert np.array_equal(factor.solve(b, "T"), x)
    else:
        wanted = np.linalg.solve(A.toarray().T, b)
        np.testing.assert_allclose(factor.solve(b, "T"), wanted, rtol=1e-11, atol=1e-12)


def test_no_gradient_of_the_determinant_of_a_singular_matrix():
    A = sp.csc_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    with pytest.raises(frontal.SingularMatrixError):
        frontal.factorize(A, singular="allow").logdet_vjp()


def thin_matrix():
    """An unsymmetric matrix that is factorized by columns."""
    rng = np.random.default_rng(0)
    chain = sp.diags_array([np.ones(399), np.full(400, 4.0), np.ones(399)], offsets=[-1, 0, 1])
    return sp.csc_array(chain + sp.random_array((400, 400), density=1e-3, random_state=rng)), rng


def test_fronts_of_other_values_are_not_kept(monkeypatch):
    """Where another thread refactorizes while fronts are computed for a factor by columns."""
    thin, _ = thin_matrix()
    factor, computed = frontal.factorize(thin, kind="general"), FactorState.factorize

    def meanwhile(self, *given, **named):
        computed(self, *given, **named)
        monkeypatch.setattr(FactorState, "factorize", computed)
        factor.refactorize(2 * thin.data)

    wanted = np.diag(np.linalg.inv(thin.toarray()))
    monkeypatch.setattr(FactorState, "factorize", meanwhile)
    np.testing.assert_allclose(factor.diag_inv(), wanted, rtol=1e-10)  # asked before
    np.testing.assert_allclose(factor.diag_inv(), wanted / 2, rtol=1e-10)


def test_factors_by_columns_and_in_mixed_precision():
    thin, rng = thin_matrix()
    factor = frontal.factorize(thin, kind="general")
    assert factor.analysis.by_columns
    mixed = frontal.factorize(thin, kind="general", precision="mixed")
    x_bar = rng.standard_normal(400)
    x = np.linalg.solve(thin.toarray(), np.ones(400))
    adjoint, coo = np.linalg.solve(thin.toarray().T, x_bar), thin.tocoo()
    wanted = -adjoint[coo.row] * x[coo.col]
    for one in factor, mixed:
        values_bar, _ = one.solve_vjp(one.solve(np.ones(400)), x_bar)
        np.testing.assert_allclose(values_bar, wanted, rtol=0, atol=1e-13 * abs(wanted).max())
