"""Analysis: everything about a factorization that depends on the pattern of A alone.

``analyze_canonical`` chains the stages; read it first.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from ..cached import cached_property
from ..cpu.layout import Layout
from ..machine import MACHINES, thread_count
from ..matrix import Canonical, canonical
from ..method import LU, Method
from ..ordering import Ordering, auto
from ..ordering.etree import EliminationTree, depths, inverse
from ..ordering.graph import adjacency
from ..ordering.model import pace_of
from ..protocol import Backend, Progress, get_backend, resolved
from ..symbolic import supernodes
from ..symbolic.matched import Matched, as_csc, match_rows, order_matched, tied_columns
from ..symbolic.matching import Matching
from ..symbolic.plan import Plan, front_flops, make_plan

if TYPE_CHECKING:
    from ..gpu.sparse.entries import Entries
    from .factor import Factor

log = logging.getLogger("frontal")


@dataclass(frozen=True, eq=False)
class Analysis:
    """The symbolic result: an elimination order and a plan, reusable for any values.

    Attributes
    ----------
    n : int
        Order of the matrix.
    rule : Method
        How fronts are factorized.
    dtype : numpy.dtype
        Scalar type of the matrix that was analyzed; others may be factorized too.
    perm : (n,) int32 array
        ``perm[k]`` is the column of A eliminated k-th.
    row_perm : (n,) int32 array
        ``row_perm[k]`` is the row of A that meets column ``perm[k]`` on the diagonal, before
        pivoting inside fronts; equal to `perm` unless a matching moved rows.
    ordering : frontal.ordering.Ordering
        The ordering taken, its cost and what else was tried.
    matching : frontal.symbolic.matching.Matching or None
        Row matching and scaling of a general matrix that needs one.
    plan : frontal.symbolic.plan.Plan
        Index arrays of the numeric phase.
    backend : str
        Backend that factorizations use, ``"auto"``, ``"cpu"`` or ``"gpu"``.
    seconds : dict of str to float
        Time of each stage.
    paired : bool
        Columns with tiny diagonal entries were paired, rather than rows moved.
    fallback : bool
        Go on with LU where Cholesky finds that the matrix is not positive definite.
    """

    n: int
    rule: Method = field(repr=False)
    dtype: np.dtype
    indptr: np.ndarray = field(repr=False)
    indices: np.ndarray = field(repr=False)
    perm: np.ndarray = field(repr=False)
    row_perm: np.ndarray = field(repr=False)
    ordering: Ordering = field(repr=False)
    matching: Matching | None = field(repr=False)
    plan: Plan = field(repr=False)
    backend: str
    seconds: dict[str, float]
    paired: bool = False
    fallback: bool = field(default=False, repr=False)

    @property
    def method(self) -> str:
        """``"cholesky"`` or ``"lu"``."""
        return self.rule.name

    @property
    def n_fronts(self) -> int:
        """Number of fronts."""
        return self.plan.parent.size

    def front_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Pivot columns k and update rows m of every front, in elimination order."""
        return np.diff(self.plan.start), np.diff(self.plan.pointer)

    @property
    def nnz_factor(self) -> int:
        """Entries of L, or of L and U with one diagonal, zeros of merged fronts included."""
        k, m = (x.astype(np.int64) for x in self.front_sizes())
        lower = int((k * (k + 1) // 2 + k * m).sum())
        return self.rule.panels * lower - (self.rule.panels - 1) * self.n

    @cached_property
    def flops(self) -> float:
        """Multiplications and additions of one factorization."""
        return self.rule.panels * float(front_flops(self.plan.start, self.plan.pointer).sum())

    @cached_property
    def levels(self) -> int:
        """Fronts on the longest path from a leaf to a root of the assembly tree."""
        return int(depths(self.plan.parent).max(initial=0))

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of a factorization on this machine, in the analyzed scalar type.

        ``factor`` stays, ``contribution`` is the peak of the contribution blocks and goes after
        the factorization, ``index`` is this analysis, ``total`` their sum.
        """
        return self.memory_for(self.dtype)

    def memory_for(self, dtype: Any, threads: int | None = None) -> dict[str, int]:
        """As `memory`, for a scalar type and a number of threads."""
        item = np.dtype(dtype).itemsize
        threads = thread_count() if threads is None else threads
        layout = Layout.of(self.plan, self.rule, threads)
        parts = {
            "factor": int(layout.panel[-1]) * item,
            "contribution": (layout.shared + threads * layout.own) * item,
            "index": sum(array.nbytes for array in self.plan)
            + self.indptr.nbytes
            + self.indices.nbytes,
        }
        return {**parts, "total": sum(parts.values())}

    def to_networkx(self) -> nx.DiGraph:
        """The assembly tree: an edge from each front to its parent, sizes as node attributes.

        Nodes carry ``pivots`` (k), ``updates`` (m) and ``flops``.
        """
        tree = nx.DiGraph()
        k, m = self.front_sizes()
        flops = front_flops(self.plan.start, self.plan.pointer)
        tree.add_nodes_from(
            (s, {"pivots": int(k[s]), "updates": int(m[s]), "flops": float(flops[s])})
            for s in range(self.n_fronts)
        )
        tree.add_edges_from((s, int(p)) for s, p in enumerate(self.plan.parent) if p >= 0)
        return tree

    def factorize(
        self, A: Any, *, check_finite: bool = True, progress: Progress | None = None
    ) -> Factor:
        """Factorize a matrix of the analyzed pattern.

        Parameters
        ----------
        A : sparse matrix or array, (n, n)
            Same pattern as the analyzed matrix, any values; its scalar type decides the factor's.
            CuPy's too, by way of the host: `Factor.refactorize` then leaves new values where
            they are. It takes them in the order in which A stores its own.
        check_finite : bool
            Refuse NaN and infinity.
        progress : callable, optional
            Called with (phase, done, total).

        Returns
        -------
        Factor

        Raises
        ------
        ValueError
            If the pattern differs, or A is not Hermitian where ``kind="spd"`` promised it.
        NotPositiveDefiniteError, SingularMatrixError
            If the factorization fails.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> from frontal.problems import poisson2d
        >>> A = poisson2d(10)
        >>> analysis = frontal.analyze(A)
        >>> factor = analysis.factorize(4 * A)
        >>> bool(np.allclose(factor.solve(A @ np.full(100, 4.0)), 1))
        True
        """
        from .factor import Factor

        matrix = canonical(A, kind="general", check_finite=check_finite, ordered=True)
        return Factor.compute(self.matching_pattern(matrix), self, progress)

    @cached_property
    def runner(self) -> Backend:
        """The backend with this plan uploaded."""
        backend = get_backend(self.backend, self.flops)
        backend.upload(self.plan, self.rule)
        return backend

    @cached_property
    def entries(self) -> Entries:
        """The pattern of A on the device of a GPU's backend."""
        from ..gpu.sparse.entries import Entries

        return Entries(self)

    def on_cpu(self) -> Analysis:
        """The same analysis, with its ordering and its fronts, for the CPU."""
        return replace(self, backend="cpu")

    def __getstate__(self) -> dict[str, Any]:
        """A pickle leaves the backend behind; it is made anew where it is loaded."""
        left = ("runner", "entries")
        return {name: value for name, value in self.__dict__.items() if name not in left}

    def as_general(self, matrix: Canonical) -> Analysis:
        """The analysis of the same pattern, in the same order, for LU."""
        return analyze_canonical(
            matrix, method=LU, ordering="given", perm=self.perm, backend=self.backend
        )

    def unpaired(self, matrix: Canonical) -> Analysis:
        """The analysis of the same pattern with rows moved, where pairs were not enough."""
        log.info("pairs of columns give no sound pivots: moving rows instead")
        return analyze_canonical(matrix, method=LU, backend=self.backend, pairs=False)

    def matching_pattern(self, matrix: Canonical) -> Canonical:
        """`matrix`, if it has the analyzed pattern.

        Raises
        ------
        ValueError
            Otherwise.
        """
        if matrix.n != self.n:
            raise ValueError(f"the matrix is {matrix.shape}, the analysis is for n = {self.n}")
        same = matrix.indptr[-1] == self.indptr[-1] and (
            np.array_equal(matrix.indptr, self.indptr)
            and np.array_equal(matrix.indices, self.indices)
        )
        if not same:
            raise ValueError(
                f"the pattern differs from the analyzed one ({matrix.indptr[-1]} stored entries "
                f"against {self.indptr[-1]}); keep explicit zeros in place, or analyze the matrix"
            )
        return matrix


def analyze_canonical(
    matrix: Canonical,
    *,
    method: Method | None = None,
    ordering: str = "auto",
    perm: np.ndarray | None = None,
    reuse: int = 1,
    backend: str = "auto",
    pairs: bool = True,
    fallback: bool = False,
    progress: Progress | None = None,
) -> Analysis:
    """Order A, build its tree and fronts, and plan the numeric phase.

    Parameters
    ----------
    matrix : Canonical
    method : Method, optional
        In place of the matrix's own.
    ordering : str
        A method of `frontal.ordering.order`.
    perm : (n,) int array, optional
        The order to use, with ``ordering="given"``.
    reuse : int
        How many factorizations of this pattern will follow: a better ordering pays sooner.
    backend : str
    pairs : bool
        Keep a symmetric pattern by pairs of columns, rather than move rows.
    fallback : bool
        Go on with LU where Cholesky finds that the matrix is not positive definite.
    progress : callable, optional

    Raises
    ------
    SingularMatrixError
        If no choice of values of the pattern gives a regular matrix.
    """
    method = method or matrix.method
    clock = _Clock(progress)
    matched = Matched(None, np.arange(matrix.n, dtype=np.int32))
    if method.scaling:
        clock.start("matching")
        matched = match_rows(matrix, pairs and ordering != "given")
    clock.start("graph")
    graph = adjacency(as_csc(matrix, matched.column_of_row[matrix.indices]))
    clock.start("ordering")
    work = method.panels  # LU does everything for two triangles
    likely = resolved(backend, np.inf if matrix.n >= auto.FEWEST else 0.0)  # no matter below
    options = {"reuse": reuse, "perm": perm, **pace_of(likely, work)}
    chosen = order_matched(graph, matched.partner, ordering, **options)
    clock.start("symbolic")
    perm_, iperm, parent, count = chosen.tree or EliminationTree.of(graph, chosen.perm)
    first = supernodes.fundamental_supernodes(parent, count)
    tie = tied_columns(perm_, iperm, matched.partner)
    model = MACHINES[resolved(backend, work * chosen.cost.flops)].fronts
    merged = supernodes.amalgamate(first, parent, count, tie, model)
    turn, start, tree, updates = supernodes.arrange_fronts(first, *merged)
    perm_ = perm_[turn]
    iperm = inverse(perm_)
    pointer, rows = supernodes.front_rows(
        graph.indptr, graph.indices, perm_, iperm, start, tree, updates
    )
    clock.start("plan")
    row_rank = iperm[matched.column_of_row]
    plan = make_plan(
        matrix.indptr, matrix.indices, perm_, row_rank, method, start, tree, pointer, rows
    )
    clock.stop()
    return Analysis(
        n=matrix.n,
        rule=method,
        dtype=matrix.dtype,
        indptr=matrix.indptr.copy(),  # the user may go on to change A
        indices=matrix.indices.copy(),
        perm=perm_,
        row_perm=inverse(row_rank),
        ordering=replace(chosen, tree=None),  # the plan has taken its place
        matching=matched.matching,
        paired=matched.partner is not None,
        plan=plan,
        backend=backend,
        seconds=clock.seconds,
        fallback=fallback,
    )


class _Clock:
    """Times stages and tells the progress callback where the analysis is."""

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
            self.seconds[self._phase] = time.perf_counter() - self._since
            if self._progress:
                self._progress(self._phase, 1.0, 1.0)
            self._phase = ""
