"""What is said of a factor and of its solutions: evidence of singularity, warnings, errors.

A solution passes without a word if its backward error is accepted and the error that this leaves in
x, by a condition number, is small. Each factor has condition numbers of its own, for all right-hand
sides (`numeric.condition`); nothing is taken from factors of other values. Where that number is
not small, the solution's own is estimated, and decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ..backend.protocol import NumericFactor
from ..errors import SingularMatrixError
from ..numeric.backward_error import limits_of
from ..numeric.condition import Condition
from ..numeric.linear_system import BackwardErrors, LinearSystem, Vectors, eps_of
from ..numeric.thresholds import THRESHOLDS
from ..symbolic.relative_pivots import relative_pivots
from . import refine
from .condition import (
    ConditionEstimate,
    Solution,
    factor_condition,
    hides,
    solution_condition,
    sure,
)
from .condition_bounds import WeightedCondition, compare
from .mixed import ImpreciseError, is_mixed
from .nullspace import NOISE, NullSpace, null_space
from .report import warn_of_condition, warn_of_error, warn_of_rank

SINGULAR = ("raise", "warn", "allow")
_MAX_CONSISTENT_ROUNDINGS = 1000  # roundings; a larger part of b outside of the range of A is meant
_MAX_FIXES = 2


def require_singular(singular: str) -> None:
    """Refuse what is nothing to be done about a singular matrix.

    Raises
    ------
    ValueError
    """
    if singular not in SINGULAR:
        raise ValueError(f"singular is {singular!r}; choose 'raise', 'warn' or 'allow'")


@dataclass
class Diagnosis:
    """What is known of how near a factorized matrix is to a singular one.

    Attributes
    ----------
    singular : {"raise", "warn", "allow"}
        What is done about a singular matrix.
    perturbed, pivot_ratio
        Of the factor, as far as it was examined.
    conditions : dict
        By whether op(A) has other row sums than A, and by the precision of solutions: the factor's
        condition number, once a solution has needed it.
    certifies : bool
        No certificate of a condition number has failed for the pattern; a failed one costs a
        solution, and decides nothing.
    hidden : bool
        Pivots are so small that solutions by the factors alone hide what A is.
    nulls : dict
        By op(A): its null space, if that was sought.
    regular : bool
        A scaling has shown that A is not singular, whatever pivots are.
    weighed : dict
        As `conditions`: the last solution's own condition number that was estimated.
    sure : bool, optional
        Whether rounding errors leave no doubt that A is regular (`condition.sure`); None before
        that is computed.
    matched : bool
        A matching of these or of earlier values was sought, and pivots were as small by it.
    """

    singular: str = "raise"
    perturbed: int = 0
    pivot_ratio: float = np.nan
    conditions: dict[tuple[bool, float], Condition] = field(default_factory=dict)
    certifies: bool = True
    hidden: bool = False
    nulls: dict[str, NullSpace | None] = field(default_factory=dict)
    regular: bool = False
    weighed: dict[tuple[bool, float], WeightedCondition] = field(default_factory=dict)
    sure: bool | None = None
    matched: bool = False

    def __post_init__(self) -> None:
        require_singular(self.singular)

    def copy(self) -> Diagnosis:
        """For a copy of the factor."""
        copies = {name: dict(getattr(self, name)) for name in ("conditions", "nulls", "weighed")}
        return replace(self, **copies)

    @property
    def null_space(self) -> NullSpace | None:
        """The null space of A, if there is one."""
        return self.nulls.get("N")

    # --- of a factor -------------------------------------------------------------------------

    def examine(
        self,
        factor: NumericFactor,
        backward_error: Callable[[np.ndarray], float],
        before: Diagnosis,
    ) -> None:
        """Look for evidence that A is singular, where pivots make that likely.

        Parameters
        ----------
        factor : NumericFactor
        backward_error : callable
            Of a refined solution, for a right-hand side (n, 1) on the host.
        before : Diagnosis
            Of other values of the pattern, of which no evidence is taken.

        Raises
        ------
        SingularMatrixError
            If A is singular, with its rank, unless `singular` says otherwise; and without a rank
            if the factor gives no solutions.
        ImpreciseError
            If a factor of lower precision than A has small pivots, and A may be ill-conditioned.
        """
        self.perturbed, self.pivot_ratio = factor.perturbed, factor.health().pivot_ratio
        self.certifies, self.hidden = before.certifies, hides(factor)
        if factor.symbolic.n == 0 or not self.hidden:
            return
        if is_mixed(factor):
            _demand_condition(factor, self.pivot_ratio)
            self.nulls["N"] = None
            return
        if self.regular or not self._is_suspected(factor):
            self.nulls["N"] = None
        else:
            self.seek_nulls(factor)
        if self.null_space is None:
            _demand_solutions(factor, backward_error)

    def _is_suspected(self, factor: NumericFactor) -> bool:
        """Whether a condition number leaves it open that A is singular, in all scalings.

        A condition number of |A^-1| |A| is no less than the spectral radius, which is some 1/eps
        where a matrix is singular to working precision whatever the scaling (Bauer 1963).
        """
        condition = self.condition(factor, "N", factor.matrix_dtype)
        return not condition.value * eps_of(factor.dtype) <= THRESHOLDS.suspected

    def is_doubtful(self, factor: NumericFactor) -> bool:
        """Whether pivots leave it open that A is singular, though it seems regular."""
        seems = self.hidden and self.null_space is None and not is_mixed(factor)
        return seems and self._may_be_singular(factor, eps_of(factor.dtype))

    def seek_nulls(self, factor: NumericFactor) -> None:
        """Find the null space of A; raise or warn, as `singular` says, if there is one."""
        null = null_space(factor)
        self.regular = null is not None and not null.columns.size
        self.nulls = {"N": None if self.regular else null}
        if self.null_space is None or self.singular == "allow":
            return
        columns, n = self.null_space.columns, factor.symbolic.n
        if self.singular == "raise":
            raise SingularMatrixError.of_rank(n, columns)
        warn_of_rank(n, columns.size)

    # --- of solutions ------------------------------------------------------------------------

    @np.errstate(all="ignore")  # of what is not finite, the errors tell
    def fixed(
        self,
        factor: NumericFactor,
        X: Vectors,
        B: Vectors,
        trans: str,
        errors: BackwardErrors | None,
    ) -> tuple[Vectors, BackwardErrors | None]:
        """Of a singular system the solution that is zero in null columns, where there is one."""
        if self.null_space is None or not B.shape[1]:
            return X, errors
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
        factor: NumericFactor,
        errors: BackwardErrors,
        estimate: ConditionEstimate | None,
        dtype: np.dtype,
        limited: bool,
    ) -> None:
        """Raise, warn or say nothing of solutions.

        Parameters
        ----------
        factor : NumericFactor
        errors : BackwardErrors
        estimate : ConditionEstimate or None
            See `estimated`.
        dtype : numpy.dtype
            Of the solutions.
        limited : bool
            The number of corrections was.
        """
        null = self.null_space
        if null is not None or not errors.fine:
            self._require_digits(factor, errors, limited)
            if null is None and errors.insufficient(limits_of(factor.dtype, dtype)):
                warn_of_error(factor, errors, limited)
                return
        if null is None and estimate is not None and self.singular != "allow":
            precision = max(errors.worst_normwise, eps_of(dtype))
            if not estimate.condition * precision <= THRESHOLDS.warned:
                warn_of_condition(estimate, precision, factor.matrix_dtype)

    def _require_digits(self, factor: NumericFactor, errors: BackwardErrors, limited: bool) -> None:
        worst, eps = errors.worst_normwise, eps_of(factor.matrix_dtype)
        if self.null_space is not None:
            lost = worst > _MAX_CONSISTENT_ROUNDINGS * eps
        else:
            replaced = factor.perturbed or factor.nulls.size
            lost = replaced and worst > eps**0.75 and not limited
        if not worst < np.inf or lost:
            raise SingularMatrixError.numerical(
                smallest_pivot_column(factor),
                f"the backward error stays at {worst:.1e}",
                dtype=factor.matrix_dtype,
            )

    def estimated(
        self,
        factor: NumericFactor,
        errors: BackwardErrors,
        X: Vectors,
        B: Vectors,
        trans: str,
        anew: bool = False,
    ) -> ConditionEstimate | None:
        """Return the condition number of solutions; None if the factor's says that it is small.

        It is made `anew` for a report.
        """
        if not X.size or not errors.worst < np.inf or self.null_space is not None:
            return None
        eps, key = eps_of(X.dtype), _key(factor, trans, X.dtype)
        solution = Solution(factor, trans, X, B, errors)
        if not anew:
            condition = self.condition(factor, trans, X.dtype)
            if self.is_silent(condition, max(errors.worst, eps)):
                return None
            compared = compare(solution, condition, self.weighed.get(key))
            if compared is not None:
                return compared
        estimate = solution_condition(solution, roughly=not anew)
        if is_mixed(factor):
            _require_condition(estimate, eps)
        elif self._may_be_singular(factor, eps):
            estimate = estimate._replace(condition=max(estimate.condition, 1 / eps))
        if estimate.condition * eps > 0.1 and "N" not in self.nulls and self.hidden:
            self.seek_nulls(factor)
        weighted = None if anew else WeightedCondition.from_solution(solution, estimate)
        if weighted is not None:
            self.weighed[key] = weighted
        return estimate

    def condition(self, factor: NumericFactor, trans: str, dtype: np.dtype) -> Condition:
        """Return the factor's condition number for op(A), found when it is needed first.

        It silences nothing where pivots are so small that it may be that of another matrix.
        """
        known = self.condition_known(factor, trans, dtype)
        if known is None:
            known = factor_condition(factor, trans, dtype, self.certifies)
            if not self.hidden:
                self.certifies &= known.certified
            elif self._may_be_singular(factor, eps_of(dtype)):
                known = known._replace(counted=np.inf)
            self.keep(factor, trans, dtype, known)
        return known

    def condition_known(
        self, factor: NumericFactor, trans: str, dtype: np.dtype
    ) -> Condition | None:
        """Return the factor's condition number for op(A), if it was needed before."""
        return self.conditions.get(_key(factor, trans, dtype))

    def keep(
        self, factor: NumericFactor, trans: str, dtype: np.dtype, condition: Condition
    ) -> None:
        """Keep the factor's condition number for op(A)."""
        self.conditions[_key(factor, trans, dtype)] = condition

    def is_silent(self, condition: Condition, error: float) -> bool:
        """Return whether solutions with an error, no less than eps, pass without a word."""
        return self.null_space is None and condition.is_silent(error)

    def will_estimate(
        self, factor: NumericFactor, trans: str, dtype: np.dtype, anew: bool = False
    ) -> bool:
        """Whether a condition number is estimated with the next solution, by the factors alone.

        No pivot is small then, and none is known nor to be certified, or one is made `anew`.
        """
        needed = anew or (self.condition_known(factor, trans, dtype) is None and not self.certifies)
        return needed and self.null_space is None and not self.hidden

    def _may_be_singular(self, factor: NumericFactor, eps: float) -> bool:
        """Whether pivots are so small that an estimate may not see how near to singular A is."""
        if not (factor.nulls.size or self.pivot_ratio < NOISE * eps):
            return False
        if self.sure is None:
            self.sure = sure(factor)
        return not self.sure


