"""SVD and bidiagonalization of what a user passed: each matrix by the way that suits its size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .arguments import Argument, argument, kind_of
from .copies import empty
from .gebrd import gebrd
from .geqrf import copy_upper, rescale
from .gesvd import JACOBI, Svd, gesvd, paths
from .operands import Batch, Matrices
from .workspace import indexed, real_type, transposed


@dataclass(frozen=True)
class Decomposition:
    """A = U·diag(s)·Vᵀ for each matrix of a kind; U and V have contiguous columns.

    Attributes
    ----------
    kind : {"matrix", "stack", "list"}
    s, u, v : arrays of that kind
        Those of s are vectors; u and v are empty lists without vectors.
    info : (count,) int32 device array
    m, n : int arrays (count,), on the host
        Rows and columns of A.
    """

    device: Device
    kind: str
    s: Matrices
    u: Matrices
    v: Matrices
    info: Array
    m: np.ndarray
    n: np.ndarray

    @property
    def vh(self) -> Matrices:
        """The transposes of v."""
        return transposed(self.v)


def decompose(device: Device, a: Matrices, full: bool, vectors: bool) -> Decomposition:
    """Compute the SVD of what a user passed, U or V square where ``full``."""
    kind, tall, turned, (m, n) = _tall(a, device, True)
    dtype = tall[0].dtype if tall else np.dtype(np.float64)
    way = paths(np.maximum(m, n), np.minimum(m, n), dtype, device.limits)
    if kind != "list":
        s, u, v, info = _decomposed(device, kind, tall[0], int(way[0]), full, vectors)
        left, right = (v, u) if turned[0] else (u, v)
        count = len(info)
        return Decomposition(device, kind, s, left, right, info, m.repeat(count), n.repeat(count))
    place: list[tuple[Array, ...]] = [()] * len(tall)
    info = device.xp.zeros(len(tall), np.int32)
    for one in np.unique(way):
        members = np.flatnonzero(way == one)
        some = [tall[i] for i in members]
        parts = _decomposed(device, "list", some, int(one), full, vectors)
        each = zip(*parts[: 3 if vectors else 1], strict=True)
        for i, found in zip(members, each, strict=True):
            place[i] = (found[0], *found[:0:-1]) if turned[i] else found
        info[device.upload(members)] = parts[3]
    s, u, v = ([p[k] for p in place if k < len(p)] for k in range(3))
    return Decomposition(device, kind, s, u, v, info, m, n)


def bidiagonal(
    device: Device, a: Matrices, overwrite: int = False
) -> tuple[Matrices, Matrices, Matrices, Matrices, Array]:
    """Bidiagonalize what a user passed: d, e, q, pᴴ and info; nothing is overwritten."""
    kind, tall, turned, _ = _tall(a, device, False)
    held = argument("a", tall if kind == "list" else tall[0], device, write=True)
    batch, make = held.batch, _Maker(held)
    exponents, info = rescale(batch)
    found = gebrd(batch)
    below = np.maximum(make.n - 1, 0) if kind == "list" else max(int(make.n) - 1, 0)
    rows = [make(make.one, k, found.d.dtype) for k in (make.n, below)]
    for source, target in zip((found.d, found.e), rows, strict=True):
        copy_upper(source, Batch.of(device, target), exponents)
    q, p = make(make.m, make.n), make(make.n, make.n)
    found.q.form(Batch.of(device, q))
    found.p.form(Batch.of(device, p))
    d, e = (indexed(x, (..., 0, slice(None))) for x in rows)
    if isinstance(q, list) and isinstance(p, list):
        pairs = [(y, x) if t else (x, y) for x, y, t in zip(q, p, turned, strict=True)]
        q, p = [x for x, _ in pairs], [y for _, y in pairs]
    elif turned[0]:
        q, p = p, q
    return d, e, q, transposed(p), info


def _tall(
    a: Matrices, device: Device, squares: bool
) -> tuple[str, list[Array], list[bool], tuple[np.ndarray, np.ndarray]]:
    """Kind, matrices or their transposes, which of them are, and sizes of the matrices.

    The transpose is worked on where it is tall; of ``squares`` that which has contiguous columns.
    """
    kind, each = kind_of("a", a, device)
    m, n = (np.array([x.shape[axis] for x in each], np.int64) for axis in (-2, -1))
    rows = np.array([x.strides[-1] == x.itemsize for x in each], bool)
    turned = ((m < n) | ((m == n) & rows & squares)).tolist()
    tall = [x.swapaxes(-1, -2) if t else x for x, t in zip(each, turned, strict=True)]
    return kind, tall, turned, (m, n)


class _Maker:
    """Makes results of the kind of an argument; m, n and one are sizes as it takes them."""

    def __init__(self, held: Argument) -> None:
        self.held = held
        batch = held.batch
        self.m, self.n = batch.m.astype(np.int64), batch.n.astype(np.int64)
        self.one: np.ndarray | int = np.ones_like(self.n)
        if held.kind != "list":
            self.m, self.n = held.arrays.shape[-2:]
            self.one = 1

    def __call__(
        self, m: np.ndarray | int, n: np.ndarray | int, dtype: np.dtype | None = None
    ) -> Matrices:
        batch = self.held.batch
        return empty(self.held.kind, m, n, batch.count, dtype or batch.dtype, batch.device)


def _decomposed(
    device: Device, kind: str, tall: Matrices, way: int, full: bool, vectors: bool
) -> tuple[Matrices, Matrices, Matrices, Array]:
    """s, u, v and info of matrices that go the same way, at least as many rows as columns."""
    held = argument("a", tall, device, write=way != JACOBI)
    batch, make = held.batch, _Maker(held)
    values = make(make.n, make.one, real_type(batch.dtype))
    s = indexed(values, (..., 0))
    if not vectors:
        return s, [], [], gesvd(batch, Svd(Batch.of(device, values)), way)
    u, v = make(make.m, make.m if full else make.n), make(make.n, make.n)
    out = Svd(*(Batch.of(device, x) for x in (values, u, v)))
    return s, u, v, gesvd(batch, out, way)
