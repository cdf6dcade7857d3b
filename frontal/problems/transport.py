"""Convection with diffusion: unsymmetric values on a symmetric pattern."""

from __future__ import annotations

from collections.abc import Sequence

import scipy.sparse as sp

from .tensor import Size, backward_difference, csc, grid_shape, kron_sum, second_difference


def convdiff2d(n: Size, velocity: Sequence[float] = (2.0, 1.0)) -> sp.csc_array:
    """Return convection and diffusion in a rectangle, zero on the boundary, upwind differences.

    ``A = h^2 (-Laplace + w . grad)``, 5 points. An M-matrix, unsymmetric.

    Parameters
    ----------
    n : int or (int, int)
        Interior points along each axis.
    velocity : two floats
        ``h w``, the cell Peclet number along each axis; not negative.

    Returns
    -------
    (n^2, n^2) csc_array of float64

    Examples
    --------
    >>> convdiff2d(2).toarray()
    array([[ 7., -1., -1.,  0.],
           [-2.,  7.,  0., -1.],
           [-3.,  0.,  7., -1.],
           [ 0., -3., -2.,  7.]])
    """
    return _convdiff(grid_shape(n, 2), velocity)


def convdiff3d(n: Size, velocity: Sequence[float] = (2.0, 1.0, 0.5)) -> sp.csc_array:
    """Return convection and diffusion in a box, zero on the boundary, upwind differences.

    ``A = h^2 (-Laplace + w . grad)``, 7 points. An M-matrix, unsymmetric.

    Parameters
    ----------
    n : int or (int, int, int)
        Interior points along each axis.
    velocity : three floats
        ``h w``, the cell Peclet number along each axis; not negative.

    Returns
    -------
    (n^3, n^3) csc_array of float64

    Examples
    --------
    >>> float(convdiff3d(3).diagonal()[0])
    9.5
    """
    return _convdiff(grid_shape(n, 3), velocity)


def _convdiff(shape: tuple[int, ...], velocity: Sequence[float]) -> sp.csc_array:
    if len(velocity) != len(shape) or min(velocity) < 0:
        raise ValueError(f"{len(shape)} velocities, none negative, needed, not {velocity!r}")
    sizes = zip(shape, velocity, strict=True)
    axes = (second_difference(size) + w * backward_difference(size) for size, w in sizes)
    return csc(kron_sum(*axes))
