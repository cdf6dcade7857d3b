"""The symbolic phase, `symbolic_phase`: from the pattern of a matrix to fronts and a plan."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ..machine.lockfree_property import cached_property
from ..machine.resources import MACHINES
from ..machine.threads import copied
from ..matrix.canonical import Canonical
from ..numeric.method import Method
from ..ordering import Ordering, auto
from ..ordering.etree import EliminationTree, inverse
from ..ordering.graph import Graph, graph_of, without_diagonal
from ..ordering.model import pace_of
from . import supernodes
from .diagonal import columns_without_pivot
from .matching import Matching
from .plan import FrontArrays, Permuted, Plan, make_plan
from .postorder import FrontOrder, arrange_fronts
from .preprocess import Pairs, Preprocessing, as_csc, match_rows, order_matched, tied_columns
from .rows import front_rows


@dataclass(frozen=True, eq=False)
class Symbolic:
    """A matrix without values, ordered and with a plan: the input of backends.

    Attributes
    ----------
    n : int
        Order of the matrix.
    method : Method
        Factorization of the fronts.
    indptr, indices : (n + 1,) int64, (nnz,) int32 arrays
        The pattern, by columns.
    perm : (n,) int32 array
        ``perm[k]`` is the column of A eliminated k-th.
    row_perm : (n,) int32 array
        ``row_perm[k]`` is the row of A that meets column ``perm[k]`` on the diagonal.
    plan : Plan
        Index arrays of the numeric phase.
    """

    n: int
    method: Method
    indptr: np.ndarray = field(repr=False)
    indices: np.ndarray = field(repr=False)
    perm: np.ndarray = field(repr=False)
    row_perm: np.ndarray = field(repr=False)
    plan: Plan = field(repr=False)

    @cached_property
    def by_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pattern by rows: extents, ascending columns, and positions in the CSC arrays."""
        place = np.arange(self.indices.size, dtype=np.int64)
        csr = sp.csc_array((place, self.indices, self.indptr), shape=(self.n, self.n)).tocsr()
        return csr.indptr.astype(np.int64), csr.indices.astype(np.int32), csr.data

    @cached_property
    def largest(self) -> tuple[int, int]:
        """Largest number of update rows of a front, and largest k (k + m) of a panel."""
        k, m = (np.diff(x).astype(np.int64) for x in (self.plan.start, self.plan.pointer))
        return int(m.max(initial=0)), int((k * (k + m)).max(initial=0))

    def with_values(self, values: np.ndarray, hermitian: bool = False) -> Canonical:
        """Return the matrix of this pattern with `values`, by columns, which are not copied."""
        return Canonical(self.indptr, self.indices, values, self.n, self.method, hermitian)


class SymbolicOptions(NamedTuple):
    """User options of the symbolic phase.

    Attributes
    ----------
    ordering : str
        A method of `frontal.ordering.order`.
    perm : (n,) int array or None
        The order to use, with ``ordering="given"``.
    reuse : int
        Expected number of factorizations of this pattern: the more, the sooner a better ordering
        pays.
    pairs : {"auto", "all", "none"}
        For a symmetric pattern with tiny diagonal entries: the columns that share a front with a
        partner, stranded columns or all. With ``"none"`` LU permutes rows.
    """

    ordering: str = "auto"
    perm: np.ndarray | None = None
    reuse: int = 1
    pairs: Pairs = "auto"


class SymbolicOutcome(NamedTuple):
    """The outcome of the symbolic phase, with its ordering and preprocessing."""

    symbolic: Symbolic
    ordering: Ordering
    matching: Matching | None
    paired: bool
    tiny: int


Begin = Callable[[Method, np.ndarray, np.ndarray, np.ndarray], None]


