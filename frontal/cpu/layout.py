"""Memory layout of a factorization: consecutive panels, contribution blocks placed by lifetime.

The panel of front s is the (k + m) by k column-major [L11; L21] at ``panel[s]``; LU stores a second
one, the m by k transpose of U12, behind it. The m by m contribution block lives from its front's
elimination to its parent's assembly, in the arena of a thread or in the shared one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..backend.memory_limit import Memory, byte_limit
from ..backend.protocol import panel_offsets
from ..compile.jit import inner, jit
from ..errors import FactorMemoryError
from ..numeric.method import Method
from ..symbolic.columns import ColumnPlan
from ..symbolic.phase import Symbolic
from ..symbolic.plan import Plan, front_flops
from ..symbolic.subtrees import split_subtrees

_SUBTREES_PER_THREAD = 8  # of unequal work, so that threads end at about the same time


@dataclass(frozen=True)
class HostLayout:
    """Offsets of panels and contribution blocks for a method and a number of threads.

    Attributes
    ----------
    panel : (f + 1,) int64 array
        Offset of each front's panels, in entries.
    low, root, top : int32 arrays
        The cut of `split_subtrees`: subtrees for single threads, and the fronts above them.
    block : (f,) int64 array
        Offset of each contribution block in its arena.
    local : (f,) bool array
        Whether the block is in the arena of a thread.
    shared, per_thread : int
        Entries of the shared arena, and of each thread's.
    """

    panel: np.ndarray
    low: np.ndarray
    root: np.ndarray
    top: np.ndarray
    block: np.ndarray
    local: np.ndarray
    shared: int
    per_thread: int

    @classmethod
    def for_plan(cls, plan: Plan, method: Method, threads: int, last: bool = False) -> HostLayout:
        """Cut the tree for `threads` and lay out all panels and contribution blocks.

        If `last`, the last front is above all subtrees, so that it is factorized after the others.
        """
        low, root, top = cut_tree(plan, threads, last)
        block, local, shared, per_thread = lay_out_blocks(plan, low, root, top)
        panel = panel_offsets(plan, method)
        return cls(panel, low, root, top, block, local, int(shared), int(per_thread))


def cut_tree(
    plan: Plan, threads: int, last: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return `split_subtrees` of a plan for a number of threads.

    One thread needs no cut: the whole tree is one sequence in postorder, which takes the least
    memory.
    """
    if threads == 1:
        none = np.empty(0, np.int32)
        return none, none, np.arange(plan.parent.size, dtype=np.int32)
    flops = front_flops(plan.start, plan.pointer)
    if not last:
        return split_subtrees(plan.parent, flops, _SUBTREES_PER_THREAD * threads)
    end = plan.parent.size - 1
    parent = np.where(plan.parent[:-1] == end, -1, plan.parent[:-1]).astype(np.int32)
    low, root, top = split_subtrees(parent, flops[:-1].copy(), _SUBTREES_PER_THREAD * threads)
    return low, root, np.append(top, np.int32(end))


def has_schur_root(symbolic: Symbolic) -> bool:
    """Return whether the last front is a Schur complement."""
    return symbolic.schur is not None and symbolic.schur.size > 0


def footprint(
    symbolic: Symbolic, dtype: np.dtype, values: np.dtype, threads: int
) -> dict[str, int]:
    """Return the bytes of a factor and of its computation, by purpose.

    Parameters
    ----------
    dtype, values : numpy.dtype
        Scalar types of the factor and of the matrix.

    Returns
    -------
    dict
        ``"factor"`` with the matrix and vectors; ``"contribution"`` with everything else that is
        freed after the factorization; ``"index"``; ``"total"``, their sum.
    """
    if symbolic.columns is not None:
        return _columns_footprint(symbolic, symbolic.columns, dtype, values)
    plan, method, n = symbolic.plan, symbolic.method, symbolic.n
    layout, nnz, item = (
        HostLayout.for_plan(plan, method, threads, has_schur_root(symbolic)),
        symbolic.indices.size,
        dtype.itemsize,
    )
    vectors = n * (item + 4 * method.pivots + 16 * method.scaling)  # diagonal, rows, scales
    changed = nnz * item * (method.scaling or dtype != values)  # scaled or converted values
    lists = 20 * plan.parent.size * method.pivots  # of delayed columns
    blocks = layout.shared + threads * layout.per_thread
    cut = layout.low, layout.root, layout.top
    places = layout.panel, layout.panel, layout.block, layout.local, *cut
    index = (*plan, symbolic.indptr, symbolic.indices, *places)
    schur = 0 if symbolic.schur is None else symbolic.schur.size**2
    parts = {
        "factor": (int(layout.panel[-1]) + schur) * item + nnz * values.itemsize + vectors,
        "contribution": blocks * item + changed + lists,
        "index": sum(array.nbytes for array in index) + 3 * symbolic.perm.nbytes,
    }
    return parts | {"total": sum(parts.values())}


