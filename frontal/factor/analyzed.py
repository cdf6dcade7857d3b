"""Analysis of a pattern: its symbolic phase, its costs, variants for other methods."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike

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
from ..ordering.etree import depths, inverse
from ..symbolic.disk_cache import cached_symbolic_phase
from ..symbolic.matching import Matching
from ..symbolic.phase import (
    PhaseOptions,
    Symbolic,
    SymbolicOptions,
    frontal_phase,
)
from ..symbolic.plan import Plan, front_flops
from ..symbolic.preprocess import Preprocessing
from ..symbolic.stage_timer import Progress, StageTimer
from .schur_index import host_backend

if TYPE_CHECKING:
    import networkx as nx
    from typing_extensions import Self

log = logging.getLogger("frontal")

_MAX_AMENDMENTS = 3  # numeric phases with delayed columns; after more, the first plan is used


@dataclass(frozen=True, eq=False)
class Analyzed(Versioned):
    """The data of an `Analysis`, which adds what needs a `Factor` or a file.

    Factors and their fallbacks import this class, and `Analysis` imports `Factor`.

    Attributes
    ----------
    dtype, ordering, matching, backend, seconds, paired
        See `Analysis`.
    symbolic : Symbolic
        Input of the backends: permutations, method and plan.
    choices : SymbolicOptions
        Options that the user requested.
    tiny : int
        Number of columns with tiny diagonal entries, if the pattern is symmetric and no rows moved.
    fallback : bool
        Fall back to LDL^T or LDL^H if the matrix is not positive definite, and to LU if new values
        are not symmetric.
    first : Analyzed or None
        The original analysis, if numeric phases have delayed columns since.
    amendments : int
        Number of numeric phases that have delayed columns.
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
            By default that of the matrix.
        choices : SymbolicOptions
        backend : str
        fallback : bool
            Fall back to LDL^T or LDL^H if Cholesky finds that the matrix is not positive definite.
        progress : callable, optional
        asked : SymbolicOptions, optional
            Options that the user requested, if they differ from `choices`.

        Raises
        ------
        SingularMatrixError
            If a matching is needed, and no matching of nonzero entries covers all columns.
        """
        clock, method = StageTimer(progress), method or matrix.method
        chosen = chooser(backend, matrix.dtype)
        workers.compile_for(chosen(least_flops(matrix.n)), method.name, matrix.dtype)
        ahead = lookahead(backend, matrix.dtype)
        begin = None if ahead is None else ahead.fronts
        outcome = cached_symbolic_phase(matrix, method, choices, chosen, clock, begin)
        analysis = cls(
            **outcome._asdict(),
            dtype=matrix.dtype,
            backend=backend,
            seconds=clock.seconds,
            choices=asked or choices,
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

        Pivoting inside fronts is not included; equal to `perm` unless a matching moved rows.
        """
        return self.symbolic.row_perm

    @property
    def plan(self) -> Plan:
        """Index arrays of the numeric phase; without fronts if `by_columns`."""
        return self.symbolic.plan

    @property
    def by_columns(self) -> bool:
        """Whether the matrix is so thin that LU works by columns, without fronts."""
        return self.symbolic.columns is not None

    @cached_property
    def frontal(self) -> Self:
        """The analysis with fronts: this one, unless it is by columns."""
        if not self.by_columns:
            return self
        symbolic, matched = self.symbolic, Preprocessing(None, np.arange(self.n, dtype=np.int32))
        if self.matching is not None:
            matched = Preprocessing(self.matching, inverse(self.matching.rows))
        clock, method = StageTimer(None), symbolic.method
        machine = chooser(self.backend, self.dtype)
        options = PhaseOptions(method, self.choices, machine, clock)
        pattern = symbolic.with_values(np.empty(0, self.dtype))
        outcome = frontal_phase(pattern, matched, options)
        seconds = {**self.seconds, "fronts": sum(clock.seconds.values())}
        return replace(self, **outcome._asdict(), seconds=seconds)

    @property
    def kind(self) -> str:
        """``"spd"``, ``"quasidefinite"``, ``"symmetric"``, ``"hermitian"`` or ``"general"``."""
        return self.symbolic.method.kind

    @property
    def method(self) -> str:
        """``"cholesky"``, ``"signed_ldlh"``, ``"ldlt"``, ``"ldlh"`` or ``"lu"``."""
        return self.symbolic.method.name

    @property
    def adjoint(self) -> bool | None:
        """Return whether the missing triangle in half storage is the adjoint of the stored one.

        None for the analysis of a complex general matrix, which does not decide this.
        """
        method = self.symbolic.method
        known = method.one_triangle or self.dtype.kind != "c"
        return method.adjoint if known else None

    @property
    def n_fronts(self) -> int:
        """Number of fronts; 0 if `by_columns`."""
        return self.plan.parent.size

    def front_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return pivot columns k and update rows m of every front, in elimination order."""
        return np.diff(self.plan.start), np.diff(self.plan.pointer)

    @property
    def nnz_factor(self) -> int:
        """Entries of L, or of L and U with one diagonal, including zeros from amalgamation.

        If `by_columns`, those of the symmetric pattern, which interchanges may change.
        """
        if self.symbolic.columns is not None:
            return self.symbolic.columns.entries
        k, m = (x.astype(np.int64) for x in self.front_sizes())
        lower = int((k * (k + 1) // 2 + k * m).sum())
        panels = self.symbolic.method.panels
        return panels * lower - (panels - 1) * self.n

    @cached_property
    def flops(self) -> float:
        """Multiplications and additions of one factorization."""
        if self.symbolic.columns is not None:
            return self.symbolic.columns.flops
        flops = front_flops(self.plan.start, self.plan.pointer)
        return self.symbolic.method.panels * float(flops.sum())

    @cached_property
    def levels(self) -> int:
        """Number of fronts on the longest path from a leaf to a root of the assembly tree."""
        return int(depths(self.plan.parent).max(initial=0))

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of a factorization on this machine, in the analyzed scalar type.

        ``factor`` includes the matrix. ``contribution`` is the peak of the contribution blocks,
        released after the factorization, except on a GPU, which reserves it for the next one.
        ``index`` is this analysis, ``total`` the sum. ``solve`` is the workspace of solves on a
        GPU. ``device`` and ``host`` are the bytes in each memory.
        """
        return self.memory_for(self.dtype)

    def memory_for(
        self,
        dtype: DTypeLike,
        threads: int | None = None,
        rhs: int = 1,
        memory: str | float = "auto",
    ) -> dict[str, int]:
        """Return `memory` for a scalar type, a number of threads and `rhs` right-hand sides.

        `threads` matters on a CPU only; `rhs`, of one call of `solve`, on a GPU only. ``device``
        is all memory of the GPU, ``host`` that of panels streamed to the host. `memory` is as for
        `frontal.factorize`: ``"auto"`` depends on the memory that is free on the GPU now.

        Raises
        ------
        FactorMemoryError
            If a factor does not fit into `memory`; with the least sufficient limit.
        """
        dtype, memory = np.dtype(dtype), required_memory(memory)
        values = np.promote_types(dtype, self.dtype)
        if resolved(self.backend, self.flops, dtype) == "gpu":
            frontal = self.frontal
            return memory_on_device(frontal, frontal.symbolic, dtype, values, rhs, memory)
        threads = thread_count() if threads is None else threads
        sizes = footprint(self.symbolic, dtype, values, threads)
        refuse_beyond(sizes["total"], memory)
        return sizes | {"device": 0, "host": sizes["total"]}

    def to_networkx(self) -> nx.DiGraph:
        """Return the assembly tree: edges from fronts to their parents, sizes as node attributes.

        Nodes carry ``pivots`` (k), ``updates`` (m) and ``flops``.
        """
        import networkx as nx  # the import takes as long as a small system

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
        """The backend that factorizes matrices of this pattern, with its indices."""
        name = resolved(self.backend, self.flops, self.dtype)
        if name == "gpu" and self.by_columns:
            return self.frontal.engine
        return backend_for(self, self.symbolic, name)

    # --- variants of the analysis ------------------------------------------------------------

    def on(self, backend: str) -> Self:
        """Return the same analysis, with its ordering and its fronts, for a backend.

        For a GPU an analysis by columns is replaced by one with fronts.
        """
        backend = backend if self.symbolic.schur is None else host_backend(backend)
        return replace(self.frontal if backend == "gpu" else self, backend=backend)

    def analyzed_for(self, backend: str, matrix: Canonical) -> Self:
        """Return a new analysis of the matrix with ordering and fronts chosen for a backend."""
        method, fallback = self.symbolic.method, self.fallback
        return self.from_matrix(matrix, method, self.choices, backend=backend, fallback=fallback)

    def as_general(self, matrix: Canonical) -> Self:
        """Return the analysis of the same pattern, in the same order, for LU."""
        choices = self.choices.lasting._replace(ordering="given", perm=self.perm)
        return self.from_matrix(matrix, LU, choices, backend=self.backend, asked=self.choices)

    def as_indefinite(self) -> Self:
        """Return the same analysis, with its ordering and its fronts, for LDL^T or LDL^H."""
        method = symmetric_method(self.dtype, True)
        return replace(self, symbolic=replace(self.symbolic, method=method))

    def amended(self, symbolic: Symbolic) -> Self:
        """Return the analysis with delayed columns in the fronts that have eliminated them."""
        more = {"first": self.first or self, "amendments": self.amendments + 1}
        return replace(self.with_fronts(symbolic), **more)

    def with_fronts(self, symbolic: Symbolic) -> Self:
        """Return the same analysis with another symbolic phase."""
        return replace(self, symbolic=symbolic)

    def for_new_values(self) -> Self:
        """Return the analysis for other values: the first one after too many amendments."""
        return self if self.amendments <= _MAX_AMENDMENTS or self.first is None else self.first

    def all_paired(self, matrix: Canonical) -> Self:
        """Return an analysis that pairs all tiny diagonal entries, if this one gave no pivots."""
        log.info("no acceptable pivots in this order: pairing each tiny diagonal entry")
        method = self.symbolic.method
        more = {"backend": self.backend, "fallback": self.fallback}
        choices = self.choices.lasting._replace(pairs="all")
        return self.from_matrix(matrix, method, choices, **more)

    def unpaired(self, matrix: Canonical) -> Self:
        """Return an analysis for LU with rows moved, after pairs gave no pivots."""
        log.info("no acceptable pivots with pairs of columns: permuting rows instead")
        choices = self.choices.lasting._replace(pairs="none")
        return self.from_matrix(matrix, LU, choices, backend=self.backend)

    def snapshot(self, matrix: Canonical) -> Canonical:
        """Return the matrix with values that the user cannot change: a copy unless `owned`."""
        symbolic = self.symbolic
        if matrix.owned:
            return matrix
        try:
            data = copied(matrix.data)
        except MemoryError as error:
            raise FactorMemoryError.from_error(error) from None
        return Canonical(
            symbolic.indptr,
            symbolic.indices,
            data,
            matrix.n,
            matrix.method,
            matrix.hermitian,
            owned=True,
        )

    def matching_pattern(self, matrix: Canonical) -> Canonical:
        """Return `matrix` if it has the analyzed pattern.

        Raises
        ------
        ValueError
            If order or pattern differ.
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
                f"instead of {indptr[-1]}). Likely causes: (a) explicit zeros were removed, (b) A "
                "stores only one triangle. Try: keep explicit zeros, analyze the matrix again, or "
                "pass triangle='lower' or 'upper' if A stores one triangle"
            )
        return matrix
