"""LU of batches of matrices by panels: factor a panel, then update the other columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..runtime.array import Array, Kernel, Value
from . import blas3, launch
from .launch.lu import PanelPlan
from .operands import ALL_ROWS, MatrixBatch, Submatrix, order_list, subset, upload_table
from .worklists import work_list


class PivotRule(NamedTuple):
    """Pivots smaller than ``tiny`` are perturbed to it; interchanges count rows from ``first``."""

    tiny: float = 0.0
    first: int = 1

    def constants(self, dtype: np.dtype) -> tuple[dict[str, int], np.generic]:
        """Return the constants of the kernels, and the argument for ``tiny``."""
        constants = {"PERTURB": 1} if self.tiny else {}
        if self.first != 1:
            constants["FIRST_ROW"] = self.first
        return constants, np.dtype(dtype.char.lower()).type(self.tiny)


def by_panels(
    a: MatrixBatch, pivots: MatrixBatch, info: Array, members: np.ndarray, rule: PivotRule
) -> None:
    """Factor by panels, each followed by its update of the other columns."""
    device = a.device
    numbers, rows = launch.tuning("getrf", device.name), int(a.m[members].max())
    plan = launch.lu.getrf_panel(rows, a.dtype, numbers)
    uniform = a.wrapper != "vbatched"
    if rows <= numbers.strips or not (uniform or np.array_equal(a.m[members], a.n[members])):
        Panels(a, pivots, info, members, plan, rule).by_strips()
    elif uniform or len(members) == a.count:
        Panels(a, pivots, info, np.arange(a.count), plan, rule).by_products(numbers.outer)
    else:
        chosen, chosen_pivots = subset(a, members), subset(pivots, members)
        chosen_info = device.xp.zeros(chosen.count, np.int32)
        Panels(chosen, chosen_pivots, chosen_info, np.arange(chosen.count), plan, rule).by_products(
            numbers.outer
        )
        upload_table(device, chosen_info, members, info)


class Panels:
    """A factorization by panels in progress: its matrices, and the lists of moved rows."""

    def __init__(
        self,
        a: MatrixBatch,
        pivots: MatrixBatch,
        info: Array,
        members: np.ndarray,
        plan: PanelPlan,
        rule: PivotRule,
    ) -> None:
        self.a, self.pivots, self.info, self.plan = a, pivots, info, plan
        self.rule, self.bound = rule.constants(a.dtype)
        steps = np.minimum(a.m, a.n)
        self.members = members[np.argsort(-steps[members], kind="stable")]
        self.steps = np.zeros_like(steps)
        self.steps[members] = steps[members]
        self.panels = -(-int(self.steps.max()) // plan.columns)
        xp = a.device.xp
        new = xp.zeros if plan.shared_by_blocks else xp.empty
        self.moves = new((a.count, self.panels, plan.moves), np.int32)
        self.arrived = new((a.count, self.panels), np.int32)

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

    def _kernel(self, file: str, name: str, **constants: int) -> Kernel:
        entry = f"{name}_{self.a.wrapper}"
        constants = {"PANEL": self.plan.columns, **constants}
        return self.a.device.kernel(file, entry, self.a.dtype, **constants)

    @property
    def _lists(self) -> tuple[Array, np.int32]:
        return self.moves, np.int32(self.panels)

    def _factor(self, j: int) -> None:
        """Factor the panel at column j of each matrix that has that column."""
        active = self.members[: int((self.steps[self.members] > j).sum())]
        rows = int(self.a.m[active].max()) - j
        if self.plan.shared_by_blocks:
            self._factor_tall(j, len(active), rows)
            return
        threads = self.plan.block(rows)
        kernel = self._kernel("getrf_panel.cu", "getrf_panel", ROWS=self.plan.rows, **self.rule)
        sources = (self.a.locator, self.pivots.locator, order_list(self.a, self.members))
        arguments = (*sources, np.int32(j), *self._lists, self.info, self.bound)
        shared = self.plan.shared(self.a.dtype, threads)
        kernel((len(active),), (threads,), arguments, shared)

    def _factor_tall(self, j: int, count: int, rows: int) -> None:
        """Factor panels shared by several blocks; each launch has only blocks that are resident."""
        device, threads = self.a.device, self.plan.block(rows)
        blocks = -(-rows // threads)
        if blocks > self.plan.max_blocks:
            max_rows = self.plan.max_blocks * threads
            raise ValueError(f"getrf takes matrices up to {max_rows} rows, not {rows}")
        together = self.plan.together(blocks, device.limits)
        kernel = self._kernel("getrf_tall.cu", "getrf_tall", **self.rule)
        sources = (self.a.locator, self.pivots.locator, order_list(self.a, self.members))
        shared = self.plan.shared(self.a.dtype, threads)
        for first in range(0, count, together):
            now = min(together, count - first)
            exchange = device.xp.empty(now * self.plan.exchange(self.a.dtype, blocks), np.uint8)
            position = np.int32(first), np.int32(j), *self._lists
            arguments = (*sources, *position, self.info, exchange, self.arrived, self.bound)
            kernel((blocks, now), (threads,), arguments, shared)

    def _strips(self, rights: np.ndarray, rows: np.ndarray, width: int) -> tuple[Value, int, int]:
        """List strips of ``width`` columns of each matrix: list, its length, number of strips."""
        ones = np.ones_like(rights)
        return work_list(self.a.device, rights, ones, rows, (width, 1), None, ALL_ROWS)

    def _update(self, j: int) -> None:
        """Update the columns right of panel j."""
        after = np.minimum(j + self.plan.columns, self.steps)
        rights = np.where(self.steps > j, self.a.n - after, 0)
        plan = launch.lu.getrf_update(self.a.dtype)
        work, period, count = self._strips(rights, self.a.m - j, plan.columns)
        if count:
            kernel = self._kernel("getrf_update.cu", "getrf_update")
            arguments = (np.int32(j), np.int32(ALL_ROWS), *self._lists, work, np.int32(period))
            kernel((count,), (plan.threads,), (self.a.locator, *arguments), plan.shared)

    def _eliminate(self, begin: int, end: int, last: int) -> None:
        """Update columns [end, last) by the panels of columns [begin, end)."""
        a = self.a
        rights = np.where(self.steps > begin, np.minimum(a.n, last) - end, 0)
        plan = launch.lu.laswp()
        work, period, count = self._strips(np.maximum(rights, 0), a.m - begin, plan.columns)
        if count == 0:
            return
        bounds = (np.int32(x) for x in (begin, end, last))
        kernel = self._kernel("laswp.cu", "laswp")
        arguments = (a.locator, *bounds, *self._lists, work, np.int32(period))
        kernel((count,), (plan.threads,), arguments)
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
        work, period, count = self._strips(np.maximum(lefts, 0), a.m, columns)
        if count:
            kernel = self._kernel("laswp.cu", "laswp", LEFT=1)
            bounds = (np.int32(x) for x in (begin, end, columns))
            arguments = (a.locator, *bounds, *self._lists, work, np.int32(period))
            kernel((count,), (plan.threads,), arguments)

    def _interchange_left(self, group: int) -> None:
        """Apply to all columns the row moves of the panels of later groups of columns."""
        a = self.a
        lefts = (self.steps - 1) // group * group  # columns left of the last group
        plan = launch.lu.laswp(self.plan.columns)
        work, period, count = self._strips(np.maximum(lefts, 0), a.m, plan.columns)
        if count == 0:
            return
        rows = int(a.m[self.members].max())
        together, shared = launch.lu.laswp_through_shared(
            rows, a.dtype, a.device.limits, plan.columns
        )
        more = (*self._lists, np.int32(together), work, np.int32(period))
        if together:
            kernel = self._kernel("laswp.cu", "laswp_left")
            kernel((count,), (plan.threads,), (a.locator, np.int32(group), *more), shared)
        else:
            kernel = self._kernel("laswp.cu", "laswp", LEFT=1)
            bounds = (np.int32(x) for x in (0, ALL_ROWS, group))
            kernel((count,), (plan.threads,), (a.locator, *bounds, *more[:2], *more[3:]))
