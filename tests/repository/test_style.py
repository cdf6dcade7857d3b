"""The tree keeps its own rules: sizes, no stray prints, no paths of a machine."""

from __future__ import annotations

import ast
import re
import tokenize
from pathlib import Path

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
MOST_ANY = 64
MAX_PARAMETERS = 8  # positional ones of a function
# BLAS names a product's operands one by one; compiled code that updates panels at offsets does too.
MAX_LONG_LISTS, MAX_BLAS_PARAMETERS = 38, 14
# words that name no thing of the field; `other` is Python's operand
VAGUE = re.compile(
    "of|found|given|told|made|there|here|own|kept|whole|part|one|again|at_once|put|alike|apart|meant"
    "|sound"
)
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|root|opt|home|tmp|mnt)/\w")
OPEN_END = re.compile(r"\b(?:TODO|FIXME|XXX)\b|raise Not" + r"ImplementedError")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


TREES = {path: ast.parse(text_of(path)) for path in FILES}


def functions(tree: ast.Module):
    """Yield each function of a file with its length, the docstring left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            yield node.name, lines


def test_files_are_short():
    lengths = {name(path): len(text_of(path).splitlines()) for path in FILES}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_FILE} == {}


def test_functions_are_short():
    found = ((name(path), *function) for path in FILES for function in functions(TREES[path]))
    assert [function for function in found if function[-1] > MAX_FUNCTION] == []


def test_no_paths_of_a_machine_and_no_open_ends():
    found = {name(path): MACHINE_PATH.findall(text_of(path)) for path in TEXTS}
    for path in TEXTS:
        if path != Path(__file__).resolve():
            found[name(path)] += OPEN_END.findall(text_of(path))
    assert {path: words for path, words in found.items() if words} == {}


def test_the_library_does_not_print():
    for path, tree in TREES.items():
        if name(path).startswith("frontal/") and name(path) != "frontal/cli/commands.py":
            calls = (node.func for node in ast.walk(tree) if type(node) is ast.Call)
            assert "print" not in {f.id for f in calls if isinstance(f, ast.Name)}, name(path)


def test_every_file_says_what_it_is_for():
    silent = (path for path, tree in TREES.items() if tree.body and not ast.get_docstring(tree))
    assert [name(path) for path in silent] == []


def test_types_are_named():
    """`Any` is for what comes back in the type of what was given, and where a library has none."""
    count = 0
    for path in (ROOT / "frontal").rglob("*.py"):
        with tokenize.open(path) as lines:
            count += sum(t.string == "Any" for t in tokenize.generate_tokens(lines.readline))
    assert count <= MOST_ANY


def signatures():
    """Yield file, name, and parameters by position and by keyword of the package's functions."""
    for path in (path for path in FILES if name(path).startswith("frontal/")):
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.FunctionDef):
                listed = node.args
                positional = [x.arg for x in (*listed.posonlyargs, *listed.args)]
                keywords = [x.arg for x in listed.kwonlyargs]
                bound = positional[:1] in (["self"], ["cls"])
                yield name(path), node.name, positional[bound:], keywords


def test_functions_take_few_positional_parameters():
    long = [
        (file, function, len(positional))
        for file, function, positional, _ in signatures()
        if len(positional) > MAX_PARAMETERS
    ]
    assert {file.split("/")[1] for file, *_ in long} == {"cpu", "gpu"}  # compiled loops alone
    assert len(long) <= MAX_LONG_LISTS, long
    assert max(count for *_, count in long) <= MAX_BLAS_PARAMETERS


def test_signatures_use_words_of_the_field():
    vague = [
        (file, function, word)
        for file, function, positional, keywords in signatures()
        for word in (function, *positional, *keywords)
        if VAGUE.fullmatch(word.strip("_"))
    ]
    assert vague == []


def test_class_names_are_unique():
    defined = [
        (node.name, name(path))
        for path, tree in TREES.items()
        if name(path).startswith("frontal/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    places: dict[str, list[str]] = {}
    for title, file in defined:
        places.setdefault(title, []).append(file)
    assert {title: files for title, files in places.items() if len(files) > 1} == {}