def _columns_footprint(
    symbolic: Symbolic, columns: ColumnPlan, dtype: np.dtype, values: np.dtype
) -> dict[str, int]:
    """Return the `footprint` of LU by columns; interchanges may change the number of entries."""
    n, nnz, item = symbolic.n, symbolic.indices.size, dtype.itemsize
    entries = (item + 4) * columns.entries  # with their rows
    search = n * (item + 40)
    parts = {
        "factor": entries + nnz * (values.itemsize + 4) + n * (item + 48),
        "contribution": nnz * item + entries + search,  # the arrays grow by copies
        "index": sum(array.nbytes for array in columns[:4])
        + sum(array.nbytes for array in (symbolic.indptr, symbolic.indices))
        + 2 * symbolic.perm.nbytes,
    }
    return parts | {"total": sum(parts.values())}


def refuse_beyond(required: int, memory: Memory) -> None:
    """Raise if `required` bytes exceed the limit of `memory`.

    Raises
    ------
    FactorMemoryError
    """
    limit = byte_limit(memory)
    if limit is not None and required > limit:
        raise FactorMemoryError(required, limit)


@inner
def allocate_interval(start, size, count, need):
    """Allocate the first fit in sorted free intervals, of which the last is endless."""
    i = 0
    while i < count and size[i] < need:
        i += 1
    where = start[i]
    start[i] += need
    size[i] -= need
    return where


@inner
def release_interval(start, size, count, where, length):
    """Free an interval, merged with its neighbours; return the number of intervals."""
    i = count
    while i > 0 and start[i - 1] > where:
        start[i], size[i] = start[i - 1], size[i - 1]
        i -= 1
    start[i], size[i] = where, length
    last = max(i - 1, 0)  # the interval that the next ones are merged into
    for j in range(last + 1, count + 1):
        if start[last] + size[last] == start[j]:
            size[last] += size[j]
        else:
            last += 1
            start[last], size[last] = start[j], size[j]
    return last + 1


@inner
def _visit(plan, s, block, local, start, size, count):
    """Allocate the block of front s, then free those of its children in the same arena.

    Return the number of free intervals, and the end of the used entries before the children's
    blocks were freed.
    """
    m = plan.pointer[s + 1] - plan.pointer[s]
    if m > 0:
        block[s] = allocate_interval(start, size, count, m * m)
    used = start[count - 1]  # the start of the endless interval
    for p in range(plan.child_pointer[s], plan.child_pointer[s + 1]):
        c = plan.children[p]
        mc = plan.pointer[c + 1] - plan.pointer[c]
        if local[c] == local[s] and mc > 0:
            count = release_interval(start, size, count, block[c], mc * mc)
    return count, used


@jit
def lay_out_blocks(plan, low, root, top):
    """Return the offsets of the contribution blocks: first fit, by lifetime.

    The fronts inside a subtree use the arena of the thread that works on it; the roots of
    subtrees and the fronts above them use the shared one. A block lives until its parent is
    factorized.

    Parameters
    ----------
    plan : Plan
    low, root, top : int32 arrays
        The cut of `split_subtrees`.

    Returns
    -------
    block : (f,) int64 array
        Offset of each block in its arena.
    local : (f,) bool array
        Whether the block is in a thread's arena.
    shared, per_thread : int
        Sizes of the shared arena and of a thread's, in entries.
    """
    fronts = plan.parent.size
    block = np.zeros(fronts, np.int64)
    local = np.zeros(fronts, np.bool_)
    start = np.zeros(fronts + 2, np.int64)
    size = np.zeros(fronts + 2, np.int64)
    endless = np.int64(1) << 62
    shared, per_thread = np.int64(0), np.int64(0)
    for t in range(root.size):
        start[0], size[0], count = np.int64(0), endless, np.int64(1)
        for s in range(np.int64(low[t]), np.int64(root[t])):
            local[s] = True
            count, used = _visit(plan, s, block, local, start, size, count)
            per_thread = max(per_thread, used)
    start[0], size[0], count = np.int64(0), endless, np.int64(1)
    for i in range(root.size + top.size):
        s = np.int64(root[i] if i < root.size else top[i - root.size])
        count, used = _visit(plan, s, block, local, start, size, count)
        shared = max(shared, used)
    return block, local, shared, per_thread
