"""The symbolic phase, `symbolic_phase`: from the pattern of a matrix to a plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..machine.lockfree_property import cached_property
from ..machine.resources import MACHINES, FrontCost
from ..machine.threads import copied
from ..matrix.canonical import Canonical
from ..matrix.csc import by_rows, diagonal_places
from ..numeric.method import LU, Method
from ..ordering import Ordering, auto
from ..ordering.etree import EliminationTree, inverse
from ..ordering.graph import Graph, graph_of, without_diagonal
from ..ordering.model import pace_of
from .block_triangular import BlockForm, block_form
from .columns import (
    ColumnPlan,
    column_plan,
    is_faster,
    may_be_thin,
    may_use_columns,
    predicted,
)
from .diagonal import early_and_stranded
from .matching import Matching
from .options import SymbolicOptions
from .plan import (
    NO_FRONTS,
    FrontArrays,
    Permuted,
    Plan,
    largest_extent,
    largest_front,
    make_plan,
)
from .postorder import FrontOrder, fronts_of
from .preprocess import Preprocessing, match_rows, order_matched, tied_columns
from .rows import front_rows
from .stage_timer import StageTimer

NO_SIGNS = np.empty(0, np.int8)
MAX_DELAYED_SHARE = 0.01  # of columns without a pivot: the CPU delays them; a GPU starts anew


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
        Index arrays of the numeric phase; without fronts if there are `columns`.
    columns : ColumnPlan or None
        Index arrays of LU by columns.
    signs : (n,) int8 array
        Signs of the pivots in elimination order, if the user knows them; else (0,).
    schur : (k,) int32 array or None
        Unknowns of the Schur complement, the pivot columns of the last front unless k is 0.
    """

    n: int
    method: Method
    indptr: np.ndarray = field(repr=False)
    indices: np.ndarray = field(repr=False)
    perm: np.ndarray = field(repr=False)
    row_perm: np.ndarray = field(repr=False)
    plan: Plan = field(repr=False)
    columns: ColumnPlan | None = field(default=None, repr=False)
    signs: np.ndarray = field(default_factory=lambda: NO_SIGNS, repr=False)
    schur: np.ndarray | None = field(default=None, repr=False)

    @cached_property
    def by_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pattern by rows: extents, ascending columns, and positions in the CSC arrays."""
        return by_rows(self.indptr, self.indices)

    @cached_property
    def column_positions(self) -> np.ndarray:
        """(n,) int32: position of each column of A in elimination order."""
        return inverse(self.perm)

    @cached_property
    def diagonal_places(self) -> np.ndarray:
        """(n,) int64: place of the diagonal entry of each column in elimination order; or -1."""
        return diagonal_places(self.indptr, self.indices, self.perm)

    @cached_property
    def longest_column(self) -> int:
        """Largest number of entries in a column of A."""
        return int(largest_extent(self.indptr))

    @cached_property
    def largest(self) -> tuple[int, int]:
        """Largest number of update rows of a front, and largest k (k + m) of a panel."""
        widest, largest = largest_front(self.plan.start, self.plan.pointer)
        return int(widest), int(largest)

    def with_values(self, values: np.ndarray, hermitian: bool = False) -> Canonical:
        """Return the matrix of this pattern with `values`, by columns, which are not copied."""
        return Canonical(self.indptr, self.indices, values, self.n, self.method, hermitian)


class SymbolicOutcome(NamedTuple):
    """The outcome of the symbolic phase, with its ordering and preprocessing."""

    symbolic: Symbolic
    ordering: Ordering
    matching: Matching | None
    paired: bool
    tiny: int


Begin = Callable[[Method, np.ndarray, np.ndarray, np.ndarray], None]


class PhaseOptions(NamedTuple):
    """The arguments of `symbolic_phase` except the matrix."""

    method: Method
    choices: SymbolicOptions
    machine: Callable[[float], str]
    clock: StageTimer
    ahead: Begin | None = None


class OrderedFronts(NamedTuple):
    """A graph, its order, and the fronts of this order."""

    graph: Graph
    chosen: Ordering
    fronts: FrontOrder


def symbolic_phase(
    matrix: Canonical,
    method: Method,
    choices: SymbolicOptions,
    machine: Callable[[float], str],
    clock: StageTimer,
    ahead: Begin | None = None,
) -> SymbolicOutcome:
    """Order A, and plan the numeric phase: by columns if A is thin, else by fronts.

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
    options = PhaseOptions(method, choices, machine, clock, ahead)
    matched = preprocessed(matrix, options)
    if not _may_be_thin(matrix, matched, options):
        return frontal_phase(matrix, matched, options)
    clock.start("graph")
    rows = _matched_rows(matrix, matched)
    form = None if matched.symmetric else block_form(matrix.indptr, rows)
    between = 0 if form is None else form.between
    if not may_be_thin(matrix.n, rows.size - between):
        return frontal_phase(matrix, matched, options)
    blocks = None
    if form is not None:
        blocks = _ordered(form.graph(matrix.indptr, rows), None, options)
        if _is_thin(matrix, matched, blocks, form, options, blocks.fronts):
            return _column_phase(matrix, matched, options, blocks, form)
    if blocks is not None and not between:  # its graph is the whole one
        return frontal_phase(matrix, matched, options, blocks)
    clock.start("graph")
    whole = _ordered(matched_graph(matrix, matched), matched.partner, options)
    if _is_thin(matrix, matched, blocks or whole, form, options, whole.fronts):
        return _column_phase(matrix, matched, options, blocks or whole, form)
    return frontal_phase(matrix, matched, options, whole)


