"""Systems of one pattern: factorized and solved together by an engine, or one by one.

An engine reports for each system whether its factor and its solutions are certain to be accurate.
All other systems are handled by `Factor`, with its fallbacks, warnings and errors; so a system in a
batch gets the same verdict as a single system.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from ..backend.protocol import NumericFactor
from ..cpu.small.one_system import ACCEPTED, NOT_FINITE
from ..errors import (
    FactorInvalidError,
    FrontalError,
    NonFiniteInputError,
    NotPositiveDefiniteError,
    PerformanceWarning,
    warn,
)
from ..factor.analyzed import Analyzed
from ..factor.diagnosis import Diagnosis
from ..factor.factor import Factor
from ..factor.solve import FactorSolver
from ..factor.state import FactorState
from ..matrix.canonical import Canonical
from ..matrix.symmetry import is_hermitian
from ..matrix.value_map import ValueMap
from .input import AnyArray, module_of, on_host
from .substitute import Report

_FAILURES = (FrontalError, np.linalg.LinAlgError, ValueError, ArithmeticError)


class Answer(NamedTuple):
    """Solutions of the systems that an engine has factorized.

    Attributes
    ----------
    X : (batch, k, n) array
        All systems; NaN for systems without a factor.
    unsure : int64 array
        Systems whose solutions must be checked by `Factor`.
    report : callable
        Returns the `Report` of all systems; downloads it on demand.
    """

    X: AnyArray
    unsure: np.ndarray
    report: Callable[[], Report]


class Engine(Protocol):
    """Factorization and solution of all systems of one pattern together.

    Attributes
    ----------
    values : (batch, nnz) array
        By columns, in the memory that the engine reads.
    on_device : bool
        Whether arrays of CuPy are used without a copy to the host.
    """

    values: AnyArray
    on_device: bool

    def renew(self, systems: np.ndarray, values: AnyArray) -> None:
        """Copy new values of these systems into the engine's memory."""
        ...

    def factorize(self, systems: np.ndarray) -> np.ndarray:
        """Factorize these systems and return the outcome of each; see `BatchArrays`."""
        ...

    def solve(self, trans: str, B: AnyArray, systems: np.ndarray) -> Answer:
        """Return solutions (batch, k, n) of these systems, for B (batch or 1, k, n)."""
        ...

    def slogdet(self, systems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return signs and logarithms of the determinants of these systems; Cholesky or LU."""
        ...

    def numeric(self, i: int) -> NumericFactor:
        """Return the factor of one system, in the same memory if on the host."""
        ...


class Systems:
    """Factorized matrices of one pattern.

    Parameters
    ----------
    analysis : Analyzed
    values : (batch, nnz) array
        By columns; not copied.
    make : callable
        Returns an engine for the analysis and the values.

    Attributes
    ----------
    accepted : (batch,) bool array
        Systems that the engine solves.
    singles : dict
        Factors of the systems that were factorized one by one.
    failures : dict
        Errors of the systems without a factor.
    all_systems : int64 array
        Indices of all systems.
    """

    def __init__(
        self,
        analysis: Analyzed,
        values: AnyArray,
        make: Callable[[Analyzed, AnyArray], Engine],
    ) -> None:
        self.analysis, self._cpu_analysis = analysis, analysis.on("cpu")
        self.singles: dict[int, Factor] = {}
        self.failures: dict[int, Exception] = {}
        self.accepted = np.zeros(values.shape[0], np.bool_)
        self._engine = make(analysis, values)
        self.on_device, self.all_systems = self._engine.on_device, np.arange(values.shape[0])
        self.factorize(self.all_systems)

    @property
    def values(self) -> AnyArray:
        """(batch, nnz) array: by columns, in the memory that the engine reads."""
        return self._engine.values

    @property
    def count(self) -> int:
        """Number of systems."""
        return self.values.shape[0]

    @property
    def n(self) -> int:
        """Order of the matrices."""
        return self.analysis.n

    def renew(self, systems: np.ndarray, values: AnyArray) -> None:
        """Store new values of these systems; `factorize` must follow."""
        self._mark(systems, accepted=False)
        self._engine.renew(systems, values)

    def factorize(self, systems: np.ndarray) -> None:
        """Factorize these systems with their new values; store failures instead of raising."""
        self._mark(systems, accepted=False)  # an interrupt leaves them without a factor
        self._forget(systems)
        outcome = self._engine.factorize(systems)
        good = outcome == ACCEPTED
        count = 0
        if good.all():
            self._mark(systems, accepted=True)
        else:
            self.accepted[systems[good]] = True
            for i, code in zip(systems[~good].tolist(), outcome[~good].tolist(), strict=True):
                count += self._factorize_single(i, code)
        if count:
            warn(
                f"{count} of {systems.size} systems were factorized individually. Likely causes: "
                "(a) the common order gives them no acceptable pivots, (b) they are not symmetric "
                "as the others. Try: an A with values similar to the batch, or kind='general'",
                PerformanceWarning,
            )

    def _mark(self, systems: np.ndarray, *, accepted: bool) -> None:
        """Set `accepted` of these systems."""
        if systems.size == self.count:
            self.accepted[:] = accepted
        else:
            self.accepted[systems] = accepted

    def _forget(self, systems: np.ndarray) -> None:
        """Delete individual factors and failures of these systems."""
        if not (self.singles or self.failures):
            return
        member = np.zeros(self.count, np.bool_)
        member[systems] = True
        for known in (self.singles, self.failures):
            for i in [i for i in known if member[i]]:
                del known[i]

    def _factorize_single(self, i: int, outcome: int) -> bool:
        """Factorize one system by `Factor`; return whether it has a factor."""
        try:
            if outcome == NOT_FINITE:
                self.matrix(i).refuse_non_finite()
            if outcome > 0 and not self.analysis.fallback:
                raise NotPositiveDefiniteError(int(self.analysis.perm[outcome - 1]))
            self.singles[i] = Factor.from_matrix(self.matrix(i), self._cpu_analysis, renewed=True)
        except _FAILURES as error:
            self.failures[i] = error
            return False
        return True

    def matrix(self, i: int) -> Canonical:
        """Return matrix i."""
        symbolic, values = self.analysis.symbolic, on_host(self.values[i])
        return symbolic.with_values(values, is_hermitian(symbolic.indptr, symbolic.indices, values))

    def solve(
        self, trans: str, B: AnyArray, refuse: Callable[[], None]
    ) -> tuple[AnyArray, Callable[[], Report], dict[int, Exception]]:
        """Solve all systems that have factors.

        Parameters
        ----------
        trans : {"N", "T", "H"}
        B : (batch, k, n) or (1, k, n) array
        refuse : callable
            Raises if B contains NaN or infinity; called if a solution is not accepted.

        Returns
        -------
        X : (batch, k, n) array
            NaN for systems without a factor or a solution.
        report : callable
            Returns the `Report` of all systems.
        failures : dict
            Errors of systems that have a factor and no solution.
        """
        accepted = self.all_systems if self.accepted.all() else np.flatnonzero(self.accepted)
        X, unsure, report = self._engine.solve(trans, B, accepted)
        if not unsure.size and accepted.size == self.count:
            return X, report, {}
        refuse()
        details = report()
        failures = self._solve_single(trans, B, X, unsure.tolist(), details)
        return X, lambda: details, failures

    def _solve_single(
        self, trans: str, B: AnyArray, X: AnyArray, unsure: list[int], report: Report
    ) -> dict[int, Exception]:
        """Solve systems one by one; write solutions to X and results to `report`."""
        failures: dict[int, Exception] = {}
        for i in [*unsure, *self.singles]:
            b = on_host(B[i if B.shape[0] > 1 else 0])
            try:
                x, info = self.factor(i).solve(b.T, trans, return_info=True)
            except _FAILURES as error:
                X[i], failures[i] = np.nan, error
                continue
            X[i] = module_of(X, True).asarray(x.T)
            report.error[i] = info.backward_error
            report.steps[i], report.condition[i] = info.refinement_steps, info.condition or np.nan
        if unsure:
            warn(
                f"{len(unsure)} of {self.count} systems needed refinement checks and were solved "
                "individually",
                PerformanceWarning,
            )
        return failures

    def factor(self, i: int, order: ValueMap | None = None) -> Factor:
        """Return the factor of one system, which shares the memory of the batch.

        Its values are in this order, by default by columns.
        """
        if i in self.failures:
            raise self.failures[i]
        if i in self.singles:
            return Factor(self.singles[i]._numbers, order)
        if not self.accepted[i]:
            raise FactorInvalidError
        solver = FactorSolver(Diagnosis(self._engine.numeric(i)))
        solver.examine()
        return Factor(FactorState(self.analysis, solver), order)

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Return signs (or phases) and log-moduli of the determinants; NaN without a factor."""
        method, rest = self.analysis.symbolic.method, list(self.singles)
        together = not method.indefinite
        sign, value = np.full(self.count, np.nan, self.values.dtype), np.full(self.count, np.nan)
        if together:
            accepted = np.flatnonzero(self.accepted)
            sign[accepted], value[accepted] = self._engine.slogdet(accepted)
        else:
            rest += np.flatnonzero(self.accepted).tolist()
        for i in rest:
            sign[i], value[i] = self.factor(i).slogdet()
        return sign, value

    def status(self) -> np.ndarray:
        """(batch,) int32: 0, 1 + the first column without a pivot, or -1 if unknown."""
        codes = np.where(self.accepted, 0, -1).astype(np.int32)
        codes[list(self.singles)] = 0
        for i, error in self.failures.items():
            codes[i] = 1 + column_of(error)
        return codes


def column_of(error: Exception) -> int:
    """Return the column that an error names; -2 if none."""
    if isinstance(error, NonFiniteInputError):
        return error.index[1]
    column = getattr(error, "column", None)
    return -2 if column is None else int(column)
