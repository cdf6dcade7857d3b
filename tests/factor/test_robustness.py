"""Never a silent wrong answer: singular, indefinite and nearly singular systems."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems

from ..conftest import scaled_residual


def test_singular_by_values():
    with pytest.raises(frontal.SingularMatrixError, match="singular to working precision"):
        frontal.factorize(sp.csc_array([[1.0, 2.0], [2.0, 4.0]]))


def test_singular_neumann_problem():
    """A graph Laplacian without a shift: constants are in its null space."""
    A = problems.poisson2d(12)
    A = A - sp.diags_array(A.sum(axis=1))
    with pytest.raises(frontal.SingularMatrixError):
        frontal.factorize(A, kind="general")


def test_structurally_singular_tells_the_rank():
    A = sp.csc_array(np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [5.0, 6.0, 0.0]]))
    with pytest.raises(frontal.SingularMatrixError) as caught:
        frontal.factorize(A)
    assert caught.value.rank == 2
    assert caught.value.column == 2
    np.testing.assert_array_equal(caught.value.null_columns, [2])


def test_not_positive_definite_names_the_column():
    A = problems.poisson2d(6).tolil()
    A[17, 17] = -50.0
    with pytest.raises(frontal.NotPositiveDefiniteError) as caught:
        frontal.factorize(A, kind="spd")
    assert caught.value.column is not None
    neighbours = {17, *A.tocsr()[[17]].indices}
    assert caught.value.column in neighbours


def test_auto_goes_on_with_ldl():
    """Symmetric with a positive diagonal, yet indefinite."""
    A = problems.poisson2d(20) - 3.0 * sp.eye_array(400)
    x = np.arange(400.0)
    y, info = frontal.solve(sp.csc_array(A), A @ x, return_info=True)
    assert info.method == "ldlt"
    assert scaled_residual(A, y, A @ x) <= 1e-15


def test_refactorize_may_turn_indefinite():
    A = problems.poisson2d(20)
    factor = frontal.factorize(A)
    assert factor.analysis.method == "cholesky"
    B = A - 3.0 * sp.eye_array(400)
    x = np.ones(400)
    assert np.allclose(factor.refactorize(B).solve(B @ x), x)


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_nearly_singular_is_told(kind):
    A = sp.csc_array(np.array([[1.0, 1.0], [1.0, 1.0 + 1e-14]]))
    factor = frontal.factorize(A, kind=kind)
    with pytest.warns(frontal.IllConditionedWarning, match="condition number"):
        factor.solve([1.0, 2.0])
    A.data[-1] = 1 + 4e-16
    with pytest.raises(frontal.SingularMatrixError, match="its rank is 1 of 2"):
        frontal.factorize(A, kind=kind)


def test_zero_diagonal_needs_the_matching():
    n = 200
    A = sp.csc_array(
        sp.diags_array(np.arange(1.0, n), offsets=1)
        + sp.diags_array([1.0], offsets=1 - n, shape=(n, n))
    )
    x = np.cos(np.arange(n))
    y, info = frontal.solve(A, A @ x, return_info=True)
    assert info.perturbed_pivots == 0
    assert np.allclose(x, y)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale_does_not_matter(scale):
    A = problems.convdiff2d(15)
    x = np.sin(np.arange(225.0))
    assert np.allclose(frontal.solve(A * scale, A @ x) * scale, x, atol=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_determinants_and_solutions_of_badly_scaled_matrices(seed):
    """Scalings of rows and of columns, and their signs, are of the factors and not of A."""
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((12, 12)) * (rng.random((12, 12)) < 0.4) + 3 * np.eye(12)
    row, column = 10.0 ** rng.integers(-20, 20, (2, 12))
    factor = frontal.factorize(sp.csc_array(dense * row[:, None] * column), kind="general")
    sign, log = np.linalg.slogdet(dense)
    found, size = factor.slogdet()
    assert found == sign
    assert size == pytest.approx(log + np.log(row).sum() + np.log(column).sum(), rel=1e-10)
    b = rng.standard_normal(12)
    for trans, matrix, left, right in (("N", dense, row, column), ("T", dense.T, column, row)):
        x = factor.solve(b * left, trans, refine=0) * right
        np.testing.assert_allclose(x, np.linalg.solve(matrix, b), rtol=1e-9)


def test_rows_of_wildly_different_size():
    A = problems.convdiff2d(15)
    d = 10.0 ** np.random.default_rng(0).integers(-12, 12, 225)
    B = sp.csc_array(sp.diags_array(d) @ A)
    x = np.sin(np.arange(225.0))
    y, info = frontal.solve(B, B @ x, return_info=True)
    assert info.backward_error <= 1e-15
    assert np.allclose(x, y, rtol=1e-8)


def test_not_enough_memory(monkeypatch):
    from frontal.backend import host_memory

    monkeypatch.setattr(host_memory, "available_memory", lambda: 1000)
    monkeypatch.setattr(host_memory, "_UNCHECKED_BYTES", 0)
    with pytest.raises(frontal.FactorMemoryError) as caught:
        frontal.factorize(problems.poisson2d(30))
    assert caught.value.available == 1000
    assert caught.value.required > 1000


def test_perturbed_pivots_are_answered_for():
    """Pivots vanish inside fronts, though the matrix is regular."""
    rng = np.random.default_rng(3)
    n = 60
    A = sp.random_array((n, n), density=0.08, random_state=rng)
    A = sp.csc_array(sp.block_array([[None, A + sp.eye_array(n)], [A.T + sp.eye_array(n), None]]))
    x = rng.standard_normal(2 * n)
    y, info = frontal.solve(A, A @ x, return_info=True)
    assert info.backward_error <= 1e-15
    assert np.allclose(x, y, rtol=1e-6, atol=1e-8)
