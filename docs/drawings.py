"""The drawings of the theory pages, each computed from a small matrix: docs/drawn/*.svg."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import frontal
from frontal.cli import draw
from frontal.problems import poisson2d

FOLDER = Path(__file__).resolve().parent / "drawn"
EDGE = 4  # of the grid whose elimination is followed
COLORS = ("#fdae6b", "#9ecae1", "#a1d99b", "#bcbddc")


def save(figure: Figure, name: str) -> None:
    """Write a drawing."""
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / f"{name}.svg")


@cache
def small() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pattern of a small grid in a fill-reducing order, of its factor, and the elimination tree."""
    A = poisson2d(EDGE)
    perm = frontal.ordering.order(frontal.ordering.adjacency(A), "amd").perm
    entries = abs(A).toarray()[np.ix_(perm, perm)] > 0
    return (entries, *eliminated(entries))


def eliminated(pattern: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pattern of L, and parent of each column: its first row below the diagonal."""
    L = np.tril(pattern)
    n = len(L)
    parent = np.full(n, -1)
    for j in range(n):
        below = np.flatnonzero(L[:, j])[1:]
        L[np.ix_(below, below)] |= np.tril(np.ones((below.size, below.size), bool))
        parent[j] = below[0] if below.size else -1
    return L, parent


def supernodes(L: np.ndarray, parent: np.ndarray) -> list[list[int]]:
    """Columns by fundamental supernode."""
    groups = [[0]]
    children = np.bincount(parent[parent >= 0], minlength=len(L))
    for j in range(1, len(L)):
        nested = parent[j - 1] == j and L[:, j - 1].sum() == L[:, j].sum() + 1
        if nested and children[j] == 1:
            groups[-1].append(j)
        else:
            groups.append([j])
    return groups


def places(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Abscissa and height of the nodes of a tree, in any order of elimination."""
    children: list[list[int]] = [[] for _ in parent]
    for j, above in enumerate(parent):
        if above >= 0:
            children[above].append(j)
    x, depth = np.zeros(len(parent)), np.zeros(len(parent))
    leaves = 0

    def walk(j: int, d: int) -> None:
        nonlocal leaves
        depth[j] = d
        for child in children[j]:
            walk(child, d + 1)
        x[j] = np.mean([x[c] for c in children[j]]) if children[j] else leaves
        leaves += not children[j]

    for root in np.flatnonzero(parent < 0):
        walk(root, 0)
    return x, -depth


def pattern(axes, L: np.ndarray, entries: np.ndarray, colors: np.ndarray | None = None) -> None:
    """Draw L: entries of A filled, fill as circles; with a ground for each column."""
    n = len(L)
    for i, j in np.argwhere(L):
        if colors is not None:
            axes.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, color=colors[j], lw=0))
        look = {"color": "black"} if entries[i, j] else {"mfc": "none", "mec": "C3"}
        axes.plot(j, i, "o", ms=5, **look)
    axes.set(xlim=(-0.7, n - 0.3), ylim=(n - 0.3, -0.7), aspect="equal")
    ticks = range(0, n, 3)
    axes.set_xticks(ticks, [str(t) for t in ticks])
    axes.set_yticks(ticks, [str(t) for t in ticks])


def nodes(axes, parent: np.ndarray, labels: list[str], colors: list[str], size: int) -> None:
    """Draw a tree of named nodes."""
    x, y = places(parent)
    for j, above in enumerate(parent):
        if above >= 0:
            axes.plot([x[j], x[above]], [y[j], y[above]], color="0.6", lw=1, zorder=1)
    for j, label in enumerate(labels):
        box = {"boxstyle": "round", "fc": colors[j], "ec": "0.3"}
        axes.text(x[j], y[j], label, ha="center", va="center", size=size, bbox=box, zorder=2)
    axes.set_axis_off()
    axes.set(xlim=(x.min() - 0.7, x.max() + 0.7), ylim=(y.min() - 0.5, 0.5))


def elimination() -> None:
    """Fill of a small grid, and its elimination tree."""
    entries, L, parent = small()
    figure = draw.new_figure(9, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1))
    pattern(left, L, entries)
    left.set_title("L: entries of A, and fill (circles)")
    nodes(right, parent, [str(j) for j in range(len(L))], ["white"] * len(L), 9)
    right.set_title("elimination tree")
    save(figure, "elimination")


