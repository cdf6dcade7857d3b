"""Solves with a factor: right-hand sides, refinement, remaining errors, the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._typing import Untyped
from ..cpu.host_system import HostSystem, host_system
from ..info import SolveInfo
from ..machine.lockfree_property import cached_property
from ..matrix.canonical import check_finite_rhs, prepare_rhs
from ..numeric.acceptance import ErrorLimits, limits_of
from ..numeric.backoff import Backoff
from ..numeric.condition import CERTIFIED, ESTIMATED, KNOWN, UNMEASURED, Condition
from ..numeric.linear_system import (
    BackwardErrors,
    FastSolution,
    Vectors,
    eps_of,
    require_trans,
)
from ..numeric.thresholds import THRESHOLDS
from . import extreme_scales, refine
from .condition import ConditionEstimate
from .condition_bounds import WeightedCondition, bounded, references_of
from .diagnosis import Diagnosis
from .mixed import ImpreciseError, is_mixed
from .vector_blocks import of_parts, side_by_side

_STEPS_BEFORE_WARNING = 2  # corrections of a solution accepted without refinement


class SolvedBlock(NamedTuple):
    """Solutions on the device, their errors if measured, corrections, condition estimate."""

    X: Vectors
    errors: BackwardErrors | None
    taken: int
    estimate: ConditionEstimate | None = None


class FactorSolver:
    """The solves with one factor.

    Attributes
    ----------
    factor : NumericFactor
    dtype : numpy.dtype
        Scalar type of the factors.
    verdict : Diagnosis
        Evidence on how close the matrix is to a singular one.
    mixed : bool
        The factors are of a lower precision than the matrix. Methods then raise `ImpreciseError`
        if solutions by such a factor may be inaccurate.
    """

    def __init__(self, verdict: Diagnosis) -> None:
        self.factor, self.verdict = verdict.factor, verdict
        self.dtype, self.mixed = self.factor.dtype, is_mixed(self.factor)
        self._backoff = Backoff()  # of fast solutions whose errors are near a warning
        self._weighs = False  # the condition number of the factor does not decide about solutions

    @cached_property
    def growth(self) -> float:
        """Growth of the factor; computed once, since `NumericFactor.growth` reads all factors."""
        return self.factor.growth()

    def solve_vector(self, b: object, trans: str, steps: object) -> Vectors | None:
        """Return `solve`'s solution for a plain vector, in one call of the backend, or None."""
        trans = self.equal_side(trans)
        if steps is None:
            return self.solve_fast(b, trans)
        return self.solve_unrefined(b, trans) if type(steps) is int and steps == 0 else None

    def equal_side(self, trans: str) -> str:
        """Return "N" for an adjoint that is A itself: both have the same condition number."""
        if trans == "N" or not self.factor.hermitian:
            return trans
        return "N" if trans == "H" or (trans == "T" and self.dtype.kind != "c") else trans

    def solve_fast(self, b: object, trans: str) -> Vectors | None:
        """Return `solve`'s solution for a plain vector if it needs no warning; else None.

        It is judged by the factor's condition number, which may be estimated in the same call; if
        that is not small, by its own, where the factor `remeasures`.
        """
        verdict, factor = self.verdict, self.factor
        if trans not in ("N", "T", "H") or self.mixed or verdict.null_space is not None:
            return None
        known = verdict.condition_known(trans, self.dtype)
        estimating = known is None and not (verdict.hidden or verdict.weighs_first)
        silent = known is not None and verdict.is_silent(known, eps_of(self.dtype))
        silent = silent and (factor.remeasures or self._backoff.should_try())
        if not (estimating or silent or factor.remeasures):
            return None
        how = KNOWN
        if estimating:
            how = CERTIFIED if verdict.certifies else ESTIMATED
        last = verdict.last_weighed(trans, self.dtype)
        outcome = factor.solve_fast(b, trans, how, references_of(last) if self._weighs else ())
        if outcome is None:
            return None
        if estimating:
            known = self._condition_beside(outcome, trans)
        if known is not None and verdict.is_silent(known, outcome.error):
            return outcome.x
        if factor.remeasures:
            self._weighs = True
            if self._is_bounded(outcome, known, last):
                return outcome.x
            return outcome.x if self._needs_no_correction(outcome, trans) else None
        self._backoff.record_failure()
        return None

    def _is_bounded(
        self, outcome: FastSolution, known: Condition | None, last: WeightedCondition | None
    ) -> bool:
        """Return whether the weights of a solution show that it needs no warning: see `bounded`."""
        if outcome.ratios is None:
            return False
        precision = max(outcome.normwise, eps_of(self.dtype))
        estimate = bounded(precision, known, last, outcome.ratios[0], outcome.ratios[-1])
        return estimate is not None and estimate.condition * precision <= THRESHOLDS.warned

    def _condition_beside(self, outcome: FastSolution, trans: str) -> Condition | None:
        """Store and return the condition number of the factor, found beside a solution."""
        if not outcome.condition >= 0:
            self.verdict.certifies = False
            return None
        known = Condition.from_estimate(outcome.condition, outcome.certified, self.dtype)
        self.verdict.keep(trans, self.dtype, known)
        self.verdict.certifies &= outcome.certified
        return known

    def _needs_no_correction(self, outcome: FastSolution, trans: str) -> bool:
        """Judge a solution by its own condition number; False if it is to be corrected or unknown.

        See `Diagnosis.judge`.
        """
        if outcome.measured is None:
            return False
        X, B, errors = outcome.measured()
        estimate = self.verdict.estimated(errors, X, B, trans)
        if self.verdict.null_space is not None:
            return False
        if _may_improve(estimate, errors, limits_of(self.dtype, X.dtype)):
            return False
        self.verdict.judge(errors, estimate, X.dtype, limited=False)
        return True

    def solve_unrefined(self, b: object, trans: str) -> Vectors | None:
        """Return `solve`'s solution without refinement for a plain vector; else None.

        None, too, if exponents are near their limits, and for a factor on a device.
        """
        factor = self.factor
        if trans not in ("N", "T", "H") or self.mixed or factor.asynchronous:
            return None
        if self.verdict.null_space is not None:
            return None
        solution = factor.solve_fast(b, trans, UNMEASURED)
        return None if solution is None else solution.x

    def solve(
        self, b: Untyped, trans: str, steps: int | None, about: Callable[[], dict[str, Any]] | None
    ) -> tuple[Any, SolveInfo | None]:
        """Solve as `Factor.solve`; `about` returns the fields of `SolveInfo` on the factor."""
        require_trans(trans)
        trans = self.equal_side(trans)
        began, factor = time.perf_counter(), self.factor
        reported = about is not None
        judged = steps is None or reported or not factor.asynchronous
        B = factor.block(b)
        if B is not None:
            X, errors, taken, estimate = self._solve_block(B, trans, steps, judged, reported)
            if errors is not None and not np.isfinite(errors.rhs).all():
                check_finite_rhs(factor.download(B), b.ndim)
            x = X[:, 0] if b.ndim == 1 else X
        else:
            # if judged, the norms measured with the solution show whether they are finite
            B, restore = prepare_rhs(
                b, factor.symbolic.n, factor.matrix_dtype, check_finite=not judged
            )
            solved = self._solve_block(factor.upload(B), trans, steps, judged, reported)
            X, errors, taken, estimate = solved
            X = factor.download(X)
            if errors is not None and not (errors.fine or np.isfinite(errors.rhs).all()):
                check_finite_rhs(B, np.ndim(b))
            x = restore(X)
        if errors is None:
            return x, None
        remaining_errors = errors
        if errors.lost is not None:
            extreme_scales.refuse_overflow(errors, X.dtype)
            remaining_errors = (
                extreme_scales.warned_of_underflow(errors, X.dtype) if steps != 0 else errors
            )
        if steps != 0:
            self.verdict.judge(remaining_errors, estimate, X.dtype, steps is not None)
        if about is None:
            return x, None
        seconds = time.perf_counter() - began
        solved = SolvedBlock(X, errors, taken, estimate)
        return x, self.report(about(), solved, steps != 0, seconds)

    def _solve_block(
        self, B: Vectors, trans: str, steps: int | None, judged: bool, reported: bool
    ) -> SolvedBlock:
        """Solve for an array of the backend; if `reported`, estimate the condition number anew."""
        if _is_split(B, self.dtype):
            parts = side_by_side(self.factor, B.real, B.imag)
            solved = self._solve_block(parts, trans, steps, judged, reported)
            with np.errstate(all="ignore"):  # errors report non-finite solutions
                return solved._replace(X=of_parts(solved.X))
        factor = self.factor
        probing = judged and steps != 0
        probing = probing and self.verdict.will_estimate(trans, B.dtype, reported)
        X, errors, taken, _ = self._refined(B, trans, steps, judged, probing)
        if self.mixed and errors is not None:
            _require_solutions(errors, steps, limits_of(self.dtype, B.dtype))
        estimate = None
        if errors is not None and steps != 0:
            estimate = self.verdict.estimated(errors, X, B, trans, reported)
            system = factor.system(trans, B.dtype)
            if steps is None and _may_improve(estimate, errors, system.limits):
                X, errors, more = refine.refine(system, X, B, _STEPS_BEFORE_WARNING)
                taken += more
                estimate = self.verdict.estimated(errors, X, B, trans, reported)
        if self.verdict.null_space is not None:
            X, errors = self.verdict.fixed(X, B, trans, errors)
        return SolvedBlock(X, errors, taken, estimate)

    def _refined(
        self, B: Vectors, trans: str, steps: int | None, judged: bool, probing: bool = False
    ) -> SolvedBlock:
        """Solve by the factor, refine, and use GMRES and scaling if refinement is not enough."""
        system = self.factor.system(trans, B.dtype)
        X, errors, taken = refine.solve(system, B, steps, judged, probing)
        if errors is None or errors.fine:
            if errors is not None and not taken:
                self.factor.expect(trans)
            return SolvedBlock(X, errors, taken)
        with np.errstate(all="ignore"):  # errors report non-finite solutions
            if steps is None and errors.insufficient(system.limits):
                X, errors, more = self._rescued(X, B, trans, errors)
                taken += more
            return SolvedBlock(
                *extreme_scales.mended(self.factor, X, B, trans, steps, errors, taken)
            )

    def _rescued(
        self, X: Vectors, B: Vectors, trans: str, errors: BackwardErrors
    ) -> tuple[Vectors, BackwardErrors, int]:
        """Improve inaccurate solutions by `refine.rescue` on the host."""
        factor = self.factor
        x, b = factor.download(X), factor.download(B)
        better, _, taken = refine.rescue(self.system(trans, B.dtype), x, b, errors.rowwise)
        X = factor.upload(np.asfortranarray(better))
        return X, factor.system(trans, B.dtype).measure(X, B)[1], taken

    def system(self, trans: str, dtype: np.dtype) -> HostSystem:
        """Return op(A) X = B for vectors on the host."""
        return host_system(self.factor, trans, dtype)

    def examine(self, before: Diagnosis | None = None) -> None:
        """Look for evidence that A is singular if pivots are small; see `Diagnosis.examine`."""

        def refined(B: np.ndarray) -> BackwardErrors | None:
            return self._refined(self.factor.upload(B), "N", None, True).errors

        self.verdict.examine(refined, before)

    def fixes(self) -> bool:
        """Return whether solutions of consistent singular systems are zero in null columns."""
        null, factor = self.verdict.null_space, self.factor
        if null is None:
            return True
        X = np.random.default_rng(0).standard_normal((factor.symbolic.n, 1))
        X = factor.upload(np.asfortranarray(X.astype(factor.matrix_dtype)))
        zero = factor.upload(np.zeros((factor.symbolic.n, 1), X.dtype, order="F"))
        B = factor.system("N", X.dtype).measure(X, zero)[0]  # in the range of A
        solution = factor.download(self._solve_block(B, "N", None, True, False).X)
        return bool((solution[null.columns] == 0).all())

    def report(
        self, about: dict[str, Any], solved: SolvedBlock, refined: bool, seconds: float
    ) -> SolveInfo:
        X, errors, taken, estimate = solved
        if errors is None:
            raise ValueError("no report is available: the backward error was not computed")
        # for nearly zero x the estimate may underflow to 0
        condition = None if estimate is None else max(1.0, estimate.condition)
        precision = max(errors.worst_normwise, eps_of(X.dtype))
        return SolveInfo(
            **{name: about[name] for name in about if name != "seconds"},
            backward_error=errors.worst_normwise,
            componentwise_error=float(errors.componentwise.max(initial=0.0)),
            refinement_steps=taken,
            refined=refined,
            condition=condition,
            forward_error=None if condition is None else min(1.0, condition * precision),
            seconds={**about["seconds"], "solve": seconds},
        )


def _may_improve(
    estimate: ConditionEstimate | None, errors: BackwardErrors, limits: ErrorLimits
) -> bool:
    """Return whether a warning is due only to an error that refinement would reduce."""
    if estimate is None or errors.lost is not None:  # solved again in a scaled system
        return False
    if not limits.accepted < errors.worst < np.inf:
        return False
    return estimate.condition * max(errors.worst_normwise, limits.eps) > THRESHOLDS.warned


def _require_solutions(errors: BackwardErrors, steps: int | None, limits: ErrorLimits) -> None:
    """Raise, for a factor in double precision, if errors are too large, unless b is not finite."""
    enough = np.isfinite(errors.normwise).all()
    if steps is None:
        enough = not errors.insufficient(limits)
    if np.isfinite(errors.rhs).all() and not enough:
        raise ImpreciseError(f"the backward error stays at {errors.worst:.1e}")


def _is_split(B: Vectors, dtype: np.dtype) -> bool:
    """Return whether a real factor solves for real and imaginary parts of B separately."""
    return B.dtype.kind == "c" and dtype.kind != "c"
