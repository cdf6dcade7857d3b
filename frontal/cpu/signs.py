"""The signs of the pivots of a quasidefinite matrix, and the growth of its factors."""

from __future__ import annotations

import numpy as np

from ..compile.jit import brief, inner
from ..symbolic.phase import Symbolic

_NO_SIGNS = np.empty(0, np.int8)


def pivot_signs(symbolic: Symbolic, values: np.ndarray) -> np.ndarray:
    """Return the signs of D in elimination order, (n,) int8, 0 if unknown; (0,) for other methods.

    Parameters
    ----------
    symbolic : Symbolic
        Its signs take precedence over those of the diagonal.
    values : (nnz,) array
        By columns.
    """
    if not symbolic.method.signed:
        return _NO_SIGNS
    return _signs(symbolic.diagonal_places, values, symbolic.signs)


@inner
def write_signs(places, values, known, signs):
    """Set `signs` to the `known` ones, or without any to those of the diagonal of A."""
    for j in range(signs.size):
        if known.size:
            signs[j] = known[j]
        else:
            x = values[places[j]].real if places[j] >= 0 else values.real.dtype.type(0)
            signs[j] = (x > 0) - (x < 0)


@brief
def _signs(places, values, known):
    signs = np.empty(places.size, np.int8)
    write_signs(places, values, known, signs)
    return signs


@brief
def largest_term(plan, panel, panels):
    """Return the largest |D(j, j)| |L(i, j)|^2 of an L D L^H with diagonal D, i = j included."""
    largest = panels.real.dtype.type(0)
    for s in range(plan.parent.size):
        k = np.int64(plan.start[s + 1] - plan.start[s])
        ld = k + plan.pointer[s + 1] - plan.pointer[s]
        for j in range(k):
            column, multiplier = panel[s] + j * ld, panels.real.dtype.type(1)
            for i in range(j + 1, ld):
                multiplier = max(multiplier, np.abs(panels[column + i]))
            largest = max(largest, np.abs(panels[column + j]) * multiplier * multiplier)
    return largest
