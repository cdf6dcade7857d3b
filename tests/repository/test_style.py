"""The tree keeps its own rules: sizes, no stray prints, no paths of a machine."""

from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    path
    for folder in ("frontal", "tests", "examples", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*.py")
)
MADE = {"benchmarks", "gallery"}  # pages that code writes
PAGES = (path for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in MADE)
TEXTS = [*FILES, *PAGES, *ROOT.glob("*.md"), *ROOT.glob("*.toml"), ROOT / ".ci" / "run"]
MAX_FILE, MAX_FUNCTION = 400, 60
MOST_ANY = 129
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|opt|home|tmp|mnt)/\w")
OPEN_END = re.compile(r"\b(?:TODO|FIXME|XXX)\b|raise Not" + r"ImplementedError")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def each(paths):
    return pytest.mark.parametrize("path", paths, ids=name)


def functions(path: Path):
    """Yield each function of a file with its length, the docstring left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            yield node.name, lines


@each(FILES)
def test_files_are_short(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE


@each(FILES)
def test_functions_are_short(path):
    assert {n: lines for n, lines in functions(path) if lines > MAX_FUNCTION} == {}


@each(TEXTS)
def test_no_paths_of_a_machine_and_no_open_ends(path):
    text = path.read_text(encoding="utf-8")
    found = MACHINE_PATH.findall(text)
    if path != Path(__file__).resolve():
        found += OPEN_END.findall(text)
    assert found == []


@each([p for p in FILES if name(p).startswith("frontal/") and name(p) != "frontal/cli/commands.py"])
def test_the_library_does_not_print(path):
    calls = [
        n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if type(n) is ast.Call
    ]
    assert [n.lineno for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"] == []


@each([p for p in FILES if p.stat().st_size])
def test_every_file_says_what_it_is_for(path):
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_types_are_named():
    """`Any` is for what comes back in the type of what was given, and where a library has none."""
    count = 0
    for path in (ROOT / "frontal").rglob("*.py"):
        with tokenize.open(path) as lines:
            count += sum(t.string == "Any" for t in tokenize.generate_tokens(lines.readline))
    assert count <= MOST_ANY
