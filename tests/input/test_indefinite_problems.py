"""Generated problems that are hard on pivots: rank, inertia, condition, all of them prescribed."""

from __future__ import annotations

import numpy as np
import pytest

from frontal import problems


def signs(A):
    values = np.linalg.eigvalsh(A.toarray())
    return int((values > 0).sum()), int((values < 0).sum())


def rank(A):
    return int(np.linalg.matrix_rank(A.toarray()))


@pytest.mark.parametrize("make", [problems.stokes2d, problems.oseen2d])
def test_enclosed_flow_leaves_a_constant_pressure(make):
    A, pinned = make(5, enclosed=True), make(5)
    constant = np.repeat([0.0, 1.0], [40, 25])
    assert np.abs(A @ constant).max() == 0
    assert np.abs(A.T @ constant).max() == 0
    assert rank(A) == A.shape[0] - 1 == pinned.shape[0] == rank(pinned)
    assert abs(A[:-1, :-1] - pinned).max() == 0


def test_oseen_has_a_wind():
    calm, stokes = problems.oseen2d(6, reynolds=0.0), problems.stokes2d(6)
    assert abs(abs(calm) - abs(stokes)).max() == 0
    wind = (problems.oseen2d(6) - calm).toarray()
    assert np.abs(wind[:60, :60]).max() > 1
    assert not wind[60:].any()


@pytest.mark.parametrize("repeats", [1, 3])
def test_repeated_constraints(repeats):
    A = problems.repeated_constraint(60, repeats)
    assert (A.shape[0], rank(A)) == (60 + repeats, 60)
    assert abs(A - A.T).max() == 0


@pytest.mark.parametrize("mu", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("quadratic", [False, True])
def test_interior_points(mu, quadratic):
    A = problems.interior_point(90, mu, quadratic)
    d = np.sqrt(np.maximum(abs(A.diagonal()), 1.0))
    assert signs(A / np.outer(d, d)) == (60, 30)  # of a congruent matrix
    assert A.diagonal().max() > 0.3 / mu
    assert np.count_nonzero(A.diagonal()) == 60


def test_inertia_of_control_and_circuits():
    assert signs(problems.optimal_control((4, 5), beta=1e-6)) == (40, 20)
    assert signs(problems.mna(40, sources=7)) == (40, 7)
    A = problems.mna(40, frequency=1e8)
    assert abs(A - A.T).max() == 0
    assert abs(A.imag).max() > 1e-3


def test_an_eigenvalue_is_taken_off():
    values = np.linalg.eigvalsh(problems.shifted_laplacian((4, 5), (2, 1), 1e-6).toarray())
    assert np.abs(values).min() == pytest.approx(1e-6, rel=1e-6)
    assert rank(problems.shifted_laplacian(5, (1, 2))) == 23  # double on a square


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("symmetric", [False, True])
def test_prescribed_singular_values(dtype, symmetric):
    A = problems.conditioned(40, 1e8, symmetric=symmetric, dtype=dtype)
    values = np.linalg.svd(A.toarray(), compute_uv=False)
    np.testing.assert_allclose(values, 1e8 ** -np.linspace(0, 1, 40), rtol=1e-6)
    assert (abs(A - A.conj().T).max() == 0) == symmetric
    assert A.dtype == dtype
    assert A.nnz < 20 * 40
    assert problems.conditioned(9, dtype=np.float32).dtype == np.float32


def test_near_skew_and_graded():
    A = problems.near_skew(5, 1e-3)
    np.testing.assert_allclose((A + A.T).toarray(), 2e-3 * np.eye(25), atol=1e-18)
    A = problems.graded(6, decades=10)
    assert abs(A - A.T).max() == 0
    d = 10.0 ** (10 * np.linspace(0, 1, 36))
    scaled = A.toarray() * np.outer(d, d)
    assert np.abs(np.abs(scaled.diagonal()) - 6).max() < 1e-9
    assert np.linalg.cond(scaled) < 100


def test_permuted_and_turned():
    A = problems.kkt(60)
    values = np.linalg.eigvalsh(A.toarray())
    assert not np.array_equal(problems.permuted(A, 1).toarray(), A.toarray())
    np.testing.assert_allclose(np.linalg.eigvalsh(problems.permuted(A).toarray()), values)
    np.testing.assert_allclose(np.linalg.eigvalsh(problems.turned(A).toarray()), values)
    other, dense = problems.permuted(A, symmetric=False), problems.turned(A, hermitian=False)
    for B in (other, dense):
        wanted = np.linalg.svd(A.toarray(), compute_uv=False)
        np.testing.assert_allclose(np.linalg.svd(B.toarray(), compute_uv=False), wanted)
    assert abs(other - other.T).max() > 0
    assert abs(dense - dense.T).max() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda: problems.optimal_control(3, beta=0.0),
        lambda: problems.interior_point(3),
        lambda: problems.oseen2d(1),
        lambda: problems.repeated_constraint(3),
        lambda: problems.shifted_laplacian(3, (0, 1)),
        lambda: problems.zero_diagonal(5),
        lambda: problems.conditioned(5, 0.5),
        lambda: problems.mna(20, sources=11),
    ],
)
def test_bad_parameters(call):
    with pytest.raises(ValueError, match="must be"):
        call()
