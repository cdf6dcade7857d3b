"""Test matrices that several test files share.

Random matrices depend on their arguments alone: every builder seeds its own generator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from frontal import problems
from frontal.numeric.method import LDLH, LDLT

WEAK_BLOCKS = 6  # diagonal blocks of `weak_pivots`
WEAK_SIZE = 40  # columns of one diagonal block
WEAK_BORDER = 60  # columns of the border


# --- patterns and simple matrices ------------------------------------------------------------


def tridiagonal(n: int, below: float, diagonal: float, above: float) -> sp.csc_array:
    """Return an n by n tridiagonal matrix with constant diagonals."""
    A = sp.diags_array([below, diagonal, above], offsets=[-1, 0, 1], shape=(n, n))
    return sp.csc_array(A)


def path_laplacian(n: int) -> sp.csc_array:
    """Return the graph Laplacian of a path of n nodes; constants are its null space."""
    A = tridiagonal(n, -1.0, 2.0, -1.0)
    A[0, 0] = A[n - 1, n - 1] = 1.0
    return A


def path_laplacians(count: int, n: int) -> sp.csc_array:
    """Return a block diagonal matrix of `count` path Laplacians: elimination ends at zero."""
    return sp.block_diag([path_laplacian(n)] * count, "csc")


def dominant_dense(n: int) -> sp.csc_array:
    """Return a dense positive definite matrix: n + 0.5 on the diagonal, 0.5 elsewhere."""
    return sp.csc_array(np.full((n, n), 0.5) + n * np.eye(n))


def star(n: int, symmetric: bool = True) -> sp.csc_array:
    """Return the pattern of a star: node 0 is adjacent to all n nodes.

    Parameters
    ----------
    n
        Number of nodes.
    symmetric
        Whether column 0 is stored in addition to row 0.
    """
    row = sp.csc_array((np.ones(n), (np.zeros(n, int), np.arange(n))), shape=(n, n))
    return sp.csc_array(row + row.T) if symmetric else row


def stencil(*shape: int, box: bool = False, unknowns: int = 1) -> sp.csr_array:
    """Return the pattern of a d-dimensional grid.

    Parameters
    ----------
    *shape
        Nodes along each axis.
    box
        Whether the stencil has 3^d points instead of 2d + 1.
    unknowns
        Unknowns per node, coupled by full blocks.
    """
    A = sp.csr_array(np.ones((1, 1)))
    for size in shape:
        line = sp.diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(size, size))
        A = sp.kron(A, line) if box else sp.kronsum(line, A)
    return sp.csr_array(sp.kron(A, np.ones((unknowns, unknowns))))


def thinned(A: Any) -> sp.csc_array:
    """Return a symmetric matrix without its diagonal and a third of its entries."""
    upper = sp.triu(A, 1).tocoo()
    kept = np.random.default_rng(0).random(upper.nnz) > 0.33
    upper = sp.coo_array((upper.data[kept], (upper.row[kept], upper.col[kept])), shape=A.shape)
    return sp.csc_array(upper + upper.T)


# --- values of a scalar type -----------------------------------------------------------------


def with_phases(a: Any, dtype: Any, method: Any = LDLH) -> sp.csc_array:
    """Return a real symmetric matrix in a scalar type, with complex phases if it is complex.

    Parameters
    ----------
    a
        Real symmetric matrix.
    dtype
        Scalar type of the result.
    method
        `LDLH` for a Hermitian result, `LDLT` for a complex symmetric one.
    """
    a = sp.csc_array(a)
    if np.dtype(dtype).kind == "c":
        phase = np.exp(0.3j)
        below, diagonal = phase * sp.tril(a, -1), sp.diags_array(a.diagonal())
        above = below.conj() if method.adjoint else below
        a = below + above.T + diagonal * (1 if method.adjoint else np.exp(0.1j))
    return sp.csc_array(a).astype(dtype)


def with_values(A: Any, values: np.ndarray) -> sp.csc_array:
    """Return a matrix with the CSC pattern of A and other values."""
    return sp.csc_array((values, A.indices, A.indptr), shape=A.shape)


def scaled_values(A: Any, count: int, seed: int = 0) -> np.ndarray:
    """Return CSC values of `count` matrices S A S, where each S is a random positive diagonal."""
    size = np.random.default_rng(seed).uniform(0.5, 2, (count, A.shape[0]))
    return np.stack([(sp.diags_array(s) @ A @ sp.diags_array(s)).tocsc().data for s in size])


# --- systems on grids ------------------------------------------------------------------------


def grid_matrices(n: int) -> dict[str, Any]:
    """Return matrices on an n by n grid: "spd", "general" and "symmetric" (indefinite)."""
    return {
        "spd": problems.poisson2d(n),
        "general": problems.convdiff2d(n),
        "symmetric": problems.poisson2d(n) - 2.7 * sp.eye_array(n * n),
    }


def grid_system(kind: str, dtype: Any, n: int = 9) -> sp.csc_array:
    """Return a regular matrix with the pattern of an n by n grid.

    Parameters
    ----------
    kind
        "general" for unsymmetric values in rows scaled by powers of two, otherwise Hermitian
        positive definite.
    dtype
        Scalar type of the values.
    n
        Nodes along each axis.
    """
    a, rng = with_phases(problems.poisson2d(n), dtype), np.random.default_rng(5)
    if kind == "general":
        a.data *= rng.uniform(0.2, 1.0, a.nnz).astype(a.real.dtype)
        a = sp.csc_array(sp.diags_array(2.0 ** rng.integers(-6, 6, n * n)) @ a).astype(dtype)
    return a


def solid_system(kind: str, dtype: Any = "f8", n: int = 8) -> sp.csc_array:
    """Return a matrix on an n by n by n grid, whose factor has fronts of every kind.

    Parameters
    ----------
    kind
        "spd", "symmetric" (indefinite) or "general".
    dtype
        Scalar type of the values.
    n
        Nodes along each axis.
    """
    a = problems.convdiff3d(n) if kind == "general" else problems.poisson3d(n)
    if kind == "symmetric":
        a = with_phases(a - 0.63 * sp.eye_array(n**3), dtype, LDLT)
    elif kind == "spd":
        a = with_phases(a, dtype)
    elif np.dtype(dtype).kind == "c":
        a = a * np.exp(0.2j) + 1j * sp.eye_array(n**3)
    return sp.csc_array(a).astype(dtype)


# --- fronts ----------------------------------------------------------------------------------

FRONT_MATRICES: dict[str, Callable[[], sp.csc_array]] = {
    "grid": lambda: problems.poisson2d(17),
    "cube": lambda: problems.poisson3d(6),
    "chain": lambda: tridiagonal(40, -1.0, 2.5, -1.0),
    "forest": lambda: sp.block_diag(
        [problems.poisson2d(4), sp.eye_array(3), problems.poisson2d(5)], format="csc"
    ),
    "dense": lambda: dominant_dense(150),
}


def unsymmetric_front(name: str, dtype: Any) -> sp.csc_array:
    """Return a matrix of `FRONT_MATRICES` whose diagonal blocks need row interchanges."""
    a = with_phases(FRONT_MATRICES[name](), dtype)
    a.data *= np.random.default_rng(5).uniform(0.2, 1.0, a.nnz).astype(a.real.dtype)
    return a


def bordered_pattern(sizes: tuple[int, ...], border: int) -> np.ndarray:
    """Return the dense pattern of full diagonal blocks with a full border.

    Parameters
    ----------
    sizes
        Columns of each diagonal block.
    border
        Columns of the border, which come last.
    """
    n = sum(sizes) + border
    full = np.zeros((n, n), bool)
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        full[end - size : end, end - size : end] = True
    full[n - border :] = full[:, n - border :] = True
    return full


def bordered(dtype: Any, kind: str) -> sp.csc_array:
    """Return a bordered matrix: fronts of 2 to 6 tiles in natural order, the last ones partial.

    Parameters
    ----------
    dtype
        Scalar type of the values.
    kind
        "spd" for a Hermitian positive definite matrix, otherwise unsymmetric.
    """
    full = bordered_pattern((70, 170, 130), 150)
    n = full.shape[0]
    a = np.random.default_rng(8).uniform(-1, 1, (n, n)) * full
    if kind == "spd":
        return with_phases(a + a.T + 2 * n * np.eye(n), dtype)
    return sp.csc_array(a.astype(dtype))


def tiled_fronts(kind: str) -> sp.csc_array:
    """Return a matrix whose natural order gives two tiled fronts below a dense root.

    Both fronts have 300 pivot columns and 400 update rows; the first has a leaf below.
    """
    n = 1100
    rng, full = np.random.default_rng(4), np.zeros((n, n), bool)
    for first, end in ((0, 80), (20, 320), (320, 620), (620, n)):
        full[first:end, first:end] = True
    full[20:620, 620:1020] = full[620:1020, 20:620] = True
    a = rng.uniform(-1, 1, (n, n))
    a = a + a.T + 2 * n * np.eye(n) if kind == "spd" else a
    return sp.csc_array(a * full)


def weak_pivots(pivot: complex, dtype: Any = "f8") -> sp.csc_array:
    """Return a bordered matrix whose diagonal blocks start with a weak column.

    The first column of each block has 1 in the border and 1e-14 in the block below its pivot.

    Parameters
    ----------
    pivot
        Diagonal entry of the weak columns.
    dtype
        Scalar type of the values.
    """
    rng = np.random.default_rng(5)
    n = WEAK_BLOCKS * WEAK_SIZE + WEAK_BORDER
    A = sp.lil_array((n, n), dtype=dtype)
    last = slice(n - WEAK_BORDER, n)
    square, wide = (WEAK_SIZE, WEAK_SIZE), (WEAK_BORDER, WEAK_SIZE)
    corner = 0.1 * rng.standard_normal((WEAK_BORDER, WEAK_BORDER))
    A[last, last] = corner + 8 * np.eye(WEAK_BORDER)
    for i in range(WEAK_BLOCKS):
        span = slice(i * WEAK_SIZE, (i + 1) * WEAK_SIZE)
        block = (0.1 * rng.standard_normal(square) + 4 * np.eye(WEAK_SIZE)).astype(dtype)
        block[:, 0] = 1e-14
        block[0, 0] = pivot
        A[span, span] = block
        A[last, span] = 0.1 * rng.standard_normal(wide)
        A[span, last] = 0.1 * rng.standard_normal(wide).T
        A[last.start + i, span.start] = A[span.start, last.start + i] = 1.0
    return sp.csc_array(A)


# --- random systems --------------------------------------------------------------------------


def orthogonal(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a random orthogonal matrix, dense."""
    q, r = np.linalg.qr(rng.standard_normal((n, n)))
    return q * np.sign(np.diag(r))


