"""New values for a factor: which array of values is meant, and where it is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..matrix import Canonical, working_dtype
from ..values import StoredOrder
from ..whole import whole
from .lifecycle import Last
from .policy import ValuesThere


def new_values(
    A: Any, last: Last, order: StoredOrder, check_finite: bool, triangle: str | None = None
) -> tuple[Canonical | ValuesThere, StoredOrder]:
    """What is to be factorized, and the order of its values; nothing is overwritten yet.

    Parameters
    ----------
    A : matrix or array of values
    last : Last
        The factor that gets other values.
    order : StoredOrder
        Of the matrix that it was given last.
    check_finite : bool
        Refuse NaN and infinity among values there, when their factor is looked at.
    triangle : {"lower", "upper"}, optional
        What a matrix stores alone.
    """
    there = None if triangle else last.factor.values_there(A, order)
    if there is not None:
        values, order = there
        return ValuesThere(values, last.factor.scaling, check_finite), order
    return _on_host(A, last, order, triangle)


def _on_host(
    A: Any, last: Last, order: StoredOrder, triangle: str | None
) -> tuple[Canonical, StoredOrder]:
    of, known = last.analysis.symbolic, None
    adjoint = order.triangle.adjoint if order.triangle else last.analysis.adjoint
    if order.is_of(A):
        known, values = order, A.get() if hasattr(A, "get") else np.asarray(A)
        values = order.arranged(values, working_dtype(values.dtype, "A"), of.indptr, of.indices)
        A = sp.csc_array((values, of.indices, of.indptr), shape=(of.n, of.n))
        triangle = None  # that of the order has been completed
    given = partial(whole, A, triangle, kind="general", adjoint=adjoint)
    matrix = given(check_finite=False, ordered=known is None)
    last.analysis.matching_pattern(matrix)
    return last.analysis.kept(matrix), known or matrix.order or order
