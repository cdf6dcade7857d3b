"""A rung of the GPU ladder on one problem: its call, its inputs, its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_cases import Problem


@dataclass
class Run:
    """A rung on a problem: what to time, how to restore its inputs, where its results are."""

    call: Callable[[], Any]
    restore: Callable[[], Any]
    get: Callable[[int], np.ndarray]  # result i on the host
    pivots: Callable[[int], np.ndarray] | None = None  # from 0
    info: Any = None  # array on the device, zero where all is well
    count: int | None = None  # matrices done, where not all
    on_host: bool = False


def in_place(problem: Problem, call: Callable[[], Any], **more: Any) -> Run:
    """Return a run whose result is the problem's output operand."""
    output = problem.operands[problem.output]
    return Run(call, problem.restore, output.get, **{"info": problem.info, **more})


class Pivots:
    """Row interchanges of LU, from 1, for all matrices of a problem one after the other."""

    def __init__(self, problem: Problem, identity: bool = False) -> None:
        xp, n = problem.xp, problem.n
        self.start = np.concatenate([[0], np.cumsum(n)])
        self.flat = xp.zeros(int(self.start[-1]), np.int32)
        if identity:
            ranks = np.concatenate([np.arange(1, k + 1, dtype=np.int32) for k in n])
            self.flat = xp.asarray(ranks)
        self.n = n
        self.addresses = (self.flat.data.ptr + 4 * self.start[:-1]).astype(np.uint64)

    def get(self, i: int) -> np.ndarray:
        return self.flat[int(self.start[i]) : int(self.start[i + 1])].get() - 1

    def batch(self, problem: Problem) -> Any:
        """The pivots as the LU drivers take them: one column for each matrix."""
        from frontal.gpu.dense.operands import MatrixBatch
        from frontal.gpu.runtime.device import device_of

        device, case = device_of(self.flat), problem.case
        if case.shape in ("uniform", "gaussian"):
            one = np.ones_like(self.n)
            return MatrixBatch.of_sizes(
                device, np.int32, self.addresses, self.n, one, np.maximum(self.n, 1)
            )
        stack = self.flat.reshape(len(self.n), case.n, 1)
        return MatrixBatch.from_array(device, stack[0] if case.shape == "native" else stack)
