"""The symbolic phase for a dense Schur complement onto chosen unknowns.

The matrix without the rows and columns of these unknowns, A11, is ordered alone. They are
eliminated last, in their order, as the pivot columns of the last front, a root, into which no other
column is merged or delayed. After its assembly this front is A22 - A21 A11^-1 A12.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..errors import SingularMatrixError
from ..machine.resources import FrontCost
from ..matrix.canonical import Canonical
from ..messages import named_columns
from ..numeric.method import Method
from ..ordering.etree import EliminationTree
from ..ordering.graph import Graph
from .matching import Matching
from .phase import (
    Begin,
    OrderedFronts,
    PhaseOptions,
    SymbolicOptions,
    SymbolicOutcome,
    front_cost,
    matched_graph,
    planned_fronts,
    preprocessed,
    symbolic_phase,
    tied_fronts,
)
from .postorder import FrontOrder, arrange_fronts
from .preprocess import Preprocessing, tied_columns
from .stage_timer import StageTimer
from .supernodes import Merged, amalgamate, fundamental_supernodes


def schur_phase(
    matrix: Canonical,
    method: Method,
    choices: SymbolicOptions,
    machine: Callable[[float], str],
    clock: StageTimer,
    ahead: Begin | None = None,
) -> SymbolicOutcome:
    """Return `symbolic_phase`, with the unknowns ``choices.schur``, if any, in the last front.

    Raises
    ------
    SingularMatrixError
        If the matrix without these rows and columns is structurally singular.
    """
    index = choices.schur
    if index is None:
        return symbolic_phase(matrix, method, choices, machine, clock, ahead)
    options = PhaseOptions(method, choices, machine, clock)
    rest = np.delete(np.arange(matrix.n, dtype=np.int32), index)
    matched, inner = _ordered_block(matrix, rest, options)
    clock.start("graph")
    graph = _with_clique(matched_graph(matrix, matched), index)
    clock.start("symbolic")
    tree = EliminationTree.from_graph(graph, np.append(rest[inner.chosen.perm], index))
    chosen = replace(inner.chosen, perm=tree.perm, cost=tree.cost(), tree=None)
    tie = tied_columns(tree.perm, tree.iperm, matched.partner)
    fronts = _fronts(tree, index.size, tie, front_cost(options, chosen.cost.flops))
    return planned_fronts(matrix, matched, OrderedFronts(graph, chosen, fronts), options)


def singular_block(columns: np.ndarray, detail: str) -> SingularMatrixError:
    """Return the error for a matrix that is singular without the rows and columns of `schur`."""
    named = f": {named_columns(columns)} {detail}" if columns.size else f": {detail}"
    return SingularMatrixError(
        f"the matrix without the rows and columns of `schur` is singular or nearly so{named}. "
        "Likely causes: (a) a part that only unknowns of `schur` hold, such as a body without "
        "supports, (b) multipliers whose equations contain unknowns of `schur` only. Try: add "
        "these columns to `schur`",
        column=int(columns[0]) if columns.size else None,
    )


def _ordered_block(
    matrix: Canonical, rest: np.ndarray, options: PhaseOptions
) -> tuple[Preprocessing, OrderedFronts]:
    """Match and order the block A11 of `rest`; return the matching of A and the order of A11."""
    n, choices = matrix.n, options.choices
    rank = np.full(n, -1, np.int32)
    rank[rest] = np.arange(rest.size)
    if choices.perm is not None:
        perm = rank[choices.perm]
        options = options._replace(choices=choices._replace(perm=perm[perm >= 0]))
    block = _block(matrix, rest, rank)
    try:
        matched, inner = tied_fronts(block, preprocessed(block, options), options)
    except SingularMatrixError as error:
        columns = np.empty(0, np.int32) if error.null_columns is None else error.null_columns
        raise singular_block(rest[columns], "cannot be matched to a row") from None
    return _of_whole(matched, rest, n), inner


def _block(matrix: Canonical, rest: np.ndarray, rank: np.ndarray) -> Canonical:
    """Return the rows and columns `rest` of a matrix; `rank` is their position in it, or -1."""
    column = np.repeat(np.arange(matrix.n), np.diff(matrix.indptr))
    inside = (rank[matrix.indices] >= 0) & (rank[column] >= 0)
    count = np.bincount(rank[column[inside]], minlength=rest.size)
    return replace(
        matrix,
        indptr=np.append(0, np.cumsum(count)).astype(np.int64),
        indices=rank[matrix.indices[inside]],
        data=matrix.data[inside],
        n=rest.size,
        order=None,
    )


def _of_whole(matched: Preprocessing, rest: np.ndarray, n: int) -> Preprocessing:
    """Return the preprocessing of A for that of its block; all others are matched to themselves."""

    def lifted(numbers: np.ndarray) -> np.ndarray:
        every = np.arange(n, dtype=np.int32)
        every[rest] = rest[numbers]
        return every

    def spread(values: np.ndarray, default: float) -> np.ndarray:
        every = np.full(n, default, values.dtype)
        every[rest] = values
        return every

    matching, partner, tiny = matched.matching, matched.partner, matched.tiny
    if matching is not None:
        scales = spread(matching.row_scale, 1.0), spread(matching.col_scale, 1.0)
        matching = Matching(lifted(matching.rows), *scales, rank=n)
    return Preprocessing(
        matching,
        lifted(matched.column_of_row),
        None if partner is None else lifted(partner),
        None if tiny is None else spread(tiny, False),
    )


def _with_clique(graph: Graph, index: np.ndarray) -> Graph:
    """Return the graph with edges from the first node of `index` to the others.

    They are eliminated last and in this order: fill then connects all of them, as in a dense front.
    """
    first, others = np.full(index.size - 1, index[0]) if index.size else index, index[1:]
    if not others.size:
        return graph
    ends = np.append(first, others), np.append(others, first)
    star = sp.csr_array((np.ones(ends[0].size, np.int8), ends), shape=(graph.n, graph.n))
    edges = sp.csr_array((np.ones(graph.nnz, np.int8), graph.indices, graph.indptr), star.shape)
    both = edges + star
    both.sort_indices()
    return Graph(both.indptr.astype(np.int64), both.indices.astype(np.int32), graph.n)


def _fronts(tree: EliminationTree, k: int, tie: np.ndarray, model: FrontCost) -> FrontOrder:
    """Return the fronts of a tree whose last k columns, if any, are exactly those of the last."""
    n = tree.perm.size
    inner, outer = n - k, tree.parent[: n - k] >= n - k
    parent = np.where(outer, -1, tree.parent[:inner]).astype(np.int32)
    counts = tree.counts[:inner].copy()
    first = fundamental_supernodes(parent, counts)
    merged = amalgamate(first, parent, counts, tie[:inner].copy(), model)
    if k > 0:
        root, none = np.int32(first.size - 1), np.int32(-1)
        above = np.where(outer[first[1:] - 1], root, merged.above).astype(np.int32)
        merged = Merged(
            into=np.append(merged.into, root),
            above=np.append(above, none),
            columns=np.append(merged.columns, np.int32(k)),
            updates=np.append(merged.updates, np.int32(0)),
            cut=np.append(merged.cut, False),
        )
        first = np.append(first, np.int32(n))
    return arrange_fronts(first, merged, tree.perm)