def preprocessed(matrix: Canonical, options: PhaseOptions) -> Preprocessing:
    """Match rows and columns of a matrix, if its method needs that; see `match_rows`."""
    method, choices, _, clock, _ = options
    if not method.scaling:
        return Preprocessing(None, np.arange(matrix.n, dtype=np.int32))
    clock.start("matching")
    fixed_order = choices.ordering == "given"  # cannot have pairs: LU permutes rows instead
    return match_rows(matrix, method, "none" if fixed_order else choices.pairs)


def _may_be_thin(matrix: Canonical, matched: Preprocessing, options: PhaseOptions) -> bool:
    """Return whether LU by columns is possible; GPUs have fronts only."""
    if options.method != LU or options.choices.ordering != "auto" or matched.tiny is not None:
        return False
    sizes = matrix.n, matrix.indices.size
    return may_use_columns(*sizes) and options.machine(0.0) == "cpu"


def _is_thin(
    matrix: Canonical,
    matched: Preprocessing,
    ordered: OrderedFronts,
    form: BlockForm | None,
    options: PhaseOptions,
    fronts: FrontOrder,
) -> bool:
    """Return whether columns in an order should be faster than `fronts`."""
    entries, flops = _predicted(matrix, ordered, form)
    symmetric = matched.matching is None
    return options.machine(flops) == "cpu" and is_faster(entries, flops, fronts, symmetric)


def _predicted(
    matrix: Canonical, ordered: OrderedFronts, form: BlockForm | None
) -> tuple[int, float]:
    return predicted(matrix.n, ordered.chosen.cost, 0 if form is None else form.between)


def _column_phase(
    matrix: Canonical,
    matched: Preprocessing,
    options: PhaseOptions,
    ordered: OrderedFronts,
    form: BlockForm | None,
) -> SymbolicOutcome:
    """Return the outcome for LU by columns."""
    clock, n = options.clock, matrix.n
    clock.start("plan")
    perm = ordered.fronts.perm if form is None else form.sorted(ordered.fronts.perm)
    first = np.array([0, n], np.int32) if form is None else form.first
    row_perm = perm if matched.matching is None else matched.matching.rows[perm]
    pattern = copied(matrix.indptr), copied(matrix.indices)  # the user may change A later
    size = _predicted(matrix, ordered, form)
    columns = column_plan(pattern, perm, row_perm, first, size)
    clock.stop()
    symbolic = Symbolic(n, options.method, *pattern, perm, row_perm, NO_FRONTS, columns)
    ordering = replace(ordered.chosen, tree=None)
    return SymbolicOutcome(symbolic, ordering, matched.matching, paired=False, tiny=0)


def frontal_phase(
    matrix: Canonical,
    matched: Preprocessing,
    options: PhaseOptions,
    ordered: OrderedFronts | None = None,
) -> SymbolicOutcome:
    """Build the tree and the fronts of a matched matrix, and plan their numeric phase.

    Without pairs only the pattern of `matrix` is read. `ordered` may be known.
    """
    return planned_fronts(matrix, *tied_fronts(matrix, matched, options, ordered), options)


