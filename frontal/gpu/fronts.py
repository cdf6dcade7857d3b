"""The GPU backend: fronts assembled and factorized level by level, solved likewise.

Each level is a few launches over all its fronts: gather the children's contribution blocks, add
the entries of A, then potrf, trsm and herk of variable sizes. Index arrays and the batches of every
level are uploaded once a pattern. Nothing waits for the device before the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import cpu
from ..backend import NumericFactor, PivotFailure, Progress
from ..errors import FactorMemoryError
from ..plan import Plan
from . import blas3, potrf
from .batch import Batch
from .schedule import Schedule, make_schedule
from .worklists import work_items

_TILE, _THREADS = (32, 32), 256  # of front.cu
_WIDTH = 32  # right-hand sides solved together
_FRONTS = np.dtype([(name, "u8") for name in (
    "start", "pointer", "rows", "relative", "child_pointer", "children", "panel", "block", "vector"
)], align=True)  # fmt: skip


class Pattern:
    """The index arrays of a plan on a device, and the lists of each level."""

    def __init__(self, device: Any, plan: Plan) -> None:
        self.device, self.plan = device, plan
        self.schedule: Schedule = make_schedule(plan)
        self.k, self.m = np.diff(plan.start), np.diff(plan.pointer).astype(np.int32)
        arrays = {
            "start": plan.start.astype(np.int32),
            "pointer": plan.pointer.astype(np.int64),
            "rows": plan.rows.astype(np.int32),
            "relative": plan.relative.astype(np.int32),
            "child_pointer": plan.child_pointer.astype(np.int32),
            "children": plan.children.astype(np.int32),
            "panel": plan.panel.astype(np.int64),
            "block": self.schedule.block,
            "vector": self.schedule.vector,
        }
        self._arrays = {name: device.upload(array) for name, array in arrays.items()}
        addresses = tuple(device.pointer(self._arrays[name]) for name in _FRONTS.names or ())
        self.struct = np.array(addresses, dtype=_FRONTS)
        self.lists = [device.upload(level) for level in self.schedule.levels]
        self.tiles = [self._tiles(i) for i in range(len(self.schedule.levels))]
        self.entries = [self._entries(level) for level in self.schedule.levels]

    def _tiles(self, height: int) -> tuple[Any, int]:
        """Tiles that a level assembles; contribution blocks of leaves begin at nothing."""
        level = self.schedule.levels[height]
        k, m = self.k[level].astype(np.int64), self.m[level].astype(np.int64)
        items = [work_items(k + m, k, k, _TILE, "L")]
        if height:
            blocks = work_items(m, m, m, _TILE, "L")
            blocks[:, 3] = 1
            items.append(blocks)
        work = np.concatenate(items)
        work[:, 0] = level[work[:, 0]]
        return self.device.upload(work), len(work)

    def _entries(self, level: np.ndarray) -> tuple[Any, Any, int]:
        """Where the entries of A that belong to a level come from and go to."""
        first, last = self.plan.entry_pointer[level], self.plan.entry_pointer[level + 1]
        count = last - first
        total = int(count.sum())
        where = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(total)
        sources = self.plan.source[where], self.plan.target[where]
        return self.device.upload(sources[0]), self.device.upload(sources[1]), total


class GpuFactor:
    """Panels on the device; see `backend.NumericFactor`."""

    perturbed = 0

    def __init__(self, pattern: Pattern, panels: Any) -> None:
        self.pattern, self.device_panels = pattern, panels
        self.pivots = np.empty(0, np.int32)
        self._solver: _Solver | None = None

    @property
    def panels(self) -> np.ndarray:
        """The panels on the host."""
        return self.pattern.device.download(self.device_panels)

    def to_cpu(self) -> cpu.CpuFactor:
        """Return the same factor on the host."""
        return cpu.CpuFactor(self.pattern.plan, self.panels, self.pivots, self.perturbed)

    def __reduce__(self) -> Any:
        """Pickles and copies hold the factor on the host."""
        host = self.to_cpu()
        return cpu.CpuFactor, (host.plan, host.panels, host.pivots, host.perturbed)

    def solve(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        conjugate = transposed and np.iscomplexobj(x)
        for first in range(0, x.shape[1], _WIDTH):
            part = x[:, first : first + _WIDTH]
            if self._solver is None or self._solver.width != part.shape[1]:
                self._solver = _Solver(self.pattern, self.device_panels, part.shape[1])
            solution = self._solver.solve(part.conj() if conjugate else part)
            part[...] = solution.conj() if conjugate else solution


class _Fronts:
    """The dense blocks of the fronts of a level, as batches."""

    def __init__(self, pattern: Pattern, level: np.ndarray, panels: Any) -> None:
        self._device, self._level, self._dtype = pattern.device, level, panels.dtype
        self._address = pattern.device.pointer(panels)
        plan, self.k, self.m = pattern.plan, pattern.k[level], pattern.m[level]
        self._panel, order = plan.panel[level], self.k + self.m
        self.diagonal = self.batch(panels, self._panel, self.k, self.k, order)
        below = self._panel + self.k
        self.below = self.batch(panels, below, self.m, self.k, order)

    def batch(self, array: Any, offset: np.ndarray, m: Any, n: Any, ld: Any) -> Batch:
        """Describe matrices that begin at offsets in an array."""
        addresses = self._device.pointer(array) + offset.astype(np.uint64) * array.itemsize
        return Batch.of_sizes(
            self._device, self._dtype, addresses, m, np.broadcast_to(n, m.shape), np.maximum(ld, 1)
        )


class _Solver:
    """Forward and backward substitution for so many right-hand sides."""

    def __init__(self, pattern: Pattern, panels: Any, width: int) -> None:
        device, schedule, self.pattern, self.width = (
            pattern.device,
            pattern.schedule,
            pattern,
            width,
        )
        self.n, dtype = int(pattern.plan.start[-1]), panels.dtype
        self._x = device.xp.empty(self.n * width, dtype)
        self._vectors = device.xp.empty(max(schedule.vectors * width, 1), dtype)
        self._levels = []
        for level in schedule.levels:
            fronts = _Fronts(pattern, level, panels)
            n = np.full(len(level), self.n)
            x = fronts.batch(self._x, pattern.plan.start[level], fronts.k, width, n)
            offset = schedule.vector[level] * width
            update = fronts.batch(self._vectors, offset, fronts.m, width, fronts.m)
            self._levels.append((fronts, x, update))

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Solve for b, (n, width) on the host."""
        device, xp = self.pattern.device, self.pattern.device.xp
        self._x[...] = device.upload(np.ascontiguousarray(b.T).reshape(-1))
        for height, (fronts, x, update) in enumerate(self._levels):
            if height:
                self._gather("front_forward", height)
            blas3.trsm("L", "L", "N", "N", 1.0, fronts.diagonal, x)
            blas3.gemm("N", "N", -1.0, fronts.below, x, 1.0 if height else 0.0, update)
        for height, (fronts, x, update) in reversed(list(enumerate(self._levels))):
            self._gather("front_backward", height)
            blas3.gemm("C", "N", -1.0, fronts.below, update, 1.0, x)
            blas3.trsm("L", "L", "C", "N", 1.0, fronts.diagonal, x)
        del xp
        return device.download(self._x).reshape(self.width, self.n).T

    def _gather(self, name: str, height: int) -> None:
        pattern = self.pattern
        kernel = pattern.device.kernel("front.cu", name, self._x.dtype)
        grid = len(pattern.schedule.levels[height]), self.width
        arguments = (pattern.lists[height], self._x, np.int32(self.n), self._vectors)
        kernel(grid, (_THREADS,), (pattern.struct, *arguments, np.int32(self.width)))


