"""A factor on the CPU: its panels in one array, its matrix, and solutions with both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from ..backend.protocol import Health, HostFactor
from ..matrix.canonical import Canonical
from ..matrix.norms import least
from ..numeric.backoff import Backoff
from ..numeric.linear_system import FastSolution, LinearSystem, Vectors
from ..symbolic.matching import Matching
from ..symbolic.phase import Symbolic
from ..symbolic.relative_pivots import relative_pivots
from ..symbolic.scaling import Scaling
from .finalize import FactorPlan
from .host_factor import HostNumericFactor, largest_part
from .host_system import host_system, matrix_of
from .schur import SchurBlock, SchurSubstitution
from .signs import largest_term
from .small.solve import MAX_SMALL_UNKNOWNS, SmallSolver
from .small.warmup import CallCounter
from .substitution import ScaledPermutation, Substitution
from .sweeps import diagonal_of_panels
from .updates.record import UpdateRecord

_often = CallCounter()


class FactorBuilder(Protocol):
    """Fast factorizer of one pattern, whose `first` solver describes those of later factors.

    `backoff` selects the factors whose solvers are `hopeful`.
    """

    first: SmallSolver | None
    backoff: Backoff

    def is_for(self, symbolic: Symbolic, matching: Matching | None) -> bool:
        """Return whether the factors have this symbolic phase and matching."""
        ...

    def __call__(self, matrix: Canonical, storage: np.ndarray | None) -> CpuFactor | None:
        """Return the factor; None if it needs a warning, a fallback or delayed pivots."""
        ...


class CpuFactor(HostNumericFactor):
    """See `protocol.NumericFactor`; the factors are in the panels of fronts."""

    def __init__(
        self, matrix: Canonical, host: HostFactor, scaling: Scaling | None, place: FactorPlan
    ) -> None:
        self.matrix, self.scaling = matrix, scaling
        self.symbolic, self.panel, self.device = place
        self.panels, self.pivots, self.perturbed, self._coupling, self.nulls = host[:5]
        self.dtype, self.matrix_dtype = self.panels.dtype, matrix.dtype
        self._diagonal: np.ndarray | None = None
        self.known: Health | None = None
        self._systems: dict[tuple[str, np.dtype], LinearSystem] = {}
        self._small_solvers: dict[str, SmallSolver | None] = {}
        self.maker: FactorBuilder | None = None  # if the fast path made this factor
        self.table: np.ndarray | None = None
        # memory of the factorization, stored for reuse by refactorizations
        self.storage: np.ndarray | None = None
        self.arena: np.ndarray | None = None
        self.updates: UpdateRecord | None = None  # since the first update of the panels
        self.schur: SchurBlock | None = None

    def __getstate__(self) -> dict[str, object]:
        none = dict.fromkeys(("arena", "storage", "_diagonal", "maker", "table"))
        return {**self.__dict__, **none, "_systems": {}, "_small_solvers": {}}

    @property
    def memory(self) -> int:
        """Bytes of the factors."""
        return self.panels.nbytes

    def health(self) -> Health:
        """See `NumericFactor`; the values were checked on the host before."""
        if self.known is None:
            args = self.matrix, self.symbolic, self.scaling, self.subdiagonal()
            self.known = Health(least(relative_pivots(self.diagonal(), *args)))
        return self.known

    def growth(self) -> float:
        """See `NumericFactor`."""
        size = self.matrix.norms[0] if self.scaling is None else 1.0
        if self.symbolic.method.signed:
            largest = float(largest_term(self.symbolic.plan, self.panel, self.panels))
        else:
            largest = largest_part(self.panels)
        return largest / size if size else 0.0

    def diagonal(self) -> np.ndarray:
        """See `NumericFactor`."""
        if self._diagonal is None:
            self._diagonal = diagonal_of_panels(self.symbolic.plan, self.panel, self.panels)
        return self._diagonal

    def subdiagonal(self) -> np.ndarray:
        """See `NumericFactor`."""
        return self._coupling

    def to_host(self) -> HostFactor:
        """See `NumericFactor`."""
        return HostFactor(self.panels, self.pivots, self.perturbed, self._coupling, self.nulls)

    def copy(self) -> CpuFactor:
        """See `NumericFactor`."""
        host = self.to_host()._replace(panels=self.panels.copy(), pivots=self.pivots.copy())
        place = FactorPlan(self.symbolic, self.panel, self.device)
        twin = CpuFactor(self.matrix, host, self.scaling, place)
        twin.updates = None if self.updates is None else self.updates.copy()
        twin.schur = self.schur  # never changed
        return twin

    def with_matrix(self, matrix: Canonical) -> CpuFactor:
        """Return the factor of another matrix of the pattern, in these panels.

        The panels have been updated; this factor is invalid then.
        """
        place = FactorPlan(self.symbolic, self.panel, self.device)
        factor = CpuFactor(matrix, self.to_host(), self.scaling, place)
        factor.storage, factor.arena, factor.maker = self.storage, self.arena, self.maker
        factor.updates = self.updates
        return factor

    # --- vectors -----------------------------------------------------------------------------

    def system(self, trans: str, dtype: np.dtype) -> LinearSystem:
        """See `NumericFactor`; the system is cached."""
        trans = self._reduced_trans(trans)
        system = self._systems.get((trans, dtype))
        if system is None:
            system = host_system(self, trans, dtype, self._substitution(trans))
            self._systems[trans, dtype] = system
        return system

    def solve_fast(
        self, b: object, trans: str, how: int, references: Sequence[Vectors | None] = ()
    ) -> FastSolution | None:
        """See `NumericFactor`."""
        solve = self._small_solver(trans) if _often() else None
        if solve is None:
            return None
        failed, solution = solve.failed, solve(b, how)
        if self.maker is not None and solve.failed != failed:
            self.maker.backoff.record_failure()
        return solution

    def expect(self, trans: str) -> None:
        """See `NumericFactor`."""
        solver = self._small_solvers.get(trans)
        if solver is not None:
            solver.hopeful = not solver.failed

    def condition_fast(self, trans: str, how: int) -> tuple[float, bool] | None:
        """See `NumericFactor`."""
        solve = self._small_solver(trans) if _often() else None
        return None if solve is None else solve.condition(how)

    def _small_solver(self, trans: str) -> SmallSolver | None:
        if trans not in self._small_solvers:
            self._small_solvers[trans] = self._new_small_solver(self._reduced_trans(trans))
        return self._small_solvers[trans]

    def _new_small_solver(self, trans: str) -> SmallSolver | None:
        maker = self.maker if trans == "N" else None
        if maker is not None and maker.first is not None and self.table is not None:
            solver = maker.first.with_factor(
                self.table, self.storage, self.pivots, self.matrix, self.scaling
            )
            solver.hopeful = maker.backoff.should_try()
            return solver
        solver = self._described_solver(trans)
        if maker is not None and solver is not None:
            solver.hopeful = maker.backoff.should_try()
            if not self.symbolic.method.indefinite:
                maker.first = solver.without_numbers()
        return solver

    def _described_solver(self, trans: str) -> SmallSolver | None:
        dtype = self.dtype
        if dtype != self.matrix_dtype or not 0 < self.symbolic.n <= MAX_SMALL_UNKNOWNS:
            return None
        indptr, indices, data, flipped, *others = matrix_of(self, trans, dtype)
        if not flipped:  # by rows: the same sums, without waiting for memory
            indptr, indices, place = self.symbolic.by_rows
            data = data[place]
        matrix = indptr, indices, data, True, *others
        return SmallSolver.from_substitution(self._substitution(trans), matrix)

    def _reduced_trans(self, trans: str) -> str:
        """Return ``"N"`` if op(A) is A, for the factor too; else `trans`."""
        return "N" if trans != "N" and self._is_same_matrix(trans) else trans

    def _is_same_matrix(self, trans: str) -> bool:
        """Return whether op(A) is A, for the factor too."""
        method, complex_ = self.symbolic.method, self.panels.dtype.kind == "c"
        if not (method.one_triangle and self.matrix.hermitian):
            return False
        return not complex_ or (method.adjoint and trans == "H")

    def _substitution(self, trans: str) -> Substitution:
        """Return the solver by the factors for the unscaled matrix, without refinement."""
        symbolic, scaling = self.symbolic, self.scaling
        if scaling is None:
            rows, columns = ScaledPermutation(symbolic.row_perm), ScaledPermutation(symbolic.perm)
        else:
            rows = ScaledPermutation(symbolic.row_perm, scaling.row)
            columns = ScaledPermutation(symbolic.perm, scaling.column)
        return Substitution(self.symbolic, self.panel, self._numbers(), trans, rows, columns)

    def _numbers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        diagonal = self.diagonal() if self.symbolic.method.indefinite else self._coupling
        return self.panels, self.pivots, diagonal, self._coupling

    def schur_solver(self) -> SchurSubstitution:
        """Return the substitutions before and after the Schur complement; `schur` is not None."""
        return SchurSubstitution(self._substitution("N"), self.symbolic)

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        identity = ScaledPermutation(np.arange(self.symbolic.n, dtype=np.int32))
        trans = "T" if transposed else "N"
        x[...] = Substitution(
            self.symbolic, self.panel, self._numbers(), trans, identity, identity
        )(x)

    # --- new values --------------------------------------------------------------------------

    def refactorizer(
        self, symbolic: Symbolic, matching: Matching | None
    ) -> Callable[[Canonical], CpuFactor | None] | None:
        """See `NumericFactor`."""
        maker = self.maker
        if maker is None or not maker.is_for(symbolic, matching):
            return None
        return partial(maker, storage=self.storage)
