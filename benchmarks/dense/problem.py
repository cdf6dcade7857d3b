"""Dense matrices of a case on the device, and a run of an implementation on them.

Matrices lie one after the other in one flat array of the device, column-major.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.harness.cases import DTYPES, RIGHT_HAND_SIDES, Case

VARIABLE = ("uniform", "gaussian")  # shapes of different sizes


@dataclass
class Operand:
    """Matrices one after the other in a flat array of the device."""

    flat: Any
    m: np.ndarray
    n: np.ndarray
    shape: str

    @cached_property
    def offset(self) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(self.m * self.n)])

    @property
    def ld(self) -> np.ndarray:
        return np.maximum(self.m, 1)

    @cached_property
    def addresses(self) -> np.ndarray:
        """Address of each matrix, on the host."""
        return (self.flat.data.ptr + self.offset[:-1] * self.flat.itemsize).astype(np.uint64)

    @cached_property
    def pointers(self) -> Any:
        """Address of each matrix, on the device."""
        import cupy

        return cupy.asarray(self.addresses)

    @cached_property
    def batch(self) -> Any:
        """The matrices as this package's drivers take them."""
        from frontal.gpu.dense.operands import MatrixBatch
        from frontal.gpu.runtime.device import device_of

        device = device_of(self.flat)
        if self.shape in VARIABLE:
            sizes = (self.m, self.n, self.ld)
            return MatrixBatch.of_sizes(device, self.flat.dtype, self.addresses, *sizes)
        stack = self.flat.reshape(len(self.m), int(self.n[0]), int(self.m[0])).transpose(0, 2, 1)
        return MatrixBatch.from_array(device, stack[0] if self.shape == "native" else stack)

    def get(self, i: int, on_host: bool = True) -> Any:
        """Matrix i, on the host or on the device."""
        part = self.flat[int(self.offset[i]) : int(self.offset[i + 1])]
        part = part.get() if on_host else part
        return part.reshape(int(self.n[i]), int(self.m[i])).T


class Problem:
    """The operands of a case on the device; ``outputs`` are restored before each run."""

    def __init__(self, case: Case, xp: Any) -> None:
        self.case, self.xp = case, xp
        self.n = case.sizes()
        self.dtype = np.dtype(DTYPES[case.dtype])
        self.operands: dict[str, Operand] = {}
        one = np.ones_like(self.n)
        many = RIGHT_HAND_SIDES
        columns = {"potrs": many, "getrs": many, "gemv_n": 1, "gemv_t": 1}.get(case.routine)
        width = self.n if columns is None else one * columns
        diagonal = case.routine in ("potrf", "potrs", "trsm", "gemv_n", "gemv_t", "getrs")
        self.add("a", self.n, self.n, seed=1, diagonal=diagonal)
        if case.routine == "getrs":  # the unit triangle of L shall be well conditioned too
            self.operands["a"].flat /= case.n + 1
        if case.routine not in ("potrf", "getrf", "inv", "herk", "gebrd", "svd"):
            self.add("b", self.n, width, seed=2)
        if case.routine in ("gemm", "herk", "gemv_n", "gemv_t"):
            # of a Hermitian C the diagonal is real
            self.add("c", self.n, width, seed=3, diagonal=case.routine == "herk")
        self.output = "c" if "c" in self.operands else "b" if "b" in self.operands else "a"
        self.original = self.operands[self.output].flat.copy()
        self.info = xp.zeros(len(self.n), np.int32)

    def add(self, name: str, m: np.ndarray, n: np.ndarray, seed: int, diagonal: bool = False):
        """Fill an operand with numbers in (-1, 1); a diagonal of n+1 makes it well conditioned."""
        xp, total = self.xp, int((m * n).sum())
        rng = xp.random.default_rng(seed)
        real = np.float32 if self.dtype.char in "fF" else np.float64
        parts = self.dtype.itemsize // np.dtype(real).itemsize
        flat = rng.random(total * parts, dtype=real)
        flat *= 2
        flat -= 1
        operand = Operand(flat.view(self.dtype), m, n, self.case.shape)
        if diagonal:
            order = np.repeat(m, m)
            start = np.repeat(np.concatenate([[0], np.cumsum(m)])[:-1], m)
            place = np.repeat(operand.offset[:-1], m) + (np.arange(len(order)) - start) * (
                order + 1
            )
            operand.flat[xp.asarray(place)] = xp.asarray((order + 1).astype(self.dtype))
        self.operands[name] = operand

    def restore(self) -> None:
        """Put the inputs back that a run overwrites."""
        self.xp.copyto(self.operands[self.output].flat, self.original)

    def source(self, i: int, on_host: bool = True) -> dict[str, Any]:
        """Operands of matrix i as they were before a run."""
        held = self.operands[self.output]
        before = Operand(self.original, held.m, held.n, held.shape)
        operands = self.operands | {self.output: before}
        return {name: x.get(i, on_host) for name, x in operands.items()}

    def result(self, i: int) -> Any:
        """Output i on the device."""
        return self.operands[self.output].get(i, on_host=False)

    def sample(self, among: int | None = None) -> list[int]:
        """A few matrices to check: the first, the last, the largest, the smallest."""
        n = self.n[:among]
        return sorted({0, len(n) - 1, int(n.argmax()), int(n.argmin()), len(n) // 2})

    def columns(self, i: int) -> int:
        """Columns of output i."""
        return int(self.operands[self.output].n[i])

    @classmethod
    def padded(cls, problem: Problem, case: Case) -> Problem:
        """The same matrices, each the corner of an identity or of zeros of the largest size."""
        new = cls.__new__(cls)
        new.case, new.xp, new.dtype, new.output = case, problem.xp, problem.dtype, problem.output
        new.n, new.info = case.sizes(), problem.xp.zeros_like(problem.info)
        new.operands = {}
        for name, old in problem.operands.items():
            width = case.n if (old.n == old.m).all() else int(old.n.max())
            stack = problem.xp.zeros((case.batch, width, case.n), problem.dtype)
            if name == "a" and case.routine not in ("gemm", "herk"):
                ranks = problem.xp.arange(case.n)
                stack[:, ranks, ranks] = 1
            held = problem.original if name == problem.output else old.flat
            for i in range(case.batch):
                part = held[int(old.offset[i]) : int(old.offset[i + 1])]
                stack[i, : old.n[i], : old.m[i]] = part.reshape(int(old.n[i]), int(old.m[i]))
            m, n = np.full(case.batch, case.n), np.full(case.batch, width)
            new.operands[name] = Operand(stack.ravel(), m, n, "fixed")
        new.original = new.operands[new.output].flat.copy()
        return new


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
        if case.shape in VARIABLE:
            one = np.ones_like(self.n)
            return MatrixBatch.of_sizes(
                device, np.int32, self.addresses, self.n, one, np.maximum(self.n, 1)
            )
        stack = self.flat.reshape(len(self.n), case.n, 1)
        return MatrixBatch.from_array(device, stack[0] if case.shape == "native" else stack)
