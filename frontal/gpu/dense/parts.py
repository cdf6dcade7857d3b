"""Parts of the matrices of a batch, and batches of different kinds brought to one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from .batch import _BATCHED, Batch

ALL = 1 << 30  # rows or columns: as many as there are
_WINDOW = np.dtype([("i", "i4"), ("j", "i4"), ("m", "i4"), ("n", "i4")], align=True)


@dataclass(frozen=True)
class Part:
    """Rows i… and columns j… of each matrix of a batch, at most m×n of them."""

    batch: Batch
    i: int = 0
    j: int = 0
    m: int = ALL
    n: int = ALL

    @cached_property
    def rows(self) -> np.ndarray:
        """Rows of the part, by matrix."""
        return np.minimum(np.maximum(self.batch.m - self.i, 0), self.m)

    @cached_property
    def cols(self) -> np.ndarray:
        """Columns of the part, by matrix."""
        return np.minimum(np.maximum(self.batch.n - self.j, 0), self.n)

    @property
    def arguments(self) -> tuple[np.ndarray, np.ndarray]:
        """The batch's locator and the struct ``Window``: what kernels take for an operand."""
        return self.batch.locator, self.window

    @property
    def window(self) -> np.ndarray:
        """The struct ``Window`` of dense/gemm.cuh."""
        return np.array((self.i, self.j, self.m, self.n), dtype=_WINDOW)

    def at(self, i: int, j: int, m: int = ALL, n: int = ALL) -> Part:
        """Return the part of this part from (i, j) on."""
        return Part(self.batch, self.i + i, self.j + j, min(m, self.m - i), min(n, self.n - j))


Operand = Batch | Part


def op_sizes(part: Part, trans: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of op(A)."""
    return (part.rows, part.cols) if trans == "N" else (part.cols, part.rows)


def without_depth(part: Part, trans: str, axis: int) -> Part:
    """Trim op(A) to no columns (axis 1) or no rows (axis 0)."""
    return replace(part, n=0) if (axis == 1) == (trans == "N") else replace(part, m=0)


def require(names: str, *pairs: tuple[np.ndarray, np.ndarray]) -> None:
    for found, wanted in pairs:
        if not np.array_equal(found, wanted):
            wrong = np.flatnonzero(found != wanted)
            k = int(wrong[0])
            raise ValueError(
                f"{names} do not fit: {found[k]} against {wanted[k]} in matrix {k} "
                f"({len(wrong)} of {len(found)} matrices)"
            )


def operands(*given: Operand) -> list[Part]:
    """Make all operands parts of batches of one kind and one length."""
    parts = [x if isinstance(x, Part) else Part(x) for x in given]
    kinds = {part.batch.wrapper for part in parts}
    count = max(part.batch.count for part in parts)
    if len(kinds) == 1 and all(part.batch.count == count for part in parts):
        return parts
    wrapper = "vbatched" if "vbatched" in kinds else "batched"
    return [replace(part, batch=_converted(part.batch, wrapper, count)) for part in parts]


def _converted(batch: Batch, wrapper: str, count: int) -> Batch:
    """Describe a batch as a more general kind; a single matrix is repeated ``count`` times."""
    if batch.wrapper == wrapper and batch.count == count:
        return batch
    if batch.count not in (1, count):
        raise ValueError(f"batches of {batch.count} and {count} matrices do not go together")
    old, sizes = batch.locator, [np.resize(x, count) for x in (batch.m, batch.n, batch.ld)]
    names = old.dtype.names or ()
    stride = int(old["stride"]) if "stride" in names and batch.count == count else 0
    if batch.wrapper == "vbatched" or ("p" in names and old["p"]):
        raise ValueError("matrices given by pointers on the device go with their like only")
    if wrapper == "vbatched":
        first, step = int(old["a"]), stride * batch.dtype.itemsize
        pointers = first + step * np.arange(count, dtype=np.uint64)
        made = Batch.of_sizes(batch.device, batch.dtype, pointers, *sizes)
    else:
        locator = np.array((old["a"], 0, stride, *(x[0] for x in sizes)), dtype=_BATCHED)
        m, n, ld = sizes
        made = Batch(batch.device, batch.dtype, "batched", locator, m, n, ld)
    return replace(made, keep=(*made.keep, *batch.keep))
