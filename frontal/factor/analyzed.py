"""A pattern that was analyzed: its symbolic phase, its costs, the same pattern otherwise."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend.choose import (
    attach_early_setup,
    backend_for,
    chooser,
    least_flops,
    lookahead,
    memory_on_device,
    resolved,
)
from ..backend.memory_limit import required_memory
from ..backend.protocol import Backend
from ..compile import workers
from ..cpu.layout import footprint, refuse_beyond
from ..errors import FactorMemoryError
from ..files.versioned_pickle import Versioned
from ..machine.lockfree_property import cached_property
from ..machine.resources import thread_count
from ..machine.threads import copied, equal
from ..matrix.canonical import Canonical
from ..numeric.method import LU, Method, symmetric_method
from ..ordering import Ordering
from ..ordering.etree import depths
from ..symbolic.disk_cache import cached_symbolic_phase
from ..symbolic.matching import Matching
from ..symbolic.phase import Progress, StageTimer, Symbolic, SymbolicOptions
from ..symbolic.plan import Plan, front_flops

if TYPE_CHECKING:
    import networkx as nx
    from typing_extensions import Self

log = logging.getLogger("frontal")

_MAX_AMENDMENTS = 3  # after more, columns go back to the fronts that they came from


@dataclass(frozen=True, eq=False)
class Analyzed(Versioned):
    """A pattern that was analyzed: all of `Analysis` but for what makes factors of it.

    Attributes
    ----------
    symbolic : Symbolic
        What backends know of it.
    dtype : numpy.dtype
        Scalar type of the matrix that was analyzed; others may be factorized too.
    ordering : frontal.ordering.Ordering
        The ordering taken, its cost and what else was tried.
    matching : frontal.symbolic.matching.Matching or None
        Row matching and scaling of a general matrix that needs one.
    backend : str
        Backend that factorizations use, ``"auto"``, ``"cpu"`` or ``"gpu"``.
    seconds : dict of str to float
        Time of each stage.
    choices : SymbolicOptions
        What was asked for.
    paired : bool
        Columns with tiny diagonal entries were paired, rather than rows moved.
    tiny : int
        Columns with tiny diagonal entries, where the pattern is symmetric and rows stay.
    fallback : bool
        Fall back to LDL^T or LDL^H if the matrix is not positive definite, and to LU if new values
        are not symmetric.
    first : Analyzed or None
        What was analyzed, if numeric phases have moved columns to other fronts since.
    amendments : int
        How many have.
    """

    symbolic: Symbolic
    dtype: np.dtype
    ordering: Ordering = field(repr=False)
    matching: Matching | None = field(repr=False)
    backend: str
    seconds: dict[str, float]
    choices: SymbolicOptions = field(repr=False)
    paired: bool = False
    tiny: int = 0
    fallback: bool = field(default=False, repr=False)
    first: Self | None = field(default=None, repr=False)
    amendments: int = 0

    @classmethod
    def from_matrix(
        cls,
        matrix: Canonical,
        method: Method | None = None,
        choices: SymbolicOptions = SymbolicOptions(),  # noqa: B008 - immutable
        *,
        backend: str = "auto",
        fallback: bool = False,
        progress: Progress | None = None,
        asked: SymbolicOptions | None = None,
    ) -> Self:
        """Analyze the pattern of a matrix.

        Parameters
        ----------
        matrix : Canonical
        method : Method, optional
            In place of the matrix's own.
        choices : SymbolicOptions
        backend : str
        fallback : bool
            Fall back to LDL^T or LDL^H if Cholesky finds that the matrix is not positive definite.
        progress : callable, optional
        asked : SymbolicOptions, optional
            What the user chose, where that differs.

        Raises
        ------
        SingularMatrixError
            If a matching is needed, and no matching of nonzero entries has all columns.
        """
        clock, method = StageTimer(progress), method or matrix.method
        chosen = chooser(backend, matrix.dtype)
        workers.compile_for(chosen(least_flops(matrix.n)), method.name, matrix.dtype)
        ahead = lookahead(backend, matrix.dtype)
        begin = None if ahead is None else ahead.fronts
        outcome = cached_symbolic_phase(matrix, method, choices, chosen, clock, begin)
        analysis = cls(
            symbolic=outcome.symbolic,
            dtype=matrix.dtype,
            ordering=outcome.ordering,
            matching=outcome.matching,
            backend=backend,
            seconds=clock.seconds,
            choices=asked or choices,
            paired=outcome.paired,
            tiny=outcome.tiny,
            fallback=fallback,
        )
        if ahead is not None and chosen(analysis.flops) == "gpu":
            attach_early_setup(analysis, outcome.symbolic, ahead)
        return analysis

    @property
    def n(self) -> int:
        """Order of the matrix."""
        return self.symbolic.n

    @property
    def perm(self) -> np.ndarray:
        """(n,) int32: ``perm[k]`` is the column of A eliminated k-th."""
        return self.symbolic.perm

    @property
    def row_perm(self) -> np.ndarray:
        """(n,) int32: ``row_perm[k]`` is the row of A in the diagonal entry of column ``perm[k]``.

        Before pivoting inside fronts; equal to `perm` unless a matching moved rows.
        """
        return self.symbolic.row_perm

    @property
    def plan(self) -> Plan:
        """Index arrays of the numeric phase."""
        return self.symbolic.plan

    @property
    def kind(self) -> str:
        """``"spd"``, ``"symmetric"``, ``"hermitian"`` or ``"general"``."""
        return self.symbolic.method.kind

    @property
    def method(self) -> str:
        """``"cholesky"``, ``"ldlt"``, ``"ldlh"`` or ``"lu"``."""
        return self.symbolic.method.name

    @property
    def adjoint(self) -> bool | None:
        """Of matrices of which one triangle is stored: whether the other is its adjoint.

        None where the analysis does not tell: it is of a complex general matrix.
        """
        method = self.symbolic.method
        known = method.one_triangle or self.dtype.kind != "c"
        return method.adjoint if known else None

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
        panels = self.symbolic.method.panels
        return panels * lower - (panels - 1) * self.n

    @cached_property
    def flops(self) -> float:
        """Multiplications and additions of one factorization."""
        flops = front_flops(self.plan.start, self.plan.pointer)
        return self.symbolic.method.panels * float(flops.sum())

    @cached_property
    def levels(self) -> int:
        """Fronts on the longest path from a leaf to a root of the assembly tree."""
        return int(depths(self.plan.parent).max(initial=0))

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of a factorization on this machine, in the analyzed scalar type.

        ``factor`` stays, with the matrix; ``contribution`` is the peak of the contribution blocks
        and goes after the factorization, ``index`` is this analysis, ``total`` their sum. On a GPU
        what is needed beyond the factor for contribution blocks stays for the next factorization,
        and ``solve`` is what solves take besides. ``device`` and ``host`` tell where all this is.
        """
        return self.memory_for(self.dtype)

    def memory_for(
        self, dtype: Any, threads: int | None = None, rhs: int = 1, memory: str | float = "auto"
    ) -> dict[str, int]:
        """As `memory`, for a scalar type, a number of threads, and so many right-hand sides.

        Threads are those of a CPU; right-hand sides, of one call of `solve`, count on a GPU.
        ``device`` is all that is taken of a GPU, and ``host`` of the host beside it: panels that
        go there. What they are follows from `memory` as for `frontal.factorize`, and by ``"auto"``
        from what the GPU has left now.

        Raises
        ------
        FactorMemoryError
            With the least limit that would do, if the one that is given would not.
        """
        dtype, memory = np.dtype(dtype), required_memory(memory)
        values = np.promote_types(dtype, self.dtype)
        if resolved(self.backend, self.flops, dtype) == "gpu":
            return memory_on_device(self, self.symbolic, dtype, values, rhs, memory)
        threads = thread_count() if threads is None else threads
        sizes = footprint(self.symbolic, dtype, values, threads)
        refuse_beyond(sizes["total"], memory)
        return sizes | {"device": 0, "host": sizes["total"]}

    def to_networkx(self) -> nx.DiGraph:
        """The assembly tree: an edge from each front to its parent, sizes as node attributes.

        Nodes carry ``pivots`` (k), ``updates`` (m) and ``flops``.
        """
        import networkx as nx  # takes as long as a small system

        tree = nx.DiGraph()
        k, m = self.front_sizes()
        flops = front_flops(self.plan.start, self.plan.pointer)
        tree.add_nodes_from(
            (s, {"pivots": int(k[s]), "updates": int(m[s]), "flops": float(flops[s])})
            for s in range(self.n_fronts)
        )
        tree.add_edges_from((s, int(p)) for s, p in enumerate(self.plan.parent) if p >= 0)
        return tree

    @property
    def engine(self) -> Backend:
        """The backend that factorizes matrices of this pattern, with the indices that it needs."""
        return backend_for(self, self.symbolic, resolved(self.backend, self.flops, self.dtype))

    # --- the same pattern otherwise ----------------------------------------------------------

    def on(self, backend: str) -> Self:
        """The same analysis, with its ordering and its fronts, for a backend."""
        return replace(self, backend=backend)

    def analyzed_for(self, backend: str, matrix: Canonical) -> Self:
        """The analysis of the same pattern with the order and the fronts that suit a backend."""
        method, fallback = self.symbolic.method, self.fallback
        return self.from_matrix(matrix, method, self.choices, backend=backend, fallback=fallback)

    def as_general(self, matrix: Canonical) -> Self:
        """The analysis of the same pattern, in the same order, for LU."""
        choices = SymbolicOptions("given", self.perm)
        return self.from_matrix(matrix, LU, choices, backend=self.backend, asked=self.choices)

    def as_indefinite(self) -> Self:
        """The same analysis, with its order and its fronts, for LDL^T or LDL^H."""
        method = symmetric_method(self.dtype, True)
        return replace(self, symbolic=replace(self.symbolic, method=method))

    def amended(self, symbolic: Symbolic) -> Self:
        """The analysis in which columns are in the fronts that have eliminated them."""
        more = {"first": self.first or self, "amendments": self.amendments + 1}
        return replace(self.with_fronts(symbolic), **more)

    def with_fronts(self, symbolic: Symbolic) -> Self:
        """The same pattern with other fronts."""
        return replace(self, symbolic=symbolic)

    def for_new_values(self) -> Self:
        """What to begin with for other values: amendments do not pile up for ever."""
        return self if self.amendments <= _MAX_AMENDMENTS or self.first is None else self.first

    def all_paired(self, matrix: Canonical) -> Self:
        """The analysis of the same pattern with all pairs tied, where the order gave no pivots."""
        log.info("no sound pivots in this order: each tiny diagonal entry gets a partner")
        method = self.symbolic.method
        more = {"backend": self.backend, "fallback": self.fallback}
        return self.from_matrix(matrix, method, SymbolicOptions(pairs="all"), **more)

    def unpaired(self, matrix: Canonical) -> Self:
        """The analysis of the same pattern with rows moved, where pairs were not enough."""
        log.info("pairs of columns give no sound pivots: moving rows instead")
        return self.from_matrix(matrix, LU, SymbolicOptions(pairs="none"), backend=self.backend)

    def snapshot(self, matrix: Canonical) -> Canonical:
        """A matrix of this pattern with values of its own: the user may go on to change A."""
        symbolic = self.symbolic
        if matrix.owned:
            return matrix
        try:
            data = copied(matrix.data)
        except MemoryError as error:
            raise FactorMemoryError.from_error(error) from None
        known = matrix.n, matrix.method, matrix.hermitian
        return Canonical(symbolic.indptr, symbolic.indices, data, *known, owned=True)

    def matching_pattern(self, matrix: Canonical) -> Canonical:
        """`matrix`, if it has the analyzed pattern.

        Raises
        ------
        ValueError
            Otherwise.
        """
        if matrix.n != self.n:
            raise ValueError(f"the matrix is {matrix.shape}, the analysis is for n = {self.n}")
        indptr, indices = self.symbolic.indptr, self.symbolic.indices
        same = matrix.indptr[-1] == indptr[-1] and (
            equal(matrix.indptr, indptr) and equal(matrix.indices, indices)
        )
        if not same:
            raise ValueError(
                f"the pattern differs from the analyzed one ({matrix.indptr[-1]} stored entries "
                f"against {indptr[-1]}); keep explicit zeros in place, or analyze the matrix. If A "
                "stores one triangle alone, say so by triangle='lower' or 'upper'"
            )
        return matrix
