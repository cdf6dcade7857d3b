"""Forward and backward substitution over the fronts on the device, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import blas3, getrf
from .fronts import THREADS, Fronts, Pattern


class Solver:
    """Forward and backward substitution for so many right-hand sides."""

    def __init__(self, pattern: Pattern, panels: Any, pivots: Any, width: int) -> None:
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
            fronts = Fronts(pattern, level, panels)
            n = np.full(len(level), self.n)
            x = fronts.batch(self._x, fronts.start, fronts.k, width, n)
            offset = schedule.vector[level] * width
            update = fronts.batch(self._vectors, offset, fronts.m, width, fronts.m)
            rows = None if pattern.symmetric else fronts.interchanges(pivots)
            self._levels.append((fronts, x, update, rows))

    def solve(self, b: np.ndarray, transposed: bool) -> np.ndarray:
        """Solve for b, (n, width) on the host; `transposed` is for LU."""
        device = self.pattern.device
        self._x[...] = device.upload(np.ascontiguousarray(b.T).reshape(-1))
        for height in range(len(self._levels)):
            self._forward(height, transposed)
        for height in reversed(range(len(self._levels))):
            self._backward(height, transposed)
        return device.download(self._x).reshape(self.width, self.n).T

    def _forward(self, height: int, transposed: bool) -> None:
        fronts, x, update, rows = self._levels[height]
        if height:
            self._gather("front_forward", height)
        beta = 1.0 if height else 0.0
        if transposed:
            blas3.trsm("L", "U", "T", "N", 1.0, fronts.diagonal, x)
            blas3.gemm("N", "N", -1.0, fronts.right, x, beta, update)
            return
        if rows is not None:
            getrf.interchange(rows, x, back=False)
        blas3.trsm("L", "L", "N", "N" if rows is None else "U", 1.0, fronts.diagonal, x)
        blas3.gemm("N", "N", -1.0, fronts.below, x, beta, update)

    def _backward(self, height: int, transposed: bool) -> None:
        fronts, x, update, rows = self._levels[height]
        self._gather("front_backward", height)
        if rows is None:
            blas3.gemm("C", "N", -1.0, fronts.below, update, 1.0, x)
            blas3.trsm("L", "L", "C", "N", 1.0, fronts.diagonal, x)
        elif transposed:
            blas3.gemm("T", "N", -1.0, fronts.below, update, 1.0, x)
            blas3.trsm("L", "L", "T", "U", 1.0, fronts.diagonal, x)
            getrf.interchange(rows, x, back=True)
        else:
            blas3.gemm("T", "N", -1.0, fronts.right, update, 1.0, x)
            blas3.trsm("L", "U", "N", "N", 1.0, fronts.diagonal, x)

    def _gather(self, name: str, height: int) -> None:
        pattern = self.pattern
        kernel = pattern.device.kernel("front.cu", name, self._x.dtype)
        grid = len(pattern.schedule.levels[height]), self.width
        arguments = (pattern.lists[height], self._x, np.int32(self.n), self._vectors)
        kernel(grid, (THREADS,), (pattern.struct, *arguments, np.int32(self.width)))
