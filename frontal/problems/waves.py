"""Time-harmonic waves in an absorbing box: complex symmetric, indefinite."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .tensor import Size, csc, grid_shape, kron_sum, second_difference


def helmholtz2d(n: Size, points: float = 8.0) -> sp.csc_array:
    """Return Helmholtz' equation in a rectangle that waves leave: ``-Laplace u - k^2 u``.

    ``A = h^2 (-Laplace - k^2)`` on n x n cells, 5 points. On the boundary ``du/dn = i k u``, which
    absorbs plane waves at normal incidence: the flux through the face of a cell with value u is
    ``i k h u / (1 - i k h / 2)``. Complex symmetric, not Hermitian, indefinite.

    Parameters
    ----------
    n : int or (int, int)
        Cells along each axis.
    points : float
        Cells per wavelength: ``k h = 2 pi / points``.

    Returns
    -------
    (n^2, n^2) csc_array of complex128

    Examples
    --------
    >>> A = helmholtz2d(10)
    >>> A.dtype, bool(abs(A - A.T).max() == 0)
    (dtype('complex128'), True)
    """
    return _helmholtz(grid_shape(n, 2), 2 * np.pi / points)


def helmholtz3d(n: Size, points: float = 8.0) -> sp.csc_array:
    """Return Helmholtz' equation in a box that waves leave: ``-Laplace u - k^2 u``.

    As `helmholtz2d`, on n x n x n cells with 7 points.

    Parameters
    ----------
    n : int or (int, int, int)
        Cells along each axis.
    points : float
        Cells per wavelength: ``k h = 2 pi / points``.

    Returns
    -------
    (n^3, n^3) csc_array of complex128

    Examples
    --------
    >>> helmholtz3d(10).nnz
    6400
    """
    return _helmholtz(grid_shape(n, 3), 2 * np.pi / points)


def _helmholtz(shape: tuple[int, ...], kh: float) -> sp.csc_array:
    axes = []
    for size in shape:
        faces = np.zeros(size)
        faces[0] += 1
        faces[-1] += 1
        neumann = second_difference(size) - sp.diags_array(faces)
        axes.append(neumann - 1j * kh / (1 - 0.5j * kh) * sp.diags_array(faces))
    return csc(kron_sum(*axes) - kh**2 * sp.eye_array(int(np.prod(shape))))
