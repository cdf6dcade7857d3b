"""Solutions of many systems of one pattern with only small fronts: one launch of front_trees.cu.

The systems are the blocks of a block diagonal matrix, each with its own tree; fronts and panels are
stored as for any other matrix.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, TypeAlias
from weakref import ReferenceType, ref

import numpy as np

from ...runtime.array import NULL, Array, Kernel
from ...runtime.structs import filled
from .. import launch, structs
from ..factor import GpuFactor
from ..pattern import DevicePattern
from ..tasks.solves import fits_warp
from ..tasks.warp_partition import WarpPartition, warp_partition
from ..workspace import FactorWorkspace

Structs: TypeAlias = tuple[np.ndarray, np.ndarray]  # `Solve` and `Trees`

# systems for each multiprocessor: with fewer, the latency of the fronts of a system dominates;
# if a warp has few steps, a fraction is enough
MIN_SYSTEMS = 4
_MAX_SHORT_STEPS, _SHORT_DIVISOR = 128, 64  # steps of a warp; divisor of MIN_SYSTEMS
_TEAMS = 1, 2, 3, 4, 6, 8  # warps for a system
_MIN_WARP_FRONTS = 4  # least number of fronts for each warp of a team


class _TreeArguments(NamedTuple):
    """Launch arguments of one factor, and the arrays outside its storage that they refer to."""

    storage: ReferenceType[FactorWorkspace]
    read: tuple[Array | None, ...]
    structs: Structs
    flip: bool
    team: int


class SmallTreeSolver:
    """Solver with factors of one pattern, for a batch of `count` systems of one order.

    `pattern` is that of all systems together.
    """

    def __init__(self, pattern: DevicePattern, count: int) -> None:
        n = int(pattern.plan.start[-1]) // max(count, 1)
        self._pattern, self._count, self._n = pattern, count, n
        self._columns: dict[str, tuple[Array, Array]] = {}
        self._last: dict[str, _TreeArguments] = {}
        self._plans: dict[tuple[np.dtype, int], launch.SolvePlan | None] = {}
        self._all_shares: dict[int, WarpPartition] = {}
        self._arrays: dict[int, dict[str, Array]] = {}
        self._kernels: dict[tuple[np.dtype, launch.SolvePlan, bool, bool], Kernel] = {}

    def suits(self, dtype: np.dtype) -> bool:
        """Return whether there are enough systems, with only small fronts."""
        plan = self._plan(dtype, 1) if self._small else None
        if plan is None:
            return False
        least = MIN_SYSTEMS * self._pattern.device.limits.multiprocessors
        if self._shares(plan.team).steps <= _MAX_SHORT_STEPS:
            least //= _SHORT_DIVISOR
        return self._count >= least

    @cached_property
    def _small(self) -> bool:
        return self._n > 0 and bool(fits_warp(self._pattern).all())

    def _plan(self, dtype: np.dtype, width: int) -> launch.SolvePlan | None:
        """Return the launch for `width` vectors of a scalar type, with the fastest team."""
        key = dtype, width
        if key not in self._plans:
            plans = self._launches(dtype, width)
            self._plans[key] = plans[min(plans)] if plans else None
        return self._plans[key]

    def certifies(self, dtype: np.dtype) -> bool:
        """Return whether a certificate can be computed beside one right-hand side."""
        return self._beside(dtype) is not None

    def _beside(self, dtype: np.dtype) -> launch.SolvePlan | None:
        """Return the launch for two vectors with the team for one vector: same bits."""
        single = self._plan(dtype, 1)
        candidates = [] if single is None else self._launches(dtype, 2).items()
        plans = [
            plan for (_, team), plan in candidates if single is not None and team == single.team
        ]
        return plans[0] if plans and plans[0].width >= 2 else None

    def _launches(self, dtype: np.dtype, width: int) -> dict[tuple[float, int], launch.SolvePlan]:
        """Return the launches that fit, by steps of a vector and warps of a team."""
        plans, limits = {}, self._pattern.device.limits
        for team in _TEAMS:
            if team > 1 and self._fronts < _MIN_WARP_FRONTS * team:
                continue
            partition = self._shares(team)
            plan = launch.front_trees(dtype, width, self._n, limits, team, partition.top.size)
            if plan is not None:
                concurrent = limits.multiprocessors * plan.residents * plan.teams
                plans[-(-self._count // concurrent) * partition.steps / plan.width, team] = plan
        return plans

    @property
    def _fronts(self) -> int:
        return self._pattern.k.size // max(self._count, 1)

    def _shares(self, team: int) -> WarpPartition:
        """Return the partition of a system's fronts among the warps of a team."""
        if team not in self._all_shares:
            plan, fronts = self._pattern.plan, self._fronts
            start, pointer = plan.start[: fronts + 1], plan.pointer[: fronts + 1]
            rows = plan.rows[: int(pointer[-1])]
            partition = warp_partition(plan.parent[:fronts], start, pointer, rows, team)
            self._all_shares[team] = partition
        return self._all_shares[team]

    def _on_device(self, team: int) -> dict[str, Array]:
        """Return the index arrays of a team, by the names of their fields."""
        if team not in self._arrays:
            upload, partition = self._pattern.device.upload, self._shares(team)
            names = "order", "begins", "top", "up"
            self._arrays[team] = {name: upload(getattr(partition, name)) for name in names}
        return self._arrays[team]

    def solved(
        self,
        factor: GpuFactor,
        trans: str,
        rhs: Array,
        before: Array | None,
        b: Array,
        bound: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        """Solve op(A) X = rhs for vectors (count * n, k); nothing waits.

        Parameters
        ----------
        before : device array, optional
            Added to X.
        b : device array
            Right-hand side of op(A) X after that addition.
        bound : (count,) device array of float64, optional
            Receives the certificate of each system, see `certifies`; for one right-hand side.

        Returns
        -------
        X, R : device arrays
            R = b - op(A) X.
        sizes : (k, 5, count) device array of float64
            Largest entries of R, X, b, of |R| / (|op(A)| |X| + |b|), and rowwise errors.
        """
        xp, k = self._pattern.device.xp, b.shape[1]
        X, R = (xp.empty(b.shape, b.dtype, order="F") for _ in "XR")
        sizes = xp.empty((k, 5, self._count), np.float64)
        first = 0
        while first < k:
            plan = self._plan(b.dtype, k - first) if bound is None else self._beside(b.dtype)
            if plan is None:
                raise RuntimeError("vectors do not fit in shared memory")
            columns = slice(first, min(first + plan.width, k))
            vectors = rhs, before, b, X, R
            if k > plan.width:
                vectors = tuple(None if V is None else V[:, columns] for V in vectors)
            out = sizes[columns] if k > plan.width else sizes
            self._launch(factor, trans, plan, vectors, out, bound)
            first = columns.stop
        return X, R, sizes

    def _launch(
        self,
        factor: GpuFactor,
        trans: str,
        plan: launch.SolvePlan,
        vectors: tuple[Array | None, ...],
        sizes: Array,
        bound: Array | None,
    ) -> None:
        """Enqueue the kernel for the vectors rhs, before, b, X and R."""
        ready, dtype = self._ready(factor, trans, plan.team), factor.dtype
        blocks = min(plan.blocks, -(-self._count // plan.teams))
        leading = *ready.structs, factor.storage.panels, np.int32(sizes.shape[0]), factor.values
        arguments = *leading, *(NULL if V is None else V for V in (*vectors, sizes, bound))
        kernel = self._kernel(dtype, plan, ready.flip, bound is not None)
        kernel((blocks,), (plan.threads,), arguments, plan.shared)

    def _kernel(self, dtype: np.dtype, plan: launch.SolvePlan, flip: bool, certify: bool) -> Kernel:
        key = dtype, plan, flip, certify
        if key not in self._kernels:
            pattern = self._pattern
            constants = plan.constants | pattern.constants(FLIP=flip, CERTIFY=certify)
            kernel = pattern.device.kernel("front_trees.cu", "front_trees", dtype, **constants)
            self._kernels[key] = kernel
        return self._kernels[key]

    def _ready(self, factor: GpuFactor, trans: str, team: int) -> _TreeArguments:
        """Return the launch arguments of a factor, cached for the same storage and values."""
        last, read = self._last.get(trans), (factor.values, *factor.scales)
        if (
            last is None
            or last.team != team
            or last.storage() is not factor.storage
            or any(one is not other for one, other in zip(last.read, read, strict=True))
        ):
            kernel_structs = self._solve(factor), self._struct(factor, trans, team)
            flip = factor.system(trans, factor.dtype).ends.transposed
            last = self._last[trans] = _TreeArguments(
                ref(factor.storage), read, kernel_structs, flip, team
            )
        return last

    def _solve(self, factor: GpuFactor) -> np.ndarray:
        """Return the struct `Solve`, without the fields for messages."""
        pattern = self._pattern
        solver = factor.storage.solver_of(pattern)
        return filled(
            pattern.device,
            structs.SOLVE,
            **dict.fromkeys(("message_pointer", "slots", "y", "z", "x", "messages", "partial")),
            ticket=None,
            count=0,
            tasks=pattern.all_tasks(factor.dtype),
            place=solver.place,
            diagonal=solver.d.diagonal if solver.d else None,
            coupling=solver.d.subdiagonal if solver.d else None,
        )

    def _struct(self, factor: GpuFactor, trans: str, team: int) -> np.ndarray:
        """Return the struct `Trees`."""
        pattern, count, n = self._pattern, self._count, self._n
        system, plan = factor.system(trans, factor.dtype), pattern.plan
        tops = self._shares(team).top.size
        into, out, rows = system.ends.enter, system.ends.leave, system.rows
        if trans not in self._columns:
            self._columns[trans] = self._in_order(rows.column, out.place)
        columns, place = self._columns[trans]
        return filled(
            pattern.device,
            structs.TREES,
            rows=pattern.arrays["rows"],
            **self._on_device(team),
            into=into.place,
            out=out.place,
            scale_into=into.scale,
            scale_out=out.scale,
            pointer=rows.pointer,
            column=columns,
            place=place,
            position=rows.position,
            entries=factor.values.size // count,
            systems=count,
            fronts=self._fronts,
            n=n,
            updates=int(plan.pointer[-1]) // count,
            ld=launch.trees_ld(n, team, tops),
            conjugate=into.conjugate,
            conjugate_matrix=rows.flags,
            tops=tops,
        )

    def _in_order(self, index: Array, out: Array) -> tuple[Array, Array]:
        """Return columns of the first system's entries as positions in vectors; all positions."""
        xp = self._pattern.device.xp
        place = xp.empty(self._n, np.int32)
        place[out[: self._n]] = xp.arange(self._n, dtype=np.int32)
        return place[index[: index.size // self._count]], place
