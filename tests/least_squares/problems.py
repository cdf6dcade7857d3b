"""Rectangular matrices with known singular values, and dense solutions."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def random_block(shape, dtype=np.float64, seed=0):
    """Return a random array, complex for a complex type."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def with_singular_values(m, n, values, dtype=np.float64, seed=0):
    """Return a sparse (m, n) matrix with these singular values, by random plane rotations."""
    rng = np.random.default_rng(seed)

    def rotations(size):
        pairs = rng.permutation(size)[: size // 2 * 2].reshape(2, -1)
        angle = rng.uniform(0, 2 * np.pi, pairs.shape[1])
        phase = np.exp(1j * rng.uniform(0, 6, angle.size)) if np.dtype(dtype).kind == "c" else 1
        R = sp.eye_array(size, dtype=np.result_type(dtype, np.float64), format="lil")
        R[pairs[0], pairs[0]] = R[pairs[1], pairs[1]] = np.cos(angle)
        R[pairs[0], pairs[1]] = np.sin(angle) * phase
        R[pairs[1], pairs[0]] = -np.sin(angle) * np.conj(phase)
        return sp.csr_array(R)

    count = len(values)
    A = sp.csr_array((values, (np.arange(count), np.arange(count))), shape=(m, n))
    for _ in range(2):
        A = rotations(m) @ A @ rotations(n)
    return sp.csc_array(A.astype(dtype))


def sparse_random(m, n, dtype=np.float64, density=0.2, seed=0):
    """Return a random sparse matrix, complex for a complex type."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((m, n), density=density, rng=rng, format="csc", data_sampler=None)
    A.data = random_block(A.nnz, dtype, seed + 1)
    return A


def dense_solution(A, b):
    """Return the solution of least norm by NumPy in double precision, and the rank."""
    wide = np.result_type(A.dtype, np.asarray(b).dtype, np.float64)
    x, _, rank, _ = np.linalg.lstsq(
        A.toarray().astype(wide), np.asarray(b).astype(wide), rcond=None
    )
    return x, rank


def refined_solution(A, b, damp=0.0):
    """Return the solution by a dense augmented system, refined in extended precision."""
    m, n = A.shape
    wide = np.result_type(A.dtype, b, np.float64)
    extended = np.result_type(wide, np.longdouble)
    dense = A.toarray().astype(wide)
    if m < n and damp:  # (A A^H + damp^2) y = b, x = A^H y
        dense = dense.astype(extended)
        G, y, c = dense @ dense.conj().T + damp**2 * np.eye(m), np.zeros_like(b, extended), b
        for _ in range(20):
            y = y + np.linalg.solve(G.astype(wide), (c - G @ y).astype(wide))
        return (dense.conj().T @ y).astype(wide)
    K = np.block([[np.eye(m), dense], [dense.conj().T, -(damp**2) * np.eye(n)]])
    b = np.concatenate([b, np.zeros((n, *b.shape[1:]))]).astype(extended)
    x = np.zeros_like(b)
    for _ in range(20):
        x = x + np.linalg.solve(K, (b - K.astype(extended) @ x).astype(wide))
    return x[m:].astype(wide)


def optimality(A, x, b, damp=0.0):
    """Return |A^H r| / (|A| |r|) in roundings of the type of x."""
    wide = np.result_type(A.dtype, np.float64)
    dense = np.vstack([A.toarray(), damp * np.eye(A.shape[1])]).astype(wide)
    b = np.concatenate([b, np.zeros(A.shape[1])])
    r = b - dense @ x.astype(wide)
    size = np.linalg.norm(dense, 2) * np.linalg.norm(r)
    return np.linalg.norm(dense.conj().T @ r) / size / np.finfo(x.dtype).eps
