"""QR of batches of matrices: Householder panels, and products with Q.

Q = H(0)·H(1)·… of reflectors H = I − tau·v·vᴴ. Their vectors are the columns of a separate matrix
V with ones on its diagonal and zeros above, so that blocks of reflectors I − V·T·Vᴴ are products.
Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..runtime.array import Array, Value
from . import launch
from .blas3 import gemm
from .launch.svd import PANEL, QR_THREADS
from .operands import MatrixBatch, Submatrix
from .workspace import with_rows, workspace


@dataclass(frozen=True)
class Reflectors:
    """Q of each matrix, as reflectors; rows of C beyond those of v do not change."""

    v: MatrixBatch  # m×k: vectors
    tau: MatrixBatch  # k×1
    t: MatrixBatch  # k×k: factors T of blocks of PANEL reflectors, on the diagonal
    first: int = 0  # number of leading rows that Q does not change

    @classmethod
    def empty(cls, like: MatrixBatch, m: np.ndarray, k: np.ndarray, first: int = 0) -> Reflectors:
        """Allocate k reflectors of m entries for each matrix of a batch, without values."""
        return cls(workspace(like, m, k), workspace(like, k, 1), workspace(like, k, k), first)

    def factor(self, first: int = 0, panels: int | None = None) -> None:
        """Compute T of the panels from ``first`` on, or of all, from their vectors."""
        panels = -(-self.v.max_n // PANEL) if panels is None else panels
        if panels and self.v.count:
            arguments = (self.v.locator, self.tau.locator, self.t.locator, np.int32(first))
            grid, threads = (self.v.count, panels), (QR_THREADS,)
            self.v.run("larft", grid, threads, arguments, 0, "qr.cu")

    def apply(self, c: MatrixBatch, adjoint: bool = False) -> None:
        """Compute C = Q·C, or Qᴴ·C."""
        panels = range(-(-self.v.max_n // PANEL))
        target = Submatrix(with_rows(c, self.first + self.v.m), self.first, 0)
        work = workspace(c, self.v.n, c.n), workspace(c, self.v.n, c.n)
        for p in panels if adjoint else reversed(panels):
            self.apply_panel(p, target, adjoint, work)

    def form(self, q: MatrixBatch) -> None:
        """Write Q, or its first columns if ``q`` has fewer."""
        set_identity(q)
        self.apply(q)

    def apply_panel(
        self, p: int, c: Submatrix, adjoint: bool, work: tuple[MatrixBatch, MatrixBatch]
    ) -> None:
        """Apply I − V·T·Vᴴ of panel p, or its adjoint, to C; `work` has a row a reflector."""
        j = p * PANEL
        v, t = Submatrix(self.v, j, j, n=PANEL), Submatrix(self.t, j, j, PANEL, PANEL)
        products = [Submatrix(w, j, c.j, PANEL) for w in work]
        rows = c.at(j, 0)
        gemm("C", "N", 1.0, v, rows, 0.0, products[0])
        gemm("C" if adjoint else "N", "N", 1.0, t, products[0], 0.0, products[1])
        gemm("N", "N", -1.0, v, products[1], 1.0, rows)


def geqrf(a: MatrixBatch) -> Reflectors:
    """Factor in place: R on and above the diagonal; the entries below it are destroyed.

    The matrices are scaled so that squares of entries are representable.
    """
    reflectors = np.minimum(a.m, a.n)
    q = Reflectors.empty(a, a.m, reflectors)
    if not a.count or not int(reflectors.max(initial=0)):
        return q
    entries = a.m.astype(np.int64) * a.n
    largest = int(entries.argmax())
    staged = launch.svd.staged(int(a.m[largest]), int(a.n[largest]), a.dtype, a.device.limits)
    if staged:
        _columns(a, Submatrix(a), q, staged)
        q.factor()
        return q
    staged = launch.svd.staged(a.max_m, PANEL, a.dtype, a.device.limits)
    work = workspace(a, reflectors, a.n), workspace(a, reflectors, a.n)
    for j in range(0, int(reflectors.max()), PANEL):
        _columns(a, Submatrix(a, j, j, n=PANEL), q, staged)
        q.factor(j // PANEL, 1)
        if j + PANEL < a.max_n:
            q.apply_panel(j // PANEL, Submatrix(a, 0, j + PANEL), True, work)
    return q


def _columns(a: MatrixBatch, panel: Submatrix, q: Reflectors, staged: int) -> None:
    """Factor a panel of each matrix by one block, in shared memory if it fits."""
    arguments = (a.locator, panel.window, q.v.locator, q.tau.locator, np.int32(staged > 0))
    a.run("geqrf", (a.count,), (QR_THREADS,), arguments, staged, "qr.cu")


# --- auxiliary kernels ---------------------------------------------------------------------------


def rescale(a: MatrixBatch) -> tuple[Array, Array]:
    """Multiply each matrix by a power of two, so that squares of entries are representable.

    Returns
    -------
    exponents : (count,) int32 device array
        Exponents of the powers.
    info : (count,) int32 device array
        0, or the first column, counted from 1, with an entry that is not finite: then all entries
        become NaN.
    """
    xp = a.device.xp
    exponents, info = xp.zeros(a.count, np.int32), xp.zeros(a.count, np.int32)
    _run("rescale", a, exponents, info)
    return exponents, info


def set_identity(a: MatrixBatch) -> None:
    """Set matrices to the identity, trimmed to their sizes."""
    _run("identity", a)


def copy_upper(a: MatrixBatch, target: MatrixBatch, exponents: Array | np.generic) -> None:
    """Copy upper triangles, with zeros below, divided by powers of two if exponents are given."""
    _run("upper", a, target.locator, exponents)


def divide(v: MatrixBatch, s: MatrixBatch, relative: np.ndarray) -> Array:
    """Conjugate V and divide its columns by the singular values; negligible ones give zero columns.

    Parameters
    ----------
    v : MatrixBatch of n×k matrices
    s : MatrixBatch of k×1 matrices, real
        In descending order.
    relative : (count,) array of the real type, on the host
        Singular values of at most this multiple of the largest one are negligible.

    Returns
    -------
    rank : (count,) int32 device array
        Numbers of singular values that are not negligible.
    """
    rank = v.device.xp.zeros(v.count, np.int32)
    _run("divide", v, s.locator, v.device.upload(relative), rank)
    return rank


def _run(entry: str, a: MatrixBatch, *arguments: Value) -> None:
    """Launch an entry of qr.cu, one block a matrix."""
    if a.count:
        a.run(entry, (a.count,), (QR_THREADS,), (a.locator, *arguments), 0, "qr.cu")
