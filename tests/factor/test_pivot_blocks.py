"""What is read from D of LDL^T and LDL^H: determinants, inertia, factors; with made-up factors."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import frontal
from frontal.backend.protocol import HostFactor
from frontal.factor.analyzed import Analyzed
from frontal.factor.diagnosis import Diagnosis
from frontal.factor.factor import Factor
from frontal.factor.solve import FactorSolver
from frontal.factor.state import FactorState
from frontal.matrix.canonical import canonical
from frontal.numeric.method import LDLH, LDLT
from frontal.symbolic.phase import SymbolicOptions
from frontal.symbolic.scaling import Scaling

N = 12


def symmetric(kind, seed=0, n=N):
    """A dense matrix with zeros on the diagonal, and a factor of it by LAPACK."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if kind != "real" else 0)
    A = A + (A.conj().T if kind == "hermitian" else A.T)
    np.fill_diagonal(A, 0)
    return A


def factor_of(A, kind, scale=None, **more):
    """A factor whose one front is that of LAPACK; rows and columns are scaled by `scale`."""
    n = A.shape[0]
    method = LDLH if kind == "hermitian" else LDLT
    matrix = canonical(sp.csc_array(A), kind="general")
    analysis = Analyzed.from_matrix(matrix, method, SymbolicOptions("natural"), backend="cpu")
    assert analysis.n_fronts == 1
    perm, scale = analysis.perm, np.ones(n) if scale is None else scale
    M = (A * scale[:, None] * scale)[np.ix_(perm, perm)]
    lu, D, order = scipy.linalg.ldl(M, hermitian=kind == "hermitian")
    panel = np.tril(lu[order], -1) + np.diag(np.diag(D))
    pivots, at = np.empty(n, np.int32), list(range(n))
    for j, wanted in enumerate(order):
        pivots[j] = at.index(wanted)
        at[j], at[pivots[j]] = at[pivots[j]], at[j]
    coupling = np.append(np.diag(D, -1), 0).astype(M.dtype)
    host = HostFactor(panel.ravel("F").astype(M.dtype), pivots, 0, coupling)._replace(**more)
    kept = analysis.snapshot(matrix)
    numeric = analysis.engine.from_host(host, kept, Scaling(scale, scale))
    return Factor(FactorState(analysis, FactorSolver(Diagnosis(numeric))))


KINDS = pytest.mark.parametrize("kind", ["real", "hermitian", "symmetric"])


@KINDS
@pytest.mark.parametrize("seed", range(3))
def test_factors_determinants_and_pivots(kind, seed):
    A = symmetric(kind, seed)
    scale = 2.0 ** np.random.default_rng(seed).integers(-9, 9, N)
    factor = factor_of(A, kind, scale)
    assert factor.has_pairs
    L, D = factor.L.toarray(), factor.D.toarray()
    moved = np.empty_like(A)
    moved[np.ix_(factor.perm_r, factor.perm_c)] = A
    np.testing.assert_allclose(
        L @ D @ (L.T if kind == "symmetric" else L.conj().T), moved, atol=1e-11
    )
    np.testing.assert_array_equal(np.triu(L), np.eye(N))
    np.testing.assert_allclose(factor.diag()[np.argsort(factor.perm_c)], np.diag(D))
    sign, log = np.linalg.slogdet(A)
    found = factor.slogdet()
    np.testing.assert_allclose(found[0], sign, atol=1e-12)
    assert found[1] == pytest.approx(log, rel=1e-12)
    if kind == "hermitian":
        assert np.imag(found[0]) == 0
    with pytest.raises(ValueError, match="2x2 blocks"):
        factor.U  # noqa: B018


def test_without_pairs_there_is_an_upper_factor():
    A = symmetric("real") + np.diag(np.where(np.arange(N) % 3, 30.0, -30.0))
    factor = factor_of(A, "real")
    assert not factor.has_pairs
    moved = np.empty_like(A)
    moved[np.ix_(factor.perm_r, factor.perm_c)] = A
    np.testing.assert_allclose((factor.L @ factor.U).toarray(), moved, atol=1e-12)
    twin = frontal.linalg.SparseLU(factor)
    np.testing.assert_allclose((twin.L @ twin.U).toarray(), moved, atol=1e-12)


def test_pairs_have_triangles_by_lu():
    A = symmetric("real")
    lu = frontal.linalg.SparseLU(factor_of(A, "real"))
    moved = np.empty_like(A)
    moved[np.ix_(lu.perm_r, lu.perm_c)] = A
    np.testing.assert_allclose((lu.L @ lu.U).toarray(), moved, atol=1e-12)
    assert lu.factor.has_pairs


@pytest.mark.parametrize("kind", ["real", "hermitian"])
def test_inertia(kind):
    for seed in range(5):
        A = symmetric(kind, seed)
        positive = int((np.linalg.eigvalsh(A) > 0).sum())
        assert factor_of(A, kind).inertia == (positive, N - positive, 0)


def test_inertia_that_is_not_certain():
    A = symmetric("real", 1)
    positive = int((np.linalg.eigvalsh(A) > 0).sum())
    with pytest.raises(frontal.InertiaUncertainError) as caught:
        factor_of(A, "real", perturbed=2).inertia  # noqa: B018
    error = caught.value
    assert (error.positive, error.negative) == (positive - 2, N - positive - 2)
    assert error.unknown == 4
    B = np.diag([1.0, -2.0, 1e-17, 3.0]) + 1e-3 * (np.ones((4, 4)) - np.eye(4))
    B[2], B[:, 2] = 1e-30, 1e-30
    B[2, 2] = 1e-17
    with pytest.raises(frontal.InertiaUncertainError, match="signs of 1 are not known") as caught:
        factor_of(B, "real").inertia  # noqa: B018
    assert (caught.value.positive, caught.value.negative) == (2, 1)
    null = factor_of(B, "real", nulls=np.array([2], np.int32))
    assert null.slogdet() == (0, -np.inf)
    with pytest.raises(ValueError, match="method is ldlt"):
        factor_of(symmetric("symmetric"), "symmetric").inertia  # noqa: B018
    with pytest.raises(ValueError, match="method is lu"):
        frontal.factorize(sp.csc_array(B + np.eye(4)), kind="general").inertia  # noqa: B018
    with pytest.raises(ValueError, match="no D"):
        frontal.factorize(frontal.problems.poisson2d(3)).D  # noqa: B018