def conditioned_system(
    condition: float, seed: int, n: int = 30
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a dense matrix with one small singular value, a solution, and the right-hand side.

    Parameters
    ----------
    condition
        Condition number in the 2-norm.
    seed
        Seed of the random numbers.
    n
        Order of the matrix.
    """
    rng = np.random.default_rng(seed)
    size = np.ones(n)
    size[-1] = 1 / condition
    A = orthogonal(rng, n) @ np.diag(size) @ orthogonal(rng, n)
    x = rng.standard_normal(n)
    b = (A.astype(np.longdouble) @ x.astype(np.longdouble)).astype(np.float64)
    return A, x, b


def dominant_system(n: int, kind: str, dtype: Any, seed: int) -> tuple[sp.csc_array, np.ndarray]:
    """Return a random diagonally dominant matrix and a right-hand side.

    Parameters
    ----------
    n
        Order of the matrix.
    kind
        "spd", "symmetric", "hermitian" or "general".
    dtype
        Scalar type of both.
    seed
        Seed of the random numbers.
    """
    rng = np.random.default_rng(seed)
    T = sp.random_array((n, n), density=min(1.0, 3 / n), random_state=rng, dtype=np.float64)
    T = T.astype(dtype)
    if np.dtype(dtype).kind == "c":
        T.data += 1j * rng.standard_normal(T.data.size).astype(T.data.real.dtype)
    mirrored = {"general": 0 * T, "symmetric": T.T}.get(kind, T.conj().T)
    A = sp.csc_array(T + mirrored)
    A.setdiag(0)
    size = 1 + abs(A).sum(axis=0) + abs(A).sum(axis=1)
    sign = np.where((rng.random(n) < 0.5) | (kind == "spd"), 1.0, -1.0)
    A = sp.csc_array((A + sp.diags_array(sign * size)).astype(dtype))
    return A, rng.standard_normal(n).astype(dtype)


def zero_diagonal_system(
    method: Any, dtype: Any, n: int, density: float, seed: int, zeros: float = 0.5
) -> sp.csc_array:
    """Return a random matrix with zeros on the diagonal and a symmetric pattern.

    Parameters
    ----------
    method
        Factorization method, whose symmetry the values have.
    dtype
        Scalar type of the values.
    n
        Order of the matrix.
    density
        Fraction of random entries before the pattern is made symmetric.
    seed
        Seed of the random numbers.
    zeros
        Fraction of zeros on the diagonal.
    """
    rng = np.random.default_rng(seed)
    pattern = rng.random((n, n)) < density
    pattern |= pattern.T | np.eye(n, dtype=bool) | np.eye(n, k=1, dtype=bool)
    pattern |= pattern.T
    a = rng.standard_normal((n, n)) * pattern
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((n, n)) * pattern
    if method.one_triangle:
        a = a + (a.conj().T if method.adjoint else a.T)
    np.fill_diagonal(a, np.where(rng.random(n) < zeros, 0, a.diagonal().real))
    column, row = np.nonzero(pattern.T)
    pointer = np.searchsorted(column, np.arange(n + 1))
    return sp.csc_array((a[row, column].astype(dtype), row, pointer), shape=(n, n))
