"""Pencils with known eigenvalues, and the dense eigensolver."""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse as sp

EPS = np.finfo(float).eps


def grid(n: int) -> sp.csc_array:
    """Laplacian of an n x n grid: most eigenvalues are double, and n are equal to 4."""
    T = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csc_array(sp.kron(T, sp.eye_array(n)) + sp.kron(sp.eye_array(n), T))


def free_chain(n: int) -> sp.csc_array:
    """Stiffness of a free chain of springs: the smallest eigenvalue is zero."""
    A = sp.lil_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n)))
    A[0, 0] = A[-1, -1] = 1.0
    return sp.csc_array(A)


def consistent_mass(n: int) -> sp.csc_array:
    """Mass of linear elements on a line."""
    return sp.csc_array(sp.diags_array([1.0, 4.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)) / 6)


def hermitian(n: int, seed: int = 0) -> sp.csc_array:
    """A random sparse Hermitian matrix, indefinite."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=4 / n, rng=rng)
    B = sp.random_array((n, n), density=4 / n, rng=rng)
    return sp.csc_array((A + 1j * B) + (A + 1j * B).conj().T + sp.diags_array(rng.normal(size=n)))


def dense_eigenvalues(A: sp.csc_array, M: sp.csc_array | None = None) -> np.ndarray:
    """All eigenvalues, ascending, by LAPACK."""
    return scipy.linalg.eigh(A.toarray(), None if M is None else M.toarray(), eigvals_only=True)


def check_pairs(A, M, values, vectors, limit: float = 100) -> None:
    """Residuals and M-orthonormality, in roundings."""
    mass = sp.eye_array(A.shape[0]) if M is None else M
    size = abs(A).sum(axis=0).max() + np.abs(values) * abs(mass).sum(axis=0).max()
    residual = np.linalg.norm(A @ vectors - (mass @ vectors) * values, axis=0)
    assert (residual <= limit * EPS * size * np.linalg.norm(vectors, axis=0)).all()
    gram = vectors.conj().T @ (mass @ vectors)
    assert abs(gram - np.eye(values.size)).max(initial=0) < 1e-9
    assert (np.diff(values) >= 0).all()
