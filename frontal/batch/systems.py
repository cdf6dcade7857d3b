"""Systems of one pattern: what an engine factorizes together, and what is done one by one.

An engine tells of each system whether its factor and its solutions are sound without a further
look. All others take the ordinary way of `Factor`, which knows what to do, to warn of and to
refuse; so nothing is said more lightly of a system in a batch than of one alone.
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
    """Solutions of systems that an engine has factors of.

    Attributes
    ----------
    X : (batch, k, n) array
        Of all systems; NaN where there was nothing to solve with.
    unsure : int64 array
        Systems whose solutions need a further look.
    report : callable
        What is found of all systems, if somebody asks.
    """

    X: AnyArray
    unsure: np.ndarray
    report: Callable[[], Report]


class Engine(Protocol):
    """What computes with all systems of a pattern at once.

    Attributes
    ----------
    values : (batch, nnz) array
        By columns, where they are read.
    on_device : bool
        Arrays of CuPy stay where they are.
    """

    values: AnyArray
    on_device: bool

    def renew(self, systems: np.ndarray, values: AnyArray) -> None:
        """Copy new values of these systems."""
        ...

    def factorize(self, systems: np.ndarray) -> np.ndarray:
        """Factorize these systems; `FactorState.outcome` of each."""
        ...

    def solve(self, trans: str, B: AnyArray, systems: np.ndarray) -> Answer:
        """Solutions (batch, k, n) of these systems, for B (batch or 1, k, n)."""
        ...

    def slogdet(self, systems: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signs and logarithms of the determinants of these, by Cholesky or LU."""
        ...

    def numeric(self, i: int) -> NumericFactor:
        """The factor of one of them, in the same memory."""
        ...


class Systems:
    """Factorized matrices of one pattern.

    Parameters
    ----------
    analysis : Analyzed
    values : (batch, nnz) array
        By columns; kept.
    make : callable
        An engine for the analysis and the values.

    Attributes
    ----------
    accepted : (batch,) bool array
        Those that the engine solves.
    singles : dict
        Factors of the systems that went the ordinary way.
    failures : dict
        What is raised for those that have none.
    all_systems : int64 array
        All systems.
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
        """(batch, nnz) array: by columns, where the engine reads them."""
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
        """Take new values of these systems, which are to be factorized then."""
        self._mark(systems, accepted=False)
        self._engine.renew(systems, values)

    def factorize(self, systems: np.ndarray) -> None:
        """Factorize these systems, whose values are new; failures are kept, and not raised."""
        self._mark(systems, accepted=False)  # until all is done, whatever interrupts
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
                f"{count} of {systems.size} systems were factorized one by one, since the pivots "
                "of the common order are not sound for them, or they lack the symmetry of the "
                "others. Try: an A whose values are like those of the batch, or kind='general'",
                PerformanceWarning,
            )

    def _mark(self, systems: np.ndarray, *, accepted: bool) -> None:
        """Of these systems, by one value where they are all."""
        if systems.size == self.count:
            self.accepted[:] = accepted
        else:
            self.accepted[systems] = accepted

    def _forget(self, systems: np.ndarray) -> None:
        """What went another way before."""
        if not (self.singles or self.failures):
            return
        member = np.zeros(self.count, np.bool_)
        member[systems] = True
        for known in (self.singles, self.failures):
            for i in [i for i in known if member[i]]:
                del known[i]

    def _factorize_single(self, i: int, outcome: int) -> bool:
        """The ordinary way of one system; returns whether there is a factor."""
        try:
            if outcome == NOT_FINITE:
                self.matrix(i).refuse_non_finite()
            if outcome > 0 and not self.analysis.fallback:
                raise NotPositiveDefiniteError(int(self.analysis.perm[outcome - 1]))
            self.singles[i] = Factor(self.matrix(i), self._cpu_analysis)
        except _FAILURES as error:
            self.failures[i] = error
            return False
        return True

    def matrix(self, i: int) -> Canonical:
        """One of the matrices."""
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
            Raises if B has NaN or infinity: is asked where a solution is not sound.

        Returns
        -------
        X : (batch, k, n) array
            NaN for systems without a factor or a solution.
        report : callable
            What is found, if somebody asks.
        failures : dict
            What is raised for those that have a factor and no solution.
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
        """Put solutions of some systems, and what is found of them, where they belong."""
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
                f"{len(unsure)} of {self.count} systems were solved one by one, to make sure of "
                "their solutions",
                PerformanceWarning,
            )
        return failures

    def factor(self, i: int) -> Factor:
        """The factor of one system, which shares the memory of the batch."""
        if i in self.failures:
            raise self.failures[i]
        if i in self.singles:
            return self.singles[i]
        if not self.accepted[i]:
            raise FactorInvalidError
        solver = FactorSolver(self._engine.numeric(i), Diagnosis())
        solver.examine(Diagnosis())
        factor = object.__new__(Factor)
        state = FactorState(self.analysis, solver)
        factor.__dict__.update(_numbers=state, _order=ValueMap.by_columns(self.values.shape[1]))
        return factor

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Signs (or phases) and logarithms of the moduli of the determinants; NaN without."""
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
        """(batch,) int32: 0, 1 + the first column without a pivot, or -1 if that is not known."""
        codes = np.where(self.accepted, 0, -1).astype(np.int32)
        codes[list(self.singles)] = 0
        for i, error in self.failures.items():
            codes[i] = 1 + column_of(error)
        return codes


def column_of(error: Exception) -> int:
    """The column that an error is about, -2 if it tells none."""
    if isinstance(error, NonFiniteInputError):
        return error.index[1]
    column = getattr(error, "column", None)
    return -2 if column is None else int(column)
