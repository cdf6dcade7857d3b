"""The cases of the GPU ladder: sizes, inputs, work counts and checks of each routine.

A case is a routine, a scalar type and a set of sizes. Its matrices lie one after the other in one
flat array of the device, column-major; results are checked against their definition in double.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

DTYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
FIXED = (8, 16, 32, 64, 128, 256, 512, 1024)
VARIABLE = (32, 64, 128, 256, 512, 1024)
NATIVE = (1024, 2048, 4096, 8192, 16384)
RIGHT_HAND_SIDES = 16
ODD = (127, 129, 255, 257, 511, 513, 1000, 1001, 1003)  # columns off every alignment
SHAPES = ("fixed", "uniform", "gaussian", "native")

# Sizes of each routine by shape; what is not named has none.
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "potrf": {"fixed": FIXED, "uniform": VARIABLE, "gaussian": VARIABLE, "native": NATIVE},
    "getrf": {"fixed": FIXED, "uniform": VARIABLE, "gaussian": VARIABLE, "native": NATIVE},
    "inv": {"fixed": (8, 16, 24, 32, 64, 128), "uniform": (32, 64, 128)},
    "gemm": {"fixed": FIXED, "uniform": VARIABLE, "gaussian": VARIABLE, "native": NATIVE[:4]},
    "herk": {"fixed": FIXED, "uniform": VARIABLE, "gaussian": VARIABLE, "native": NATIVE[:4]},
    "trsm": {"fixed": FIXED, "uniform": VARIABLE, "native": NATIVE[:4]},
    "gemv_n": {"fixed": tuple(sorted((*FIXED[3:], *ODD))), "uniform": VARIABLE, "native": NATIVE},
    "gemv_t": {"fixed": tuple(sorted((*FIXED[3:], *ODD))), "uniform": VARIABLE, "native": NATIVE},
    "potrs": {"fixed": (16, 32, 128, 512), "uniform": (32, 128, 512)},
    "getrs": {"fixed": (16, 32, 128, 512), "uniform": (32, 128, 512)},
    "gebrd": {"fixed": (32, 64, 96, 128, 160, 256, 512), "uniform": (64, 160, 256)},
    "svd": {"fixed": (8, 16, 32, 64, 128, 256), "uniform": (32, 64)},
}


@dataclass(frozen=True)
class Case:
    """A routine on matrices of one scalar type; ``n`` is their size, or their largest."""

    routine: str
    dtype: str
    shape: str
    n: int
    batch: int

    @property
    def label(self) -> str:
        count = "" if self.shape == "native" else f"x{self.batch}"
        return f"{self.dtype}{self.routine} {self.shape} {self.n}{count}"

    @property
    def real_factor(self) -> int:
        """Real operations of one multiplication and addition of scalars, over two."""
        return 4 if self.dtype in "cz" else 1

    @property
    def itemsize(self) -> int:
        return np.dtype(DTYPES[self.dtype]).itemsize

    def sizes(self) -> np.ndarray:
        """Order of each matrix."""
        rng = np.random.default_rng(2026)
        if self.shape == "uniform":
            return rng.integers(1, self.n + 1, self.batch).astype(np.int64)
        if self.shape == "gaussian":  # as in the papers: around the middle of 1..N
            drawn = rng.normal(self.n / 2, self.n / 6, self.batch)
            return np.clip(np.rint(drawn), 1, self.n).astype(np.int64)
        return np.full(self.batch, self.n, np.int64)

    def flops(self, n: np.ndarray) -> float:
        """Real operations for matrices of these orders."""
        n = n.astype(float)
        one = FLOPS[self.routine](n)
        return float(self.real_factor * one.sum())

    def bytes(self, n: np.ndarray) -> float:
        """Bytes that must cross the memory bus at the least."""
        n = n.astype(float)
        return float(self.itemsize * ENTRIES[self.routine](n).sum())

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


_R = RIGHT_HAND_SIDES
FLOPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # LAPACK's counts, real scalars
    "potrf": lambda n: n**3 / 3 + n**2 / 2 + n / 6,
    "getrf": lambda n: 2 * n**3 / 3 - n**2 / 2 + 5 * n / 6,
    "inv": lambda n: 2 * n**3,
    "gemm": lambda n: 2 * n**3,
    "herk": lambda n: n**2 * (n + 1),
    "trsm": lambda n: n**3,
    "gemv_n": lambda n: 2 * n**2,
    "gemv_t": lambda n: 2 * n**2,
    "potrs": lambda n: 2 * n**2 * _R,
    "getrs": lambda n: 2 * n**2 * _R,
    "gebrd": lambda n: 8 * n**3 / 3,
    "svd": lambda n: 21 * n**3,  # Golub, Van Loan: of R, with vectors
}
ENTRIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # read once and written once
    "potrf": lambda n: n * (n + 1),
    "getrf": lambda n: 2 * n**2,
    "inv": lambda n: 2 * n**2,
    "gemm": lambda n: 4 * n**2,
    "herk": lambda n: 2 * n**2 + n,
    "trsm": lambda n: n * (n + 1) / 2 + 2 * n**2,
    "gemv_n": lambda n: n**2 + 3 * n,
    "gemv_t": lambda n: n**2 + 3 * n,
    "potrs": lambda n: n * (n + 1) / 2 + 2 * n * _R,
    "getrs": lambda n: n**2 + 2 * n * _R,
    "gebrd": lambda n: 2 * n**2,
    "svd": lambda n: 3 * n**2 + n,
}


def cases(
    routines: Iterable[str], dtypes: Iterable[str], sizes: Iterable[int], shapes: Iterable[str]
) -> list[Case]:
    """Return the cases of the ladder that are asked for; no sizes means all."""
    wanted = set(sizes)
    found = []
    for routine in routines:
        for dtype in dtypes:
            for shape in (x for x in SHAPES if x in SIZES[routine] and x in set(shapes)):
                for n in SIZES[routine][shape]:
                    if not wanted or n in wanted:
                        found.append(Case(routine, dtype, shape, n, _batch(shape, n)))
    return found


def _batch(shape: str, n: int) -> int:
    return {"native": 1, "fixed": 10000 if n <= 64 else 1000}.get(shape, 3000)


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
        if self.shape in ("uniform", "gaussian"):
            sizes = (self.m, self.n, self.ld)
            return MatrixBatch.of_sizes(device, self.flat.dtype, self.addresses, *sizes)
        stack = self.flat.reshape(len(self.m), int(self.n[0]), int(self.m[0])).transpose(0, 2, 1)
        return MatrixBatch.from_array(device, stack[0] if self.shape == "native" else stack)

    def get(self, i: int) -> np.ndarray:
        """Matrix i on the host."""
        part = self.flat[int(self.offset[i]) : int(self.offset[i + 1])]
        return part.get().reshape(int(self.n[i]), int(self.m[i])).T


class Problem:
    """The operands of a case on the device; ``outputs`` are restored before each run."""

    def __init__(self, case: Case, xp: Any) -> None:
        self.case, self.xp = case, xp
        self.n = case.sizes()
        self.dtype = np.dtype(DTYPES[case.dtype])
        self.operands: dict[str, Operand] = {}
        one = np.ones_like(self.n)
        columns = {"potrs": _R, "getrs": _R, "gemv_n": 1, "gemv_t": 1}.get(case.routine)
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

    def source(self, i: int) -> dict[str, np.ndarray]:
        """Operands of matrix i as they were before a run, on the host."""
        held = self.operands[self.output]
        before = Operand(self.original, held.m, held.n, held.shape)
        whole = {name: x.get(i) for name, x in self.operands.items() if name != self.output}
        return whole | {self.output: before.get(i)}

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
