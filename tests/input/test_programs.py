"""Other programs that solve with this package: SciPy's iterations, scikit-fem, PyAMG.

Those that are not installed are skipped: ``pip install 'frontal[programs]'`` for all.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh, gmres, spsolve

import frontal
from frontal.linalg import patched
from frontal.problems import convdiff2d, poisson2d


def test_gmres_with_a_factor_of_a_matrix_nearby():
    A, B = convdiff2d(20), convdiff2d(20) + 0.3 * poisson2d(20)
    M = frontal.factorize(A).as_linear_operator(refine=0)
    residuals = []
    b = np.ones(400)
    x, failed = gmres(B, b, M=M, rtol=1e-10, callback=residuals.append, callback_type="pr_norm")
    assert not failed
    assert len(residuals) < 40
    np.testing.assert_allclose(x, spsolve(B.tocsc(), b), rtol=1e-7)
    np.testing.assert_allclose(A.T @ M.rmatvec(b), b, rtol=1e-10)
    mixed = frontal.factorize(A, precision="mixed")
    with pytest.raises(ValueError, match="refine=0"):
        mixed.as_linear_operator(refine=0)
    np.testing.assert_allclose(A @ (mixed.as_linear_operator(refine=None) @ b), b, rtol=1e-10)


def test_eigsh_with_a_singular_shift():
    """The shift is an eigenvalue: the inverse of what is left tells the others all the same."""
    A = poisson2d(8)
    wanted = np.linalg.eigvalsh(A.toarray())
    near = wanted[0] * (1 + 1e-12)
    shifted = A - near * sp.eye_array(64)
    inverse = frontal.factorize(shifted.tocsc(), singular="allow")
    found = eigsh(A, k=3, sigma=near, OPinv=inverse.as_linear_operator(), v0=np.ones(64))[0]
    np.testing.assert_allclose(np.sort(found), wanted[:3], rtol=1e-8)


def test_scikit_fem():
    fem = pytest.importorskip("skfem")
    models = pytest.importorskip("skfem.models.poisson")
    mesh = fem.MeshTri().refined(3)
    basis = fem.Basis(mesh, fem.ElementTriP1())
    A, b = models.laplace.assemble(basis), models.unit_load.assemble(basis)
    system = fem.condense(A, b, D=mesh.boundary_nodes())
    solver = frontal.Solver(kind="spd")
    wanted = fem.solve(*system)
    for _ in range(2):
        np.testing.assert_allclose(fem.solve(*system, solver=solver), wanted, atol=1e-12)
    assert (solver.analyses, solver.factorizations, solver.solves) == (1, 1, 2)
    np.testing.assert_allclose(fem.solve(*system, solver=frontal.solve), wanted, atol=1e-12)
    with patched("skfem"):
        np.testing.assert_allclose(fem.solve(*system), wanted, atol=1e-12)


def test_pyamg():
    pyamg = pytest.importorskip("pyamg")
    A, b = poisson2d(40).tocsr(), np.ones(1600)
    solver = frontal.Solver(kind="spd")
    levels = pyamg.ruge_stuben_solver(A, max_coarse=200, coarse_solver=solver)
    x = levels.solve(b, tol=1e-10)
    np.testing.assert_allclose(A @ x, b, atol=1e-7)
    assert solver.analyses == solver.factorizations == 1
    assert solver.solves > 2
