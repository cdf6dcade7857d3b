"""Solutions for plain right-hand sides, one graph each: what is around the sweeps is in it, too.

For a small system the launches, and what the host does between them, cost more than the sweeps.
Here the host copies a vector, launches one graph, and looks at six numbers; whatever is unusual
is left to those who look closer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ..._typing import Untyped
from ...cached import cached_property
from ...numeric.backward_error import limits_of
from ...numeric.condition import CERTIFIED
from ..runtime.array import NULL, Array, Staged
from ..runtime.graph import Replayed
from .substitute import Solver, Sweeps
from .system import DeviceSystem, Resident, bound_of

MOST = 1 << 15  # unknowns; of more what is saved is no matter, and vectors are kept for it


class Found(NamedTuple):
    """A solution where its right-hand side is, as `NumericFactor.at_once` has it."""

    x: Untyped
    error: float
    condition: float = -1.0
    certified: bool = False


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
        self._by_component = factor.scales[0] is not None
        self._limits = limits_of(self._dtype, self._dtype).tolist()
        xp, n = self._device.xp, factor.entries.n
        # beside b, and beside x, there is room for what a certificate is found by
        self._B, self._X = (xp.empty((n, 2), self._dtype, order="F") for _ in range(2))
        self._b, self._x, self._r = self._B[:, 0], self._X[:, 0], xp.empty(n, self._dtype)
        norms = self._all_norms = xp.empty(8, np.float64)
        self._norms = self._device.staged(norms)
        self._trans, self._run = trans, self._replayed(factor, trans, sweeps, 1)
        self._beside: tuple[Sweeps, Replayed] | None = None  # with a certificate

    def _replayed(self, factor: Resident, trans: str, sweeps: Sweeps, count: int) -> Replayed:
        """What solves for b, or with it for the row sums of |op(A)|, and measures."""
        system, norms = DeviceSystem(factor, trans, self._dtype), self._all_norms
        B, X = self._B[:, :count], self._X[:, :count]
        enter, leave = system.around(sweeps, count, B, NULL, X)
        launches: list[Callable[[], object]] = [enter, sweeps.enqueue, leave]
        launches += system.measuring(self._x, self._b, self._r, norms)
        if count > 1:
            launches.insert(0, system.summing(self._B[:, 1]))
            launches.append(system.certifying(self._X[:, 1], norms[6:]))
        begin = partial(self._device.clear, norms)
        return Replayed(self._device, begin, (*launches, self._norms.fetch))

    def _with_certificate(self, factor: Resident) -> Replayed:
        """The same with a certificate; made once."""
        if self._beside is None:
            transposed = self._trans != "N" and not factor.entries.pattern.method.one_triangle
            sweeps = self._solver.sweeps(2, transposed)
            self._beside = sweeps, self._replayed(factor, self._trans, sweeps, 2)
        return self._beside[1]

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
        wide = self._beside is None or self._solver.has(self._beside[0])
        return wide and self._solver.has(self._sweeps)

    @cached_property
    def _sent(self) -> Staged:
        return self._device.staged(self._b)

    @cached_property
    def _fetched(self) -> Staged:
        return self._device.staged(self._x)

    def __call__(self, b: Untyped, how: int, factor: Resident) -> Found | None:
        """x, and what is known of it; None for what is no plain vector.

        `how` is `CERTIFIED` if a bound of the condition number is wanted, and `KNOWN` otherwise;
        the factor is the one that this is of.

        The error is negative if x is worse than rounding makes it, or a size is unusual.
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
        run = self._with_certificate(factor) if how == CERTIFIED else self._run
        if not run.again():
            if device.capturing():
                return None
            run()
        if there:  # while the device is at work
            x = device.xp.empty(self._shape, self._dtype)
            device.copy(self._x, x)
            device.wait()
        else:
            self._fetched.fetch()
            device.wait()
            x = self._fetched.host.copy()
        if how != CERTIFIED:
            return Found(x, self._error())
        bound = bound_of(*self._norms.host.tolist()[6:])
        return Found(x, self._error(), bound if bound < np.inf else -1.0, True)

    def _error(self) -> float:
        """Rowwise error, eps at least; -1 if not `Errors.fine`."""
        residual, solution, rhs, component, rowwise, norm = self._norms.host.tolist()[:6]
        scale = norm * solution + rhs
        normwise = residual / scale if scale > 0 else residual
        least, most_component, most_row, _, low, high, most, eps, _ = self._limits
        fine = normwise <= least and rowwise <= most_row
        if self._by_component:
            fine = fine and component <= most_component
        if rhs != 0:
            inside = low <= norm <= high and low <= rhs <= high and low <= solution <= high
            fine = fine and inside and norm * solution <= most
        return max(rowwise, eps) if fine else -1.0


def _read_of(factor: Resident) -> tuple[bool, tuple[Array | None, ...]]:
    """What launches read of a factor beside its storage."""
    return factor.hermitian, (factor.values, *factor.scales)


def _same(
    one: tuple[bool, tuple[Array | None, ...]], other: tuple[bool, tuple[Array | None, ...]]
) -> bool:
    return one[0] == other[0] and all(a is b for a, b in zip(one[1], other[1], strict=True))
