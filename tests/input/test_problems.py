"""The generated problems: symmetry, definiteness, known eigenvalues, sizes, convergence."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from frontal import problems
from frontal.problems import tensor

SMALL = {"graph": 60, "kkt": 60, "kktreg": 60, "linear_program": 60, "circuit": 100}
SMALL |= {"interior_point": 60, "quadratic_program": 60, "mna": 50, "zero_diagonal": 60}
SMALL |= {"conditioned": 60}
SPD = {
    *("poisson2d", "poisson2d9", "poisson3d", "poisson3d27", "aniso2d", "aniso3d", "heat2d"),
    *("heat3d", "biharmonic2d", "elasticity3d", "graph"),
}
INDEFINITE = {
    *("stokes2d", "kkt", "kktreg", "linear_program", "optimal_control", "interior_point"),
    *("quadratic_program", "mna", "zero_diagonal", "conditioned"),
}
GENERAL = {"convdiff2d", "convdiff3d", "circuit", "oseen2d", "near_skew"}
COMPLEX = {"helmholtz2d", "helmholtz3d"}
each = pytest.mark.parametrize("name", problems.catalogue)


def small(name):
    return problems.catalogue[name](SMALL.get(name, 4))


def test_each_problem_has_a_kind():
    assert set(problems.catalogue) == SPD | INDEFINITE | GENERAL | COMPLEX


@each
def test_form(name):
    A = small(name)
    assert isinstance(A, sp.csc_array)
    assert A.shape[0] == A.shape[1]
    assert A.has_canonical_format
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert A.dtype == (np.complex128 if name in COMPLEX else np.float64)
    again = problems.from_name(f"{name}:{SMALL.get(name, 4)}")
    np.testing.assert_array_equal(A.data, again.data)
    np.testing.assert_array_equal(A.indices, again.indices)


@each
def test_kind(name):
    A = small(name).toarray()
    if name in COMPLEX:
        np.testing.assert_array_equal(A, A.T)
        assert np.abs(A - A.conj().T).max() > 0.1
    elif name in GENERAL:
        assert np.abs(A - A.T).max() > 0.1
        assert np.linalg.matrix_rank(A) == A.shape[0]
    else:
        np.testing.assert_array_equal(A, A.T)
        values = np.linalg.eigvalsh(A)
        assert np.abs(values).min() > 1e-9
        assert (values[0] > 0) == (name in SPD)


def dirichlet(n):
    """Eigenvalues of tridiag(-1, 2, -1)."""
    return 4 * np.sin(np.arange(1, n + 1) * np.pi / (2 * n + 2)) ** 2


def added(*values):
    return np.sort(sum(np.meshgrid(*values, indexing="ij")).ravel())


def close(A, values):
    np.testing.assert_allclose(
        np.linalg.eigvalsh(A.toarray()), np.sort(values, axis=None), atol=1e-12
    )


def test_known_eigenvalues():
    x, y, z = dirichlet(4), dirichlet(5), dirichlet(3)
    close(problems.poisson2d((4, 5)), added(x, y))
    close(problems.poisson2d((4, 5), stencil=9), np.add.outer(x, y) - np.outer(x, y) / 6)
    close(problems.poisson3d((4, 5, 3)), added(x, y, z))
    product = (3 - x)[:, None, None] * (3 - y)[:, None] * (3 - z)
    close(problems.poisson3d((4, 5, 3), stencil=27), (3 - product / 9).ravel())
    close(problems.aniso3d((4, 5, 3), (1, 2, 3)), added(x, 2 * y, 3 * z))
    close(problems.biharmonic2d((4, 5)), added(x, y) ** 2)
    close(problems.heat2d((4, 5), dt=0.1), 0.1 * added(x, y) + 0.04)
    close(problems.heat3d((4, 5, 3), dt=0.1), 0.1 * added(x, y, z) + 0.04)
    close(problems.graph_laplacian(networkx.path_graph(2), shift=0.5), [0.5, 2.5])


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("poisson2d:30", 5 * 900 - 4 * 30),
        ("poisson2d9:30", 88**2),
        ("poisson3d:10", 7 * 1000 - 6 * 100),
        ("poisson3d27:10", 28**3),
        ("aniso2d:30", 88**2),
        ("elasticity3d:6", 9 * 16**3),
        ("convdiff2d:30", 5 * 900 - 4 * 30),
        ("helmholtz3d:10", 7 * 1000 - 6 * 100),
        ("biharmonic2d:30", 13 * 900 - 20 * 30 + 4),
    ],
)
def test_stencils(name, entries):
    assert problems.from_name(name).nnz == entries


def test_the_grids_are_those_of_the_textbook():
    line = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(6, 6))
    wind = sp.diags_array([-1.0, 1.0], offsets=[-1, 0], shape=(6, 6))
    identity = sp.eye_array(6)
    diffusion = sp.kron(line, identity) + sp.kron(identity, line)
    transport = 2 * sp.kron(wind, identity) + sp.kron(identity, wind)
    assert abs(problems.poisson2d(6) - diffusion).max() == 0
    assert abs(problems.convdiff2d(6) - diffusion - transport).max() == 0


def error_of(A, n, dimensions, source):
    """Largest error for u = product of sin(pi x_i), at n interior points along each axis."""
    x = np.arange(1, n + 1) / (n + 1)
    u = np.prod(np.meshgrid(*[np.sin(np.pi * x)] * dimensions), axis=0).ravel()
    return np.abs(spsolve(A, source * u) - u).max()


@pytest.mark.parametrize(
    ("problem", "dimensions", "power"),
    [
        ("poisson2d", 2, 1),
        ("poisson2d9", 2, 1),
        ("poisson3d", 3, 1),
        ("poisson3d27", 3, 1),
        ("biharmonic2d", 2, 2),
    ],
)
def test_second_order(problem, dimensions, power):
    make, errors = problems.catalogue[problem], []
    for n in (7, 15):
        eigenvalue = (dimensions * (np.pi / (n + 1)) ** 2) ** power
        errors.append(error_of(make(n), n, dimensions, eigenvalue))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.1)


def test_turned_anisotropy_is_second_order():
    angle, eps = 0.7, 0.1
    c, s = np.cos(angle), np.sin(angle)
    D = np.array([[c * c + eps * s * s, c * s * (1 - eps)], [0, s * s + eps * c * c]])
    errors = []
    for n in (15, 31):
        h = 1 / (n + 1)
        x, y = np.meshgrid(*[np.pi * h * np.arange(1, n + 1)] * 2, indexing="ij")
        u = np.sin(x) * np.sin(y)
        f = (D[0, 0] + D[1, 1]) * u - 2 * D[0, 1] * np.cos(x) * np.cos(y)
        found = spsolve(problems.aniso2d(n, eps, angle), (np.pi * h) ** 2 * f.ravel())
        errors.append(np.abs(found - u.ravel()).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.2)


def test_rigid_motions_cost_nothing():
    h, shape = 0.5, (3, 4, 2)
    A = problems.elasticity3d(shape, E=2.0, nu=0.2, h=h, clamped=False)
    x = np.stack(np.meshgrid(*(h * np.arange(k) for k in shape), indexing="ij"), -1).reshape(-1, 3)
    turns = [np.cross(axis, x) for axis in np.eye(3)]
    shifts = [np.broadcast_to(axis, x.shape) for axis in np.eye(3)]
    for motion in (*turns, *shifts):
        assert np.abs(A @ motion.ravel()).max() < 1e-13
    assert np.sum(np.linalg.eigvalsh(A.toarray()) < 1e-12) == 6


def test_a_bar_stretches_by_hooke():
    # no lateral contraction where nu = 0: a pull of 1 per area gives u_x = x / E, exactly
    n, h, E = 5, 0.2, 10.0
    A = problems.elasticity3d(n, E=E, nu=0.0, h=h)
    share = np.full(n, h)
    share[[0, -1]] /= 2
    load = np.zeros((n, n, n, 3))
    load[-1, :, :, 0] = np.outer(share, share)
    u = spsolve(A, load.ravel()).reshape(n, n, n, 3)
    expected = h * np.arange(1, n + 1) / E
    np.testing.assert_allclose(u[..., 0], expected[:, None, None] * np.ones((n, n)), rtol=1e-12)
    np.testing.assert_allclose(u[..., 1:], 0, atol=1e-14)


def test_waves_leave_the_box():
    # a plane wave from the left end of a duct: |u| is constant but for small reflections
    n, points = 80, 20
    A = problems.helmholtz2d((n, 1), points)
    kh = 2 * np.pi / points
    A = A + 2j * kh / (1 - 0.5j * kh) * sp.eye_array(n)  # undo the two sides along the duct
    source = np.zeros(n)
    source[0] = 1.0
    amplitude = np.abs(spsolve(A.tocsc(), source))
    assert amplitude.std() / amplitude.mean() < 0.02


def test_stokes_conserves_mass():
    n = 12
    A = problems.stokes2d(n)
    force = np.random.default_rng(0).standard_normal(A.shape[0])
    force[2 * n * (n - 1) :] = 0
    u, v, _ = np.split(spsolve(A, force), [n * (n - 1), 2 * n * (n - 1)])
    along = np.diff(np.pad(u.reshape(n - 1, n), ((1, 1), (0, 0))), axis=0)
    across = np.diff(np.pad(v.reshape(n, n - 1), ((0, 0), (1, 1))), axis=1)
    assert np.abs(along + across).max() < 1e-12


@pytest.mark.parametrize(("name", "options"), [("kkt", {}), ("linear_program", {}), ("kktreg", {})])
def test_inertia(name, options):
    n = 90
    A = problems.catalogue[name](n, **options)
    values = np.linalg.eigvalsh(A.toarray())
    assert (np.sum(values > 0), np.sum(values < 0)) == (60, 30)
    assert np.count_nonzero(A.diagonal()) == (90 if name == "kktreg" else 60)


def test_stokes_inertia():
    values = np.linalg.eigvalsh(problems.stokes2d(6).toarray())
    assert (np.sum(values > 0), np.sum(values < 0)) == (60, 35)


def test_graphs():
    W = problems.random_geometric(4000, degree=12, dimensions=2, seed=3)
    assert abs(W - W.T).max() == 0
    assert not W.diagonal().any()
    assert W.nnz / 4000 == pytest.approx(12, rel=0.1)
    L = problems.graph_laplacian(W, shift=0.25)
    np.testing.assert_allclose(L @ np.ones(4000), 0.25)
    with_loops = problems.graph_laplacian(W + sp.eye_array(4000), shift=0.25)
    assert abs(L - with_loops).max() == 0


def test_circuit():
    A = problems.circuit(500, hubs=2)
    G = A[:500, :500]
    assert np.linalg.eigvalsh((G + G.T).toarray())[0] > 0
    assert np.count_nonzero(A.diagonal()) == 500
    assert np.diff(A.indptr).max() > 12
    assert np.diff(A.indptr).mean() < 6


@pytest.mark.parametrize(
    "name", ["poisson", "poisson2d", "poisson2d:", "poisson2d:x", "poisson3d:4x4", "kkt:9,a=1"]
)
def test_bad_names(name):
    with pytest.raises(ValueError, match=r"poisson|kkt"):
        problems.from_name(name)


@pytest.mark.parametrize(
    "call",
    [
        lambda: problems.poisson2d(3, stencil=7),
        lambda: problems.poisson3d(0),
        lambda: problems.elasticity3d(3, nu=0.5),
        lambda: problems.convdiff2d(3, (-1.0, 0.0)),
        lambda: problems.stokes2d(1),
        lambda: problems.kkt(2),
        lambda: problems.circuit(10),
    ],
)
def test_bad_parameters(call):
    with pytest.raises(ValueError, match=r"must be|needed"):
        call()


def test_hat_functions_share_a_pattern():
    matrices = tensor.hat_functions(4, 0.5, clamped=True)
    assert {tuple(M.indices) for M in matrices.values()} == {tuple(matrices["00"].indices)}
    assert matrices["10"].nnz == 10
