"""Solutions for plain right-hand sides, one graph each: what is around the sweeps is in it, too.

For a small system the launches, and what the host does between them, cost more than the sweeps.
Here the host copies a vector, launches one graph, and looks at five numbers; whatever is unusual
is left to those who look closer.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ..._typing import Untyped
from ...accuracy import COMPONENTWISE, NORMWISE, borders, eps_of
from ...cached import cached_property
from ..runtime.array import NULL, Array, Staged
from ..runtime.graph import Replayed
from .substitute import Solver, Sweeps
from .system import DeviceSystem, Resident

MOST = 1 << 15  # unknowns; of more what is saved is no matter, and vectors are kept for it


class Found(NamedTuple):
    """A solution where its right-hand side is, as `NumericFactor.at_once` has it."""

    x: Untyped
    amplification: float
    condition: float = -1.0


class AtOnce:
    """x for op(A) x = b with a vector b, by the kernels of `DeviceSystem`.

    It keeps what it reads of a factor, and neither the factor nor its storage, which keeps this.

    Attributes
    ----------
    alive : bool
        Nothing of what it uses has gone.
    """

    def __init__(self, factor: Resident, trans: str, solver: Solver, sweeps: Sweeps) -> None:
        self._solver, self._sweeps, self._read = solver, sweeps, _read_of(factor)
        self._dtype, self._device = np.dtype(factor.values.dtype), factor.entries.device
        self._shape = (factor.entries.n,)
        self._badly_scaled = factor.scales[0] is not None
        eps = eps_of(self._dtype)
        self._enough = NORMWISE * eps, COMPONENTWISE * eps
        self._borders = borders(self._dtype, self._dtype)
        xp, system = self._device.xp, DeviceSystem(factor, trans, self._dtype)
        self._b, self._x, r = (xp.empty(self._shape, self._dtype) for _ in range(3))
        norms = xp.empty(5, np.float64)
        self._norms = self._device.staged(norms)
        enter, leave = system.around(sweeps, 1, self._b, NULL, self._x)
        measure = system.measuring(self._x, self._b, r, norms)
        launches = enter, sweeps.enqueue, leave, measure, self._norms.fetch
        self._run = Replayed(self._device, partial(self._device.clear, norms), launches)

    @classmethod
    def of(cls, factor: Resident, trans: str) -> AtOnce | None:
        """That of a factor, perhaps of one before it in the same memory; None where it is no use.

        So it is for many unknowns, and where vectors are not of the scalar type of the factor.
        """
        storage, pattern = factor.storage, factor.entries.pattern
        if not 0 < factor.entries.n <= MOST or factor.values.dtype != storage.panels.dtype:
            return None
        made = storage.at_once.get(trans)
        fits = isinstance(made, cls) and made.alive and _same(made._read, _read_of(factor))
        if isinstance(made, cls) and fits:
            return made
        solver = storage.solver_of(pattern)
        sweeps = solver.sweeps(1, trans != "N" and not pattern.method.one_triangle)
        made = storage.at_once[trans] = cls(factor, trans, solver, sweeps)
        return made

    @property
    def alive(self) -> bool:
        return self._solver.has(self._sweeps)

    @cached_property
    def _sent(self) -> Staged:
        return self._device.staged(self._b)

    @cached_property
    def _fetched(self) -> Staged:
        return self._device.staged(self._x)

    def __call__(self, b: Untyped) -> Found | None:
        """x, and what is known of it; None for what is no plain vector.

        The amplification is negative if x is worse than rounding makes it, or a size is out of the
        ordinary.
        """
        device = self._device
        there = type(b) is not np.ndarray
        if there and not device.holds(b):
            return None
        if b.shape != self._shape or b.dtype != self._dtype or not b.flags.c_contiguous:
            return None
        if there:
            device.copy(b, self._b)
        else:
            self._sent.host[...] = b
            self._sent.send()
        if not self._run.again():
            if device.capturing():
                return None
            self._run()
        if there:  # while the device is at work
            x = device.xp.empty(self._shape, self._dtype)
            device.copy(self._x, x)
            device.wait()
        else:
            self._fetched.fetch()
            device.wait()
            x = self._fetched.host.copy()
        return Found(x, self._amplification())

    def _amplification(self) -> float:
        """|op(A)||x|/|b|, or -1; as `Errors` and `exponent.near_border` have it for one vector."""
        residual, solution, rhs, component, norm = self._norms.host.tolist()
        scale, (low, high, most) = norm * solution + rhs, self._borders
        error = residual / scale if scale > 0 else residual
        fine = error <= self._enough[0]
        if self._badly_scaled:
            fine = fine and component <= self._enough[1]
        if rhs == 0 or not fine:
            return 0.0 if fine else -1.0
        inside = low <= norm <= high and low <= rhs <= high and low <= solution <= high
        return norm * solution / rhs if inside and norm * solution <= most else -1.0


def _read_of(factor: Resident) -> tuple[bool, tuple[Array | None, ...]]:
    """What launches read of a factor beside its storage."""
    return factor.hermitian, (factor.values, *factor.scales)


def _same(
    one: tuple[bool, tuple[Array | None, ...]], other: tuple[bool, tuple[Array | None, ...]]
) -> bool:
    return one[0] == other[0] and all(a is b for a, b in zip(one[1], other[1], strict=True))
