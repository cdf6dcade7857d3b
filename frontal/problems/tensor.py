"""One-dimensional matrices and their Kronecker products: grids in two and three dimensions.

Grids are numbered in C order: the unknown at ``(i, j, k)`` of a grid of shape ``(p, q, r)`` is
``(i * q + j) * r + k``, so ``x.reshape(shape)`` is the field and the last axis varies fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from .._typing import Sparse

Size: TypeAlias = "int | Sequence[int]"


def grid_shape(n: Size, dimensions: int, smallest: int = 1) -> tuple[int, ...]:
    """Return the points along each axis: `n` for all axes, or a sequence of them.

    Parameters
    ----------
    n : int or sequence of int
        Points along each axis.
    dimensions : int
        Number of axes.
    smallest : int
        Smallest number of points of an axis.

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError
        If the number of axes or one of the sizes is invalid.

    Examples
    --------
    >>> grid_shape(4, 2), grid_shape((2, 3), 2)
    ((4, 4), (2, 3))
    """
    shape = (int(n),) * dimensions if isinstance(n, int | np.integer) else tuple(map(int, n))
    if len(shape) != dimensions or min(shape) < smallest:
        raise ValueError(f"{dimensions} axes of at least {smallest} points needed, not {n!r}")
    return shape


def second_difference(n: int, ends: float = 2.0) -> sp.csr_array:
    """Return the tridiagonal ``(-1, 2, -1)``; the first and last diagonal entries are `ends`.

    Parameters
    ----------
    n : int
        Order.
    ends : float
        2: zero one step outside (Dirichlet); 3: zero half a step outside; 1: no flux (Neumann).

    Returns
    -------
    (n, n) csr_array

    Examples
    --------
    >>> second_difference(3, ends=1).toarray()
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    middle = np.full(n, 2.0)
    middle[0] += ends - 2
    middle[-1] += ends - 2
    sides = sp.eye_array(n, k=-1) + sp.eye_array(n, k=1)
    return sp.csr_array(sp.diags_array(middle) - sides)


def backward_difference(rows: int, cols: int | None = None) -> sp.csr_array:
    """Return the bidiagonal matrix with 1 on the diagonal and -1 below: upwind differences.

    Parameters
    ----------
    rows, cols : int
        Shape; square if `cols` is None.

    Returns
    -------
    (rows, cols) csr_array

    Examples
    --------
    >>> backward_difference(3, 2).toarray()
    array([[ 1.,  0.],
           [-1.,  1.],
           [ 0., -1.]])
    """
    return sp.csr_array(sp.eye_array(rows, cols) - sp.eye_array(rows, cols, k=-1))


def kron(*factors: Sparse) -> sp.csr_array:
    """Return the Kronecker product of sparse matrices; explicit zeros stay stored.

    Parameters
    ----------
    *factors : sparse arrays
        The first factor belongs to the axis that varies slowest.

    Returns
    -------
    csr_array

    Examples
    --------
    >>> kron(sp.eye_array(2), sp.csr_array([[1.0, 2.0]])).toarray()
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])
    """
    return reduce(lambda A, B: sp.kron(A, B, format="csr"), factors)


def kron_sum(*factors: Sparse) -> sp.csr_array:
    """Return the sum of operators along one axis each: ``A x I + I x B`` for two factors.

    Parameters
    ----------
    *factors : square sparse arrays
        One operator for each axis.

    Returns
    -------
    csr_array

    Examples
    --------
    >>> kron_sum(sp.eye_array(2), second_difference(2)).toarray()
    array([[ 3., -1.,  0.,  0.],
           [-1.,  3.,  0.,  0.],
           [ 0.,  0.,  3., -1.],
           [ 0.,  0., -1.,  3.]])
    """
    identities = [sp.eye_array(factor.shape[0]) for factor in factors]
    terms = (
        kron(*identities[:axis], factor, *identities[axis + 1 :])
        for axis, factor in enumerate(factors)
    )
    return reduce(lambda A, B: A + B, terms)


def hat_functions(cells: int, h: float, clamped: bool = False) -> dict[str, sp.csr_array]:
    """Return finite element matrices of the piecewise linear functions on an interval.

    Parameters
    ----------
    cells : int
        Number of cells; there is one more node.
    h : float
        Length of a cell.
    clamped : bool
        Omit the first node.

    Returns
    -------
    dict of (nodes, nodes) csr_array
        Keys are the derivatives of row and column function: ``"00"`` mass, ``"11"`` stiffness,
        ``"10"`` and ``"01"``. All have the same stored pattern.

    Examples
    --------
    >>> hat_functions(2, 0.5)["11"].toarray()
    array([[ 2., -2.,  0.],
           [-2.,  4., -2.],
           [ 0., -2.,  2.]])
    """
    element = {
        "00": np.array([[2.0, 1.0], [1.0, 2.0]]) * h / 6,
        "11": np.array([[1.0, -1.0], [-1.0, 1.0]]) / h,
        "10": np.array([[-0.5, -0.5], [0.5, 0.5]]),
        "01": np.array([[-0.5, 0.5], [-0.5, 0.5]]),
    }
    corner = np.arange(cells)[:, None] + np.arange(2)
    places = np.repeat(corner, 2, axis=1).ravel(), np.tile(corner, 2).ravel()
    first = int(clamped)
    return {
        key: sp.coo_array((np.tile(values.ravel(), cells), places)).tocsr()[first:, first:]
        for key, values in element.items()
    }


def q1_products(axes: Sequence[dict[str, sp.csr_array]], a: int, b: int) -> sp.csr_array:
    """Return the integrals of ``d_a phi_i d_b phi_j`` over all pairs of multilinear functions.

    Parameters
    ----------
    axes : sequence of dict
        `hat_functions` of each axis.
    a, b : int
        Axes of the derivatives of the row and of the column function.

    Returns
    -------
    (nodes, nodes) csr_array
        Nodes in C order.

    Examples
    --------
    >>> axes = [hat_functions(1, 1.0), hat_functions(1, 1.0)]
    >>> q1_products(axes, 0, 0).toarray().round(3)[0].tolist()
    [0.333, 0.167, -0.333, -0.167]
    """
    return kron(*(axis[f"{a == k:d}{b == k:d}"] for k, axis in enumerate(axes)))


def csc(A: Sparse) -> sp.csc_array:
    """Return A in the form of all problems: csc_array, sorted, int32 indices, no duplicates.

    Parameters
    ----------
    A : sparse matrix or array

    Returns
    -------
    csc_array

    Examples
    --------
    >>> csc(sp.eye_array(2)).format
    'csc'
    """
    C = sp.csc_array(A)
    C.sum_duplicates()
    return sp.csc_array(
        (C.data, C.indices.astype(np.int32), C.indptr.astype(np.int32)), shape=C.shape
    )
