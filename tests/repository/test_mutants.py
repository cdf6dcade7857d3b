"""The bugs of tests/mutants fit the tree: files, anchors and tests exist."""

from __future__ import annotations

import pytest

from ..mutants.run import stale_modules
from ..mutants.table import FOLDER, ROOT, Bug, Edit, StaleBugError, bugs, read

BUGS = bugs()
TABLES = sorted(FOLDER.glob("*.toml"))
MAX_TABLE = 900  # lines; above it the room has two tables


def is_stale(bug: Bug) -> bool:
    """Return whether an anchor of a bug is missing or not unique."""
    try:
        bug.texts(ROOT)
    except StaleBugError:
        return True
    return False


def room(file: str) -> str:
    """Return the name of the table of a file, or the beginning of the name."""
    _, *folders, _ = file.split("/")
    depth = 1 if folders[:1] != ["gpu"] else 3 if folders[1] == "kernels" else 2
    return "_".join(folders[:depth]) or "top"


def has_test(bug: Bug) -> bool:
    """Return whether the file and the test exist that a bug names."""
    file, *names = bug.kills.split("[")[0].split("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    return all(f"def {name}(" in text or f"class {name}" in text for name in names)


def test_kills_names_existing_tests():
    assert [bug.name for bug in BUGS if not has_test(bug)] == []


def test_bugs_fit_the_tree():
    """A change of an anchored line also changes the bug."""
    assert [bug.name for bug in BUGS if is_stale(bug)] == []


def test_names_of_bugs_are_unique():
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert all(edit.anchor != edit.replacement for bug in BUGS for edit in bug.edits)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_table_is_sorted_and_of_one_room(path):
    keys = [(bug.files[0], bug.name) for bug in read(path)]
    assert keys == sorted(keys)
    assert all(path.stem.startswith(room(file)) for file, _ in keys)
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_TABLE


def test_unique_anchor_is_replaced(tmp_path):
    path = tmp_path / "a.py"
    bug = Bug("name", "what", "tests/test_a.py", (Edit("a.py", "y = 1", "y = 2"),))
    path.write_text("x = 1\ny = 1\n", encoding="utf-8")
    bug.apply(tmp_path)
    assert path.read_text(encoding="utf-8") == "x = 1\ny = 2\n"
    with pytest.raises(StaleBugError, match="the anchor 0 times"):
        bug.texts(tmp_path)
    path.write_text("y = 1\ny = 1\n", encoding="utf-8")
    with pytest.raises(StaleBugError, match="2 times"):
        bug.apply(tmp_path)


def test_edit_without_replacement_deletes_lines():
    text = "if a:\n    b()\n    c()\nd()\n"
    assert Edit("a.py", "b()").apply(text) == "if a:\n    c()\nd()\n"
    assert Edit("a.py", "a:\n    b").apply(text) == "    c()\nd()\n"
    assert Edit("a.py", "d()").apply(text) == "if a:\n    b()\n    c()\n"


def test_importers_of_a_changed_file_are_stale():
    stale = stale_modules(ROOT, ["frontal/ordering/amd.py"])
    assert {"frontal.ordering.amd", "frontal.ordering.components"} <= stale
    assert "frontal.factor.analysis" in stale
    assert (
        not {"frontal.cpu.lu.front", "frontal.cpu.cholesky.front", "frontal.symbolic.matching"}
        & stale
    )
    assert stale_modules(ROOT, ["frontal/gpu/kernels/dense/gemv.cu"]) == set()
