"""Storing the outcome of a symbolic phase in a file, and reading it from an untrusted file.

A file stores the pattern, permutations, fronts and their rows. They are checked when read, and the
plan is recomputed from them, so that compiled code never sees an unchecked index from a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import TypedDict, cast

import numpy as np

from ..files.archive import Archive, Header
from ..numeric.method import CHOLESKY, LDLH, LDLT, LU, SIGNED_LDLH, Method
from ..ordering import METHODS as ORDERINGS
from ..ordering import Ordering
from ..ordering.etree import Cost, inverse
from .columns import MAX_ENTRIES, column_plan
from .matching import Matching
from .phase import Symbolic, SymbolicOutcome
from .plan import NO_FRONTS, FrontArrays, Permuted, make_plan
from .validate import (
    check_blocks,
    check_entries,
    check_fronts,
    check_pattern,
    check_permutation,
)

METHODS = {method.name: method for method in (CHOLESKY, LU, LDLT, LDLH, SIGNED_LDLH)}
FORMAT = 4  # version of the files that `read_outcome` and `frontal.factor.analysis_file` read
_MAX_COLUMNS = 2**31 - 1  # largest n, for int32 indices

Test = Callable[[object], bool]


def is_any_of(*values: object) -> Test:
    """Return a test whether a header value is one of `values`, with the same type."""
    return lambda x: any(type(x) is type(value) and x == value for value in values)


def is_count(x: object) -> bool:
    """Return whether a header value is a nonnegative integer."""
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


def is_nonnegative(x: object) -> bool:
    """Return whether a header value is a nonnegative number or infinity."""
    return isinstance(x, int | float) and not isinstance(x, bool) and 0 <= x <= inf


def _is_order(x: object) -> bool:
    return isinstance(x, int) and is_count(x) and x <= _MAX_COLUMNS


def _is_cost(x: object) -> bool:
    return (
        isinstance(x, list)
        and len(x) == 3
        and is_count(x[0])
        and is_nonnegative(x[1])
        and is_count(x[2])
    )


def _is_tried(x: object) -> bool:
    return isinstance(x, dict) and all(map(_is_cost, x.values()))


_HEADER: dict[str, Test] = {
    "n": _is_order,
    "method": is_any_of(*METHODS),
    "paired": is_any_of(True, False),
    "tiny": is_count,
    "matched": is_any_of(True, False),
    "ordering": is_any_of(*ORDERINGS),
    "ordering_seconds": is_nonnegative,
    "cost": _is_cost,
    "tried": _is_tried,
    "columns": is_any_of(True, False),
    "signs": is_any_of(True, False),
    "schur": is_any_of(True, False),
}
_COLUMN_HEADER: dict[str, Test] = {
    "column_entries": is_count,
    "column_flops": is_nonnegative,
}


class _PhaseHeader(TypedDict):
    """A header that has been checked."""

    n: int
    method: str
    paired: bool
    tiny: int
    matched: bool
    ordering: str
    ordering_seconds: float
    cost: tuple[int, float, int]
    tried: dict[str, tuple[int, float, int]]
    columns: bool
    signs: bool
    schur: bool
    column_entries: int  # if there are columns
    column_flops: float


def check_header(header: Header, tests: Mapping[str, Test]) -> None:
    """Raise ValueError unless the header has a value that passes each test."""
    for name, test in tests.items():
        if name not in header:
            raise ValueError(f"its header has no {name!r}")
        if not test(header[name]):
            raise ValueError(f"its header has {name!r}: {str(header[name])[:80]}")


def record(outcome: SymbolicOutcome) -> tuple[Header, dict[str, np.ndarray]]:
    """Return header and arrays of a file for the outcome of a symbolic phase."""
    symbolic, ordering, matching = outcome.symbolic, outcome.ordering, outcome.matching
    header: Header = {
        "n": symbolic.n,
        "method": symbolic.method.name,
        "paired": outcome.paired,
        "tiny": outcome.tiny,
        "matched": matching is not None,
        "ordering": ordering.method,
        "ordering_seconds": ordering.seconds,
        "cost": _as_list(ordering.cost),
        "tried": {name: _as_list(cost) for name, cost in ordering.tried.items()},
        "columns": symbolic.columns is not None,
        "signs": symbolic.signs.size > 0,
        "schur": symbolic.schur is not None,
    }
    arrays = {"indptr": symbolic.indptr, "indices": symbolic.indices, "order": ordering.perm}
    arrays |= {"signs": symbolic.signs} if symbolic.signs.size else {}
    arrays |= {} if symbolic.schur is None else {"schur": symbolic.schur}
    if symbolic.columns is None:
        arrays |= record_fronts(symbolic)
    else:
        columns = symbolic.columns
        header |= {"column_entries": columns.entries, "column_flops": columns.flops}
        arrays |= {"perm": symbolic.perm, "row_perm": symbolic.row_perm, "first": columns.first}
    if matching is not None:
        scales = {"row_scale": matching.row_scale, "col_scale": matching.col_scale}
        arrays |= {"matched_rows": matching.rows, **scales}
    return header, arrays


def record_fronts(symbolic: Symbolic, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the arrays of a file that differ between replanned versions of a symbolic phase."""
    plan = symbolic.plan
    arrays = {"perm": symbolic.perm, "row_perm": symbolic.row_perm}
    arrays |= {name: getattr(plan, name) for name in FrontArrays._fields}
    return {prefix + name: array for name, array in arrays.items()}


