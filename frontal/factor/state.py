"""State of a factor from its computation to its release, also after a failure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ..backend.memory_limit import Memory
from ..backend.protocol import NumericFactor, Progress
from ..errors import FactorFreedError, FactorInvalidError
from ..matrix.canonical import Canonical
from .analyzed import Analyzed
from .diagnosis import Diagnosis
from .mixed import ImpreciseError, require_precision
from .policy import DeviceValues, factorize, wanted_scaling
from .solve import FactorSolver

log = logging.getLogger("frontal")

T = TypeVar("T")


class LastSuccess(NamedTuple):
    """Results of the last successful factorization, reused by the next."""

    analysis: Analyzed
    factor: NumericFactor
    verdict: Diagnosis


class FactorState:
    """A factorized matrix, or the error to raise if its factor was lost or freed.

    Attributes
    ----------
    analysis : Analyzed
        Analysis with the method and the backend that factorized.
    seconds : float
        Time of the factorization.
    dtype : numpy.dtype
        Scalar type of the factors.
    precision : {"full", "mixed"}
        As requested; "mixed" may have been replaced by double precision.
    memory : str or int
        See `frontal.factorize`; "auto" for a factor that was moved to the CPU.
    """

    def __init__(
        self,
        analysis: Analyzed,
        solver: FactorSolver | None = None,
        singular: str = "raise",
        precision: str = "full",
        memory: Memory = "auto",
    ) -> None:
        require_precision(precision)
        self.memory: Memory = memory
        self.precision, self._single = precision, precision == "mixed"
        self.analysis, self.seconds = analysis, 0.0
        self.dtype = analysis.dtype if solver is None else solver.dtype
        self._solver, self._new = solver, Diagnosis(singular)
        self._last: LastSuccess | None = None  # only while there is no factor
        self._missing = "failed"  # or "running", "freed": the reason if `_solver` is None

    @property
    def solver(self) -> FactorSolver:
        """The solver of the factor.

        Raises
        ------
        FactorFreedError, FactorInvalidError
            If there is no factor.
        """
        solver = self._solver  # read once: another thread may refactorize
        if solver is None:
            freed = self._missing == "freed"
            raise FactorFreedError if freed else FactorInvalidError(self._missing)
        return solver

    @property
    def factor(self) -> NumericFactor:
        """The factor; raises as `solver`."""
        return self.solver.factor

    @property
    def state(self) -> str:
        """``"freed"``, ``"invalid"``, ``"being refactorized"``, or ``""`` for a valid factor."""
        states = {"failed": "invalid", "running": "being refactorized"}
        return "" if self._solver is not None else states.get(self._missing, self._missing)

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
        return self._last or LastSuccess(self.analysis, self.factor, self.solver.verdict)

    def renew(
        self, matrix: Canonical | DeviceValues, check_finite: bool, last: LastSuccess
    ) -> None:
        """Factorize new values in the memory of `last`; after a failure there is no factor."""
        self._last = last
        try:
            self._missing = "running"  # also after a success: a late reader sees no failure
            self._solver = None  # also for any interrupt from here on
            if isinstance(matrix, DeviceValues):
                last.factor.begin(matrix.array, wanted_scaling(last.analysis))
            self.analysis = last.analysis.for_new_values()
            looked_at = not (check_finite and isinstance(matrix, Canonical))
            self.factorize(matrix, None, last.factor, last.verdict, looked_at, renewed=True)
        except BaseException:
            self._solver, self.analysis, self._missing = None, last.analysis, "failed"
            raise
        self._last = None

    def factorize(
        self,
        matrix: Canonical | DeviceValues,
        progress: Progress | None = None,
        previous: NumericFactor | None = None,
        before: Diagnosis | None = None,
        looked_at: bool = True,
        renewed: bool = False,
    ) -> None:
        """Factorize by `analysis`, or by one of its fallbacks.

        Values that were not `looked_at` are checked to be finite. `renewed` means that the analysis
        may be of other values.
        """
        began, before = time.perf_counter(), before or self._new
        if self._single:
            try:
                options = {"memory": self.memory, "mixed": True, "looked_at": looked_at}
                self._take(
                    factorize(matrix, self.analysis, progress, previous, before, **options), began
                )
                return
            except ImpreciseError as reason:
                log.info("%s in single precision: refactorizing in double", reason)
            previous, before = None, Diagnosis(before.singular)
        options = {"memory": self.memory, "looked_at": looked_at, "renewed": renewed}
        self._take(factorize(matrix, self.analysis, progress, previous, before, **options), began)
        self._single = False

    def _take(self, outcome: tuple[Analyzed, FactorSolver], began: float) -> None:
        self.analysis, self._solver = outcome
        self.dtype = self._solver.dtype
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
        self._to_double(solver)
        return question(self.solver)

    def _to_double(self, solver: FactorSolver) -> None:
        """Factorize the same values in double; if that fails, the factor is unchanged."""
        single, self._single = self._single, False
        try:
            self.factorize(solver.factor.matrix, before=Diagnosis(solver.verdict.singular))
        except BaseException:
            self._single = single
            raise

    def free(self) -> None:
        """Release the memory; later use is an error."""
        if self.state != "freed":
            self.last().factor.free()
        self._solver = self._last = None
        self._missing = "freed"

    def copy(self) -> FactorState:
        """Return an independent factor on the same device."""
        return self._twin(self.analysis, self.factor.copy())

    def on_cpu(self, analysis: Analyzed) -> FactorState:
        """Return an independent factor on the CPU.

        Parameters
        ----------
        analysis : Analyzed
            Analysis of the new factor, with the same plan.
        """
        factor = self.factor
        if factor.backend == "cpu":
            return self._twin(analysis, factor.copy())
        host = self.analysis.on("cpu").engine.from_host(
            factor.to_host(), factor.matrix, factor.scaling
        )
        twin = self._twin(analysis, host)
        twin.memory = "auto"  # a limit applied to the device
        return twin

    def _twin(self, analysis: Analyzed, factor: NumericFactor) -> FactorState:
        twin = FactorState(analysis, FactorSolver(factor, self.solver.verdict.copy()))
        twin.precision, twin._single, twin.seconds = self.precision, self._single, self.seconds
        twin.memory = self.memory
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a pickle, on the host."""
        on_device = self.factor.backend != "cpu"
        numbers = self.on_cpu(self.analysis) if on_device else self
        return dict(numbers.__dict__)