def symbolic_phase(
    matrix: Canonical,
    method: Method,
    choices: SymbolicOptions,
    machine: Callable[[float], str],
    clock: StageTimer,
    ahead: Begin | None = None,
) -> SymbolicOutcome:
    """Order A, build its tree and fronts, and plan the numeric phase.

    Parameters
    ----------
    matrix : Canonical
    method : Method
    choices : SymbolicOptions
    machine : callable
        Return the name in `MACHINES` of the machine that will compute a number of flops.
    clock : StageTimer
        Records each stage.
    ahead : callable, optional
        Called with method, start, parent and pointer, as in `Plan`, before the rows are computed.

    Raises
    ------
    SingularMatrixError
        If the pattern is structurally singular, or stored zeros make the matrix singular.
    """
    matched = Preprocessing(None, np.arange(matrix.n, dtype=np.int32))
    if method.scaling:
        clock.start("matching")
        fixed_order = choices.ordering == "given"  # cannot have pairs: LU permutes rows instead
        matched = match_rows(matrix, method, "none" if fixed_order else choices.pairs)
    clock.start("graph")
    graph = _graph(matrix, matched)
    chosen, fronts = _fronts(graph, matched.partner, method, choices, machine, clock)
    alone = _stranded(matrix, matched, fronts)
    if alone.size and choices.ordering != "given":
        matched = matched.tied(matrix, alone)
        same = choices._replace(ordering=chosen.method)
        chosen, fronts = _fronts(graph, matched.partner, method, same, machine, clock)
    perm, iperm, start, tree, updates = fronts
    if ahead is not None:
        ahead(method, start, tree, np.append(0, np.cumsum(updates, dtype=np.int64)))
    pointer, rows, relative = front_rows(graph, fronts)
    clock.start("plan")
    row_rank, row_perm = iperm, perm
    if not matched.in_place:
        row_rank = iperm[matched.column_of_row]
        row_perm = inverse(row_rank)
    permuted = Permuted(matrix.indptr, matrix.indices, perm, row_rank)
    plan = make_plan(permuted, method, FrontArrays(start, tree, pointer, rows), relative)
    clock.stop()
    # the user may change A later
    pattern = copied(matrix.indptr), copied(matrix.indices)
    symbolic = Symbolic(matrix.n, method, *pattern, perm, row_perm, plan)
    ordering = replace(chosen, tree=None)  # replaced by the plan
    tiny = 0 if matched.tiny is None else int(np.count_nonzero(matched.tiny))
    return SymbolicOutcome(symbolic, ordering, matched.matching, matched.partner is not None, tiny)


def _graph(matrix: Canonical, matched: Preprocessing) -> Graph:
    """Return the graph of A + A^T, with the rows of A permuted by the matching."""
    if (matrix.hermitian or matched.symmetric) and matched.in_place:
        return without_diagonal(matrix.indptr, matrix.indices)
    moved = matched.matching is not None
    rows = matched.column_of_row[matrix.indices] if moved else matrix.indices
    return graph_of(matrix.indptr, rows)


def _fronts(
    graph: Graph,
    partner: np.ndarray | None,
    method: Method,
    choices: SymbolicOptions,
    machine: Callable[[float], str],
    clock: StageTimer,
) -> tuple[Ordering, FrontOrder]:
    """Order a graph, build its elimination tree, and merge columns into fronts."""
    clock.start("ordering")
    work = method.panels  # LU: two triangles
    likely = machine(np.inf if graph.n >= auto.MIN_DISSECTION_NODES else 0.0)  # unused below
    options = {"reuse": choices.reuse, "perm": choices.perm, **pace_of(likely, work)}
    chosen = order_matched(graph, partner, choices.ordering, **options)
    clock.start("symbolic")
    perm, iperm, parent, count = chosen.tree or EliminationTree.from_graph(graph, chosen.perm)
    first = supernodes.fundamental_supernodes(parent, count)
    tie = tied_columns(perm, iperm, partner)
    name = machine(work * chosen.cost.flops)
    cost = MACHINES[name].fronts
    if name == "cpu":  # LU does twice the flops per front at the same fixed cost
        cost = cost._replace(front=cost.front / work)
    # LU stores two triangles; for L·D·Lᴴ larger fronts offer more pivots, so stored zeros are free
    cost = cost._replace(stored=0.0 if method.indefinite else work * cost.stored)
    merged = supernodes.amalgamate(first, parent, count, tie, cost)
    return chosen, arrange_fronts(first, merged, perm)


def _stranded(matrix: Canonical, matched: Preprocessing, fronts: FrontOrder) -> np.ndarray:
    """Return the columns without a pivot in these fronts, if pairs may be tied."""
    if matched.tiny is None or matched.partner is not None:
        return np.empty(0, np.int32)
    A = as_csc(matrix, matrix.indices)
    _, alone = columns_without_pivot(A, matched.tiny, fronts.iperm, fronts.start)
    return np.flatnonzero(alone)


Progress = Callable[[str, float, float], None]


class StageTimer:
    """A timer of the stages, which reports them to the progress callback."""

    def __init__(self, progress: Progress | None) -> None:
        self.seconds: dict[str, float] = {}
        self._progress = progress
        self._phase = ""
        self._since = 0.0

    def start(self, phase: str) -> None:
        self.stop()
        self._phase, self._since = phase, time.perf_counter()
        if self._progress:
            self._progress(phase, 0.0, 1.0)

    def stop(self) -> None:
        if self._phase:
            earlier = self.seconds.get(self._phase, 0.0)
            self.seconds[self._phase] = earlier + time.perf_counter() - self._since
            if self._progress:
                self._progress(self._phase, 1.0, 1.0)
            self._phase = ""
