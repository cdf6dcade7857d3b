"""Singular matrices: refused with evidence, or solved where that is asked for."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh, splu
from threadpoolctl import threadpool_limits

import frontal
from frontal import linalg, problems
from frontal.factor.diagnosis import Diagnosis
from frontal.factor.null_proof import are_null, proved_null_columns


def laplacian(k):
    """Of the graph of a grid: constants are its null space."""
    A = problems.poisson2d(k)
    return sp.csc_array(A - sp.diags_array(A.sum(axis=1)))


def low_rank(n, rank, dtype):
    rng = np.random.default_rng(rank)
    X, Y = rng.standard_normal((n, rank)), rng.standard_normal((rank, n))
    if dtype == "c16":
        X, Y = X + 1j * X[::-1], Y + 1j * Y[:, ::-1]
    return sp.csc_array((X @ Y).astype(dtype))


SCALES = 2.0 ** np.random.default_rng(0).integers(-60, 60, (2, 81))
CASES = {
    "grids": (sp.block_diag([laplacian(6), laplacian(4), laplacian(9)], "csc"), 3),
    "low rank": (low_rank(40, 36, "f8"), 4),
    "single precision": (low_rank(40, 38, "f4"), 2),
    "complex": (low_rank(40, 39, "c16"), 1),
    "scaled": (
        sp.csc_array(sp.diags_array(SCALES[0]) @ laplacian(9) @ sp.diags_array(SCALES[1])),
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rank_and_null_columns(name):
    A, p = CASES[name]
    n = A.shape[0]
    with pytest.raises(frontal.SingularMatrixError, match=f"rank is {n - p} of {n}") as caught:
        frontal.factorize(A)
    error = caught.value
    assert (error.rank, error.column) == (n - p, error.null_columns[0])
    assert error.null_columns.shape == (p,)
    factor = frontal.factorize(A, singular="allow")
    N = factor.null_space()
    np.testing.assert_array_equal(N[factor.null_columns], np.eye(p))
    eps = np.finfo(A.dtype).eps
    if name == "scaled":
        np.testing.assert_allclose(N[:, 0] * SCALES[1], N[0, 0] * SCALES[1][0], rtol=1e-9)
    else:
        assert abs(A @ N).max() <= 20 * eps * (abs(A) @ abs(N)).max()
        size = np.linalg.svd(A.toarray(), compute_uv=False)
        others = np.delete(A.toarray(), error.null_columns, axis=1)
        assert (size > 100 * eps * size[0]).sum() == n - p
        assert np.linalg.svd(others, compute_uv=False)[-1] > 100 * eps * size[0]


PROVED = {  # and the number of null vectors
    "cholesky": (laplacian(20), 1),
    "beside a regular block": (sp.block_diag([problems.poisson2d(9), laplacian(7)], "csc"), 1),
    "split": (sp.block_diag([laplacian(8), laplacian(5), laplacian(6)], "csc"), 3),
    "scaled": CASES["scaled"],
    "unsymmetric": (laplacian(9) @ sp.csc_array(problems.convdiff2d(9)), 1),
    "complex": (sp.csc_array(laplacian(9) * (1 + 2j)), 1),
    "single precision": (laplacian(5).astype("f4"), 1),
}


@pytest.mark.parametrize("name", PROVED)
def test_few_solves_prove_that_a_matrix_is_singular(name, monkeypatch):
    A, p = PROVED[name]
    monkeypatch.setattr(Diagnosis, "seek_nulls", lambda _: pytest.fail("a search"))
    with pytest.raises(frontal.SingularMatrixError) as caught:
        frontal.factorize(A, backend="cpu")
    assert caught.value.rank == A.shape[0] - p
    columns = caught.value.null_columns
    others = np.delete(A.toarray().astype(np.result_type(A, float)), columns, axis=1)
    assert columns.size == p
    if name != "scaled":
        assert np.linalg.svd(others, compute_uv=False)[-1] > 1e-3


def test_no_proof_in_one_scaling_alone():
    """A graded regular block beside a singular one: one of two tiny pivots is no null vector."""
    graded = sp.csc_array([[1.0, 1.0], [1.0, 1.0 + 2.0**-46]])
    for block in (laplacian(5), problems.poisson2d(5)):
        A = sp.block_diag([graded, block], "csc")
        factor = frontal.factorize(A, kind="symmetric", singular="allow", backend="cpu")
        assert proved_null_columns(factor._numbers.factor) is None


def test_a_zero_row_beside_a_huge_solution_is_refused():
    """The solution grows from block to block, so that the norm of a residual hides the row."""
    blocks = sp.block_diag([[[2.0, 1.0], [1.0, 3.0]]] * 20, "csc")
    couplings = sp.diags_array(np.tile([0.0, 0.5], 20)[:-1], offsets=1, shape=(40, 40))
    A = sp.csc_array(blocks + couplings)
    A.sort_indices()
    factor = frontal.factorize(A, kind="general", backend="cpu")
    values = A.data.copy()
    column = np.repeat(np.arange(40), np.diff(A.indptr))
    last = (A.indices >= 38) & (column >= 38)
    values[last] = 0, 0, 1, 0  # the last block by columns: [[0, 1], [0, 0]]
    with pytest.raises(frontal.SingularMatrixError):
        factor.refactorize(values)


def test_each_component_of_an_image_must_be_small():
    eps = np.finfo(float).eps
    image, moduli = np.array([[0, 0], [eps, 0]]), sp.diags_array([1.0, 1e-12])
    np.testing.assert_array_equal(are_null(image, moduli, np.ones((2, 2)), 4 * eps), [False, True])


@pytest.mark.parametrize(("grids", "edge"), [(40, 6), (70, 3)])
def test_one_null_column_of_each_of_many_grids(grids, edge):
    """Rounding in an orthonormalization of so many vectors is no part of A."""
    A = sp.block_diag([laplacian(edge)] * grids, "csc")
    with threadpool_limits(1):  # those of other tests' would wait for each other
        with pytest.raises(frontal.SingularMatrixError) as caught:
            frontal.factorize(A)
        factor = frontal.factorize(A, singular="allow")
    assert caught.value.rank == A.shape[0] - grids
    for columns in (caught.value.null_columns, factor.null_columns):
        np.testing.assert_array_equal(columns // edge**2, np.arange(grids))
    constant = np.kron(np.eye(grids), np.ones((edge**2, 1)))
    np.testing.assert_allclose(factor.null_space(), constant, atol=1e-13)


@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("name", ["grids", "low rank", "complex"])
def test_consistent_and_other_right_hand_sides(name, trans):
    A, p = CASES[name]
    op = {"N": A, "T": A.T, "H": A.conj().T}[trans]
    rng, n = np.random.default_rng(0), A.shape[0]
    factor = frontal.factorize(A, singular="allow")
    B = np.column_stack([op @ rng.standard_normal((n, 2)), rng.standard_normal(n)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X, info = factor.solve(
            B + 1j * B[:, ::-1] if name == "grids" else B, trans, return_info=True
        )
    X = X.real if name == "grids" else X
    R, norm = np.abs(op @ X - B).max(axis=0), abs(op).sum(axis=1).max()
    consistent = slice(1, 2) if name == "grids" else slice(0, 2)
    assert np.abs(X[:, consistent]).max() < 1e3
    assert (R[consistent] <= 1e-14 * norm * np.abs(X[:, consistent]).max()).all()
    assert np.abs(X[:, 2]).max() > 1e12
    assert R[2] <= 1e-15 * norm * np.abs(X[:, 2]).max()
    assert (info.null_pivots, info.condition) == (p, None)
    assert (X[:, consistent] == 0).all(axis=1).sum() == p
    if trans == "N":
        assert not X[factor.null_columns, consistent].any()


def test_the_coarse_grid_of_a_multigrid_method():
    """A graph Laplacian, with right-hand sides that are consistent up to rounding."""
    A = laplacian(30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        factor = frontal.factorize(A, singular="allow")
        b = np.random.default_rng(0).standard_normal(900)
        b -= b.mean()
        for k in range(3):
            x = factor.refactorize((k + 1) * A).solve(b)
            assert np.abs((k + 1) * (A @ x) - b).max() <= 1e-13
            assert np.abs(x).max() < 1e3


def test_what_is_done_is_remembered_and_told_once():
    A, b = laplacian(8), np.arange(64.0) - 31.5
    with pytest.warns(frontal.IllConditionedWarning, match="rank is 63 of 64") as caught:
        x = frontal.solve(A, b, singular="warn")
    assert len(caught) == 1
    with pytest.raises(frontal.SingularMatrixError):
        frontal.analyze(A).factorize(A)
    np.testing.assert_allclose(A @ x, b, atol=1e-12)
    with pytest.raises(ValueError, match="choose 'raise', 'warn' or 'allow'"):
        frontal.factorize(A, singular="never")
    np.testing.assert_allclose(A @ linalg.splu(A, singular="allow").solve(b), b, atol=1e-12)
    with pytest.raises(RuntimeError, match="Factor is exactly singular"):
        linalg.splu(A)
    assert frontal.factorize(problems.poisson2d(5), singular="allow").null_space().shape == (25, 0)


MODES = 4 * np.sin(np.pi * np.arange(1, 41) / 82) ** 2


@pytest.mark.parametrize("shift", [0.0, 1e-15, 1e-12])
@pytest.mark.parametrize("mode", [0, 2])
def test_eigenvectors_at_an_eigenvalue(mode, shift):
    """Inverse iteration and Lanczos' method, as with SuperLU."""
    A, sigma = problems.poisson2d(40), 2 * MODES[mode] * (1 + shift)
    B = sp.csc_array(A - sigma * sp.eye_array(1600))
    v0 = np.random.default_rng(3).standard_normal(1600)
    errors = []
    for ours in (True, False):
        if ours:
            factor = frontal.factorize(B, singular="allow")
            solve, inverse = factor.solve, factor.as_linear_operator()
        else:
            solve = splu(B).solve
        y = v0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                y = solve(y)
                y /= np.linalg.norm(y)
        errors.append(np.linalg.norm(A @ y - (y @ (A @ y)) * y))
    assert errors[0] <= 2 * errors[1] + 1e-15
    found = eigsh(A, 3, sigma=sigma, OPinv=inverse, return_eigenvectors=False, v0=v0)
    exact = np.add.outer(MODES, MODES).ravel()
    exact = exact[np.argsort(abs(exact - sigma))[:3]]
    np.testing.assert_allclose(np.sort(found), np.sort(exact), rtol=1e-11)