def tied_fronts(
    matrix: Canonical,
    matched: Preprocessing,
    options: PhaseOptions,
    ordered: OrderedFronts | None = None,
) -> tuple[Preprocessing, OrderedFronts]:
    """Order a matched matrix, and tie stranded columns if they are many; see `frontal_phase`."""
    method, choices, machine, clock, _ = options
    if ordered is None:
        clock.start("graph")
        ordered = _ordered(matched_graph(matrix, matched), matched.partner, options)
    graph, chosen, fronts = ordered
    alone = _stranded(matrix, matched, fronts)
    on_cpu = machine(method.panels * chosen.cost.flops) == "cpu"
    least = MAX_DELAYED_SHARE * matrix.n if on_cpu else 0
    if alone.size > least and choices.ordering != "given":
        matched = matched.tied(matrix, alone)
        same = options._replace(choices=choices._replace(ordering=chosen.method))
        ordered = _ordered(graph, matched.partner, same)
    return matched, ordered


def planned_fronts(
    matrix: Canonical, matched: Preprocessing, ordered: OrderedFronts, options: PhaseOptions
) -> SymbolicOutcome:
    """Compute the rows of ordered fronts, and plan their numeric phase."""
    method, choices, _, clock, ahead = options
    graph, chosen, fronts = ordered
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
    signs = NO_SIGNS if choices.signs is None else choices.signs[perm]
    known = perm, row_perm, plan, None, signs, choices.schur
    symbolic = Symbolic(matrix.n, method, *pattern, *known)
    ordering = replace(chosen, tree=None)  # replaced by the plan
    tiny = 0 if matched.tiny is None else int(np.count_nonzero(matched.tiny))
    return SymbolicOutcome(symbolic, ordering, matched.matching, matched.partner is not None, tiny)


def _matched_rows(matrix: Canonical, matched: Preprocessing) -> np.ndarray:
    """Return the row indices of A, with each row named by its matched column."""
    moved = matched.matching is not None
    return matched.column_of_row[matrix.indices] if moved else matrix.indices


def matched_graph(matrix: Canonical, matched: Preprocessing) -> Graph:
    """Return the graph of A + A^T, with the rows of A permuted by the matching."""
    if (matrix.hermitian or matched.symmetric) and matched.in_place:
        return without_diagonal(matrix.indptr, matrix.indices)
    return graph_of(matrix.indptr, _matched_rows(matrix, matched))


def _ordered(graph: Graph, partner: np.ndarray | None, options: PhaseOptions) -> OrderedFronts:
    """Order a graph, build its elimination tree, and merge columns into fronts."""
    method, choices, machine, clock, _ = options
    clock.start("ordering")
    work = method.panels  # LU: two triangles
    likely = machine(np.inf if graph.n >= auto.MIN_DISSECTION_NODES else 0.0)  # unused below
    given = {"reuse": choices.reuse, "perm": choices.perm, **pace_of(likely, work)}
    chosen = order_matched(graph, partner, choices.ordering, **given)
    clock.start("symbolic")
    perm, iperm, parent, count = chosen.tree or EliminationTree.from_graph(graph, chosen.perm)
    tie = tied_columns(perm, iperm, partner)
    cost = front_cost(options, chosen.cost.flops)
    return OrderedFronts(graph, chosen, fronts_of(perm, parent, count, tie, cost))


def front_cost(options: PhaseOptions, flops: float) -> FrontCost:
    """Return the model of fronts on the machine for a Cholesky factorization of `flops`."""
    method, work = options.method, options.method.panels
    name = options.machine(work * flops)
    cost = MACHINES[name].fronts
    if name == "cpu":  # LU does twice the flops per front at the same fixed cost
        cost = cost._replace(front=cost.front / work)
    # LU stores two triangles; for L·D·Lᴴ larger fronts offer more pivots, so stored zeros are free
    searched = method.one_triangle and method.pivots
    cost = cost._replace(stored=0.0 if searched else work * cost.stored)
    return cost if options.choices.alone else cost._replace(latency=0.0)


def _stranded(matrix: Canonical, matched: Preprocessing, fronts: FrontOrder) -> np.ndarray:
    """Return the columns without a pivot in these fronts, if pairs may be tied."""
    if matched.tiny is None or matched.partner is not None:
        return np.empty(0, np.int32)
    pattern = matrix.indptr, matrix.indices, matrix.data
    return np.flatnonzero(early_and_stranded(*pattern, matched.tiny, *fronts[1:3])[1])
