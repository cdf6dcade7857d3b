"""The rule for pivots of LU and LDL^H: what they are measured by, and against."""

from __future__ import annotations

from ..compile.jit import inner
from ..numeric.method import MAX_MULTIPLIER as _MAX_MULTIPLIER
from ..numeric.method import NULL

MAX_MULTIPLIER = float(_MAX_MULTIPLIER)


@inner
def size_of(x):
    """|re| + |im|, as LAPACK chooses pivots."""
    return abs(x.real) + abs(x.imag)


@inner
def null_bound(routines):
    """Columns of the scaled matrix that have become smaller than this are null."""
    return NULL * routines.reals[3]