def _key(factor: NumericFactor, trans: str, dtype: np.dtype) -> tuple[bool, float]:
    """Return whether moduli of op(A) are not those of A, and the precision of solutions."""
    return trans != "N" and not factor.symbolic.method.one_triangle, eps_of(dtype)


def _demand_solutions(factor: NumericFactor, backward_error: Callable[[np.ndarray], float]) -> None:
    """Refuse a factor with small pivots that gives no solutions."""
    b = np.random.default_rng(0).standard_normal((factor.symbolic.n, 1)).astype(factor.dtype)
    rows = 1.0 if factor.scaling is None else factor.scaling.row[:, None]
    with np.errstate(all="ignore"):
        b = np.asfortranarray((b / rows).astype(factor.dtype))
    b[~np.isfinite(b)] = 0
    if not backward_error(b) <= np.finfo(factor.dtype).eps ** 0.75:
        raise SingularMatrixError.numerical(
            smallest_pivot_column(factor), dtype=factor.matrix_dtype
        )


def _demand_condition(factor: NumericFactor, pivot_ratio: float) -> None:
    """Refuse a factor in single whose pivots are rounding, unless A is well-conditioned."""
    if factor.perturbed or factor.nulls.size:
        raise ImpreciseError("pivots are zero or were replaced")
    if pivot_ratio >= NOISE * np.finfo(factor.dtype).eps:
        return  # solutions will tell
    system = factor.system("N", factor.matrix_dtype)
    B = factor.upload(np.ones((factor.symbolic.n, 1), factor.matrix_dtype, order="F"))
    X, errors, _ = refine.solve(system, B, None, True)
    if errors is None or errors.insufficient(system.limits):
        raise ImpreciseError("refinement does not lead to a solution")
    solution = Solution(factor, "N", X, B, errors)
    _require_condition(solution_condition(solution, roughly=True), system.eps)


def _require_condition(estimate: ConditionEstimate, eps: float) -> None:
    """Leave what has to be warned of to a factor in double."""
    if not estimate.condition * eps <= THRESHOLDS.warned:
        raise ImpreciseError(f"the condition number is about {estimate.condition:.0e}")


def smallest_pivot_column(factor: NumericFactor) -> int:
    """Column of A with the smallest pivot for what it came from."""
    args = factor.matrix, factor.symbolic, factor.scaling, factor.subdiagonal()
    return int(factor.symbolic.perm[int(np.argmin(relative_pivots(factor.diagonal(), *args)))])
