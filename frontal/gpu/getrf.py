"""LU with partial pivoting of many matrices, their inverses, and solving with the factors.

Matrices up to 32×32 are factored in registers, those that shared memory holds by one block each,
and larger ones by panels. Pivots and ``info`` are LAPACK's, counted from 1; a pivot whose
reciprocal is no normal number counts as a failure. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from . import blas3, launch
from .batch import Batch
from .launch import PanelPlan, RowsPlan
from .parts import ALL, Part, operands
from .worklists import work_list

_STRIP = 32  # columns of a block of laswp.cu and getrs.cu
_MOST_BLOCKS = 32  # that share a panel, in getrf_tall.cu


def getrf(a: Batch, pivots: Batch, info: Any, variant: str | None = None) -> None:
    """Factor P·A = L·U in place, for matrices of any shapes.

    Parameters
    ----------
    a : Batch
    pivots : Batch of int32
        A column of min(m, n) entries for each matrix: row i was interchanged with row pivots[i].
    info : (count,) int32 device array
        Gets 0, or the first column without a pivot, from 1.
    variant : {"tiny", "block", "panel"}, optional
        In registers, in shared memory, by panels; by size if not given, and where one cannot be.
    """
    a, pivots = (part.batch for part in operands(a, pivots))
    numbers = launch.tuning("getrf", a.device.name)
    sizes = a.m.tobytes(), a.n.tobytes()
    for kind, members in _kinds(*sizes, a.dtype, a.device.limits, numbers, variant):
        {"tiny": _tiny, "block": _block, "panel": _panels}[kind](a, pivots, info, members)


def inverse(a: Batch, info: Any, variant: str | None = None) -> None:
    """Invert square matrices in place; one without an inverse is lost.

    Parameters
    ----------
    a : Batch
    info : (count,) int32 device array
        Gets 0, or the first column without a pivot, from 1.
    variant : {"tiny", "solve"}, optional
        In registers up to 32×32, or by solving for the identity; by size if not given.
    """
    small = a.n <= (-1 if variant == "solve" else 32)
    if small.any():
        members = np.flatnonzero(small)
        _in_registers("inverse", a, (info,), members[np.argsort(-a.n[members], kind="stable")])
    if small.all():
        return
    sizes = np.where(small, 0, a.n).astype(np.int32)
    large = a if not small.any() else _subset(a, np.flatnonzero(~small))
    found = info if not small.any() else a.device.xp.zeros(large.count, np.int32)
    _invert_by_solving(large, found)
    if found is not info:
        info[_uploaded(a.device, np.flatnonzero(sizes).tobytes(), np.int64)] = found


def _invert_by_solving(a: Batch, info: Any) -> None:
    device, grid = a.device, (a.count, min(a.max_n, 64))
    pivots, x = _workspace(a, np.int32, 1), _workspace(a, a.dtype)
    getrf(a, pivots, info)
    identity = device.kernel("inverse.cu", f"inverse_identity_{a.wrapper}", a.dtype)
    identity(grid, (128,), (x.locator,))
    getrs(a, pivots, x)
    copy = device.kernel("inverse.cu", f"inverse_copy_{a.wrapper}", a.dtype)
    copy(grid, (128,), (x.locator, a.locator, info))


def getrs(a: Batch, pivots: Batch, b: Batch, trans: str = "N", variant: str | None = None) -> None:
    """Solve op(A)·X = B by the factors of ``getrf``; X takes the place of B.

    Parameters
    ----------
    a, pivots : Batch
        What ``getrf`` made of square matrices.
    b : Batch
    trans : {"N", "T", "C"}
    variant : {"tiny", "blocked"}, optional
        One launch, in registers, up to 32×32; or triangular solves. By size if not given.
    """
    a, pivots, b = (part.batch for part in operands(a, pivots, b))
    if variant != "blocked" and a.max_n <= 32:
        _solve_in_registers(a, pivots, b, trans)
    elif trans == "N":
        _interchange(pivots, b, back=False)
        blas3.trsm("L", "L", "N", "U", 1.0, a, b)
        blas3.trsm("L", "U", "N", "N", 1.0, a, b)
    else:
        blas3.trsm("L", "U", trans, "N", 1.0, a, b)
        blas3.trsm("L", "L", trans, "U", 1.0, a, b)
        _interchange(pivots, b, back=True)


# --- which matrices go which way -----------------------------------------------------------------


@lru_cache(maxsize=256)
def _kinds(
    rows: bytes, cols: bytes, dtype: np.dtype, limits: Any, numbers: Any, variant: str | None
) -> list[tuple[str, np.ndarray]]:
    """Groups of matrices by how they are factored, with their indices, those of most work first.

    Those that share a launch in shared memory are alike in steps of 32, and panels by a factor of
    two, so that none takes the room of a much larger one.
    """
    m, n = np.frombuffer(rows, np.int32), np.frombuffer(cols, np.int32)
    steps = np.stack([-(-m // 32), -(-n // 32)], axis=1)
    shapes, which = np.unique(steps, axis=0, return_inverse=True)
    groups: dict[tuple[str, int], list[np.ndarray]] = {}
    for k, shape in enumerate((32 * shapes).tolist()):
        kind = _kind(*shape, dtype, limits, numbers, variant)
        members = np.flatnonzero(which.ravel() == k)
        alike = {"tiny": 0, "block": k, "panel": (shape[0] - 1).bit_length()}[kind]
        groups.setdefault((kind, alike), []).append(members)
    work = np.minimum(m, n).astype(np.int64) ** 2 * np.maximum(m, n)
    found = []
    for (kind, _), parts in groups.items():
        members = np.sort(np.concatenate(parts))
        found.append((kind, members[np.argsort(-work[members], kind="stable")]))
    return found


def _kind(m: int, n: int, dtype: np.dtype, limits: Any, numbers: Any, variant: str | None) -> str:
    tiny = 32 if variant == "tiny" else numbers.tiny if variant is None else 0
    if max(m, n) <= tiny or min(m, n) == 0:
        return "tiny"
    if variant != "panel" and launch.getrf_block(m, n, dtype, limits, numbers):
        return "block"
    return "panel"


def _subset(a: Batch, members: np.ndarray) -> Batch:
    """Some matrices of a batch of different sizes, in their order."""
    device = a.device
    sizes = (np.ascontiguousarray(s[members]) for s in (a.m, a.n, a.ld))
    addresses = a.keep[0][_uploaded(device, members.tobytes(), np.int64)]
    made = Batch.of_sizes(device, a.dtype, np.zeros(len(members), np.uint64), *sizes)
    made.locator["p"] = device.pointer(addresses)
    return replace(made, keep=(addresses, *made.keep[1:], *a.keep))


@lru_cache(maxsize=512)
def _uploaded(device: Any, array: bytes, dtype: Any) -> Any:
    return device.upload(np.frombuffer(array, dtype))


def _order(a: Batch, members: np.ndarray) -> Any:
    """The order in which blocks take matrices: an array on the device; 0, a null, for their own."""
    if a.wrapper != "vbatched":
        return np.uint64(0)
    return _uploaded(a.device, members.astype(np.int32).tobytes(), np.int32)


def _workspace(a: Batch, dtype: Any, columns: int | None = None) -> Batch:
    """New matrices with the rows of a batch, and its columns or so many, as a batch of its kind."""
    device, m = a.device, np.maximum(a.m, 1).astype(np.int64)
    n = a.n.astype(np.int32) if columns is None else np.full(a.count, columns, np.int32)
    size = m * n
    memory = device.xp.empty(int(size.sum()), dtype)
    if a.wrapper == "vbatched":
        first = device.pointer(memory) + memory.itemsize * (np.cumsum(size) - size)
        made = Batch.of_sizes(device, memory.dtype, first.astype(np.uint64), a.m, n, m)
        return replace(made, keep=(*made.keep, memory))
    stack = memory.reshape(a.count, int(n[0]), int(m[0])).swapaxes(-1, -2)
    return Batch.of(device, stack[0] if a.wrapper == "native" else stack)


# --- in registers --------------------------------------------------------------------------------


def _tiny(a: Batch, pivots: Batch, info: Any, members: np.ndarray) -> None:
    _in_registers("getrf_tiny", a, (info,), members, pivots.locator)


def _in_registers(
    name: str, a: Batch, results: tuple[Any, ...], members: np.ndarray, *more: np.ndarray
) -> None:
    """Launch a kernel for matrices up to 32×32; blocks take those of one width together."""
    side = np.where(np.minimum(a.m, a.n) > 0, np.maximum(a.m, a.n), 0)[members]
    widest = RowsPlan.of(int(side.max(initial=0)))
    if a.wrapper == "vbatched":
        members = members[np.argsort(-side, kind="stable")]
        work, blocks, shared = _blocks_of(a.device, np.sort(side)[::-1].tobytes(), a.dtype)
    else:
        per_block = widest.per_block
        work, blocks = np.uint64(0), -(-a.count // per_block)
        shared = widest.shared(a.dtype, per_block)
    if blocks:
        kernel = a.device.kernel(f"{name}.cu", f"{name}_{a.wrapper}", a.dtype, WIDTH=widest.width)
        arguments = (a.locator, *more, _order(a, members), work, np.int32(len(members)), *results)
        kernel((blocks,), (128,), arguments, shared)


@lru_cache(maxsize=256)
def _blocks_of(device: Any, sides: bytes, dtype: np.dtype) -> tuple[Any, int, int]:
    """Width, first and count of the matrices of each block, for sides in descending order."""
    side = np.frombuffer(sides, np.int32)
    blocks, shared, end = [], 0, 0
    while end < len(side):
        plan = RowsPlan.of(int(side[end]))
        least = plan.width - 7 if plan.width > 8 else 0
        start, end = end, int(np.searchsorted(-side, -least, "right"))
        each = plan.per_block
        blocks += [(plan.width, i, min(each, end - i)) for i in range(start, end, each)]
        shared = max(shared, plan.shared(dtype, each))
    work = np.array(blocks, np.int32).reshape(-1, 3)
    return (device.upload(work) if len(work) else np.uint64(0)), len(work), shared


def _solve_in_registers(a: Batch, pivots: Batch, b: Batch, trans: str) -> None:
    numbers = launch.tuning("getrs", a.device.name)
    plan, columns = RowsPlan.of(a.max_n), b.max_n
    if a.count == 0 or a.max_n == 0 or columns == 0:
        return
    order = _order(a, np.argsort(-a.n, kind="stable"))
    share = -(-columns // max(-(-columns // numbers.share), 1))
    code = 1 if trans == "C" and a.dtype.kind != "c" else "NTC".index(trans)
    constants = {"WIDTH": 32 if plan.width > 16 else plan.width, "TRANS": code}
    kernel = a.device.kernel("getrs.cu", f"getrs_tiny_{a.wrapper}", a.dtype, **constants)
    grid = (-(-a.count // plan.per_block), -(-columns // share))
    sources = (a.locator, pivots.locator, b.locator)
    kernel(grid, (128,), (*sources, order, np.int32(a.count), np.int32(share)))


# --- in shared memory ----------------------------------------------------------------------------


def _block(a: Batch, pivots: Batch, info: Any, members: np.ndarray) -> None:
    device = a.device
    m, n = int(a.m[members].max()), int(a.n[members].max())
    plan = launch.getrf_block(m, n, a.dtype, device.limits, launch.tuning("getrf", device.name))
    assert plan is not None
    kernel = device.kernel("getrf_block.cu", f"getrf_block_{a.wrapper}", a.dtype)
    arguments = (_order(a, members), np.int32(plan.ld), np.int32(n), info)
    kernel(
        (len(members),),
        (plan.threads,),
        (a.locator, pivots.locator, *arguments),
        plan.shared,
    )


# --- by panels -----------------------------------------------------------------------------------


def _panels(a: Batch, pivots: Batch, info: Any, members: np.ndarray) -> None:
    """Factor by panels; each is followed by what it does to the other columns."""
    device = a.device
    numbers, rows = launch.tuning("getrf", device.name), int(a.m[members].max())
    plan = launch.getrf_panel(rows, a.dtype, numbers)
    uniform = a.wrapper != "vbatched"
    if rows <= numbers.strips or not (uniform or np.array_equal(a.m[members], a.n[members])):
        _Panels(a, pivots, info, members, plan).by_strips()
    elif uniform or len(members) == a.count:
        _Panels(a, pivots, info, np.arange(a.count), plan).by_products(numbers.outer)
    else:
        part, p = _subset(a, members), _subset(pivots, members)
        found = device.xp.zeros(part.count, np.int32)
        _Panels(part, p, found, np.arange(part.count), plan).by_products(numbers.outer)
        info[_uploaded(device, members.astype(np.int64).tobytes(), np.int64)] = found


class _Panels:
    """A factorization by panels on its way: its matrices, and the lists of rows that moved."""

    def __init__(
        self, a: Batch, pivots: Batch, info: Any, members: np.ndarray, plan: PanelPlan
    ) -> None:
        self.a, self.pivots, self.info, self.plan = a, pivots, info, plan
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
        """Each panel at once to all columns on its right, strip by strip, by one launch."""
        for j in range(0, int(self.steps.max()), self.plan.columns):
            self._factor(j)
            self._update(j)
        self._interchange_left(self.plan.columns)

    def by_products(self, outer: int) -> None:
        """Panels to their outer block at once, outer blocks to the rest by large products."""
        last = int(self.steps.max())
        for begin in range(0, last, outer):
            end = min(begin + outer, last)
            for j in range(begin, end, self.plan.columns):
                self._factor(j)
                self._eliminate(j, min(j + self.plan.columns, end), end)
            self._interchange_within(begin, end)
            self._eliminate(begin, end, ALL)
        self._interchange_left(outer)

    def _kernel(self, file: str, name: str, **constants: int) -> Callable[..., None]:
        entry = f"{name}_{self.a.wrapper}"
        constants = {"PANEL": self.plan.columns, **constants}
        return self.a.device.kernel(file, entry, self.a.dtype, **constants)

    @property
    def _lists(self) -> tuple[Any, np.int32]:
        return self.moves, np.int32(self.panels)

    def _factor(self, j: int) -> None:
        """Factor the panel that begins at column j of each matrix that has one."""
        active = self.members[: int((self.steps[self.members] > j).sum())]
        rows = int(self.a.m[active].max()) - j
        if self.plan.shared_by_blocks:
            self._factor_tall(j, len(active), rows)
            return
        threads = self.plan.block(rows)
        kernel = self._kernel("getrf_panel.cu", "getrf_panel", ROWS=self.plan.rows)
        sources = (self.a.locator, self.pivots.locator, _order(self.a, self.members))
        arguments = (*sources, np.int32(j), *self._lists, self.info)
        shared = self.plan.shared(self.a.dtype, threads)
        kernel((len(active),), (threads,), arguments, shared)

    def _factor_tall(self, j: int, count: int, rows: int) -> None:
        """The same where blocks share a panel: as many at once as surely fit on the device."""
        device, threads = self.a.device, self.plan.block(rows)
        blocks = -(-rows // threads)
        if blocks > _MOST_BLOCKS:
            raise ValueError(
                f"getrf takes matrices up to {_MOST_BLOCKS * threads} rows, not {rows}"
            )
        together = max(device.limits.multiprocessors // blocks, 1)
        kernel = self._kernel("getrf_tall.cu", "getrf_tall")
        sources = (self.a.locator, self.pivots.locator, _order(self.a, self.members))
        shared = self.plan.shared(self.a.dtype, threads)
        for first in range(0, count, together):
            now = min(together, count - first)
            exchange = device.xp.empty(now * self.plan.exchange(self.a.dtype, blocks), np.uint8)
            where = np.int32(first), np.int32(j), *self._lists
            arguments = (*sources, *where, self.info, exchange, self.arrived)
            kernel((blocks, now), (threads,), arguments, shared)

    def _strips(self, rights: np.ndarray, rows: np.ndarray, width: int) -> tuple[Any, int, int]:
        """Strips of so many columns of each matrix: list, its length, number of strips."""
        ones = np.ones_like(rights)
        return work_list(self.a.device, rights, ones, rows, (width, 1), None, ALL)

    def _update(self, j: int) -> None:
        """Bring the columns right of panel j up to date."""
        after = np.minimum(j + self.plan.columns, self.steps)
        rights = np.where(self.steps > j, self.a.n - after, 0)
        width = launch.tiles(self.a.dtype)[2].cols
        work, period, count = self._strips(rights, self.a.m - j, width)
        if count:
            kernel = self._kernel("getrf_update.cu", "getrf_update")
            arguments = (np.int32(j), np.int32(ALL), *self._lists, work, np.int32(period))
            shared = launch.strip_shared(self.a.dtype)
            kernel((count,), (128,), (self.a.locator, *arguments), shared)

    def _eliminate(self, begin: int, end: int, last: int) -> None:
        """Bring columns [end, last) up to date with the panels of columns [begin, end)."""
        a = self.a
        rights = np.where(self.steps > begin, np.minimum(a.n, last) - end, 0)
        work, period, count = self._strips(np.maximum(rights, 0), a.m - begin, _STRIP)
        if count == 0:
            return
        bounds = (np.int32(x) for x in (begin, end, last))
        kernel = self._kernel("laswp.cu", "laswp")
        kernel((count,), (128,), (a.locator, *bounds, *self._lists, work, np.int32(period)))
        size, wide = end - begin, last - end if last < ALL else ALL
        u = Part(a, begin, end, size, wide)
        blas3.trsm("L", "L", "N", "U", 1.0, Part(a, begin, begin, size, size), u)
        below = Part(a, end, begin, n=size)
        blas3.gemm("N", "N", -1.0, below, u, 1.0, Part(a, end, end, n=wide))

    def _interchange_within(self, begin: int, end: int) -> None:
        """Move rows of columns [begin, end) as the later panels of these columns did."""
        a, columns = self.a, self.plan.columns
        lefts = (np.minimum(self.steps, end) - 1) // columns * columns - begin
        work, period, count = self._strips(np.maximum(lefts, 0), a.m, columns)
        if count:
            kernel = self._kernel("laswp.cu", "laswp", LEFT=1)
            bounds = (np.int32(x) for x in (begin, end, columns))
            kernel((count,), (128,), (a.locator, *bounds, *self._lists, work, np.int32(period)))

    def _interchange_left(self, group: int) -> None:
        """Move rows of all columns as the panels of later groups of columns did."""
        a = self.a
        lefts = (self.steps - 1) // group * group  # columns left of the last group
        work, period, count = self._strips(np.maximum(lefts, 0), a.m, self.plan.columns)
        if count == 0:
            return
        rows = int(a.m[self.members].max())
        together = launch.laswp_columns(rows, a.dtype, a.device.limits, self.plan.columns)
        more = (*self._lists, np.int32(together), work, np.int32(period))
        if together:
            kernel = self._kernel("laswp.cu", "laswp_left")
            shared = rows * (together * a.dtype.itemsize + 4)
            kernel((count,), (128,), (a.locator, np.int32(group), *more), shared)
        else:
            kernel = self._kernel("laswp.cu", "laswp", LEFT=1)
            bounds = (np.int32(x) for x in (0, ALL, group))
            kernel((count,), (128,), (a.locator, *bounds, *more[:2], *more[3:]))


def _interchange(pivots: Batch, b: Batch, back: bool) -> None:
    """Interchange rows of B as P does, or back."""
    device = b.device
    rights = np.where(b.m > 0, b.n, 0).astype(np.int32)
    strips = (_STRIP, 1)
    work, period, count = work_list(device, rights, np.ones_like(rights), b.m, strips, None, ALL)
    if count == 0:
        return
    columns = launch.laswp_columns(b.max_m, b.dtype, device.limits)
    if columns == 0:
        raise ValueError(f"getrs takes matrices up to {_most_rows(b)} rows, not {b.max_m}")
    kernel = device.kernel("getrs.cu", f"getrs_rows_{b.wrapper}", b.dtype, TRANS=int(back))
    arguments = (b.locator, pivots.locator, np.int32(columns), work, np.int32(period))
    kernel((count,), (128,), arguments, b.max_m * (columns * b.dtype.itemsize + 4))


def _most_rows(b: Batch) -> int:
    return b.device.limits.shared_block // (b.dtype.itemsize + 4)
