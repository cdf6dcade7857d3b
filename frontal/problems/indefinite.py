"""Matrices that need pivoting: shifted, skew, graded, with a given condition number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from .diffusion import poisson2d
from .tensor import Size, csc, grid_shape

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .._typing import Sparse


def shifted_laplacian(n: Size, mode: tuple[int, int] = (1, 2), offset: float = 0.0) -> sp.csc_array:
    """Return a Laplacian minus one of its eigenvalues, or minus a number near it.

    ``poisson2d(n) - (lambda + offset) I``, where lambda belongs to the sine wave with `mode` half
    periods along the axes: as in shift-and-invert methods. Singular up to rounding if `offset` is
    0; on a square the eigenvalues of modes with unequal components are double.

    Parameters
    ----------
    n : int or (int, int)
        Interior points along each axis.
    mode : (int, int)
        Half periods along each axis, from 1 to the number of points.
    offset : float
        Distance to the eigenvalue.

    Returns
    -------
    (n^2, n^2) csc_array of float64

    Examples
    --------
    >>> import numpy as np
    >>> values = np.linalg.eigvalsh(shifted_laplacian((4, 5)).toarray())
    >>> int((abs(values) < 1e-14).sum()), int((values < -1e-14).sum())
    (1, 1)
    """
    shape = grid_shape(n, 2)
    if not all(1 <= k <= size for k, size in zip(mode, shape, strict=True)):
        raise ValueError(f"mode must be between 1 and {shape}, not {mode!r}")
    angles = (np.pi * k / (2 * size + 2) for k, size in zip(mode, shape, strict=True))
    eigenvalue = sum(4 * np.sin(angle) ** 2 for angle in angles)
    return csc(poisson2d(shape) - (eigenvalue + offset) * sp.eye_array(int(np.prod(shape))))


def zero_diagonal(n: int, degree: float = 4.0, seed: int = 0) -> sp.csc_array:
    """Return a random symmetric matrix without diagonal entries.

    A random perfect matching makes it structurally regular; all pivots are 2x2 blocks or come from
    fill.

    Parameters
    ----------
    n : int
        Order, even.
    degree : float
        Mean number of entries of a column.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n, n) csc_array of float64

    Examples
    --------
    >>> A = zero_diagonal(100)
    >>> bool(A.diagonal().any()), bool(abs(A - A.T).max() == 0)
    (False, True)
    """
    if n < 2 or n % 2:
        raise ValueError(f"n must be even and positive, not {n!r}")
    rng = np.random.default_rng(seed)
    mates = rng.permutation(n).reshape(2, -1)
    pairs = rng.integers(0, n, (2, int(max(degree - 1, 0) * n / 2)))
    pairs = pairs[:, pairs[0] != pairs[1]]
    i, j = np.hstack([mates, pairs])
    values = rng.standard_normal(i.size)
    values[: n // 2] += 2 * np.sign(values[: n // 2])
    W = sp.coo_array((values, (i, j)), shape=(n, n))
    return csc(W + W.T)


def near_skew(n: int, symmetric_part: float = 1e-10, seed: int = 0) -> sp.csc_array:
    """Return a skew-symmetric grid operator plus a tiny multiple of the identity.

    Central differences of a wind on an n by n grid with an edge of random weights along each grid
    line. The diagonal gives no stable pivot, and the symmetric part has no other entry.

    Parameters
    ----------
    n : int
        Points along each axis. If even, the skew part alone is regular for almost all weights.
    symmetric_part : float
        The multiple of the identity.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n^2, n^2) csc_array of float64

    Examples
    --------
    >>> A = near_skew(6)
    >>> bool(abs(A + A.T).max() < 1e-9)
    True
    """
    rng = np.random.default_rng(seed)
    upper = sp.coo_array(sp.triu(poisson2d(n), 1))
    upper.data = rng.uniform(0.5, 1.5, upper.nnz)
    return csc(upper - upper.T + symmetric_part * sp.eye_array(n * n))


def graded(n: int, decades: float = 12.0, seed: int = 0) -> sp.csc_array:
    """Return a symmetric indefinite matrix whose rows and columns decrease over many decades.

    ``S K S`` with ``S = 10^-(decades i / n)``; K is a grid Laplacian with random signs on its
    diagonal, shifted. Each pivot is stable, and most are tiny relative to the first ones.

    Parameters
    ----------
    n : int
        Points along each axis of the grid.
    decades : float
        Decades from the first scaling factor to the last.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n^2, n^2) csc_array of float64

    Examples
    --------
    >>> A = graded(10)
    >>> bool(abs(A.diagonal()).max() > 1e20 * abs(A.diagonal()).min())
    True
    """
    K = poisson2d(n)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], K.shape[0])
    S = sp.diags_array(10.0 ** (-decades * np.linspace(0, 1, K.shape[0])))
    return csc(S @ (K + sp.diags_array(4.0 * signs - 4.0 + 2.0 * signs)) @ S)


def conditioned(
    n: int,
    condition: float = 1e8,
    *,
    symmetric: bool = True,
    dtype: DTypeLike = np.float64,
    rounds: int = 2,
    seed: int = 0,
) -> sp.csc_array:
    """Return a sparse matrix with given singular values: ``Q D Q^H``, or ``U D V^H``.

    D decreases geometrically from 1 to ``1 / condition``, in random order, with random signs if
    symmetric. The unitary factors are products of Givens rotations of random disjoint pairs; each
    round doubles the entries of a row. Rounding changes the smallest singular value by about 1e-16.

    Parameters
    ----------
    n : int
        Order.
    condition : float
        Ratio of the largest to the smallest singular value.
    symmetric : bool
        Symmetric, or Hermitian if complex.
    dtype : data type
        float32, float64, complex64 or complex128. Computed in double precision.
    rounds : int
        Rounds of rotations; a row has up to ``4^rounds`` entries.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n, n) csc_array

    Examples
    --------
    >>> import numpy as np
    >>> float(np.linalg.cond(conditioned(50, 1e6).toarray()).round())
    1000000.0
    """
    if n < 1 or not condition >= 1:
        raise ValueError("n must be positive and condition at least 1")
    rng = np.random.default_rng(seed)
    d = condition ** -np.linspace(0, 1, n) if n > 1 else np.ones(1)
    d = rng.permutation(d) * (rng.choice([-1.0, 1.0], n) if symmetric else 1.0)
    is_complex = np.dtype(dtype).kind == "c"
    Q = _rotations(n, rounds, is_complex, rng)
    V = Q if symmetric else _rotations(n, rounds, is_complex, rng)
    A = Q @ sp.diags_array(d) @ V.conj().T
    if symmetric:
        A = 0.5 * (A + A.conj().T)
    return csc(A.astype(dtype))


def _rotations(n: int, rounds: int, is_complex: bool, rng: np.random.Generator) -> sp.csr_array:
    """Return a unitary product of `rounds` rounds of Givens rotations of disjoint pairs."""
    Q = sp.csr_array(sp.eye_array(n))
    for _ in range(rounds):
        i, j = rng.permutation(n)[: n - n % 2].reshape(2, -1)
        angle = rng.uniform(0.2, 1.3, i.size)
        s = np.sin(angle) * (np.exp(1j * rng.uniform(-3, 3, i.size)) if is_complex else 1.0)
        c = np.ones(n)
        c[i] = c[j] = np.cos(angle)
        turn = sp.coo_array((np.concatenate([-s, s.conj()]), (np.r_[i, j], np.r_[j, i])), (n, n))
        Q = sp.csr_array((sp.diags_array(c) + turn) @ Q)
    return Q


def permuted(A: Sparse, seed: int = 0, *, symmetric: bool = True) -> sp.csc_array:
    """Return a matrix with rows and columns in random order.

    Parameters
    ----------
    A : (n, n) sparse matrix or array
    seed : int
        Seed of the random numbers.
    symmetric : bool
        Use the same order for rows and columns; otherwise two orders.

    Returns
    -------
    (n, n) csc_array

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> A = sp.diags_array([1.0, 2.0, 3.0])
    >>> sorted(permuted(A).diagonal().tolist())
    [1.0, 2.0, 3.0]
    """
    rng = np.random.default_rng(seed)
    n = A.shape[0]
    rows = rng.permutation(n)
    cols = rows if symmetric else rng.permutation(n)
    return csc(sp.csr_array(A)[rows][:, cols])


def turned(A: Sparse, seed: int = 0, *, hermitian: bool = True) -> sp.csc_array:
    """Return a complex matrix: rows and columns multiplied by random numbers of modulus 1.

    ``P A P^H`` keeps eigenvalues and makes a symmetric matrix Hermitian; ``P A P`` keeps singular
    values and makes it complex symmetric.

    Parameters
    ----------
    A : (n, n) sparse matrix or array
    seed : int
        Seed of the random numbers.
    hermitian : bool
        Return ``P A P^H``, otherwise ``P A P``.

    Returns
    -------
    (n, n) csc_array of complex128

    Examples
    --------
    >>> from frontal.problems import poisson2d
    >>> H = turned(poisson2d(3))
    >>> bool(abs(H - H.conj().T).max() == 0), bool(abs(H.imag).max() > 0.1)
    (True, True)
    """
    angle = np.random.default_rng(seed).uniform(-np.pi, np.pi, A.shape[0])
    B = sp.coo_array(A).astype(np.complex128)
    i, j = B.coords
    B.data *= np.exp(1j * (angle[i] - angle[j] if hermitian else angle[i] + angle[j]))
    return csc(B)
