"""The cases of the dense ladder: a routine, a scalar type and sizes, and how much work they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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


FLOPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {  # LAPACK's counts, real scalars
    "potrf": lambda n: n**3 / 3 + n**2 / 2 + n / 6,
    "getrf": lambda n: 2 * n**3 / 3 - n**2 / 2 + 5 * n / 6,
    "inv": lambda n: 2 * n**3,
    "gemm": lambda n: 2 * n**3,
    "herk": lambda n: n**2 * (n + 1),
    "trsm": lambda n: n**3,
    "gemv_n": lambda n: 2 * n**2,
    "gemv_t": lambda n: 2 * n**2,
    "potrs": lambda n: 2 * n**2 * RIGHT_HAND_SIDES,
    "getrs": lambda n: 2 * n**2 * RIGHT_HAND_SIDES,
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
    "potrs": lambda n: n * (n + 1) / 2 + 2 * n * RIGHT_HAND_SIDES,
    "getrs": lambda n: n**2 + 2 * n * RIGHT_HAND_SIDES,
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
