"""Pivots relative to their original diagonal entries: how close they are to zero."""

from __future__ import annotations

import numpy as np

from ..compile.jit import brief
from ..matrix.canonical import Canonical
from ..matrix.symmetry import diagonal_of
from .phase import Symbolic
from .scaling import Scaling

_NONE = np.empty(0)


def relative_pivots(
    diagonal: np.ndarray,
    matrix: Canonical,
    symbolic: Symbolic,
    scaling: Scaling | None,
    coupling: np.ndarray = _NONE,
) -> np.ndarray:
    """Return moduli of pivots relative to diag(A) for Cholesky, to the largest if A is scaled.

    `coupling` is the subdiagonal of D, nonzero at the first column of a 2x2 pivot.
    """
    if scaling is None:
        original = diagonal_of(matrix.indptr, matrix.indices, matrix.data)
        pivots = np.sqrt(np.abs(diagonal)) if symbolic.method.signed else diagonal
        return _squares_over(pivots, original, symbolic.perm)
    if not coupling.size:
        return _over_largest(diagonal)
    pivots = np.abs(diagonal)
    j = np.flatnonzero(coupling)
    if j.size:  # 2x2 pivots: about the smaller singular value
        b, d0, d1 = coupling[j], diagonal[j], diagonal[j + 1]
        largest = np.maximum(np.abs(b), np.maximum(pivots[j], pivots[j + 1]))
        mirrored = np.conj(b) if symbolic.method.adjoint else b
        pivots[j] = pivots[j + 1] = np.abs(d0 / largest * d1 - b / largest * mirrored)
    return pivots / pivots.max(initial=np.finfo(pivots.dtype).tiny)


@brief
def _squares_over(diagonal, original, perm):
    """Return the squared moduli of L's diagonal divided by the moduli of A's."""
    out = np.abs(diagonal)
    for j in range(out.size):
        out[j] = out[j] * out[j] / np.abs(original[perm[j]])
    return out


@brief
def _over_largest(diagonal):
    """Return the moduli of a diagonal divided by the largest; all are NaN if one is."""
    out = np.abs(diagonal)
    largest = np.finfo(out.dtype).tiny
    for x in out:
        largest = x if x > largest or x != x else largest
        if largest != largest:
            break
    for j in range(out.size):
        out[j] /= largest
    return out