class GpuBackend:
    """See `backend.Backend`; Cholesky only."""

    name = "gpu"

    def __init__(self, device: Any = None) -> None:
        if device is None:
            from .device import device_of

            device = device_of()
        self._device = device
        self.device = device.name

    def upload(self, plan: Plan, symmetric: bool) -> None:
        """See `Backend`."""
        if not symmetric:
            raise ValueError("the GPU backend factorizes by Cholesky only")
        self.pattern = Pattern(self._device, plan)

    def factorize(
        self,
        values: np.ndarray,
        tiny: float,
        progress: Progress | None,
        previous: NumericFactor | None = None,
    ) -> NumericFactor:
        """See `Backend`."""
        device, pattern, plan = self._device, self.pattern, self.pattern.plan
        panels, blocks = self._storage(values.dtype, previous)
        given, info = device.upload(values), device.xp.zeros(plan.parent.size, np.int32)
        done = 0
        for height, level in enumerate(pattern.schedule.levels):
            self._assemble(height, panels, blocks, given)
            self._factor(height, panels, blocks, info[done : done + len(level)])
            done += len(level)
            if progress:
                progress("factorization", done, plan.parent.size)
        self._check(device.download(info))
        return GpuFactor(pattern, panels)

    def _storage(self, dtype: np.dtype, previous: NumericFactor | None) -> tuple[Any, Any]:
        """Memory for panels and contribution blocks: that of `previous` where it is one's own."""
        xp, plan = self._device.xp, self.pattern.plan
        sizes = max(int(plan.panel[-1]), 1), max(self.pattern.schedule.blocks, 1)
        required, available = sum(sizes) * dtype.itemsize, self._device.free_memory()
        if isinstance(previous, GpuFactor) and previous.device_panels.dtype == dtype:
            panels = previous.device_panels
            required -= panels.nbytes
        else:
            panels = None
        if required > available:
            raise FactorMemoryError(required, available)
        panels = xp.empty(sizes[0], dtype) if panels is None else panels
        return panels, xp.empty(sizes[1], dtype)

    def _assemble(self, height: int, panels: Any, blocks: Any, values: Any) -> None:
        pattern, kernel = self.pattern, self._device.kernel
        work, count = pattern.tiles[height]
        assemble = kernel("front.cu", "front_assemble", panels.dtype)
        assemble((count,), (_THREADS,), (pattern.struct, work, panels, blocks))
        source, target, entries = pattern.entries[height]
        if entries:
            add = kernel("front.cu", "front_entries", panels.dtype)
            grid = (-(-entries // _THREADS),)
            add(grid, (_THREADS,), (source, target, np.int64(entries), values, panels))

    def _factor(self, height: int, panels: Any, blocks: Any, info: Any) -> None:
        level = self.pattern.schedule.levels[height]
        fronts = _Fronts(self.pattern, level, panels)
        offset = self.pattern.schedule.block[level]
        block = fronts.batch(blocks, offset, fronts.m, fronts.m, fronts.m)
        potrf.potrf(fronts.diagonal, info)
        blas3.trsm("R", "L", "C", "N", 1.0, fronts.diagonal, fronts.below)
        blas3.herk("L", "N", -1.0, fronts.below, 1.0 if height else 0.0, block)

    def _check(self, info: np.ndarray) -> None:
        """Raise for the first column in elimination order that failed."""
        failed = np.flatnonzero(info)
        if len(failed):
            fronts = np.concatenate(self.pattern.schedule.levels)[failed]
            raise PivotFailure(int((self.pattern.plan.start[fronts] + info[failed]).min()) - 1)
