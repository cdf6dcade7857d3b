"""Derivatives of solutions compared with dense algebra, on any backend."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import frontal

from .emulation.borders import eps

KINDS = ("spd", "symmetric", "hermitian", "general")
N = 12


def system(kind, dtype, seed=0):
    """A sparse matrix of order `N` and its generator."""
    rng, kind_of = np.random.default_rng(seed), np.dtype(dtype).kind
    dense = rng.standard_normal((N, N)) * (rng.random((N, N)) < 0.3)
    if kind_of == "c":
        dense = dense + 1j * rng.standard_normal((N, N)) * (dense != 0)
    if kind != "general":
        dense = dense + (dense.T if kind == "symmetric" else dense.conj().T)
    shift = {"spd": 8.0, "general": 4.0}.get(kind, 5.0 * (-1.0) ** np.arange(N))
    return sp.csc_array((dense + np.diag(np.full(N, shift))).astype(dtype)), rng


def vectors(rng, shape, dtype):
    found = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


def home(array):
    """An array of either side on the host."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def op(dense, trans):
    return {"N": dense, "T": dense.T, "H": dense.conj().T}[trans]


def inner(a, b):
    """The real inner product of two arrays."""
    return float(np.vdot(a, b).real)


def completed(stored, kind, triangle):
    """The dense matrix of a stored one, which may be one triangle."""
    dense = stored.toarray()
    if triangle is None:
        return dense
    mirror = dense.T if kind == "symmetric" else dense.conj().T
    return dense + mirror - np.diag(np.diag(dense))


def check(A, kind, trans, shape, *, backend="cpu", triangle=None, vector=None, where=np.asarray):
    """Compare both derivatives along a random change of the stored values with dense algebra."""
    rng, dtype = np.random.default_rng(1), A.dtype
    vector = vector or dtype
    dense = completed(A, kind, triangle)
    change, rhs = A.copy(), vectors(rng, shape, vector)
    change.data = vectors(rng, A.data.shape, dtype)
    if triangle is None and kind != "general":  # a change that keeps the symmetry
        full = sp.csc_array(change)
        mirror = full.T if kind == "symmetric" else full.conj().T
        change.data = type(A)(full + mirror).data
    elif kind in ("spd", "hermitian"):  # the diagonal is real
        own = sp.csc_array(change)
        own.setdiag(own.diagonal().real)
        change = type(A)(own)
    factor = frontal.factorize(A, kind=kind, backend=backend, triangle=triangle)
    x = factor.solve(where(rhs), trans)
    x_bar, b_dot = vectors(rng, shape, vector), vectors(rng, shape, vector)
    values_bar, b_bar = factor.solve_vjp(x, where(x_bar), trans)
    x_dot = home(factor.solve_jvp(x, where(change.data), where(b_dot), trans))
    values_bar, b_bar = home(values_bar), home(b_bar)
    matrix = op(dense, trans)
    solution = np.linalg.solve(matrix, rhs)
    moved = op(completed(change, kind, triangle), trans) @ solution
    wanted = np.linalg.solve(matrix, b_dot - moved)
    error = 200 * eps(dtype) * np.linalg.cond(dense)
    np.testing.assert_allclose(
        b_bar, np.linalg.solve(matrix.conj().T, x_bar), rtol=0, atol=error * 10
    )
    np.testing.assert_allclose(x_dot, wanted, rtol=0, atol=error * abs(wanted).max())
    size = np.linalg.norm(values_bar) * np.linalg.norm(change.data)
    along = inner(values_bar, change.data) + inner(b_bar, b_dot)
    assert abs(along - inner(x_bar, wanted)) <= error * size
    assert values_bar.dtype == dtype
    assert values_bar.shape == A.data.shape
    return values_bar
