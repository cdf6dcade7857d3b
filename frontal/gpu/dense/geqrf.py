"""QR of many matrices at once: Householder panels, and products with Q.

Q = H(0)·H(1)·… of reflectors H = I − tau·v·vᴴ, whose vectors are the columns of a matrix V of their
own: ones on its diagonal and zeros above, so that blocks of reflectors I − V·T·Vᴴ are products.
Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..runtime.array import Array
from . import launch
from .blas3 import gemm
from .launch import PANEL, QR_THREADS
from .operands import MatrixBatch, Submatrix
from .workspace import with_rows, workspace


@dataclass(frozen=True)
class Reflectors:
    """Q of each matrix.

    Attributes
    ----------
    v : MatrixBatch of m×k matrices
        Vectors.
    tau : MatrixBatch of k×1 matrices
    t : MatrixBatch of k×k matrices
        Factors T of blocks of PANEL reflectors, on the diagonal.
    first : int
        Rows of what Q is applied to that it leaves alone; so it does those after the last of v.
    """

    v: MatrixBatch
    tau: MatrixBatch
    t: MatrixBatch
    first: int = 0

    @classmethod
    def empty(cls, like: MatrixBatch, m: np.ndarray, k: np.ndarray, first: int = 0) -> Reflectors:
        """Allocate k reflectors of m entries for each matrix of a batch; none are there yet."""
        return cls(workspace(like, m, k), workspace(like, k, 1), workspace(like, k, k), first)

    def factor(self, first: int = 0, panels: int | None = None) -> None:
        """Compute T of some panels, or of all, once their vectors are there."""
        panels = -(-self.v.max_n // PANEL) if panels is None else panels
        if panels and self.v.count:
            kernel = self.v.device.kernel("qr.cu", f"larft_{self.v.wrapper}", self.v.dtype)
            arguments = (self.v.locator, self.tau.locator, self.t.locator, np.int32(first))
            kernel((self.v.count, panels), (QR_THREADS,), arguments)

    def apply(self, c: MatrixBatch, adjoint: bool = False) -> None:
        """C = Q·C, or Qᴴ·C."""
        panels = range(-(-self.v.max_n // PANEL))
        target = Submatrix(with_rows(c, self.first + self.v.m), self.first, 0)
        work = workspace(c, self.v.n, c.n), workspace(c, self.v.n, c.n)
        for p in panels if adjoint else reversed(panels):
            self.apply_panel(p, target, adjoint, work)

    def form(self, q: MatrixBatch) -> None:
        """Write Q out, or as many of its columns as there are."""
        set_identity(q)
        self.apply(q)

    def apply_panel(
        self, p: int, c: Submatrix, adjoint: bool, work: tuple[MatrixBatch, MatrixBatch]
    ) -> None:
        """C = (I − V·T·Vᴴ)·C of one panel, or its adjoint; `work` has a row for each reflector."""
        j = p * PANEL
        v, t = Submatrix(self.v, j, j, n=PANEL), Submatrix(self.t, j, j, PANEL, PANEL)
        products = [Submatrix(w, j, c.j, PANEL) for w in work]
        rows = c.at(j, 0)
        gemm("C", "N", 1.0, v, rows, 0.0, products[0])
        gemm("C" if adjoint else "N", "N", 1.0, t, products[0], 0.0, products[1])
        gemm("N", "N", -1.0, v, products[1], 1.0, rows)


def geqrf(a: MatrixBatch) -> Reflectors:
    """QR factorization in place: R on and above the diagonal, what is below it is lost.

    Parameters
    ----------
    a : MatrixBatch of m×n matrices
        So scaled that squares of entries are representable.
    """
    reflectors = np.minimum(a.m, a.n)
    q = Reflectors.empty(a, a.m, reflectors)
    if not a.count or not int(reflectors.max(initial=0)):
        return q
    entries = a.m.astype(np.int64) * a.n
    largest = int(entries.argmax())
    staged = launch.staged(int(a.m[largest]), int(a.n[largest]), a.dtype, a.device.limits)
    if staged:
        _columns(a, Submatrix(a), q, staged)
        q.factor()
        return q
    staged = launch.staged(a.max_m, PANEL, a.dtype, a.device.limits)
    work = workspace(a, reflectors, a.n), workspace(a, reflectors, a.n)
    for j in range(0, int(reflectors.max()), PANEL):
        _columns(a, Submatrix(a, j, j, n=PANEL), q, staged)
        q.factor(j // PANEL, 1)
        if j + PANEL < a.max_n:
            q.apply_panel(j // PANEL, Submatrix(a, 0, j + PANEL), True, work)
    return q


def _columns(a: MatrixBatch, panel: Submatrix, q: Reflectors, staged: int) -> None:
    """Factor a part of each matrix by one block, in shared memory where there is room."""
    kernel = a.device.kernel("qr.cu", f"geqrf_{a.wrapper}", a.dtype)
    arguments = (a.locator, panel.window, q.v.locator, q.tau.locator, np.int32(staged > 0))
    kernel((a.count,), (QR_THREADS,), arguments, staged)


# --- what goes with it ---------------------------------------------------------------------------


def rescale(a: MatrixBatch) -> tuple[Array, Array]:
    """Multiply each matrix by a power of two, so that squares of entries are representable.

    Returns
    -------
    exponents : (count,) int32 device array
        Of the powers.
    info : (count,) int32 device array
        0, or the first column, from 1, with an entry that is not finite: all become NaN.
    """
    xp = a.device.xp
    exponents, info = xp.zeros(a.count, np.int32), xp.zeros(a.count, np.int32)
    if a.count:
        kernel = a.device.kernel("qr.cu", f"rescale_{a.wrapper}", a.dtype)
        kernel((a.count,), (QR_THREADS,), (a.locator, exponents, info))
    return exponents, info


def set_identity(a: MatrixBatch) -> None:
    """Make matrices the identity, or as much of it as there is."""
    if a.count:
        kernel = a.device.kernel("qr.cu", f"identity_{a.wrapper}", a.dtype)
        kernel((a.count,), (QR_THREADS,), (a.locator,))


def copy_upper(a: MatrixBatch, target: MatrixBatch, exponents: Array | np.generic) -> None:
    """Copy upper triangles, divided by powers of two if exponents are given; zeros below."""
    if a.count:
        kernel = a.device.kernel("qr.cu", f"upper_{a.wrapper}", a.dtype)
        kernel((a.count,), (QR_THREADS,), (a.locator, target.locator, exponents))


def divide(v: MatrixBatch, s: MatrixBatch, relative: np.ndarray) -> Array:
    """Conjugate V and divide its columns by singular values; those that do not count become zero.

    Parameters
    ----------
    v : MatrixBatch of n×k matrices
    s : MatrixBatch of k×1 matrices, real
        Falling.
    relative : (count,) array of the real type, on the host
        Values of at most so many times the largest of a matrix do not count.

    Returns
    -------
    rank : (count,) int32 device array
        How many do.
    """
    rank = v.device.xp.zeros(v.count, np.int32)
    if v.count:
        kernel = v.device.kernel("qr.cu", f"divide_{v.wrapper}", v.dtype)
        arguments = (v.locator, s.locator, v.device.upload(relative), rank)
        kernel((v.count,), (QR_THREADS,), arguments)
    return rank