def assembly() -> None:
    """The same matrix by supernodes, and its assembly tree."""
    entries, L, parent = small()
    groups = supernodes(L, parent)
    of = np.repeat(np.arange(len(groups)), [len(g) for g in groups])
    colors = [COLORS[s % len(COLORS)] for s in range(len(groups))]
    above = np.array([of[parent[g[-1]]] if parent[g[-1]] >= 0 else -1 for g in groups])
    labels = []
    for group in groups:
        rows = np.flatnonzero(L[:, group[0]])
        updates = [str(i) for i in rows if i not in group]
        labels.append(" ".join(map(str, group)) + "\n" + (" ".join(updates) or "–"))
    figure = draw.new_figure(9, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    pattern(left, L, entries, np.array(colors)[of])
    left.set_title("columns of one structure: supernodes")
    nodes(right, above, labels, colors, 8)
    right.set_title("assembly tree: pivot columns above, update rows below")
    save(figure, "assembly")


def extend_add() -> None:
    """A front of the small grid, and the contribution blocks that are added into it."""
    _, L, parent = small()
    groups = supernodes(L, parent)
    rows = [np.flatnonzero(L[:, g[0]]).tolist() for g in groups]
    owner = {j: s for s, group in enumerate(groups) for j in group}
    above = [owner.get(int(parent[g[-1]]), -1) for g in groups]
    children = {s: [c for c, p in enumerate(above) if p == s] for s in range(len(groups))}
    s = max(children, key=lambda s: (len(children[s]) >= 2) * (len(rows[s]) - len(groups[s])))
    figure = draw.new_figure(9.5, 3.4)
    sizes = [len(rows[c]) - len(groups[c]) for c in children[s]] + [len(rows[s])]
    panels = figure.subplots(1, len(sizes), width_ratios=sizes)
    for axes, c, color in zip(panels, children[s], COLORS, strict=False):
        square(axes, rows[c][len(groups[c]) :], 0, {color: rows[c]})
        axes.set_title(f"contribution block of the front\nof column {_list(groups[c])}", size=9)
    parts = {color: rows[c] for color, c in zip(COLORS, children[s], strict=False)}
    square(panels[-1], rows[s], len(groups[s]), parts)
    panels[-1].set_title(f"front of column {_list(groups[s])}:\npivot columns, update rows", size=9)
    save(figure, "extend_add")


def _list(columns: list[int]) -> str:
    return ", ".join(map(str, columns))


def square(axes, rows: list[int], pivots: int, parts: dict[str, list[int]]) -> None:
    """Draw the lower triangle of a front; entries that children add to have their colours."""
    for a, i in enumerate(rows):
        for b, j in enumerate(rows[: a + 1]):
            found = [color for color, known in parts.items() if i in known and j in known]
            width = 1 / max(len(found), 1)
            for k, color in enumerate(found or ["white"]):
                at = (b + k * width, a)
                axes.add_patch(Rectangle(at, width, 1, fc=color, ec="none"))
            axes.add_patch(Rectangle((b, a), 1, 1, fc="none", ec="0.5", lw=0.6))
    n = len(rows)
    if pivots:
        axes.plot([pivots, pivots], [0, n], "k-", lw=2)
        axes.plot([0, n], [pivots, pivots], "k-", lw=2)
    labels = [str(i) for i in rows]
    axes.set_xticks(np.arange(n) + 0.5, labels)
    axes.set_yticks(np.arange(n) + 0.5, labels)
    axes.tick_params(length=0)
    axes.set(xlim=(-0.1, n + 0.1), ylim=(n + 0.1, -0.1), aspect="equal")
    for spine in axes.spines.values():
        spine.set_visible(False)


def tiles() -> None:
    """A large front as tiles, and what a task does."""
    columns, rows, tile = 3, 6, 64
    figure = draw.new_figure(9, 3.8)
    axes, legend = figure.subplots(1, 2, width_ratios=(1, 1.1))
    kinds = {
        "factor": ("#fdae6b", "diagonal tile: L(j,j), and its inverse V"),
        "solve": ("#9ecae1", "tile of L below it: L(i,j) = C Vᴴ"),
        "block": ("#e0e0e0", "tile of the contribution block: C"),
    }
    for i in range(rows):
        for j in range(i + 1):
            kind = "block" if j >= columns else "factor" if i == j else "solve"
            axes.add_patch(Rectangle((j, i), 1, 1, fc=kinds[kind][0], ec="0.3"))
            axes.text(j + 0.5, i + 0.5, f"{i},{j}", ha="center", va="center", size=8)
    axes.plot([columns, columns], [0, rows], "k-", lw=2)
    axes.set(xlim=(-0.1, rows + 0.1), ylim=(rows + 0.1, -0.1), aspect="equal")
    axes.set_axis_off()
    axes.set_title(
        f"front of {columns * tile} pivot columns, {(rows - columns) * tile} update rows"
    )
    legend.set_axis_off()
    legend.text(0, 0.9, "C = A(i,j) + Σ children − Σ L(i,p) L(j,p)ᴴ,  p < j", size=11)
    for k, (color, text) in enumerate(kinds.values()):
        legend.add_patch(Rectangle((0, 0.68 - 0.2 * k), 0.06, 0.1, fc=color, ec="0.3"))
        legend.text(0.1, 0.7 - 0.2 * k, text, size=10)
    legend.text(
        0, 0.08, f"a tile is {tile} × {tile}; a task is one tile, from its assembly to its end"
    )
    save(figure, "tiles")


def overview() -> None:
    """A grid in nested dissection: its fronts, its factor, its assembly tree."""
    edge = 31
    analysis = frontal.analyze(poisson2d(edge), ordering="dissection", backend="cpu")
    plan = analysis.plan
    depth = np.zeros(analysis.n_fronts, int)
    for s in range(analysis.n_fronts - 1, -1, -1):
        depth[s] = depth[plan.parent[s]] + 1 if plan.parent[s] >= 0 else 0
    level = np.repeat(depth, np.diff(plan.start))
    grid = np.empty(edge * edge)
    grid[analysis.perm] = level
    figure = draw.new_figure(11, 3.6)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.25))
    left.imshow(grid.reshape(edge, edge), cmap="viridis")
    left.set(title="the unknowns, by depth of their front", xticks=(), yticks=())
    draw.fill(middle, analysis)
    middle.set(title="the factor (below), A (above)", xlabel="")
    draw.tree(right, plan)
    right.set_title(f"{analysis.n_fronts} fronts: dense matrices")
    save(figure, "overview")


def example() -> None:
    """What `frontal analyze --plot` draws."""
    FOLDER.mkdir(exist_ok=True)
    name = "poisson3d:20"
    found = frontal.analyze(frontal.problems.from_name(name), ordering="dissection", backend="cpu")
    draw.analysis(found, str(FOLDER / "analysis.png"), name)


def main() -> None:
    """Write all drawings."""
    for one in (elimination, assembly, extend_add, tiles, overview, example):
        one()


if __name__ == "__main__":
    main()
