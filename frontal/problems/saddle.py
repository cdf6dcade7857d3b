"""Saddle point matrices: symmetric indefinite, with a zero block on the diagonal."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .tensor import backward_difference, csc, kron, kron_sum, second_difference


def stokes2d(n: int, *, enclosed: bool = False) -> sp.csc_array:
    """Return Stokes flow in the unit square between fixed walls, on a staggered (MAC) grid.

    ``A = [[-h^2 Laplace, h grad], [-h div, 0]]`` for the n (n - 1) velocities on the faces between
    cells along either axis and the pressures of all n^2 cells except the last, which is zero.
    Symmetric indefinite and regular: 2 n (n - 1) positive and n^2 - 1 negative eigenvalues.

    Parameters
    ----------
    n : int
        Cells along each axis, at least 2.
    enclosed : bool
        Keep the last pressure, so that pressures are defined up to a constant: one more row and
        column, with the same rank.

    Returns
    -------
    (3 n^2 - 2 n - 1, 3 n^2 - 2 n - 1) csc_array of float64
        Velocities along the first axis, along the second axis, pressures.

    Examples
    --------
    >>> A = stokes2d(8)
    >>> A.shape, int((A.diagonal() == 0).sum())
    ((175, 175), 63)
    """
    K, B = _staggered(n, enclosed)
    return csc(sp.block_array([[K, -B.T], [-B, None]]))


def oseen2d(n: int, reynolds: float = 100.0, *, enclosed: bool = False) -> sp.csc_array:
    """Return Oseen's equations in the unit square: Stokes flow with convection by a given wind.

    ``A = [[h^2 (-Laplace + Re w . grad), h grad], [-h div, 0]]`` on the grid of `stokes2d`, w a
    divergence-free vortex, central differences. A symmetric pattern with unsymmetric values, as in
    Picard's iteration for the Navier-Stokes equations. Regular.

    Parameters
    ----------
    n : int
        Cells along each axis, at least 2.
    reynolds : float
        Re.
    enclosed : bool
        As for `stokes2d`: singular, with the same rank.

    Returns
    -------
    (3 n^2 - 2 n - 1, 3 n^2 - 2 n - 1) csc_array of float64
        Velocities along the first axis, along the second axis, pressures.

    Examples
    --------
    >>> A = oseen2d(8)
    >>> A.shape, bool(abs(A - A.T).max() > 0.1)
    ((175, 175), True)
    """
    K, B = _staggered(n, enclosed)
    wind = sp.block_diag([_convection(n - 1, n), _convection(n, n - 1)])
    return csc(sp.block_array([[K + reynolds / n * wind, -B.T], [B, None]]))


def _staggered(n: int, enclosed: bool) -> tuple[sp.csr_array, sp.csr_array]:
    """Return -h^2 Laplace of the velocities between n by n cells, and h div."""
    if n < 2:
        raise ValueError(f"n must be at least 2, not {n!r}")
    across, along = second_difference(n - 1), second_difference(n, ends=3)
    D, identity = backward_difference(n, n - 1), sp.eye_array(n)
    K = sp.csr_array(sp.block_diag([kron_sum(across, along), kron_sum(along, across)]))
    B = sp.csr_array(sp.hstack([kron(D, identity), kron(identity, D)]))
    return K, B if enclosed else B[:-1]


def _convection(rows: int, cols: int) -> sp.csr_array:
    """Return h w . grad on a grid of faces, by central differences."""
    x, y = ((np.arange(size) + 0.5) * np.pi / size for size in (rows, cols))
    along = np.outer(np.sin(x) ** 2, np.sin(2 * y)).ravel()
    across = -np.outer(np.sin(2 * x), np.sin(y) ** 2).ravel()
    first, second = (
        sp.diags_array([-0.5, 0.5], offsets=[-1, 1], shape=(size, size)) for size in (rows, cols)
    )
    return sp.csr_array(
        sp.diags_array(along) @ kron(first, sp.eye_array(cols))
        + sp.diags_array(across) @ kron(sp.eye_array(rows), second)
    )


def repeated_constraint(n: int, repeats: int = 1, seed: int = 0) -> sp.csc_array:
    """Return the matrix of `kkt` with repeated constraints: sums of two others.

    Singular, of rank n: each repetition adds a dependent row and column, as presolves of
    optimization leave them. A right-hand side in the range has solutions.

    Parameters
    ----------
    n : int
        Order of the matrix without the repetitions, at least 6.
    repeats : int
        Number of added constraints.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n + repeats, n + repeats) csc_array of float64
        The repetitions come last.

    Examples
    --------
    >>> import numpy as np
    >>> A = repeated_constraint(60, repeats=2)
    >>> A.shape, int(np.linalg.matrix_rank(A.toarray()))
    ((62, 62), 60)
    """
    if n < 6:
        raise ValueError(f"n must be at least 6, not {n!r}")
    A, m = kkt(n, seed=seed), n // 3
    first = np.random.default_rng(seed).integers(0, m - 1, repeats)
    pair = np.concatenate([first, first + 1])
    rows = np.tile(np.arange(repeats), 2)
    combine = sp.coo_array((np.ones(2 * repeats), (rows, pair)), shape=(repeats, m))
    C = sp.csr_array(combine @ A[n - m :, : n - m])
    C.resize((repeats, n))
    return csc(sp.block_array([[A, C.T], [C, None]]))


def kkt(n: int, regularization: float = 0.0, spread: float = 0.0, seed: int = 0) -> sp.csc_array:
    """Return the optimality conditions of a quadratic program: ``[[H, B^T], [B, -r I]]``.

    ``m = n // 3`` random constraints on n - m variables; each contains five variables with similar
    numbers. H is diagonal with entries between ``10^-spread`` and ``10^spread``, as in the last
    steps of interior point methods. Symmetric indefinite, n - m positive and m negative
    eigenvalues; quasidefinite if `regularization` is positive.

    Parameters
    ----------
    n : int
        Order of the matrix, at least 3.
    regularization : float
        r, not negative. With 0 the last m diagonal entries are zero.
    spread : float
        Decades of H on both sides of 1.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n, n) csc_array of float64

    Examples
    --------
    >>> A = kkt(300, spread=6)
    >>> A.shape, int((A.diagonal() == 0).sum())
    ((300, 300), 100)
    """
    if n < 3 or regularization < 0:
        raise ValueError("n must be at least 3 and regularization not negative")
    rng = np.random.default_rng(seed)
    m, window = n // 3, 40
    variables = n - m
    first = 2 * np.arange(m)  # one distinct variable for each constraint: full rank
    neighbours = (first[:, None] + rng.integers(1, window, (m, 4))) % variables
    cols = np.hstack([first[:, None], neighbours]).ravel()
    rows = np.repeat(np.arange(m), 5)
    B = sp.coo_array((rng.standard_normal(5 * m), (rows, cols)), shape=(m, variables))
    H = sp.diags_array(10.0 ** rng.uniform(-spread, spread, variables))
    corner = -regularization * sp.eye_array(m) if regularization else None
    return csc(sp.block_array([[H, B.T], [B, corner]]))
