"""Verdicts on a factor and its solutions: evidence of singularity, warnings, errors.

A solution needs no warning if its backward error is accepted and the resulting error in x, by a
condition number, is small. Each factor has its own condition numbers, for all right-hand sides
(`numeric.condition`); none is reused for other values. If that number is not small, the solution's
own condition number is estimated, and decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..backend.protocol import NumericFactor
from ..errors import SingularMatrixError
from ..numeric.acceptance import limits_of
from ..numeric.condition import Condition
from ..numeric.linear_system import BackwardErrors, LinearSystem, Vectors, eps_of
from ..numeric.thresholds import THRESHOLDS
from .condition import ConditionEstimate, hides, solution_condition, sure
from .condition_bounds import WeightedCondition, compare
from .demands import demand_condition, demand_solutions, require_condition
from .factor_condition import factor_condition
from .measured_condition import measured_condition
from .mixed import is_mixed
from .null_proof import NOISE, proved_null_columns
from .nullspace import NullSpace, null_space
from .quasidefinite import refuse_replaced_signs
from .report import smallest_pivot_column, warn_of_condition, warn_of_error, warn_of_rank
from .solution import Solution

SINGULAR = ("raise", "warn", "allow")
_MAX_CONSISTENT_ROUNDINGS = 1000  # largest backward error of a consistent singular system
_MAX_FIXES = 2  # corrections of a solution with fixed null columns


def require_singular(singular: str) -> None:
    """Raise if `singular` is not a valid option.

    Raises
    ------
    ValueError
    """
    if singular not in SINGULAR:
        raise ValueError(f"singular is {singular!r}; choose 'raise', 'warn' or 'allow'")


@dataclass(eq=False)
class Diagnosis:
    """The results on how close a factorized matrix is to a singular one.

    Attributes
    ----------
    factor : NumericFactor
    singular : {"raise", "warn", "allow"}
        Response to a singular matrix.
    pivot_ratio : float
        Smallest relative pivot, after `examine`.
    conditions : dict
        The factor's condition numbers computed so far. The key is whether the row sums of |op(A)|
        differ from those of |A|, and the precision of solutions.
    measures : bool
        The factors alone have given a condition number of each factor with small pivots so far; a
        failure costs a solve and decides nothing.
    certifies : bool
        No certificate of a condition number has failed for the pattern; a failed one costs a
        solve and decides nothing.
    hidden : bool
        Small pivots: solutions by the factors alone may not show the condition of A.
    nulls : dict
        The null space of each op(A), if it was sought.
    regular : bool
        A scaling has shown that A is not singular, despite small pivots.
    weighed : dict
        The last estimate of a solution's own condition number, by the keys of `conditions`.
    weighs_first : bool
        The condition number of the last solution for the pattern was not small enough for all
        right-hand sides. Then the next one's own is estimated before the factor's.
    sure : bool, optional
        Rounding errors leave no doubt that A is regular (`condition.sure`); None before that is
        computed.
    matched : bool
        A matching of these or of earlier values was computed, and left pivots as small.
    """

    factor: NumericFactor
    singular: str = "raise"
    pivot_ratio: float = np.nan
    conditions: dict[tuple[bool, float], Condition] = field(default_factory=dict)
    measures: bool = True
    certifies: bool = True
    hidden: bool = False
    nulls: dict[str, NullSpace | None] = field(default_factory=dict)
    regular: bool = False
    weighed: dict[tuple[bool, float], WeightedCondition] = field(default_factory=dict)
    weighs_first: bool = False
    sure: bool | None = None
    matched: bool = False

    def copy(self, factor: NumericFactor) -> Diagnosis:
        """Return the diagnosis for a copy of the factor."""
        copies = {name: dict(getattr(self, name)) for name in ("conditions", "nulls", "weighed")}
        return replace(self, factor=factor, **copies)

    @property
    def null_space(self) -> NullSpace | None:
        """The null space of A, if there is one."""
        return self.nulls.get("N")

    # --- of a factor -------------------------------------------------------------------------

    def examine(
        self, refined: Callable[[np.ndarray], BackwardErrors | None], before: Diagnosis | None
    ) -> None:
        """Look for evidence that A is singular, if small pivots make that likely.

        Parameters
        ----------
        refined : callable
            Return the errors of a refined solution for an (n, 1) right-hand side on the host.
        before : Diagnosis, optional
            Diagnosis of other values of the pattern; only `measures`, `certifies` and
            `weighs_first` are reused.

        Raises
        ------
        SingularMatrixError
            If A is singular, with its rank, and `singular` is "raise"; without a rank if the
            factor gives no accurate solutions.
        ImpreciseError
            If a factor of lower precision than A has small pivots, and A may be ill-conditioned.
        """
        factor = self.factor
        self.pivot_ratio = factor.health().pivot_ratio
        if before is not None:
            self.measures, self.certifies = before.measures, before.certifies
            self.weighs_first = before.weighs_first
        self.hidden = hides(factor)
        if factor.symbolic.n == 0 or not self.hidden:
            return
        if is_mixed(factor):
            demand_condition(factor, self.pivot_ratio)
            self.nulls["N"] = None
            return
        condition = measured_condition(factor) if self.measures else None
        self.measures = condition is not None
        if condition is not None:
            self.keep("N", factor.matrix_dtype, self._without_doubt(condition))
            self.nulls["N"] = None
            return
        if self.singular == "raise" and not self.regular:
            self._refuse_proved()
        if self.regular or not self._is_suspected():
            self.nulls["N"] = None
        else:
            self.seek_nulls()
        known = self.condition_known("N", factor.matrix_dtype)
        if self.null_space is None and not (known is not None and known.solved):
            demand_solutions(factor, refined)

    def _is_suspected(self) -> bool:
        """Return whether, by its condition number, A may be singular in all scalings.

        The norm of |A^-1| |A| is at least its spectral radius, which is about 1/eps if a matrix is
        singular to working precision in every scaling (Bauer 1963).
        """
        condition = self.condition("N", self.factor.matrix_dtype)
        return not condition.value * eps_of(self.factor.dtype) <= THRESHOLDS.suspected

    def _refuse_proved(self) -> None:
        """Raise if a few solves prove that A is singular."""
        columns = proved_null_columns(self.factor)
        if columns is not None:
            raise SingularMatrixError.of_rank(self.factor.symbolic.n, columns)

    def is_doubtful(self) -> bool:
        """Return whether small pivots leave it open that a seemingly regular A is singular."""
        seems = self.hidden and self.null_space is None and not is_mixed(self.factor)
        return seems and self._may_be_singular(eps_of(self.factor.dtype))

    def seek_nulls(self) -> None:
        """Find the null space of A; raise or warn, by `singular`, if there is one.

        If a device has replaced more pivots than null vectors are found, some may be hidden: this
        raises an error without a rank, after which the CPU factorizes A.
        """
        factor, n = self.factor, self.factor.symbolic.n
        null = null_space(factor)
        self.regular = null is not None and not null.columns.size
        self.nulls = {"N": None if self.regular else null}
        found = 0 if null is None else null.columns.size
        if factor.asynchronous and not self.regular and found < factor.perturbed:
            raise SingularMatrixError.numerical(
                smallest_pivot_column(factor), dtype=factor.matrix_dtype
            )
        if self.null_space is None or self.singular == "allow":
            return
        columns = self.null_space.columns
        if self.singular == "raise":
            raise SingularMatrixError.of_rank(n, columns)
        warn_of_rank(n, columns.size)

    # --- of solutions ------------------------------------------------------------------------

    @np.errstate(all="ignore")  # errors report non-finite solutions
    def fixed(
        self, X: Vectors, B: Vectors, trans: str, errors: BackwardErrors | None
    ) -> tuple[Vectors, BackwardErrors | None]:
        """Return, for a consistent singular system, the solution that is zero in null columns."""
        if self.null_space is None or not B.shape[1]:
            return X, errors
        factor = self.factor
        if trans not in self.nulls:
            self.nulls[trans] = null_space(factor, trans)
        null = self.nulls[trans]
        system: LinearSystem = factor.system(trans, B.dtype)
        if null is None:
            return X, errors

        def taken_off(Y: Vectors) -> Vectors:
            return factor.upload(np.asfortranarray(null.fixed(factor.download(Y))))

        Y = taken_off(X)
        for _ in range(_MAX_FIXES):
            R, trial_errors = system.measure(Y, B)
            if not trial_errors.insufficient(system.limits):
                break
            Y = taken_off(system.corrected(Y, R))
        R, trial_errors = system.measure(Y, B)
        better = trial_errors.normwise <= _MAX_CONSISTENT_ROUNDINGS * system.eps
        if errors is None:
            errors = system.measure(X, B)[1]
        return system.chosen(better, Y, X), trial_errors.chosen(better, errors)

    def judge(
        self,
        errors: BackwardErrors,
        estimate: ConditionEstimate | None,
        dtype: np.dtype,
        limited: bool,
    ) -> None:
        """Raise or warn if solutions are not accurate.

        Parameters
        ----------
        errors : BackwardErrors
        estimate : ConditionEstimate or None
            See `estimated`.
        dtype : numpy.dtype
            Scalar type of the solutions.
        limited : bool
            The user limited the number of refinement steps.
        """
        null, factor = self.null_space, self.factor
        if null is not None or not errors.fine:
            self._require_digits(errors, limited)
            if null is None and errors.insufficient(limits_of(factor.dtype, dtype)):
                warn_of_error(factor, errors, limited)
                return
        if null is None and estimate is not None and self.singular != "allow":
            precision = max(errors.worst_normwise, eps_of(dtype))
            if not estimate.condition * precision <= THRESHOLDS.warned:
                warn_of_condition(estimate, precision, factor.matrix_dtype)

    def _require_digits(self, errors: BackwardErrors, limited: bool) -> None:
        factor = self.factor
        worst, eps = errors.worst_normwise, eps_of(factor.matrix_dtype)
        if self.null_space is not None:
            lost = worst > _MAX_CONSISTENT_ROUNDINGS * eps
        else:
            replaced = factor.perturbed or factor.nulls.size
            lost = replaced and worst > eps**0.75 and not limited
        if not worst < np.inf or lost:
            refuse_replaced_signs(factor)
            raise SingularMatrixError.numerical(
                smallest_pivot_column(factor),
                f"the backward error stays at {worst:.1e}",
                dtype=factor.matrix_dtype,
            )

    def estimated(
        self,
        errors: BackwardErrors,
        X: Vectors,
        B: Vectors,
        trans: str,
        anew: bool = False,
    ) -> ConditionEstimate | None:
        """Return the condition number of solutions; None if the factor's own is small.

        If `anew`, always estimate it, for a report.
        """
        if not X.size or not errors.worst < np.inf or self.null_space is not None:
            return None
        factor, eps, key = self.factor, eps_of(X.dtype), self._key(trans, X.dtype)
        solution = Solution(factor, trans, X, B, errors)
        if not anew:
            condition = self.condition_known(trans, X.dtype)
            if condition is None and not self.weighs_first:
                condition = self.condition(trans, X.dtype)
            if condition is not None and self.is_silent(condition, max(errors.worst, eps)):
                return None
            compared = compare(solution, condition, self.weighed.get(key))
            if compared is not None:
                return compared
        estimate = solution_condition(solution, roughly=not anew)
        if is_mixed(factor):
            require_condition(estimate, eps)
        elif self._may_be_singular(eps):
            estimate = estimate._replace(condition=max(estimate.condition, 1 / eps))
        if estimate.condition * eps > 0.1 and "N" not in self.nulls and self.hidden:
            self.seek_nulls()
        own = Condition.from_estimate(estimate.condition, False, X.dtype)
        self.weighs_first = not own.is_silent(solution.error)
        weighted = None if anew else WeightedCondition.from_solution(solution, estimate)
        if weighted is not None:
            self.weighed[key] = weighted
        return estimate

    def condition(self, trans: str, dtype: np.dtype) -> Condition:
        """Return the factor's condition number for op(A), computed at its first use."""
        known = self.condition_known(trans, dtype)
        if known is None:
            known = factor_condition(self.factor, trans, dtype, self.certifies)
            if not self.hidden:
                self.certifies &= known.certified
            known = self._without_doubt(known)
            self.keep(trans, dtype, known)
        return known

    def _without_doubt(self, condition: Condition) -> Condition:
        """Return a condition number that suppresses no warning if A may be singular."""
        doubtful = self.hidden and self._may_be_singular(eps_of(self.factor.matrix_dtype))
        return condition._replace(counted=np.inf) if doubtful else condition

    def condition_known(self, trans: str, dtype: np.dtype) -> Condition | None:
        """Return the factor's condition number for op(A) if it was computed; else None."""
        return self.conditions.get(self._key(trans, dtype))

    def last_weighed(self, trans: str, dtype: np.dtype) -> WeightedCondition | None:
        """Return the last estimate of a solution's own condition number, if there is one."""
        return self.weighed.get(self._key(trans, dtype))

    def keep(self, trans: str, dtype: np.dtype, condition: Condition) -> None:
        """Store the factor's condition number for op(A)."""
        self.conditions[self._key(trans, dtype)] = condition

    def is_silent(self, condition: Condition, error: float) -> bool:
        """Return whether solutions with an error of at least eps need no warning."""
        return self.null_space is None and condition.is_silent(error)

    def will_estimate(self, trans: str, dtype: np.dtype, anew: bool = False) -> bool:
        """Return whether the next solve also estimates a condition number by the factors alone.

        It does if no pivot is small, and if `anew` or if no condition number is known and none is
        to be certified.
        """
        needed = anew or (self.condition_known(trans, dtype) is None and not self.certifies)
        return needed and self.null_space is None and not self.hidden

    def _may_be_singular(self, eps: float) -> bool:
        """Return whether small pivots may hide from an estimate that A is nearly singular."""
        if not (self.factor.nulls.size or self.pivot_ratio < NOISE * eps):
            return False
        if self.sure is None:
            self.sure = sure(self.factor)
        return not self.sure

    def _key(self, trans: str, dtype: np.dtype) -> tuple[bool, float]:
        """Return whether |op(A)| may differ from |A|, and the precision of solutions."""
        return trans != "N" and not self.factor.symbolic.method.one_triangle, eps_of(dtype)