def test_null_space_is_that_of_the_last_values():
    A, b = laplacian(5), np.arange(25.0) - 12
    factor = frontal.factorize(A, singular="allow", backend="cpu")
    for B, p in ((A, 1), (A + sp.eye_array(25), 0), (2 * A, 1)):
        x, info = factor.refactorize(sp.csc_array(B)).solve(b, return_info=True)
        assert factor.null_columns.size == p
        assert (info.condition is None) == (p == 1)
        np.testing.assert_allclose(B @ x, b, atol=1e-13)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("n", [1, 3])
def test_zero_matrices_are_singular(n, stored):
    A = sp.csc_array((np.zeros(n * stored), np.arange(n * stored), np.arange(n + 1) * stored),
                     shape=(n, n))  # fmt: skip
    index, signs = np.arange(n), np.ones(n)
    for kind in ("symmetric", "general"):
        with pytest.raises(frontal.SingularMatrixError):
            frontal.factorize(A, kind=kind, schur=index)
        S = frontal.factorize(A, kind=kind, schur=index, singular="allow").schur()
        np.testing.assert_array_equal(S, np.zeros((n, n)))
    with pytest.raises(frontal.SingularMatrixError):
        frontal.factorize(A, kind="quasidefinite", signs=signs)
    factor = frontal.factorize(A, kind="quasidefinite", signs=signs, singular="allow")
    np.testing.assert_array_equal(factor.null_columns, index)
