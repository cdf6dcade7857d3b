"""Symmetric positive definite scalar problems: Poisson, anisotropy, heat, plates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from .tensor import (
    Size,
    csc,
    grid_shape,
    hat_functions,
    kron,
    kron_sum,
    q1_products,
    second_difference,
)


def poisson2d(n: Size, stencil: int = 5) -> sp.csc_array:
    """Return Poisson's equation in a rectangle, zero on the boundary.

    ``A = h^2 (-Laplace)`` on the n x n interior points of a grid of width h. With the 5-point
    stencil ``A = L x I + I x L``, L = tridiag(-1, 2, -1), with eigenvalues ``l_i + l_j`` where
    ``l_i = 4 sin^2(i pi h / 2)``, ``h = 1 / (n + 1)``. With the compact 9-point stencil
    ``A = L x I + I x L - L x L / 6``. Symmetric positive definite.

    Parameters
    ----------
    n : int or (int, int)
        Interior points along each axis.
    stencil : {5, 9}
        Points of the stencil.

    Returns
    -------
    (n^2, n^2) csc_array of float64
        About 5 n^2 or 9 n^2 entries.

    Examples
    --------
    >>> poisson2d(2).toarray()
    array([[ 4., -1., -1.,  0.],
           [-1.,  4.,  0., -1.],
           [-1.,  0.,  4., -1.],
           [ 0., -1., -1.,  4.]])
    """
    L, M = (second_difference(size) for size in grid_shape(n, 2))
    if stencil not in (5, 9):
        raise ValueError(f"stencil must be 5 or 9, not {stencil!r}")
    A = kron_sum(L, M)
    return csc(A if stencil == 5 else A - kron(L, M) / 6)


def poisson3d(n: Size, stencil: int = 7) -> sp.csc_array:
    """Return Poisson's equation in a box, zero on the boundary.

    ``A = h^2 (-Laplace)`` on the n x n x n interior points of a grid of width h. With the 7-point
    stencil A is the Kronecker sum of three L = tridiag(-1, 2, -1). With the 27-point stencil
    ``A = 3 I - T x T x T / 9``, T = tridiag(1, 1, 1): 26/9 on the diagonal and -1/9 for each
    neighbour. Symmetric positive definite.

    Parameters
    ----------
    n : int or (int, int, int)
        Interior points along each axis.
    stencil : {7, 27}
        Points of the stencil.

    Returns
    -------
    (n^3, n^3) csc_array of float64
        About 7 n^3 or 27 n^3 entries.

    Examples
    --------
    >>> poisson3d(10).nnz, poisson3d(10, stencil=27).nnz
    (6400, 21952)
    """
    shape = grid_shape(n, 3)
    if stencil not in (7, 27):
        raise ValueError(f"stencil must be 7 or 27, not {stencil!r}")
    if stencil == 7:
        return csc(kron_sum(*map(second_difference, shape)))
    T = (3 * sp.eye_array(size) - second_difference(size) for size in shape)
    return csc(3 * sp.eye_array(int(np.prod(shape))) - kron(*T) / 9)


def aniso2d(n: Size, eps: float = 1e-2, angle: float = np.pi / 6) -> sp.csc_array:
    """Return anisotropic diffusion in a rectangle, zero on the boundary: ``-div(D grad u)``.

    ``D = R diag(1, eps) R^T`` with the rotation R by `angle`; bilinear finite elements with a
    9-point stencil. Symmetric positive definite for every ``eps > 0``.

    Parameters
    ----------
    n : int or (int, int)
        Interior points along each axis.
    eps : float
        Ratio of the weak to the strong conductivity.
    angle : float
        Direction of the strong conductivity, in radians from the first axis.

    Returns
    -------
    (n^2, n^2) csc_array of float64

    Examples
    --------
    >>> A = aniso2d(20, eps=1e-3, angle=0.4)
    >>> A.shape, A.nnz
    ((400, 400), 3364)
    """
    axes = [
        {key: matrix[1:-1, 1:-1] for key, matrix in hat_functions(size + 1, 1.0).items()}
        for size in grid_shape(n, 2)
    ]
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    D = R @ np.diag([1.0, eps]) @ R.T
    return csc(sum(D[a, b] * q1_products(axes, a, b) for a in (0, 1) for b in (0, 1)))


def aniso3d(n: Size, conductivity: Sequence[float] = (1.0, 0.1, 0.01)) -> sp.csc_array:
    """Return diffusion in a box, with one conductivity per axis, zero on the boundary.

    ``A = -h^2 (c_0 d_xx + c_1 d_yy + c_2 d_zz)``, 7 points. Symmetric positive definite.

    Parameters
    ----------
    n : int or (int, int, int)
        Interior points along each axis.
    conductivity : three floats
        One for each axis, positive.

    Returns
    -------
    (n^3, n^3) csc_array of float64

    Examples
    --------
    >>> float(aniso3d(5, (1, 2, 3)).diagonal()[0])
    12.0
    """
    sizes = zip(conductivity, grid_shape(n, 3), strict=True)
    return csc(kron_sum(*(c * second_difference(size) for c, size in sizes)))


def heat2d(n: Size, dt: float = 1e-3) -> sp.csc_array:
    """Return one backward Euler step of the heat equation in the unit square: ``M + dt K``.

    ``M = h^2 I`` is the lumped mass, K the 5-point stencil of `poisson2d`. Symmetric positive
    definite; the condition number decreases with the step.

    Parameters
    ----------
    n : int or (int, int)
        Interior points along each axis; ``h = 1 / (n + 1)`` of the first.
    dt : float
        Length of the step.

    Returns
    -------
    (n^2, n^2) csc_array of float64

    Examples
    --------
    >>> heat2d(1, dt=1.0).toarray()
    array([[4.25]])
    """
    shape = grid_shape(n, 2)
    mass = (shape[0] + 1.0) ** -2 * sp.eye_array(int(np.prod(shape)))
    return csc(mass + dt * kron_sum(*map(second_difference, shape)))


def heat3d(n: Size, dt: float = 1e-3) -> sp.csc_array:
    """Return one backward Euler step of the heat equation in the unit cube: ``(M + dt K) / h``.

    As `heat2d`, with the 7-point stencil of `poisson3d` as K and M = h^2 I after the division.

    Parameters
    ----------
    n : int or (int, int, int)
        Interior points along each axis; ``h = 1 / (n + 1)`` of the first.
    dt : float
        Length of the step.

    Returns
    -------
    (n^3, n^3) csc_array of float64

    Examples
    --------
    >>> heat3d(1, dt=1.0).toarray()
    array([[6.25]])
    """
    shape = grid_shape(n, 3)
    mass = (shape[0] + 1.0) ** -2 * sp.eye_array(int(np.prod(shape)))
    return csc(mass + dt * kron_sum(*map(second_difference, shape)))


def biharmonic2d(n: Size) -> sp.csc_array:
    """Return the bending of a simply supported plate: ``A = h^4 Laplace^2``, 13 points.

    The square of the 5-point matrix of `poisson2d`: u and its Laplacian vanish on the boundary.
    Symmetric positive definite; the condition number grows as ``n^4``.

    Parameters
    ----------
    n : int or (int, int)
        Interior points along each axis.

    Returns
    -------
    (n^2, n^2) csc_array of float64
        About 13 n^2 entries.

    Examples
    --------
    >>> biharmonic2d(5).toarray()[12].reshape(5, 5)
    array([[ 0.,  0.,  1.,  0.,  0.],
           [ 0.,  2., -8.,  2.,  0.],
           [ 1., -8., 20., -8.,  1.],
           [ 0.,  2., -8.,  2.,  0.],
           [ 0.,  0.,  1.,  0.,  0.]])
    """
    L = poisson2d(n)
    return csc(L @ L)
