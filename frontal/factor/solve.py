"""Solutions with a factor: right-hand sides, refinement, the error that is left, its report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..accuracy import NORMWISE, Errors, Vectors, eps_of
from ..cached import cached_property
from ..cpu.system import HostSystem, componentwise_error, host_system
from ..info import SolveInfo
from ..matrix import check_finite_rhs, prepare_rhs
from ..protocol import NumericFactor
from . import exponent, refine
from .condition import Estimate
from .mixed import ImpreciseError, is_mixed
from .verdict import Verdict


class Solved(NamedTuple):
    """Solutions where the factor is; their errors, if judged; corrections; what they may err by."""

    X: Vectors
    errors: Errors | None
    taken: int
    estimate: Estimate | None = None


class Solver:
    """Solves systems with one factor.

    Attributes
    ----------
    factor : NumericFactor
    dtype : numpy.dtype
        Scalar type of the factors.
    verdict : Verdict
        What is known of how near to singular the matrix is.
    mixed : bool
        The factors are of a lower precision than the matrix. Methods raise `ImpreciseError` then,
        where solutions by such a factor are not certain.
    """

    def __init__(self, factor: NumericFactor, verdict: Verdict) -> None:
        self.factor, self.dtype, self.verdict = factor, factor.dtype, verdict
        self.mixed = is_mixed(factor)
        self._silent = NORMWISE * eps_of(self.dtype)  # what is not refined errs by no more

    @cached_property
    def growth(self) -> float:
        """See `NumericFactor.growth`, which reads all of the factors."""
        return self.factor.growth()

    def at_once(self, b: object, trans: str) -> Vectors | None:
        """What `solve` gives for a plain vector of which nothing is to be said; None for others.

        So it is where the factor gives a solution without refinement, and a condition number that
        is estimated with it, or was before and holds for it, is small.
        """
        verdict = self.verdict
        if trans not in ("N", "T", "H") or self.mixed:
            return None
        first = not verdict.estimates
        if first and not verdict.will_estimate(self.factor):
            return None
        found = self.factor.at_once(b, trans, first)
        if found is None:
            return None
        x, amplification, condition = found
        if condition >= 0:
            verdict.learn(trans, amplification, Estimate(condition, ()))
        return x if verdict.silent(amplification, trans, self._silent) else None

    def solve(
        self, b: Any, trans: str, steps: int | None, about: Callable[[], dict[str, Any]] | None
    ) -> tuple[Any, SolveInfo | None]:
        """See `Factor.solve`; `about` gives what `SolveInfo` shall say of the factor."""
        if trans not in ("N", "T", "H"):
            raise ValueError(f"trans is {trans!r}; choose 'N', 'T' or 'H'")
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
            # judged, they are told to be finite by the norms that come with the solution
            of = b, factor.symbolic.n, factor.matrix_dtype
            B, restore = prepare_rhs(*of, check_finite=not judged)
            solved = self._solve_block(factor.upload(B), trans, steps, judged, reported)
            X, errors, taken, estimate = solved
            X = factor.download(X)
            if errors is not None and not (errors.fine or np.isfinite(errors.rhs).all()):
                check_finite_rhs(B, np.ndim(b))
            x = restore(X)
        if errors is None:
            return x, None
        left = errors
        if errors.lost is not None:
            exponent.refuse_overflow(errors, X.dtype)
            left = exponent.warned_of_underflow(errors, X.dtype) if steps != 0 else errors
        if steps != 0:
            self.verdict.judge(factor, left, estimate, X.dtype, steps is not None)
        if about is None:
            return x, None
        seconds = time.perf_counter() - began
        solved = Solved(X, errors, taken, estimate)
        return x, self._report(about(), solved, B, trans, steps != 0, seconds)

    def _solve_block(
        self, B: Vectors, trans: str, steps: int | None, judged: bool, reported: bool
    ) -> Solved:
        """Solutions for an array that is with the factor; `reported` ones are estimated anew."""
        if _is_split(B, self.dtype):
            k = B.shape[1]
            parts = self.factor.empty(2 * k, B.real.dtype)
            parts[:, :k], parts[:, k:] = B.real, B.imag
            solved = self._solve_block(parts, trans, steps, judged, reported)
            with np.errstate(all="ignore"):  # of what is not finite, the errors tell
                return solved._replace(X=solved.X[:, :k] + 1j * solved.X[:, k:])
        probing = judged and steps != 0 and self.verdict.will_estimate(self.factor, reported)
        X, errors, taken, _ = self._refined(B, trans, steps, judged, probing)
        if self.mixed and errors is not None:
            _require_solutions(errors, steps, eps_of(B.dtype))
        estimate, factor = None, self.factor
        if errors is not None and steps != 0:
            estimate = self.verdict.estimated(factor, errors, X, B, trans, reported)
        if self.verdict.found is not None:
            X, errors = self.verdict.fixed(factor, X, B, trans, errors)
        return Solved(X, errors, taken, estimate)

    def _refined(
        self, B: Vectors, trans: str, steps: int | None, judged: bool, probing: bool = False
    ) -> Solved:
        """Solutions by the factor, by refinement and by what helps where that does not."""
        system = self.factor.system(trans, B.dtype)
        X, errors, taken = refine.solve(system, B, steps, judged, probing)
        if errors is None or errors.fine:
            return Solved(X, errors, taken)
        with np.errstate(all="ignore"):  # of what is not finite, the errors tell
            if steps is None and errors.insufficient(eps_of(B.dtype)):
                X, errors, more = self._rescued(X, B, trans, errors)
                taken += more
            return Solved(*exponent.mended(self.factor, X, B, trans, steps, errors, taken))

    def _rescued(
        self, X: Vectors, B: Vectors, trans: str, errors: Errors
    ) -> tuple[Vectors, Errors, int]:
        """What `refine.rescue`, on the host, makes of solutions that are not good enough."""
        factor = self.factor
        host = factor.download(X), factor.download(B)
        better, _, taken = refine.rescue(self.system(trans, B.dtype), *host, errors.normwise)
        X = factor.upload(np.asfortranarray(better))
        return X, factor.system(trans, B.dtype).measure(X, B)[1], taken

    def system(self, trans: str, dtype: np.dtype) -> HostSystem:
        """op(A) X = B for vectors on the host."""
        return host_system(self.factor, trans, dtype)

    def examine(self, before: Verdict) -> None:
        """Look for evidence that A is singular, where pivots are small; see `Verdict.examine`."""

        def backward_error(B: np.ndarray) -> float:
            errors = self._refined(self.factor.upload(B), "N", None, True).errors
            return np.inf if errors is None else errors.worst

        self.verdict.examine(self.factor, backward_error, before)

    def fixes(self) -> bool:
        """Whether of a singular system that has solutions it finds the one zero in null columns."""
        null, factor = self.verdict.found, self.factor
        if null is None:
            return True
        X = np.random.default_rng(0).standard_normal((factor.symbolic.n, 1))
        X = factor.upload(np.asfortranarray(X.astype(factor.matrix_dtype)))
        zero = factor.upload(np.zeros((factor.symbolic.n, 1), X.dtype, order="F"))
        B = factor.system("N", X.dtype).measure(X, zero)[0]  # in the range of A
        found = factor.download(self._solve_block(B, "N", None, True, False).X)
        return bool((found[null.columns] == 0).all())

    def _report(
        self,
        about: dict[str, Any],
        solved: Solved,
        B: Vectors,
        trans: str,
        refined: bool,
        seconds: float,
    ) -> SolveInfo:
        X, errors, taken, estimate = solved
        if errors is None:
            raise ValueError("solutions that were not judged have no report")
        component, error = errors.componentwise, float(errors.normwise.max(initial=0.0))
        if component is None:  # on the host, where refinement had no use for it
            if _is_split(B, self.dtype):
                X, B = (np.concatenate([np.real(M), np.imag(M)], axis=1) for M in (X, B))
            system = self.system(trans, X.dtype)
            component = componentwise_error(system, X, B, system.residual(X, B))
        # where x is next to nothing, numbers that the estimate is made of are nothing at all
        condition = None if estimate is None else max(1.0, estimate.condition)
        precision = max(error, float(np.finfo(X.dtype).eps))
        return SolveInfo(
            **{name: about[name] for name in about if name != "seconds"},
            backward_error=error,
            componentwise_error=float(component.max(initial=0.0)),
            refinement_steps=taken,
            refined=refined,
            condition=condition,
            forward_error=None if condition is None else min(1.0, condition * precision),
            seconds={**about["seconds"], "solve": seconds},
        )


def _require_solutions(errors: Errors, steps: int | None, eps: float) -> None:
    """Leave to a factor in double what one in single does not solve, unless b is no number."""
    enough = not errors.insufficient(eps) if steps is None else np.isfinite(errors.normwise).all()
    if np.isfinite(errors.rhs).all() and not enough:
        raise ImpreciseError(f"the backward error stays at {errors.normwise.max():.1e}")


def _is_split(B: Vectors, dtype: np.dtype) -> bool:
    """Whether a real factor solves for real and imaginary parts."""
    return B.dtype.kind == "c" and dtype.kind != "c"
