"""Bidiagonalization of batches of matrices: A = Q·B·Pᴴ.

Matrices that fit are reduced in shared memory. Larger ones are reduced by panels of columns and
rows, whose update of the rest is a product, until the rest fits. Nothing here waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import launch
from .blas3 import gemm
from .geqrf import Reflectors
from .launch.svd import PANEL
from .operands import MatrixBatch, Submatrix
from .workspace import real_type, workspace


@dataclass(frozen=True)
class Bidiagonal:
    """The upper bidiagonal matrix B, and the reflectors of Q and P."""

    d: MatrixBatch  # 1×n, real: diagonal
    e: MatrixBatch  # 1×n, real: superdiagonal; the last entry is not used
    q: Reflectors  # Q
    p: Reflectors  # the conjugate of P

    @classmethod
    def empty(cls, a: MatrixBatch) -> Bidiagonal:
        """Allocate B and the reflectors for the matrices of a batch."""
        below = np.maximum(a.n - 1, 0)
        d, e = (workspace(a, 1, a.n, real_type(a.dtype)) for _ in "de")
        return cls(d, e, Reflectors.empty(a, a.m, a.n), Reflectors.empty(a, below, below, 1))

    @property
    def batches(self) -> tuple[MatrixBatch, ...]:
        """The batches that kernels take, in their order."""
        return self.d, self.e, self.q.tau, self.p.tau, self.q.v, self.p.v


def gebrd(a: MatrixBatch, panels: bool = False, factors: bool = True) -> Bidiagonal:
    """Reduce matrices with at least as many rows as columns; their contents are destroyed.

    Parameters
    ----------
    a : MatrixBatch of m×n matrices, m ≥ n
        Scaled so that squares of entries are representable.
    panels : bool
        Use panels also for matrices that fit in shared memory.
    factors : bool
        Compute the factors T of blocks of reflectors, which applying Q and P requires.
    """
    reduced = Bidiagonal.empty(a)
    panel_workspaces: dict[bool, tuple[MatrixBatch, MatrixBatch]] = {}
    for j in range(0, a.max_n, PANEL):
        m, n = (np.maximum(x - j, 0) for x in (a.m, a.n))
        plan = launch.svd.gebd2(m, n, a.dtype, a.device.limits)
        if plan is not None and not panels:
            _launch(a, "gebd2", j, reduced.batches, (plan[0],), plan[1])
            break
        once = launch.svd.labrd_once(int(m.max(initial=0)), a.dtype, a.device.limits)
        if bool(once) not in panel_workspaces:
            panel_workspaces[bool(once)] = _panel(a, bool(once))
        left, right = panel_workspaces[bool(once)]
        batches = (*reduced.batches, left, right)
        if once:
            threads, shared, rows = once
            _launch(a, "labrd_once", j, batches, (threads,), shared, "labrd.cu", ROWS=rows)
            v, u = Submatrix(left, j + PANEL), Submatrix(right, 0, j + PANEL)
            gemm("N", "N", -1.0, v, u, 1.0, Submatrix(a, j + PANEL, j + PANEL))
            continue
        block, shared = launch.svd.labrd(a.count, a.device.limits)
        _launch(a, "labrd", j, batches, block, shared)
        v, u = Submatrix(left, j + PANEL), Submatrix(right, j + PANEL)
        gemm("N", "C", -1.0, v, u, 1.0, Submatrix(a, j + PANEL, j + PANEL))
    if factors:
        reduced.q.factor()
        reduced.p.factor()
    return reduced


def _panel(a: MatrixBatch, by_rows: bool) -> tuple[MatrixBatch, MatrixBatch]:
    """Allocate V beside X, and Y beside U or, if `by_rows`, their adjoints."""
    left = workspace(a, a.m, 2 * PANEL)
    return left, workspace(a, 2 * PANEL, a.n) if by_rows else workspace(a, a.n, 2 * PANEL)


def _launch(
    a: MatrixBatch,
    entry: str,
    j: int,
    batches: tuple[MatrixBatch, ...],
    block: tuple[int, ...],
    shared: int,
    file: str = "gebrd.cu",
    **constants: int,
) -> None:
    """Launch an entry of gebrd.cu or labrd.cu on the submatrices from row and column j on."""
    if a.count:
        arguments = (a.locator, np.int32(j), *(batch.locator for batch in batches))
        a.run(entry, (a.count,), block, arguments, shared, file, **constants)
