"""LU of batches of matrices by panels: factor a panel, then update the other columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..runtime.array import Array, Value
from . import blas3, launch
from .launch.lu import PanelPlan
from .operands import (
    ALL_ROWS,
    MatrixBatch,
    SourceBatch,
    Submatrix,
    order_list,
    read_and_written,
    subset,
    upload_table,
)
from .worklists import strip_list
from .workspace import real_type


def first_row(first: int) -> dict[str, int]:
    """Return the constant of kernels whose interchanges count rows from ``first``."""
    return {} if first == 1 else {"FIRST_ROW": first}


class LuFactorization(NamedTuple):
    """Operands and options of a call of ``getrf``."""

    a: MatrixBatch
    pivots: MatrixBatch
    info: Array
    tiny: float
    first: int
    source: SourceBatch | None

    @property
    def locators(self) -> tuple[np.ndarray, ...]:
        """Locators of input, output and pivots."""
        return (*read_and_written(self.a, self.source)[0], self.pivots.locator)

    @property
    def results(self) -> tuple[Array, np.generic]:
        """The last arguments of kernels: info, and the bound of perturbed pivots."""
        return self.info, real_type(self.a.dtype).type(self.tiny)

    @property
    def constants(self) -> dict[str, int]:
        """Constants of the kernels."""
        into = read_and_written(self.a, self.source)[1]
        return ({"PERTURB": 1} if self.tiny else {}) | first_row(self.first) | into


def by_panels(lu: LuFactorization, members: np.ndarray) -> None:
    """Factor by panels, each followed by its update of the other columns."""
    a, device = lu.a, lu.a.device
    assert lu.source is None
    numbers, rows = launch.tuning("getrf", device.name), int(a.m[members].max())
    plan = launch.lu.getrf_panel(rows, a.dtype, numbers)
    uniform = a.wrapper != "vbatched"
    if rows <= numbers.strips or not (uniform or np.array_equal(a.m[members], a.n[members])):
        Panels(lu, members, plan).by_strips()
    elif uniform or len(members) == a.count:
        Panels(lu, np.arange(a.count), plan).by_products(numbers.outer)
    else:
        info = device.xp.zeros(len(members), np.int32)
        chosen = lu._replace(a=subset(a, members), pivots=subset(lu.pivots, members), info=info)
        Panels(chosen, np.arange(len(members)), plan).by_products(numbers.outer)
        upload_table(device, info, members, lu.info)


class Panels:
    """A factorization by panels in progress: its matrices, and the lists of moved rows."""

    def __init__(self, lu: LuFactorization, members: np.ndarray, plan: PanelPlan) -> None:
        self.lu, self.a, self.plan = lu, lu.a, plan
        steps = np.minimum(self.a.m, self.a.n)
        self.members = members[np.argsort(-steps[members], kind="stable")]
        self.steps = np.zeros_like(steps)
        self.steps[members] = steps[members]
        panels = -(-int(self.steps.max()) // plan.columns)
        xp = self.a.device.xp
        new = xp.zeros if plan.shared_by_blocks else xp.empty
        self.lists = new((self.a.count, panels, plan.moves), np.int32), np.int32(panels)
        self.arrived = new((self.a.count, panels), np.int32)

    def by_strips(self) -> None:
        """Apply each panel to all columns on its right at once, strip by strip, by one launch."""
        for j in range(0, int(self.steps.max()), self.plan.columns):
            self._factor(j)
            self._update(j)
        self._interchange_left(self.plan.columns)

    def by_products(self, outer: int) -> None:
        """Apply panels to their outer block, and outer blocks to the rest by large products."""
        last = int(self.steps.max())
        for begin in range(0, last, outer):
            end = min(begin + outer, last)
            for j in range(begin, end, self.plan.columns):
                self._factor(j)
                self._eliminate(j, min(j + self.plan.columns, end), end)
            self._interchange_within(begin, end)
            self._eliminate(begin, end, ALL_ROWS)
        self._interchange_left(outer)

    def _run(
        self,
        entry: str,
        grid: tuple[int, ...],
        threads: int,
        arguments: tuple[Value, ...],
        shared: int = 0,
        **constants: int,
    ) -> None:
        """Launch an entry, of laswp.cu or the file named after it."""
        constants = {"PANEL": self.plan.columns, **constants}
        file = "laswp.cu" if entry.startswith("laswp") else ""
        self.a.run(entry, grid, (threads,), arguments, shared, file, **constants)

    def _factor(self, j: int) -> None:
        """Factor the panel at column j of each matrix that has that column."""
        count = int((self.steps > j).sum())
        rows = int(self.a.m[self.members[:count]].max()) - j
        order = order_list(self.a, self.members)
        operands = (self.a.locator, self.lu.pivots.locator, order)
        if self.plan.shared_by_blocks:
            self._factor_tall(j, operands, count, rows)
            return
        threads = self.plan.block(rows)
        arguments = (*operands, np.int32(j), *self.lists, *self.lu.results)
        constants = {"ROWS": self.plan.rows, **self.lu.constants}
        shared = self.plan.shared(self.a.dtype, threads)
        self._run("getrf_panel", (count,), threads, arguments, shared, **constants)

    def _factor_tall(self, j: int, operands: tuple[Value, ...], count: int, rows: int) -> None:
        """Factor panels shared by several blocks; each launch has only blocks that are resident."""
        device, dtype, threads = self.a.device, self.a.dtype, self.plan.block(rows)
        blocks = -(-rows // threads)
        if blocks > self.plan.max_blocks:
            max_rows = self.plan.max_blocks * threads
            raise ValueError(f"getrf takes matrices up to {max_rows} rows, not {rows}")
        together = self.plan.together(blocks, device.limits)
        shared = self.plan.shared(dtype, threads)
        info, bound = self.lu.results
        for first in range(0, count, together):
            now = min(together, count - first)
            exchange = device.xp.empty(now * self.plan.exchange(dtype, blocks), np.uint8)
            position = np.int32(first), np.int32(j), *self.lists
            arguments = (*operands, *position, info, exchange, self.arrived, bound)
            self._run("getrf_tall", (blocks, now), threads, arguments, shared, **self.lu.constants)

    def _update(self, j: int) -> None:
        """Update the columns right of panel j."""
        after = np.minimum(j + self.plan.columns, self.steps)
        rights = np.where(self.steps > j, self.a.n - after, 0)
        plan = launch.lu.getrf_update(self.a.dtype)
        strips, count = strip_list(self.a.device, rights, self.a.m - j, plan.columns)
        if count:
            bounds = np.int32(j), np.int32(ALL_ROWS)
            arguments = (self.a.locator, *bounds, *self.lists, *strips)
            self._run("getrf_update", (count,), plan.threads, arguments, plan.shared)

    def _eliminate(self, begin: int, end: int, last: int) -> None:
        """Update columns [end, last) by the panels of columns [begin, end)."""
        a = self.a
        rights = np.where(self.steps > begin, np.minimum(a.n, last) - end, 0)
        plan = launch.lu.laswp()
        strips, count = strip_list(a.device, np.maximum(rights, 0), a.m - begin, plan.columns)
        if count == 0:
            return
        bounds = (np.int32(x) for x in (begin, end, last))
        arguments = (a.locator, *bounds, *self.lists, *strips)
        self._run("laswp", (count,), plan.threads, arguments)
        size, wide = end - begin, last - end if last < ALL_ROWS else ALL_ROWS
        u = Submatrix(a, begin, end, size, wide)
        blas3.trsm("L", "L", "N", "U", 1.0, Submatrix(a, begin, begin, size, size), u)
        below = Submatrix(a, end, begin, n=size)
        blas3.gemm("N", "N", -1.0, below, u, 1.0, Submatrix(a, end, end, n=wide))

    def _interchange_within(self, begin: int, end: int) -> None:
        """Apply to columns [begin, end) the row moves of the later panels among them."""
        a, columns = self.a, self.plan.columns
        plan = launch.lu.laswp(columns)
        lefts = (np.minimum(self.steps, end) - 1) // columns * columns - begin
        strips, count = strip_list(a.device, np.maximum(lefts, 0), a.m, columns)
        if count:
            bounds = (np.int32(x) for x in (begin, end, columns))
            arguments = (a.locator, *bounds, *self.lists, *strips)
            self._run("laswp", (count,), plan.threads, arguments, LEFT=1)

    def _interchange_left(self, group: int) -> None:
        """Apply to all columns the row moves of the panels of later groups of columns."""
        a = self.a
        lefts = (self.steps - 1) // group * group  # columns left of the last group
        plan = launch.lu.laswp(self.plan.columns)
        strips, count = strip_list(a.device, np.maximum(lefts, 0), a.m, plan.columns)
        if count == 0:
            return
        rows = int(a.m[self.members].max())
        together, shared = launch.lu.laswp_through_shared(
            rows, a.dtype, a.device.limits, plan.columns
        )
        if together:
            arguments = (a.locator, np.int32(group), *self.lists, np.int32(together), *strips)
            self._run("laswp_left", (count,), plan.threads, arguments, shared)
        else:
            bounds = (np.int32(x) for x in (0, ALL_ROWS, group))
            arguments = (a.locator, *bounds, *self.lists, *strips)
            self._run("laswp", (count,), plan.threads, arguments, LEFT=1)
