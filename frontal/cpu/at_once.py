"""Solutions for plain right-hand sides in one compiled call that allocates all it needs.

What a solve of a small system costs is what is done around its arithmetic. Here is nothing around
it: whatever is unusual is left to those who look closer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._jit import jit
from .blas_limit import single_threaded_blas
from .residual import measure
from .substitution import Substitution
from .system import HostSystem
from .triangular import substitute

MOST = 4096  # unknowns; of more the little that is saved is no matter


class AtOnce:
    """x for op(A) x = b with a vector b, by the same arithmetic as `HostSystem.solved`.

    Parameters
    ----------
    system : HostSystem
        Whose solver is a `Substitution`.
    """

    def __init__(self, system: HostSystem) -> None:
        solver = system.solver
        if not isinstance(solver, Substitution):
            raise TypeError("only a substitution on the host is compiled into one call")
        self._of = *solver.bound, *system.bound
        self._dtype, self._shape = system.data.dtype, (system.indptr.size - 1,)
        self._calls_blas, self._hopeful = solver.calls_blas, True

    def __call__(self, b: object) -> tuple[np.ndarray, float] | None:
        """x, and |A||x|/|b| as `residual.measure` has it; None for what is no plain vector.

        None, too, if x is worse than rounding makes it or a size is out of the ordinary; no other b
        is tried then.
        """
        if type(b) is not np.ndarray or b.shape != self._shape or b.dtype != self._dtype:
            return None
        if not (self._hopeful and b.flags.carray):
            return None
        x = np.empty(self._shape, self._dtype)
        if self._calls_blas:
            with single_threaded_blas():
                amplification = _solve_at_once(*self._of, b, x)
        else:
            amplification = _solve_at_once(*self._of, b, x)
        if not amplification >= 0:
            self._hopeful = False
            return None
        return x, amplification


@jit
def solve_at_once(
    start, pointer, rows, panel, panels, pivots, diagonal, coupling, table, scalars, reals, adjoint,
    one_triangle, unit, indefinite, conjugate, transposed, conjugated,
    into, left, out, right, widest,
    indptr, indices, data, flipped, badly_scaled, norm, limits, b, x,
):  # fmt: skip
    """|A||x|/|b| of the solution x of op(A) x = b, or -1 if it is not fine; see `measure`."""
    n = b.size
    B, X = b.reshape((1, n)), x.reshape((1, n))
    substitute(
        start, pointer, rows, panel, panels, pivots, diagonal, coupling, table, scalars, reals,
        adjoint, one_triangle, unit, indefinite, conjugate, transposed, conjugated,
        into, left, out, right, widest, 1, B, X,
    )  # fmt: skip
    R, sizes = np.empty((1, n), x.dtype), np.empty((4, 1), reals.dtype)
    _, amplification, fine = measure(
        indptr, indices, data, flipped, badly_scaled, norm, limits, X, B, R, sizes
    )
    return amplification if fine else -1.0


_solve_at_once: Callable[..., float] = solve_at_once
