"""Matrices that need no conversion to canonical form, checked in one compiled call."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from .._typing import Untyped
from ..compile.jit import brief
from ..machine.threads import is_short
from .canonical import KINDS, Canonical, require_kind
from .csc import CSC_TYPES, INT32, SORTED, inspect_columns, is_plain
from .symmetry import UNSYMMETRIC, check_promise, compare_all, method_of

_NOT_PLAIN = -1
_TYPES = frozenset("fdFD")  # characters of the scalar types of BLAS


def plain_matrix(A: Untyped, kind: str, dtype: DTypeLike | None) -> Canonical | None:
    """Return `canonical` of a short CSC matrix that is sorted, finite and of a type of BLAS.

    Return None for any other matrix, and if a `dtype` other than its own is requested.
    """
    if type(A) not in CSC_TYPES:
        return None
    indices, data = A.indices, A.data
    if not (is_plain(indices, INT32) and is_plain(data) and data.dtype.char in _TYPES):
        return None
    if not (is_plain(A.indptr) and A.indptr.dtype.kind == "i" and is_short(indices.size)):
        return None
    n = A.indptr.size - 1
    if A.shape != (n, n) or indices.size != data.size or dtype not in (None, data.dtype):
        return None
    indptr = A.indptr.astype(np.int64)
    structure = _structure(indptr, indices, data)
    if structure == _NOT_PLAIN:
        return None
    require_kind(kind)
    kind = KINDS[kind]
    if structure == UNSYMMETRIC:
        check_promise(kind, indptr, indices, data)
    method = method_of(kind, structure, indptr, indices, data)
    return Canonical(indptr, indices, data, n, method, structure != UNSYMMETRIC)


@brief
def _structure(indptr, indices, data):
    """Return `compare_triangles` for sorted, finite columns; else `_NOT_PLAIN`."""
    n, finite = indptr.size - 1, True
    if indptr[0] != 0 or indptr[n] != indices.size:
        return _NOT_PLAIN
    if inspect_columns(indptr, indices, 0, n) != SORTED:
        return _NOT_PLAIN
    for p in range(data.size):
        finite &= np.isfinite(data[p])
    return compare_all(indptr, indices, data) if finite else _NOT_PLAIN
