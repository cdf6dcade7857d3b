"""New values for a factor: which array of values is meant, and where it is."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..exact import refuse_inexact, refuse_masked
from ..matrix import Canonical, working_dtype
from ..values import StoredOrder, of_pattern
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
        return ValuesThere(values, check_finite), order
    return _on_host(A, last, order, triangle)


def _on_host(
    A: Any, last: Last, order: StoredOrder, triangle: str | None
) -> tuple[Canonical, StoredOrder]:
    of = last.analysis.symbolic
    values = _plain_values(A, last, order)
    if values is not None:
        return of.with_values(values, order.hermitian(values, of.indptr, of.indices)), order
    refuse_masked(A, "A")
    adjoint = order.triangle.adjoint if order.triangle else last.analysis.adjoint
    known = None if triangle else of_pattern(A, of.indptr, of.indices)
    if known is not None:  # nothing is left to be looked for
        A, order = known, order if order.is_by_columns else StoredOrder.by_columns(known.size)
    if order.is_of(A):
        values = A.get() if hasattr(A, "get") else np.asarray(A)
        refuse_inexact(values, "A")
        values = order.arranged(values, working_dtype(values.dtype, "A"), of.indptr, of.indices)
        values = np.array(values, order="C")  # the user may go on to change them
        return of.with_values(values, order.hermitian(values, of.indptr, of.indices)), order
    given = partial(whole, A, triangle, kind="general", adjoint=adjoint)
    matrix = given(check_finite=False, ordered=True)
    last.analysis.matching_pattern(matrix)
    return last.analysis.kept(matrix), matrix.order or order


def _plain_values(A: object, last: Last, order: StoredOrder) -> np.ndarray | None:
    """A copy of an array of values that are as the factor has them; None for what is none."""
    if type(A) is not np.ndarray or not order.is_by_columns:
        return None
    as_it_has = A.shape == order.shape and A.dtype == last.factor.matrix_dtype
    return A.copy() if as_it_has else None  # the user may go on to change them
