"""Optimality conditions of optimization problems: symmetric indefinite, finally badly scaled."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .diffusion import poisson2d
from .tensor import Size, csc, grid_shape


def optimal_control(n: Size, beta: float = 1e-4) -> sp.csc_array:
    """Return distributed control of a Poisson equation: a state near a target, at low cost.

    ``[[h^2 I, 0, K], [0, beta h^2 I, -h^2 I], [K, -h^2 I, 0]]`` for state, control and multiplier
    on the points of a square, with ``K = poisson2d(n)`` (Rees, Dollar and Wathen, SIAM J. Sci.
    Comput. 32, 2010). Regular, with twice as many positive eigenvalues as negative ones.

    Parameters
    ----------
    n : int or (int, int)
        Interior points along each axis.
    beta : float
        Cost of the control, positive. The smaller, the larger the condition number.

    Returns
    -------
    (3 n^2, 3 n^2) csc_array of float64

    Examples
    --------
    >>> A = optimal_control(10)
    >>> A.shape, int((A.diagonal() == 0).sum())
    ((300, 300), 100)
    """
    if not beta > 0:
        raise ValueError(f"beta must be positive, not {beta!r}")
    shape = grid_shape(n, 2)
    K = poisson2d(shape)
    M = sp.eye_array(K.shape[0]) / (max(shape) + 1.0) ** 2
    return csc(sp.block_array([[M, None, K], [None, beta * M, -M], [K, -M, None]]))


def interior_point(
    n: int, mu: float = 1e-6, quadratic: bool = False, seed: int = 0
) -> sp.csc_array:
    """Return Newton's equations of an interior point method: ``[[H + D, B^T], [B, 0]]``.

    ``m = n // 3`` random constraints, five entries each, on n - m variables. ``D = z / x`` has
    entries for a barrier parameter mu: about mu for the m variables away from their bounds, and
    about 1 / mu for variables close to them (Wright, SIAM J. Optim. 9, 1998). n - m positive and m
    negative eigenvalues; the condition number grows like ``1 / mu^2``, but not after scaling.

    Parameters
    ----------
    n : int
        Order of the matrix, at least 6.
    mu : float
        Barrier parameter, positive: 1e-2 at the start of an iteration, 1e-10 at its end.
        H is sparse and semidefinite; otherwise 0, as for a linear program.
        H is sparse and semidefinite, rather than 0 as for a linear program.
        Seed of the random numbers.
        Of the random numbers.

    Returns
    -------
    (n, n) csc_array of float64

    Examples
    --------
    >>> A = interior_point(300, mu=1e-8)
    >>> A.shape, bool(A.diagonal().max() > 1e7)
    ((300, 300), True)
    """
    if n < 6 or not mu > 0:
        raise ValueError("n must be at least 6 and mu positive")
    rng = np.random.default_rng(seed)
    m = n // 3
    variables = n - m
    basic = rng.choice(variables, m, replace=False)  # one for each constraint: full rank
    neighbours = rng.integers(0, variables, (m, 4))
    rows = np.repeat(np.arange(m), 5)
    cols = np.hstack([basic[:, None], neighbours]).ravel()
    values = np.hstack([np.full((m, 1), 2.0), rng.uniform(-0.4, 0.4, (m, 4))]).ravel()
    B = sp.coo_array((values, (rows, cols)), shape=(m, variables))
    d = np.full(variables, 1.0 / mu)
    d[basic] = mu
    H = sp.diags_array(d * 10.0 ** rng.uniform(-0.5, 0.5, variables))
    if quadratic:
        C = sp.random_array((variables // 2, variables), density=2.0 / variables, random_state=rng)
        H = H + C.T @ C
    return csc(sp.block_array([[H, B.T], [B, None]]))
