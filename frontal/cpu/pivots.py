"""Sizes and bounds of pivots of LU and LDL^H."""

from __future__ import annotations

from ..compile.jit import inner
from ..numeric.method import MAX_MULTIPLIER as _MAX_MULTIPLIER
from ..numeric.method import NULL

MAX_MULTIPLIER = float(_MAX_MULTIPLIER)


@inner
def size_of(x):
    """Return |re| + |im|, the size by which LAPACK chooses pivots."""
    return abs(x.real) + abs(x.imag)


@inner
def null_bound(routines):
    """Return the size up to which a column of the scaled matrix is null."""
    return NULL * routines.reals[3]
