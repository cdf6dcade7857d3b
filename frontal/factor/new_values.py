"""New values for a factor: their order and their location."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._typing import Untyped
from ..matrix.canonical import Canonical, working_dtype
from ..matrix.complete import to_canonical
from ..matrix.csc import CSC_TYPES, INT32, has_pattern, is_plain
from ..matrix.exact import refuse_inexact, refuse_masked
from ..matrix.value_map import ValueMap, of_pattern
from .attempt import DeviceValues
from .state import LastSuccess


def resolve_values(
    A: Untyped,
    last: LastSuccess,
    order: ValueMap | None,
    check_finite: bool,
    triangle: str | None = None,
) -> tuple[Canonical | DeviceValues, ValueMap]:
    """Return the values to factorize and their order, without changing the factor.

    Parameters
    ----------
    A : matrix or array of values
    last : LastSuccess
        The factor to refactorize.
    order : ValueMap, optional
        Value map of the last matrix; by columns if None.
    check_finite : bool
        Refuse NaN and infinity in device values, after their factorization.
    triangle : {"lower", "upper"}, optional
        The only triangle that a matrix A stores.
    """
    order = order or ValueMap.by_columns(last.analysis.symbolic.indices.size)
    device_values = None if triangle else last.solver.factor.device_values(A, order)
    if device_values is not None:
        values, order = device_values
        return DeviceValues(values, check_finite), order
    return _on_host(A, last, order, triangle)


def _on_host(
    A: Untyped, last: LastSuccess, order: ValueMap, triangle: str | None
) -> tuple[Canonical, ValueMap]:
    symbolic = last.analysis.symbolic
    values = None if triangle else _plain_values(A, last, order)
    if values is not None:
        order = order if order.is_by_columns else ValueMap.by_columns(values.size)
        return symbolic.with_values(
            values, order.hermitian(values, symbolic.indptr, symbolic.indices)
        ), order
    refuse_masked(A, "A")
    adjoint = order.triangle.adjoint if order.triangle else last.analysis.adjoint
    known = None if triangle else of_pattern(A, symbolic.indptr, symbolic.indices)
    if known is not None:  # the pattern is known to be equal
        A, order = known, order if order.is_by_columns else ValueMap.by_columns(known.size)
    if order.is_value_array(A):
        values = A.get() if hasattr(A, "get") else np.asarray(A)
        refuse_inexact(values, "A")
        values = order.arranged(
            values, working_dtype(values.dtype, "A"), symbolic.indptr, symbolic.indices
        )
        values = np.array(values, order="C")  # a copy: the user may change them
        return symbolic.with_values(
            values, order.hermitian(values, symbolic.indptr, symbolic.indices)
        ), order
    convert = partial(to_canonical, A, triangle, kind="general", adjoint=adjoint)
    matrix = convert(check_finite=False, ordered=True)
    last.analysis.matching_pattern(matrix)
    return last.analysis.snapshot(matrix), matrix.order or order


def _plain_values(A: Untyped, last: LastSuccess, order: ValueMap) -> np.ndarray | None:
    """Return a copy of the values of A if they have the factor's own order and type; else None.

    A is an array, or compressed columns with the pattern of the factor.
    """
    symbolic, values = last.analysis.symbolic, A
    count, n = symbolic.indices.size, symbolic.n
    if type(A) in CSC_TYPES:
        indptr, indices, values = A.indptr, A.indices, A.data
        if A.shape != (n, n) or not (is_plain(indptr, INT32) and is_plain(indices, INT32)):
            return None
        if indptr.size != n + 1 or indices.size != count:
            return None
        if not has_pattern(symbolic.indptr, symbolic.indices, indptr, indices):
            return None
    elif not order.is_by_columns:
        return None
    known = type(values) is np.ndarray and values.shape == (count,)
    same_type = known and values.dtype == last.solver.factor.matrix_dtype
    return values.copy() if same_type else None  # the user may change them