def read_outcome(archive: Archive) -> SymbolicOutcome:
    """Return the outcome of a symbolic phase from a file; raise ValueError if it is damaged."""
    check_header(archive.header, _HEADER)
    header = cast(_PhaseHeader, archive.header)
    n, method = header["n"], METHODS[header["method"]]
    pattern = archive.vector("indptr", np.int64), archive.vector("indices", np.int32)
    check_pattern(n, *pattern)
    order = archive.vector("order", np.int32)
    check_permutation("order", order, n)
    tried = {name: Cost(*cost) for name, cost in header["tried"].items()}
    costs = Cost(*header["cost"]), header["ordering_seconds"], tried
    ordering = Ordering(order, header["ordering"], *costs)
    matching = _matching(archive, n) if header["matched"] else None
    if header["columns"]:
        symbolic = _read_columns(archive, header, pattern)
    else:
        symbolic = read_fronts(archive, n, method, pattern)
    if header["signs"]:
        symbolic = replace(symbolic, signs=_read_signs(archive, n, method))
    if header["schur"]:
        symbolic = with_schur(symbolic, archive.vector("schur", np.int32))
    return SymbolicOutcome(symbolic, ordering, matching, header["paired"], header["tiny"])


def read_fronts(
    archive: Archive,
    n: int,
    method: Method,
    pattern: tuple[np.ndarray, np.ndarray],
    prefix: str = "",
) -> Symbolic:
    """Return a symbolic phase from a file; raise ValueError if it is damaged.

    The `pattern` has been checked.
    """
    perm, row_perm = _read_permutations(archive, n, prefix)
    if method.one_triangle and not np.array_equal(perm, row_perm):
        raise ValueError(
            f"{prefix}row_perm differs from {prefix}perm, but {method.name} permutes no rows"
        )
    types = {"pointer": np.int64}
    fronts = FrontArrays(
        *(archive.vector(prefix + name, types.get(name, np.int32)) for name in FrontArrays._fields)
    )
    check_fronts(n, fronts)
    matrix = Permuted(*pattern, perm, inverse(row_perm))
    check_entries(matrix, method.one_triangle, fronts)
    plan = make_plan(matrix, method, fronts)
    return Symbolic(n, method, *pattern, perm, row_perm, plan)


def _read_signs(archive: Archive, n: int, method: Method) -> np.ndarray:
    signs = archive.vector("signs", np.int8)
    if not method.signed or signs.size != n or not np.isin(signs, (-1, 1)).all():
        raise ValueError(f"signs must hold {n} numbers 1 or -1, for a quasidefinite matrix")
    return signs


def with_schur(symbolic: Symbolic, schur: np.ndarray) -> Symbolic:
    """Return a symbolic phase from a file with these unknowns of the Schur complement.

    Raise ValueError unless they are those of the last front, which is a root.
    """
    plan, k = symbolic.plan, schur.size
    columns, rows = (perm[perm.size - k :] for perm in (symbolic.perm, symbolic.row_perm))
    inside = symbolic.columns is None and k <= symbolic.n
    inside = inside and (k == 0 or plan.start[-1] - plan.start[-2] == k)
    if not (inside and all(np.array_equal(np.sort(schur), np.sort(x)) for x in (columns, rows))):
        raise ValueError("schur must hold the pivot columns of the last front")
    return replace(symbolic, schur=schur)


def _read_permutations(archive: Archive, n: int, prefix: str = "") -> tuple[np.ndarray, np.ndarray]:
    perm, row_perm = (archive.vector(prefix + name, np.int32) for name in ("perm", "row_perm"))
    for name, order in (("perm", perm), ("row_perm", row_perm)):
        check_permutation(prefix + name, order, n)
    return perm, row_perm


def _read_columns(
    archive: Archive, header: _PhaseHeader, pattern: tuple[np.ndarray, np.ndarray]
) -> Symbolic:
    """Return the symbolic phase of LU by columns from a file, for a checked pattern."""
    check_header(archive.header, _COLUMN_HEADER)
    n, method = header["n"], METHODS[header["method"]]
    if method != LU or header["paired"] or pattern[1].size > MAX_ENTRIES:
        raise ValueError(f"a matrix like this is not factorized by columns: {method.name}")
    perm, row_perm = _read_permutations(archive, n)
    first = archive.vector("first", np.int32)
    check_blocks(Permuted(*pattern, perm, inverse(row_perm)), first)
    size = header["column_entries"], float(header["column_flops"])
    columns = column_plan(pattern, perm, row_perm, first, size)
    return Symbolic(n, method, *pattern, perm, row_perm, NO_FRONTS, columns)


def _matching(archive: Archive, n: int) -> Matching:
    rows = archive.vector("matched_rows", np.int32)
    check_permutation("matched_rows", rows, n)
    scales = [archive.vector(name, np.float64) for name in ("row_scale", "col_scale")]
    for scale in scales:
        if scale.size != n or not np.all((scale > 0) & np.isfinite(scale)):
            raise ValueError(f"a scaling must hold {n} finite positive numbers")
    return Matching(rows, *scales, rank=n)


def _as_list(cost: Cost) -> list[float]:
    return [int(cost.nnz), float(cost.flops), int(cost.height)]
