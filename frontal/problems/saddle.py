"""Saddle point matrices: symmetric indefinite, with a block of zeros on the diagonal."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .tensor import backward_difference, csc, kron, kron_sum, second_difference


def stokes2d(n: int) -> sp.csc_array:
    """Stokes flow in the unit square between resting walls, on a staggered (MAC) grid.

    ``A = [[-h^2 Laplace, h grad], [-h div, 0]]`` for the n (n - 1) velocities on the faces between
    cells along either axis and the pressures of all n^2 cells but the last, which is set to zero.
    Symmetric indefinite and regular: 2 n (n - 1) positive and n^2 - 1 negative eigenvalues.

    Parameters
    ----------
    n : int
        Cells along each axis, at least 2.

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
    if n < 2:
        raise ValueError(f"n must be at least 2, not {n!r}")
    across, along = second_difference(n - 1), second_difference(n, ends=3)
    D, identity = backward_difference(n, n - 1), sp.eye_array(n)
    K = sp.block_diag([kron_sum(across, along), kron_sum(along, across)])
    B = sp.csr_array(sp.hstack([kron(D, identity), kron(identity, D)]))[:-1]
    return csc(sp.block_array([[K, -B.T], [-B, None]]))


def kkt(n: int, regularization: float = 0.0, spread: float = 0.0, seed: int = 0) -> sp.csc_array:
    """Optimality conditions of a quadratic program: ``[[H, B^T], [B, -r I]]``.

    ``m = n // 3`` random constraints on n - m variables; each touches five of them that are not
    far from each other. H is diagonal with entries between ``10^-spread`` and ``10^spread``, as
    interior point methods meet them near their end. Symmetric indefinite, n - m positive and m
    negative eigenvalues; quasidefinite if `regularization` is positive.

    Parameters
    ----------
    n : int
        Order of the matrix, at least 3.
    regularization : float
        r, not negative. With 0 the last m diagonal entries are zero.
    spread : float
        Decades of H on both sides of 1.
    seed : int
        Of the random numbers.

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
    first = 2 * np.arange(m)  # a variable of its own for each constraint: full rank
    others = (first[:, None] + rng.integers(1, window, (m, 4))) % variables
    cols = np.hstack([first[:, None], others]).ravel()
    rows = np.repeat(np.arange(m), 5)
    B = sp.coo_array((rng.standard_normal(5 * m), (rows, cols)), shape=(m, variables))
    H = sp.diags_array(10.0 ** rng.uniform(-spread, spread, variables))
    corner = -regularization * sp.eye_array(m) if regularization else None
    return csc(sp.block_array([[H, B.T], [B, corner]]))
