"""Solutions with a factor: right-hand sides, refinement, the error that is left, its report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ..accuracy import NORMWISE, Errors, Vectors
from ..cached import cached_property
from ..cpu.system import HostSystem, componentwise_error, host_system
from ..errors import IllConditionedWarning, SingularMatrixError, warn
from ..info import SolveInfo
from ..matrix import check_finite_rhs, prepare_rhs
from ..protocol import NumericFactor
from . import exponent, refine
from .condition import assess, smallest_pivot_column


class Solver:
    """Solves systems with one factor.

    Attributes
    ----------
    factor : NumericFactor
    dtype : numpy.dtype
        Scalar type of the factors.
    assessed : bool
        The condition of the matrix has been looked at.
    """

    def __init__(self, factor: NumericFactor) -> None:
        self.factor, self.dtype, self.assessed = factor, factor.dtype, False

    @cached_property
    def growth(self) -> float:
        """See `NumericFactor.growth`, which reads all of the factors."""
        return self.factor.growth()

    def solve(
        self, b: Any, trans: str, steps: int | None, about: Callable[[], dict[str, Any]] | None
    ) -> tuple[Any, SolveInfo | None]:
        """See `Factor.solve`; `about` gives what `SolveInfo` shall say of the factor."""
        if trans not in ("N", "T", "H"):
            raise ValueError(f"trans is {trans!r}; choose 'N', 'T' or 'H'")
        began, factor = time.perf_counter(), self.factor
        judged = steps is None or about is not None or not factor.asynchronous
        B = factor.block(b)
        if B is not None:
            X, errors, taken = self._solve_block(B, trans, steps, judged)
            if errors is not None and not np.isfinite(errors.rhs).all():
                check_finite_rhs(factor.download(B), b.ndim)
            x = X[:, 0] if b.ndim == 1 else X
        else:
            B, restore = prepare_rhs(b, factor.symbolic.n, self.dtype)
            X, errors, taken = self.solve_on_host(B, trans, steps, judged)
            x = restore(X)
        if errors is None:
            return x, None
        exponent.refuse_overflow(errors, X.dtype)
        if steps is None:
            self._warn_of(exponent.warned_of_underflow(errors, X.dtype))
        if about is None:
            return x, None
        return x, self._report(about(), errors, X, B, trans, taken, began)

    def solve_on_host(
        self, B: np.ndarray, trans: str, steps: int | None, judged: bool = True
    ) -> tuple[np.ndarray, Errors | None, int]:
        """As `_solve_block`, for a host array wherever the factor is."""
        X, errors, taken = self._solve_block(self.factor.upload(B), trans, steps, judged)
        return self.factor.download(X), errors, taken

    @np.errstate(all="ignore")  # of what is not finite, the errors tell
    def _solve_block(
        self, B: Vectors, trans: str, steps: int | None, judged: bool
    ) -> tuple[Vectors, Errors | None, int]:
        """Solution, errors (None if not judged) and steps for an array that is with the factor."""
        if _is_split(B, self.dtype):
            k = B.shape[1]
            parts = self.factor.empty(2 * k, B.real.dtype)
            parts[:, :k], parts[:, k:] = B.real, B.imag
            X, errors, taken = self._solve_block(parts, trans, steps, judged)
            return X[:, :k] + 1j * X[:, k:], errors, taken
        system = self.factor.system(trans, B.dtype)
        X, errors, taken = refine.solve(system, B, steps, judged)
        if errors is None:
            return X, errors, taken
        if steps is None and errors.insufficient(float(np.finfo(B.dtype).eps)):
            X, errors, more = self._rescued(X, B, trans, errors)
            taken += more
        return exponent.mended(self.factor, X, B, trans, steps, errors, taken)

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

    def assess(self) -> None:
        """Refuse a singular matrix, warn of a nearly singular one; see `condition.assess`."""
        self.assessed = True
        assess(self.factor, self.solve_on_host)

    def _warn_of(self, errors: Errors) -> None:
        worst = float(errors.normwise.max(initial=0.0))
        eps = float(np.finfo(self.dtype).eps)
        if not self.assessed and errors.amplification * eps > 0.01:
            self.assess()
        if worst <= NORMWISE * eps:
            return
        if not np.isfinite(worst) or (self.factor.perturbed and worst > eps**0.75):
            raise SingularMatrixError.numerical(
                smallest_pivot_column(self.factor), f"the backward error stays at {worst:.1e}"
            )
        warn(
            f"the backward error of the solution stays at {worst:.1e}; scale the matrix, or "
            "use float64",
            IllConditionedWarning,
        )

    def _report(
        self,
        about: dict[str, Any],
        errors: Errors,
        X: Vectors,
        B: Vectors,
        trans: str,
        taken: int,
        began: float,
    ) -> SolveInfo:
        component = errors.componentwise
        if component is None:  # on the host, where refinement had no use for it
            if _is_split(B, self.dtype):
                X, B = (np.concatenate([np.real(M), np.imag(M)], axis=1) for M in (X, B))
            system = self.system(trans, X.dtype)
            component = componentwise_error(system, X, B, system.residual(X, B))
        return SolveInfo(
            **{name: about[name] for name in about if name != "seconds"},
            backward_error=float(errors.normwise.max(initial=0.0)),
            componentwise_error=float(component.max(initial=0.0)),
            refinement_steps=taken,
            seconds={**about["seconds"], "solve": time.perf_counter() - began},
        )


def _is_split(B: Vectors, dtype: np.dtype) -> bool:
    """Whether a real factor solves for real and imaginary parts."""
    return B.dtype.kind == "c" and dtype.kind != "c"
