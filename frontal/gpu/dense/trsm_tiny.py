"""Triangular solves of batches of small matrices, one right-hand side a lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import launch
from .launch.products import TrsmTinyPlan
from .operands import TRANS, UPLO, MatrixBatch, SourceBatch, Submatrix


class Solve(NamedTuple):
    """Options of ``trsm``, by the letters of BLAS."""

    side: str
    uplo: str
    trans: str
    diag: str

    @property
    def left(self) -> bool:
        """Whether op(A) X = B is solved, not X op(A) = B."""
        return self.side == "L"


def is_tiny(a: MatrixBatch | Submatrix) -> bool:
    """Return whether triangles of these orders are solved in registers."""
    triangle = a if isinstance(a, Submatrix) else Submatrix(a)
    max_order = launch.tuning("trsm", triangle.batch.device.name).tiny
    return int(triangle.rows.max(initial=0)) <= min(max_order, TrsmTinyPlan.max_order)


def trsm_tiny(
    solve: Solve,
    alpha: complex,
    a: Submatrix,
    b: Submatrix,
    rhs_source: SourceBatch | None = None,
) -> None:
    """Solve op(A) X = alpha B or X op(A) = alpha B by one launch; orders up to 32.

    With ``rhs_source``, B is read from there, and X is written to ``b``, an entire batch.
    """
    device, dtype = b.batch.device, b.batch.dtype
    rights, order = b.cols if solve.left else b.rows, int(a.rows.max(initial=0))
    max_rights = int(rights.max(initial=0))
    if not order or not max_rights:
        return
    plan = launch.products.trsm_tiny(order, max_rights, dtype, device.limits)
    strips = -(-max_rights // plan.lanes)
    source, turned = (
        (b, False) if rhs_source is None else (Submatrix(rhs_source.batch), rhs_source.turned)
    )
    codes = not solve.left, UPLO[solve.uplo], TRANS[solve.trans], solve.diag == "U"
    arguments = (
        dtype.type(alpha),
        *(np.int32(x) for x in codes),
        *a.arguments,
        *source.arguments,
        np.int32(turned),
        *b.arguments,
        np.int32(b.batch.count),
        np.int32(strips),
    )
    grid, threads = (-(-b.batch.count * strips // plan.per_block),), (plan.threads,)
    constants = {"WIDTH": plan.width, "RIGHTS": plan.lanes}
    b.batch.run("trsm_tiny", grid, threads, arguments, plan.shared, **constants)
