"""Solutions of many systems of one pattern with small fronts alone: one launch of front_trees.cu.

They are the blocks of a block diagonal matrix, each with a tree of its own; what the fronts are,
and where their panels lie, is as for any other matrix.
"""

from __future__ import annotations

from functools import cached_property
from typing import TypeAlias
from weakref import ReferenceType, ref

import numpy as np

from ..runtime.array import NULL, Array, Value
from ..runtime.structs import filled
from . import health, launch, structs
from .factor import GpuFactor
from .pattern import Pattern
from .solve_tasks import fits_warp

Structs: TypeAlias = tuple[np.ndarray, np.ndarray]  # `Solve` and `Trees`

# systems for each multiprocessor: with fewer, the fronts of a system wait for each other
FEWEST = 4


class Trees:
    """What solves with factors of one pattern, some systems of one order beside each other.

    Parameters
    ----------
    pattern : Pattern
        Of all of them.
    count : int
        Number of systems.
    """

    def __init__(self, pattern: Pattern, count: int) -> None:
        n = int(pattern.plan.start[-1]) // max(count, 1)
        self._pattern, self._count, self._n = pattern, count, n
        self._columns: dict[str, Array] = {}
        self._last: dict[str, tuple[ReferenceType[GpuFactor], Structs]] = {}

    def suits(self, dtype: np.dtype) -> bool:
        """Whether there are systems enough, and of such fronts."""
        plan = launch.front_trees(dtype, 1, self._n, self._pattern.device.limits)
        return self._enough() and plan is not None and self._small

    def _enough(self) -> bool:
        return self._count >= FEWEST * self._pattern.device.limits.multiprocessors

    @cached_property
    def _small(self) -> bool:
        return self._n > 0 and bool(fits_warp(self._pattern).all())

    def solved(
        self, factor: GpuFactor, trans: str, given: Array, before: Array | None, b: Array
    ) -> tuple[Array, Array, np.ndarray]:
        """Solve op(A) X = given for vectors (count * n, k); waits.

        Parameters
        ----------
        before : device array, optional
            Added to X.
        b : device array
            What op(A) X should be then.

        Returns
        -------
        X, R : device arrays
            R = b - op(A) X.
        sizes : (4, k, count) float64 array
            Largest entries of R, X, b, and of |R| / (|op(A)| |X| + |b|).
        """
        xp, device, k = self._pattern.device.xp, self._pattern.device, b.shape[1]
        X, R = (xp.empty(b.shape, b.dtype, order="F") for _ in "XR")
        sizes = xp.empty((k, 4, self._count), np.float64)
        first = 0
        while first < k:
            plan = launch.front_trees(b.dtype, k - first, self._n, device.limits)
            if plan is None:
                raise RuntimeError("vectors do not fit in shared memory")
            part = slice(first, min(first + plan.width, k))
            vectors = given[:, part], NULL if before is None else before[:, part], b[:, part]
            self._launch(factor, trans, plan, *vectors, X[:, part], R[:, part], sizes[part])
            first = part.stop
        return X, R, device.download(sizes).transpose(1, 0, 2)

    def _launch(
        self,
        factor: GpuFactor,
        trans: str,
        plan: launch.SolvePlan,
        given: Array,
        before: Value,
        b: Array,
        X: Array,
        R: Array,
        sizes: Array,
    ) -> None:
        pattern, dtype = self._pattern, factor.dtype
        system = factor.system(trans, dtype)
        constants = plan.constants | health.constants(pattern, FLIP=system.ends.transposed)
        kernel = pattern.device.kernel("front_trees.cu", "front_trees", dtype, **constants)
        teams = plan.threads // 32
        blocks = min(plan.blocks, -(-self._count // teams))
        vectors = factor.values, given, before, b, X, R, sizes
        told = *self._structs(factor, trans), factor.storage.panels
        arguments = (*told, np.int32(b.shape[1]), *vectors)
        kernel((blocks,), (plan.threads,), arguments, plan.shared)

    def _structs(self, factor: GpuFactor, trans: str) -> Structs:
        """What kernels are told of a factor: made once for solves one after another."""
        last = self._last.get(trans)
        if last is not None and last[0]() is factor:
            return last[1]
        made = self._solve(factor), self._struct(factor, trans)
        self._last[trans] = ref(factor), made
        return made

    def _solve(self, factor: GpuFactor) -> np.ndarray:
        """The struct `Solve`, less what is for messages."""
        pattern = self._pattern
        solver = factor.storage.solver_of(pattern)
        return filled(
            pattern.device,
            structs.SOLVE,
            **dict.fromkeys(("message_pointer", "slots", "y", "z", "messages", "partial")),
            ticket=None,
            count=0,
            tasks=pattern.all_tasks(factor.dtype),
            place=solver.place,
            diagonal=solver.d.diagonal if solver.d else None,
            coupling=solver.d.coupling if solver.d else None,
        )

    def _struct(self, factor: GpuFactor, trans: str) -> np.ndarray:
        """The struct `Trees`."""
        pattern, count, n = self._pattern, self._count, self._n
        system, plan = factor.system(trans, factor.dtype), pattern.plan
        into, out, rows = system.ends.enter, system.ends.leave, system.rows
        if trans not in self._columns:
            self._columns[trans] = self._in_order(rows.column, out.place)
        return filled(
            pattern.device,
            structs.TREES,
            rows=pattern.arrays["rows"],
            into=into.place,
            out=out.place,
            scale_into=into.scale,
            scale_out=out.scale,
            pointer=rows.pointer,
            column=self._columns[trans],
            position=rows.position,
            entries=factor.values.size // count,
            systems=count,
            fronts=pattern.k.size // count,
            n=n,
            updates=int(plan.pointer[-1]) // count,
            ld=launch.trees_ld(n),
            conjugate=into.conjugate,
            conjugate_matrix=rows.conjugate,
            spare=0,
        )

    def _in_order(self, index: Array, out: Array) -> Array:
        """Columns of the entries of the first system, by their places in its vectors."""
        xp = self._pattern.device.xp
        place = xp.empty(self._n, np.int32)
        place[out[: self._n]] = xp.arange(self._n, dtype=np.int32)
        return place[index[: index.size // self._count]]
