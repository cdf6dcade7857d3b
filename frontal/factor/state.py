"""State of a factor from its computation to its release, also after a failure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from ..backend.memory_limit import Memory
from ..backend.protocol import NumericFactor, Progress
from ..errors import FactorFreedError, FactorInvalidError
from ..matrix.canonical import Canonical
from .analyzed import Analyzed
from .attempt import Attempt, DeviceValues, wanted_scaling
from .diagnosis import Diagnosis, require_singular
from .fallbacks import factorize
from .mixed import ImpreciseError, require_precision
from .part_solver import PartSolver
from .solve import FactorSolver

log = logging.getLogger("frontal")

T = TypeVar("T")


class PreparedSolver(Protocol):
    """Solves of a special kind, with what they prepare once for a factor."""

    solver: FactorSolver

    def __init__(self, solver: FactorSolver) -> None: ...


P = TypeVar("P", bound=PreparedSolver)


class Missing(Enum):
    """The reason why there is no factor now; its value is `FactorInvalidError.state`."""

    FAILED = "failed"
    RUNNING = "running"
    FREED = "freed"

    @property
    def error(self) -> Exception:
        """The error for a use of the factor."""
        return FactorFreedError() if self is Missing.FREED else FactorInvalidError(self.value)


_NAMES = {
    Missing.FAILED: "invalid",
    Missing.RUNNING: "being refactorized",
    Missing.FREED: "freed",
}


class RestoredFactor(Exception):  # noqa: N818 - carries an error for the user
    """A factor that replaces one lost by a failed change, and the error of that change."""

    def __init__(self, solver: FactorSolver, error: Exception) -> None:
        super().__init__()
        self.solver, self.error = solver, error


class LastSuccess(NamedTuple):
    """Results of the last successful factorization, reused by the next."""

    analysis: Analyzed
    solver: FactorSolver


class FactorState:
    """A factorized matrix, or the reason why its factor was lost.

    Attributes
    ----------
    analysis : Analyzed
        Analysis with the method and the backend that factorized.
    seconds : float
        Time of the factorization.
    dtype : numpy.dtype
        Scalar type of the factors.
    singular : {"raise", "warn", "allow"}
        Response to a singular matrix.
    precision : {"full", "mixed"}
        As requested; "mixed" may have been replaced by double precision.
    memory : str or int
        See `frontal.factorize`; "auto" for a factor that was moved to the CPU.
    version : int
        Number of times that `renew` was called or `revise` succeeded.
    """

    def __init__(
        self,
        analysis: Analyzed,
        solver: FactorSolver | None = None,
        *,
        singular: str = "raise",
        precision: str = "full",
        memory: Memory = "auto",
        seconds: float = 0.0,
    ) -> None:
        require_precision(precision)
        require_singular(singular)
        self.analysis, self.singular = analysis, singular
        self.precision, self.memory = precision, memory
        self.seconds, self.version = seconds, 0
        self.dtype = analysis.dtype if solver is None else solver.dtype
        # one attribute, replaced atomically: another thread may refactorize
        self._solver: FactorSolver | Missing = Missing.FAILED if solver is None else solver
        self._last: LastSuccess | None = None  # only while a factor is missing
        # the solver of LU by columns, and the same matrix by fronts, on demand
        self._frontal: tuple[FactorSolver, FactorState] | None = None
        self._prepared: dict[type, PreparedSolver] = {}  # of solvers that they name, on demand

    @property
    def solver(self) -> FactorSolver:
        """The solver of the factor.

        Raises
        ------
        FactorFreedError, FactorInvalidError
            If there is no factor.
        """
        solver = self._solver
        if isinstance(solver, Missing):
            raise solver.error
        return solver

    @property
    def factor(self) -> NumericFactor:
        """The factor; raises as `solver`."""
        return self.solver.factor

    @property
    def state(self) -> str:
        """``"freed"``, ``"invalid"``, ``"being refactorized"``, or ``""`` for a valid factor."""
        solver = self._solver
        return _NAMES[solver] if isinstance(solver, Missing) else ""

    def about(self) -> dict[str, Any]:
        """Return backend, method, ordering, cost and health of the factorization."""
        analysis, factor, null = self.analysis, self.factor, self.solver.verdict.null_space
        return {
            "backend": factor.backend,
            "device": factor.device,
            "method": analysis.method,
            "ordering": analysis.ordering.method,
            "dtype": str(self.dtype),
            "perturbed_pivots": factor.perturbed,
            "null_pivots": 0 if null is None else null.columns.size,
            "growth": self.solver.growth,
            "nnz_factor": analysis.nnz_factor,
            "flops": analysis.flops,
            "memory": factor.memory,
            "seconds": {**analysis.seconds, "factorization": self.seconds},
        }

    def last(self) -> LastSuccess:
        """Return the last success, whose memory can be reused; raise `FactorFreedError`."""
        return self._last or LastSuccess(self.analysis, self.solver)

    def renew(
        self, matrix: Canonical | DeviceValues, check_finite: bool, last: LastSuccess
    ) -> None:
        """Factorize new values in the memory of `last`; after a failure there is no factor."""
        solver, self._last = last.solver, last
        self.version += 1
        try:
            self._solver = Missing.RUNNING  # also for any interrupt from here on
            if isinstance(matrix, DeviceValues):
                solver.factor.begin(matrix.array, wanted_scaling(last.analysis))
            self.analysis = last.analysis.for_new_values()
            looked_at = not (check_finite and isinstance(matrix, Canonical))
            self.factorize(
                matrix,
                mixed=solver.mixed,
                before=solver.verdict,
                previous=solver.factor,
                looked_at=looked_at,
                renewed=True,
            )
        except BaseException:
            self._solver, self.analysis = Missing.FAILED, last.analysis
            raise
        self._last = None

    def revise(self, change: Callable[[FactorSolver], FactorSolver]) -> None:
        """Replace the solver by `change` of it, which may overwrite its factor.

        After an error the factor is as before, after an interrupt there is no factor. A
        `RestoredFactor` replaces a factor that `change` has lost.
        """
        solver = self.solver
        self._last = LastSuccess(self.analysis, solver)
        try:
            self._solver = Missing.RUNNING
            revised = change(solver)
        except RestoredFactor as restored:
            self._solver, self._last = restored.solver, None
            raise restored.error from None
        except Exception:
            self._solver, self._last = solver, None
            raise
        except BaseException:
            self._solver = Missing.FAILED
            raise
        self._solver, self._last = revised, None
        self.version += 1

    def factorize(
        self,
        matrix: Canonical | DeviceValues,
        *,
        mixed: bool = False,
        before: Diagnosis | None = None,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
        looked_at: bool = True,
        renewed: bool = False,
    ) -> None:
        """Factorize by `analysis`, or by one of its fallbacks; see `fallbacks.factorize`.

        If `mixed`, a factor in single precision is tried first. `renewed` means that the analysis
        may be of other values.
        """
        began, self._frontal, self._prepared = time.perf_counter(), None, {}
        attempt = partial(
            Attempt, matrix, self.analysis, self.singular, self.memory, renewed=renewed
        )
        run = partial(factorize, progress=progress, looked_at=looked_at)
        try:
            outcome = run(attempt(mixed=mixed), before=before, previous=previous)
        except ImpreciseError as reason:
            log.info("%s in single precision: refactorizing in double", reason)
            outcome = None
        if outcome is None:  # the failed factor is released
            outcome = run(attempt())
        self.analysis, self._solver = outcome
        self.dtype = outcome[1].dtype
        self.seconds = time.perf_counter() - began

    def answer(self, question: Callable[[FactorSolver], T], certain: bool = False) -> T:
        """Evaluate a query; refactorize in double if the factor in single is not accurate enough.

        Parameters
        ----------
        question : callable
        certain : bool
            The query needs a factor in double precision.
        """
        solver = self.solver
        if not (certain and solver.mixed):
            try:
                return question(solver)
            except ImpreciseError as reason:
                log.info("%s in single precision: refactorizing in double", reason)
        self.factorize(solver.factor.matrix)
        return question(self.solver)

    def answer_by_fronts(self, question: Callable[[FactorSolver], T]) -> T:
        """Evaluate a query that needs fronts and the matrix's precision; see `answer`.

        A matrix that was factorized by columns is factorized by fronts once, until new values.
        """
        if not self.analysis.by_columns:
            return self.answer(question, certain=True)
        solver, known = self.solver, self._frontal
        if known is None or known[0] is not solver:  # another thread may have refactorized
            frontal = FactorState(self.analysis.frontal, singular=self.singular, memory=self.memory)
            frontal.factorize(solver.factor.matrix, renewed=True)
            known = self._frontal = solver, frontal
        return known[1].answer(question, certain=True)

    def answer_by(self, kind: type[P], question: Callable[[P], T]) -> T:
        """Evaluate a query that solves by a `PreparedSolver`; see `answer`.

        It is prepared once, until new values.
        """

        def asked(solver: FactorSolver) -> T:
            known = self._prepared.get(kind)
            if not isinstance(known, kind) or known.solver is not solver:
                known = kind(solver)  # another thread may have refactorized
                self._prepared[kind] = known
            return question(known)

        return self.answer(asked, certain=True)

    def answer_by_parts(self, question: Callable[[PartSolver], T]) -> T:
        """Evaluate a query that solves with parts of the factors; see `answer_by`."""
        return self.answer_by(PartSolver, question)

    def free(self) -> None:
        """Release the memory; later use is an error."""
        self._frontal, self._prepared = None, {}
        if self._solver is not Missing.FREED:
            self.last().solver.factor.free()
        self._solver, self._last = Missing.FREED, None

    def copy(self) -> FactorState:
        """Return an independent factor on the same device."""
        return self._twin(self.analysis, self.factor.copy(), self.memory)

    def on_cpu(self, analysis: Analyzed) -> FactorState:
        """Return an independent factor on the CPU.

        Parameters
        ----------
        analysis : Analyzed
            Analysis of the new factor, with the same plan.
        """
        factor = self.factor
        if factor.backend == "cpu":
            return self._twin(analysis, factor.copy(), self.memory)
        host = self.analysis.on("cpu").engine.from_host(
            factor.to_host(), factor.matrix, factor.scaling
        )
        return self._twin(analysis, host, "auto")  # a limit applied to the device

    def _twin(self, analysis: Analyzed, factor: NumericFactor, memory: Memory) -> FactorState:
        twin = FactorState(
            analysis,
            FactorSolver(self.solver.verdict.copy(factor)),
            singular=self.singular,
            precision=self.precision,
            memory=memory,
            seconds=self.seconds,
        )
        twin.version = self.version
        return twin

    def __getstate__(self) -> dict[str, object]:
        """Return the state for a pickle, on the host."""
        on_device = self.factor.backend != "cpu"
        state = self.on_cpu(self.analysis) if on_device else self
        return {**vars(state), "_frontal": None, "_prepared": {}}
