"""Parts of a solve with LU factors besides triangular solves: see ``getrf.getrs``."""

from __future__ import annotations

import numpy as np

from . import launch
from .getrf_panels import first_row
from .launch.lu import RowsPlan
from .operands import MatrixBatch, order_list, trans_code
from .worklists import strip_list


def solve_in_registers(
    a: MatrixBatch, pivots: MatrixBatch, b: MatrixBatch, trans: str, first: int
) -> None:
    numbers = launch.tuning("getrs", a.device.name)
    plan, columns = RowsPlan.for_side(a.max_n), b.max_n
    if a.count == 0 or a.max_n == 0 or columns == 0:
        return
    order = order_list(a, np.argsort(-a.n, kind="stable"))
    share = -(-columns // max(-(-columns // numbers.share), 1))
    constants = {
        "WIDTH": 32 if plan.width > 16 else plan.width,
        "TRANS": trans_code(trans, a.dtype),
    }
    constants |= first_row(first)
    grid, threads = (-(-a.count // plan.per_block), -(-columns // share)), (plan.threads,)
    sources = (a.locator, pivots.locator, b.locator)
    arguments = (*sources, order, np.int32(a.count), np.int32(share))
    a.run("getrs_tiny", grid, threads, arguments, 0, "getrs.cu", **constants)


def interchange(pivots: MatrixBatch, b: MatrixBatch, back: bool, first: int = 1) -> None:
    """Interchange the rows of B by P, or undo that if ``back``."""
    device = b.device
    rights = np.where(b.m > 0, b.n, 0).astype(np.int32)
    plan = launch.lu.laswp()
    strips, count = strip_list(device, rights, b.m, plan.columns)
    if count == 0:
        return
    columns, shared = launch.lu.laswp_through_shared(b.max_m, b.dtype, device.limits)
    if columns == 0:
        raise ValueError(f"getrs takes matrices up to {_max_rows(b)} rows, not {b.max_m}")
    constants = {"TRANS": int(back), **first_row(first)}
    arguments = (b.locator, pivots.locator, np.int32(columns), *strips)
    b.run("getrs_rows", (count,), (plan.threads,), arguments, shared, "getrs.cu", **constants)


def _max_rows(b: MatrixBatch) -> int:
    return b.device.limits.shared_block // (b.dtype.itemsize + 4)
