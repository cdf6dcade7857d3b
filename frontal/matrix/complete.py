"""Canonical form of a matrix, or of half storage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from .._typing import MatrixLike
from ..compile import workers
from ..errors import TriangleWarning, warn
from .canonical import KINDS, Canonical, canonical
from .half_storage import TRIANGLES, completed
from .plain import plain_matrix
from .symmetry import lone_triangle


def to_canonical(
    A: MatrixLike,
    triangle: str | None,
    *,
    kind: str = "auto",
    adjoint: bool | None = None,
    check_finite: bool = True,
    dtype: DTypeLike | None = None,
    ordered: bool = False,
) -> Canonical:
    """Convert a matrix, or one triangle of it, to canonical form.

    Parameters
    ----------
    A, kind, check_finite, dtype, ordered
        As for `canonical`.
    triangle : {"lower", "upper"} or None
        The triangle that A stores; None: both.
    adjoint : bool, optional
        Whether the other triangle is the adjoint or the transpose; by default from `kind`.

    Raises
    ------
    ValueError
        As `canonical`; if the other triangle has a nonzero entry, or if `kind` does not define the
        other triangle.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> T = sp.csc_array([[2.0, 0.0], [1.0, 3.0]])
    >>> to_canonical(T, "lower").A.toarray().tolist()
    [[2.0, 1.0], [1.0, 3.0]]
    """
    workers.begin()
    options = {"kind": kind, "check_finite": check_finite, "ordered": ordered}
    if triangle is None:
        plain = None if ordered else plain_matrix(A, kind, dtype)
        if plain is not None:
            return plain
        return canonical(A, dtype=dtype, **options)
    if triangle not in TRIANGLES:
        raise ValueError(f"triangle is {triangle!r}; choose 'lower', 'upper' or None")
    stored = canonical(A, kind="general", check_finite=check_finite, dtype=dtype, ordered=ordered)
    if adjoint is None:
        _require_kind(kind, triangle, stored.dtype)
        adjoint = KINDS.get(kind) != "symmetric"
    half, indptr, indices = completed(stored.indptr, stored.indices, triangle, adjoint)
    data = half.complete(stored.data)
    matrix = canonical(sp.csc_array((data, indices, indptr), shape=stored.shape), **options)
    order = stored.order and replace(stored.order, triangle=half)
    return replace(matrix, order=order)


def warn_of_lone_triangle(matrix: Canonical, kind: str) -> None:
    """Warn if half of a symmetric matrix may have been given without ``triangle``."""
    if kind != "auto" or matrix.method.one_triangle:
        return
    side = lone_triangle(matrix.indptr, matrix.indices)
    if side:
        name = TRIANGLES[side - 1]
        warn(
            f"the matrix is {name} triangular and is solved as it is. Try: triangle={name!r} if it "
            "is half of a symmetric matrix, kind='general' if it is triangular",
            TriangleWarning,
        )


def _require_kind(kind: str, triangle: str, dtype: np.dtype) -> None:
    """Raise ValueError if `kind` does not define the other triangle."""
    if kind == "general":
        raise ValueError(
            f"triangle={triangle!r} needs a symmetric matrix, but the matrix has "
            "kind='general'. Try: kind='symmetric', 'hermitian' or 'spd'"
        )
    if kind == "auto" and dtype.kind == "c":
        raise ValueError(
            f"triangle={triangle!r} does not define the other triangle of a complex matrix. "
            "Try: kind='hermitian' or 'spd' for its adjoint, kind='symmetric' for its transpose"
        )
