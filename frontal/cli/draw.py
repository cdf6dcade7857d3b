"""Pictures of an analysis: fill, assembly tree, and the timeline of a factorization.

Each function draws into axes of matplotlib; `analysis` draws the page of `frontal analyze --plot`.
Work is proportional to the index arrays and to pixels, so large problems take seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..machine.resources import CPU
from ..ordering.etree import inverse
from ..symbolic.plan import Plan, front_flops
from . import show
from .output import require_folder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..factor.analyzed import Analyzed

PIXELS = 500  # pixels per side of the picture of a pattern
NODES = 400  # fronts of a tree that are drawn individually
_STEPS = 2000  # points of a timeline
_FILL = "Blues"


def analysis(analysis: Analyzed, path: str, title: str = "") -> None:
    """Draw fill, assembly tree and timeline of an analysis to a file.

    Parameters
    ----------
    analysis : Analyzed
    path : str
        File to write; its ending selects the format, .png, .svg or .pdf.
    title : str

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If matplotlib does not support the ending.
    """
    analysis = analysis.frontal
    figure = new_figure(11, 5.2)
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.15), height_ratios=(1.3, 1))
    fill(figure.add_subplot(grid[:, 0]), analysis)
    tree(figure.add_subplot(grid[0, 1]), analysis.plan)
    timeline(figure.add_subplot(grid[1, 1]), analysis)
    ordering = analysis.ordering.method
    costs = f"{show.count(analysis.nnz_factor)} entries, {show.count(analysis.flops)} flops"
    named = f"{title}: " if title else ""
    figure.suptitle(f"{named}n = {analysis.n}, {analysis.method}, {ordering}, {costs}")
    figure.savefig(path)


def require_writable(path: str | None) -> None:
    """Raise OSError or ValueError if no picture can be written to the file `path`.

    Raise ImportError if matplotlib is not installed.
    """
    if path is None:
        return
    known = sorted(new_figure(1, 1).canvas.get_supported_filetypes())
    ending = Path(path).suffix[1:].lower()
    if ending and ending not in known:
        raise ValueError(
            f"{path} has an unknown file extension; known extensions: .{', .'.join(known)}"
        )
    require_folder(path)


def new_figure(width: float, height: float):
    """Return an empty figure without a window, outside of matplotlib's global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib, which is not installed. Try: pip install 'frontal[plot]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained", dpi=130)


# --- fill ------------------------------------------------------------------------------------


