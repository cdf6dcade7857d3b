"""Imports point down: no module knows one that is built upon it, and none is in a circle.

The imports of the whole package are read from its sources, those for type checkers and those
inside functions too. The lazy names of ``frontal/__init__.py`` alone do not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "frontal"
KERNELS = PACKAGE / "gpu" / "kernels"

# Rooms of the benchmarks, from the top down.
BENCHMARK_ROWS = (("cpu", "gpu", "dense", "trust"), ("report",), ("harness",))

# Rooms are folders, and modules outside of any, from the top down. A module may import from its own
# room and from rooms of lower rows; rooms of one row do not import each other.
ROWS = (
    ("__main__", "warm"),
    ("cli", "gaussian", "jax", "torch"),
    ("linalg", "solver", "batch"),
    ("eigen", "least_squares"),
    ("api",),
    ("analysis_cache",),
    ("factor",),
    ("backend.choose",),
    ("cpu", "gpu.sparse", "gpu.batched"),
    ("backend.protocol",),
    ("symbolic",),
    ("ordering",),
    ("gpu.dense",),
    ("gpu.runtime",),
    ("gpu",),
    ("io", "info", "problems"),
    ("matrix",),
    ("numeric",),
    ("backend", "compile"),
    ("errors",),
    ("files", "machine", "messages", "linalg_patching"),
    ("_typing",),
    ("",),  # the names of `frontal` itself
)
MAX_TOP_MODULES = 12
# What lies below a room and is none of its business all the same, but for the exceptions.
NEVER = {
    "ordering": ("gpu", {}),
    "symbolic": ("gpu", {}),
    "gpu.sparse": ("gpu.dense", {"gpu.dense.launch"}),
}
# Imports inside functions: who has them, and why.
LAZY = {
    "backend.choose": "a first call on the CPU does not wait for what computes on a GPU",
    "cli.commands": "`frontal --help` and the completion of a shell wait for no library",
}
# Violations that are known; each must go, and its line with it.
STILL: set[str] = set()


class Import(NamedTuple):
    """One module of the package imports another; names leave out ``frontal.``."""

    source: str
    target: str
    lazy: bool

    def __str__(self) -> str:
        return f"{self.source} -> {self.target}"


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _targets(node: ast.AST, package: list[str]) -> Iterator[str]:
    """Modules of this package that a statement imports, submodules by their own names."""
    if isinstance(node, ast.Import):
        found = [alias.name.split(".") for alias in node.names]
        yield from (".".join(name[1:]) for name in found if name[0] == "frontal")
    elif isinstance(node, ast.ImportFrom):
        base = ["frontal", *package][: len(package) + 2 - node.level] if node.level else []
        base += node.module.split(".") if node.module else []
        if base[0] == "frontal":
            names = [".".join([*base[1:], alias.name]) for alias in node.names]
            yield from (name if name in MODULES else ".".join(base[1:]) for name in names)


def _imports(module: str, path: Path) -> Iterator[Import]:
    package = module.split(".") if module else []
    package = package if path.name == "__init__.py" else package[:-1]

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for target in _targets(node, package):
            yield Import(module, target, lazy)
        lazy |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, lazy)

    yield from visit(ast.parse(path.read_text(encoding="utf-8")), False)


IMPORTS = [one for name, path in MODULES.items() if name for one in _imports(name, path)]


def inside(module: str, room: str) -> bool:
    return module == room or module.startswith(f"{room}.")


def room_of(module: str) -> str:
    """The narrowest room that a module is in."""
    rooms = [room for row in ROWS for room in row if inside(module, room)]
    assert rooms, f"{module} has no room in ROWS"
    return max(rooms, key=len)


def row_of(room: str) -> int:
    return next(k for k, row in enumerate(ROWS) if room in row)


def points_down(one: Import) -> bool:
    source, target = room_of(one.source), room_of(one.target)
    if source == target:
        return True
    below, allowed = NEVER.get(source, (None, ()))
    if below and inside(one.target, below):
        return any(inside(one.target, name) for name in allowed)
    return row_of(target) > row_of(source)


def circles() -> Iterator[str]:
    """Modules of one room that import each other; between rooms, one import points up."""
    graph = nx.DiGraph((i.source, i.target) for i in IMPORTS)
    within = [edge for edge in graph.edges if room_of(edge[0]) == room_of(edge[1])]
    for circle in nx.strongly_connected_components(graph.edge_subgraph(within)):
        if len(circle) > 1:
            yield f"circle of {', '.join(sorted(circle))}"


def benchmark_imports() -> nx.DiGraph:
    """Return which module of the benchmarks imports which, inside functions too."""
    folder = PACKAGE.parent / "benchmarks"
    files = {
        ".".join(path.relative_to(folder.parent).with_suffix("").parts): path
        for path in folder.rglob("*.py")
    }
    graph = nx.DiGraph()
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                found = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            graph.add_edges_from((name, target) for target in found if target in files)
    return graph


def test_benchmarks_have_no_circle():
    graph = benchmark_imports()
    assert graph.number_of_edges() > 50
    assert list(nx.simple_cycles(graph)) == []


def test_imports_between_rooms_of_benchmarks_point_down():
    row = {room: k for k, rooms in enumerate(BENCHMARK_ROWS) for room in rooms}
    between = {tuple(m.split(".")[1] for m in edge) for edge in benchmark_imports().edges}
    assert row.keys() == {
        path.parent.name for path in (PACKAGE.parent / "benchmarks").glob("*/__init__.py")
    }
    assert {(a, b) for a, b in between if a != b and row[a] >= row[b]} == set()


def violations() -> set[str]:
    up = {f"{one} points up" for one in IMPORTS if not points_down(one)}
    lazy = {f"{one} inside a function" for one in IMPORTS if one.lazy and one.source not in LAZY}
    return up | lazy | set(circles())


def test_imports_point_down():
    assert sorted(violations() - STILL) == []


def test_known_violations_are_still_there():
    assert sorted(STILL - violations()) == []


def test_reasons_of_lazy_imports_have_their_imports():
    assert sorted(LAZY.keys() - {one.source for one in IMPORTS if one.lazy}) == []


@pytest.mark.parametrize("module", sorted(MODULES))
def test_every_module_has_a_room(module):
    assert room_of(module) in [room for row in ROWS for room in row]


def test_rooms_are_the_folders():
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    rooms = {room.split(".")[0] for row in ROWS for room in row} - {""}
    assert rooms == folders | files
    assert len(files) + 1 <= MAX_TOP_MODULES


@pytest.mark.parametrize(
    ("source", "target", "down"),
    [
        ("api", "factor.analysis", True),
        ("factor.analysis", "api", False),
        ("cpu.lu.front", "cpu.blas", True),
        ("cpu.backend", "gpu.sparse.backend", False),
        ("ordering.auto", "gpu.runtime.device", False),
        ("symbolic.plan", "gpu.dense.launch", False),
        ("gpu.sparse.launch.fronts", "gpu.dense.launch.products", True),
        ("gpu.sparse.pattern", "gpu.dense.potrf", False),
        ("gpu.dense.potrf", "gpu.sparse.launch", False),
        ("gpu.runtime.device", "gpu", True),
    ],
)
def test_the_rule_itself(source, target, down):
    assert points_down(Import(source, target, False)) == down


def test_imports_are_read_from_sources(tmp_path):
    path = tmp_path / "analysis.py"
    path.write_text(
        "import numpy, frontal.errors\n"
        "from ..ordering import auto, order\n"
        "from . import factor\n"
        "from .. import gpu\n"
        "def f():\n    from frontal.io import read_matrix\n"
    )
    assert [(str(one), one.lazy) for one in _imports("factor.analysis", path)] == [
        ("factor.analysis -> errors", False),
        ("factor.analysis -> ordering.auto", False),
        ("factor.analysis -> ordering", False),
        ("factor.analysis -> factor.factor", False),
        ("factor.analysis -> gpu", False),
        ("factor.analysis -> io", True),
    ]


@pytest.mark.parametrize("room", ["common", "dense", "sparse"])
def test_kernels_include_what_is_below_them(room):
    """``common/`` knows itself alone, ``dense/`` no ``sparse/``."""
    allowed = ("common", "dense", "sparse")[: ("common", "dense", "sparse").index(room) + 1]
    files = [path for path in (KERNELS / room).rglob("*") if path.suffix in (".cu", ".cuh")]
    assert files
    for path in files:
        quoted = re.findall(r'#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"))
        assert [name for name in quoted if name.split("/")[0] not in allowed] == [], path.name
