"""A batch as a forest: the assembly trees of many systems, as of one block diagonal matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..symbolic.phase import Symbolic
from ..symbolic.plan import Plan


def joined(plans: Sequence[Plan], entries: Sequence[int]) -> Plan:
    """Return the plan of a block diagonal matrix from the plans of its blocks.

    Fronts keep their order within a block, and the trees follow each other.

    Parameters
    ----------
    plans : sequence of Plan
    entries : sequence of int
        Number of values of each block: the offsets of `Plan.source`.
    """
    columns = _before([plan.start[-1] for plan in plans])
    fronts = _before([plan.parent.size for plan in plans])
    above = [np.where(p.parent < 0, -1, p.parent + f) for p, f in zip(plans, fronts, strict=True)]
    return Plan(
        start=_pointer([plan.start for plan in plans]).astype(np.int32),
        parent=_joined(above, np.int32),
        pointer=_pointer([plan.pointer for plan in plans]),
        rows=_joined([p.rows + c for p, c in zip(plans, columns, strict=True)], np.int32),
        relative=_joined([plan.relative for plan in plans], np.int32),
        child_pointer=_pointer([plan.child_pointer for plan in plans]),
        children=_joined([p.children + f for p, f in zip(plans, fronts, strict=True)], np.int32),
        entry_pointer=_pointer([plan.entry_pointer for plan in plans]),
        source=_joined([p.source + e for p, e in zip(plans, _before(entries), strict=True)]),
        row=_joined([plan.row for plan in plans], np.int32),
        column=_joined([plan.column for plan in plans], np.int32),
    )


def forest(symbolic: Symbolic, count: int) -> Symbolic:
    """Return the symbolic data of the block diagonal matrix of `count` systems of one pattern."""
    n, nnz = symbolic.n, symbolic.indices.size
    shift = np.repeat(np.arange(count) * n, n)
    return Symbolic(
        n=n * count,
        method=symbolic.method,
        indptr=_pointer([symbolic.indptr] * count),
        indices=(np.tile(symbolic.indices, count) + np.repeat(np.arange(count) * n, nnz)).astype(
            np.int32
        ),
        perm=(np.tile(symbolic.perm, count) + shift).astype(np.int32),
        row_perm=(np.tile(symbolic.row_perm, count) + shift).astype(np.int32),
        plan=joined([symbolic.plan] * count, [nnz] * count),
    )


def _before(counts: Sequence[int]) -> np.ndarray:
    """Return the exclusive prefix sums."""
    return np.cumsum([0, *counts], dtype=np.int64)[:-1]


def _joined(parts: Sequence[np.ndarray], dtype: type = np.int64) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)


def _pointer(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Return the pointers of the concatenated lists."""
    sizes = [np.diff(pointer) for pointer in parts]
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]), dtype=np.int64)
