"""The GPU backend: fronts assembled and factorized level by level.

Each level is a few launches over all its fronts: gather the children's contribution blocks, add
the entries of A, then potrf, trsm and herk (or getrf, trsm and gemm) of variable sizes. Nothing
waits for the device before the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import cpu
from ..backend import NumericFactor, PivotFailure, Progress
from ..errors import FactorMemoryError
from ..plan import Plan
from . import blas3, getrf, potrf
from .front_solve import Solver
from .fronts import THREADS, Fronts, Pattern

_WIDTH = 32  # right-hand sides solved together


class GpuFactor:
    """Panels on the device; see `backend.NumericFactor`."""

    def __init__(self, pattern: Pattern, panels: Any, pivots: Any, perturbed: int) -> None:
        self.pattern, self.device_panels, self.device_pivots = pattern, panels, pivots
        self.perturbed = perturbed
        self._solver: Solver | None = None

    @property
    def pivots(self) -> np.ndarray:
        """Row interchanges on the host."""
        if self.device_pivots is None:
            return np.empty(0, np.int32)
        return self.pattern.device.download(self.device_pivots) - 1

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
        conjugate = transposed and self.pattern.symmetric and np.iscomplexobj(x)
        flip = transposed and not self.pattern.symmetric
        for first in range(0, x.shape[1], _WIDTH):
            part = x[:, first : first + _WIDTH]
            if self._solver is None or self._solver.width != part.shape[1]:
                stored = self.device_panels, self.device_pivots
                self._solver = Solver(self.pattern, *stored, part.shape[1])
            solution = self._solver.solve(part.conj() if conjugate else part, flip)
            part[...] = solution.conj() if conjugate else solution


class GpuBackend:
    """See `backend.Backend`."""

    name = "gpu"

    def __init__(self, device: Any = None) -> None:
        if device is None:
            from .device import device_of

            device = device_of()
        self._device = device
        self.device = device.name

    def upload(self, plan: Plan, symmetric: bool) -> None:
        """See `Backend`."""
        self.pattern = Pattern(self._device, plan, symmetric)

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
        pivots = None if pattern.symmetric else device.xp.zeros(int(plan.start[-1]), np.int32)
        done = 0
        for height, level in enumerate(pattern.schedule.levels):
            self._assemble(height, panels, blocks, given)
            found = info[done : done + len(level)]
            if pivots is None:
                self._cholesky(height, panels, blocks, found)
            else:
                self._lu(height, panels, blocks, pivots, found, tiny)
            done += len(level)
            if progress:
                progress("factorization", done, plan.parent.size)
        told = device.download(info)
        if pivots is None:
            self._check(told)
            return GpuFactor(pattern, panels, None, 0)
        return GpuFactor(pattern, panels, pivots, int(told.sum()))

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
        if count:
            lower = int(pattern.symmetric)
            assemble = kernel("front.cu", "front_assemble", panels.dtype, LOWER=lower)
            assemble((count,), (THREADS,), (pattern.struct, work, panels, blocks))
        source, target, entries = pattern.entries[height]
        if entries:
            add = kernel("front.cu", "front_entries", panels.dtype)
            grid = (-(-entries // THREADS),)
            add(grid, (THREADS,), (source, target, np.int64(entries), values, panels))

    def _blocks(self, height: int, panels: Any, blocks: Any) -> tuple[Fronts, Any, float]:
        """Blocks of a level's fronts, their contribution blocks, and what these begin with."""
        level = self.pattern.schedule.levels[height]
        fronts = Fronts(self.pattern, level, panels)
        offset = self.pattern.schedule.block[level]
        block = fronts.batch(blocks, offset, fronts.m, fronts.m, fronts.m)
        return fronts, block, 1.0 if height else 0.0

    def _cholesky(self, height: int, panels: Any, blocks: Any, info: Any) -> None:
        fronts, block, beta = self._blocks(height, panels, blocks)
        potrf.potrf(fronts.diagonal, info)
        blas3.trsm("R", "L", "C", "N", 1.0, fronts.diagonal, fronts.below)
        blas3.herk("L", "N", -1.0, fronts.below, beta, block)

    def _lu(
        self, height: int, panels: Any, blocks: Any, pivots: Any, info: Any, tiny: float
    ) -> None:
        pattern, (fronts, block, beta) = self.pattern, self._blocks(height, panels, blocks)
        getrf.getrf(fronts.diagonal, fronts.interchanges(pivots), info, tiny=tiny)
        work, count = pattern.swaps[height]
        if count:
            swap = self._device.kernel("front.cu", "front_swap", panels.dtype)
            swap((count,), (THREADS,), (pattern.struct, work, pivots, panels))
        blas3.trsm("R", "U", "N", "N", 1.0, fronts.diagonal, fronts.below)
        blas3.trsm("R", "L", "T", "U", 1.0, fronts.diagonal, fronts.right)
        blas3.gemm("N", "T", -1.0, fronts.below, fronts.right, beta, block)

    def _check(self, info: np.ndarray) -> None:
        """Raise for the first column in elimination order that failed."""
        failed = np.flatnonzero(info)
        if len(failed):
            fronts = np.concatenate(self.pattern.schedule.levels)[failed]
            raise PivotFailure(int((self.pattern.plan.start[fronts] + info[failed]).min()) - 1)