def fill(axes: Axes, analysis: Analyzed) -> None:
    """Draw the entries of the factor, and above the diagonal those of A in the same order."""
    n, symbolic = analysis.n, analysis.symbolic
    if not n:
        return
    size = min(n, PIXELS)
    lower = factor_density(analysis.plan, size)
    columns = np.repeat(np.arange(n), np.diff(symbolic.indptr))
    i = inverse(analysis.row_perm)[symbolic.indices].astype(np.int64)
    j = inverse(analysis.perm)[columns].astype(np.int64)
    i, j = (np.minimum(i, j), np.maximum(i, j)) if symbolic.method.one_triangle else (i, j)
    above = _binned(i[i < j] * size // n, j[i < j] * size // n, np.ones((i < j).sum()), size)
    most = (n / size) ** 2
    cells = np.full((size, size), np.nan)
    cells[lower > 0] = lower[lower > 0] / most
    extent = (-0.5, n - 0.5, n - 0.5, -0.5)
    look = {"extent": extent, "interpolation": "nearest", "norm": "log"}
    axes.imshow(cells, cmap=_FILL, vmin=1e-3, vmax=1, **look)
    dots = np.where(above > 0, 1.0, np.nan)
    axes.imshow(dots, cmap="gray", vmin=1, vmax=2, extent=extent, interpolation="nearest")
    entries = show.count(analysis.symbolic.indices.size)
    axes.set_title(f"below: L, {show.count(_stored(analysis.plan))} entries; above: A, {entries}")
    axes.set(xlabel="elimination order", xticks=(), yticks=())


def factor_density(plan: Plan, size: int) -> np.ndarray:
    """Return the entries of the factor, with amalgamation zeros, in each of (size, size) cells.

    A front is cut where its pivot columns pass from one column of cells to the next.
    """
    n = int(plan.start[-1])
    edges = -(-np.arange(1, size, dtype=np.int64) * n // size)  # first column of each cell
    cuts = np.unique(np.concatenate([plan.start.astype(np.int64), edges]))
    front = np.searchsorted(plan.start, cuts[:-1], "right") - 1
    width = np.diff(cuts)
    cell = cuts[:-1] * size // max(n, 1)
    end = plan.start[front + 1].astype(np.int64)
    pivot_rows = end - cuts[:-1]  # rows of the pivot block from the diagonal on
    pivot_piece = np.repeat(np.arange(front.size), pivot_rows)
    rows = cuts[:-1][pivot_piece] + _counted(pivot_rows)
    weight = np.minimum(rows - cuts[:-1][pivot_piece] + 1, width[pivot_piece])
    count = np.diff(plan.pointer)[front]
    update_piece = np.repeat(np.arange(front.size), count)
    updates = plan.rows[plan.pointer[front][update_piece] + _counted(count)].astype(np.int64)
    inside = _binned(rows * size // n, cell[pivot_piece], weight, size)
    return inside + _binned(updates * size // n, cell[update_piece], width[update_piece], size)


def _counted(sizes: np.ndarray) -> np.ndarray:
    """Return 0, 1, ... within each run of the given sizes."""
    first = np.cumsum(sizes) - sizes
    return np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(first, sizes)


def _binned(i: np.ndarray, j: np.ndarray, weight: np.ndarray, size: int) -> np.ndarray:
    return np.bincount(i * size + j, weight, size * size).reshape(size, size)


def _stored(plan: Plan) -> int:
    k, m = np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)
    return int((k * (k + 1) // 2 + k * m).sum())


# --- tree ------------------------------------------------------------------------------------


def tree(axes: Axes, plan: Plan, nodes: int = NODES) -> None:
    """Draw the assembly tree from its roots down: the fronts with the largest subtree work.

    A front is a disc; its area grows with the number of rows, and its darkness with the share of
    the work. The title states the number of fronts that are not drawn.
    """
    flops = front_flops(plan.start, plan.pointer)
    order = np.diff(plan.start) + np.diff(plan.pointer)
    shown = _largest_subtrees(plan.parent, flops, nodes)
    x, depth = _places(plan.parent, shown)
    at = np.flatnonzero(shown)
    above = plan.parent[at]
    child, parent = at[above >= 0], above[above >= 0]
    segments = np.stack([[x[child], -depth[child]], [x[parent], -depth[parent]]]).transpose(2, 0, 1)
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(list(segments), colors="0.7", linewidths=0.8))
    crowd = max(1.0, at.size / 100)
    area = (6 + 160 * order[at] / max(order.max(initial=1), 1)) / crowd
    share = flops[at] / max(flops.sum(), 1)
    axes.scatter(
        x[at], -depth[at], area, share, cmap="viridis_r", norm="log", vmin=1e-4, vmax=1,
        edgecolors="black", linewidths=0.4, zorder=2,
    )  # fmt: skip
    axes.set(xticks=(), yticks=(), xlim=(-0.03, 1.03))
    axes.margins(y=0.15)
    below = plan.parent.size - at.size
    label = f"assembly tree: {at.size} fronts"
    axes.set_title(f"{label} with the most work, {below} below not shown" if below else label)


def _largest_subtrees(parent: np.ndarray, flops: np.ndarray, nodes: int) -> np.ndarray:
    """Mark the fronts with most subtree work; of equal ones all or none, so parents are marked."""
    work = flops.copy()
    for s, above in enumerate(parent.tolist()):
        if above >= 0:
            work[above] += work[s]
    if parent.size <= nodes:
        return np.ones(parent.size, bool)
    return work > np.sort(work)[-nodes - 1]


def _places(parent: np.ndarray, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return abscissa in [0, 1] and depth of each shown front: leaves in a row, parents above."""
    size = parent.size
    x, low, high = np.zeros(size), np.full(size, np.inf), np.full(size, -np.inf)
    depth, leaves = np.zeros(size), 0
    at = np.flatnonzero(shown).tolist()
    for s in at:
        if np.isinf(low[s]):
            low[s] = high[s] = leaves
            leaves += 1
        x[s] = (low[s] + high[s]) / 2
        if parent[s] >= 0:
            low[parent[s]] = min(low[parent[s]], x[s])
            high[parent[s]] = max(high[parent[s]], x[s])
    for s in reversed(at):
        depth[s] = depth[parent[s]] + 1 if parent[s] >= 0 else 0
    return (x / (leaves - 1) if leaves > 1 else np.full(size, 0.5)), depth


# --- timeline --------------------------------------------------------------------------------


def timeline(axes: Axes, analysis: Analyzed) -> None:
    """Draw memory and orders of fronts over the modelled time of one core.

    Time is that of `FrontCost`, by which fronts are amalgamated. A contribution block exists from
    its front's elimination to the assembly of the parent.
    """
    plan, item = analysis.plan, analysis.dtype.itemsize
    k, m = (x.astype(float) for x in analysis.front_sizes())
    if not k.size:
        return
    end = np.cumsum(_seconds(analysis))
    factor = np.cumsum((k * (k + 1) / 2 + k * m) * analysis.symbolic.method.panels) * item
    block = m * m * item
    taken = block.copy()
    inner = plan.parent >= 0
    np.subtract.at(taken, plan.parent[inner], block[inner])  # assembled by the parent
    blocks = np.cumsum(taken)
    steps = np.unique(np.linspace(0, k.size - 1, min(k.size, _STEPS)).astype(int))
    times = np.concatenate([[0], end[steps]]) * 1e3
    most = np.maximum.reduceat(blocks, np.concatenate([[0], steps[:-1] + 1]))
    factor_mib = np.concatenate([[0], factor[steps]]) / 2**20
    blocks_mib = np.concatenate([[0], most]) / 2**20
    axes.stackplot(
        times,
        factor_mib,
        blocks_mib,
        labels=("factor", "contribution blocks"),
        colors=("#9ecae1", "#fdae6b"),
        step="pre",
    )
    axes.set(
        xlabel="modelled ms on one core", ylabel="MiB", xlim=(0, times[-1] or 1), ylim=(0, None)
    )
    axes.legend(loc="upper left", fontsize="small", frameon=False)
    rows = axes.twinx()
    rows.vlines(end[steps] * 1e3, 0, (k + m)[steps], color="0.35", linewidth=0.5)
    rows.set(ylabel="rows of the front", ylim=(0, 2.2 * (k + m).max()))
    axes.set_title(f"timeline; the analysis took {sum(analysis.seconds.values()):.2g} s")


def _seconds(analyzed: Analyzed) -> np.ndarray:
    """Return the modelled seconds of each front on one core."""
    k, m = (x.astype(float) for x in analyzed.front_sizes())
    model, panels = CPU.fronts, analyzed.symbolic.method.panels
    flops = panels * front_flops(analyzed.plan.start, analyzed.plan.pointer)
    entries = panels * (k + m) * k + 2 * m * m
    return model.front + model.entry * entries + flops / (model.rate * k / (k + model.half))
