"""The bugs of tests/mutants change files that are there, and name tests that are there."""

from __future__ import annotations

import pytest

from ..mutants.patches import ROOT, ROWS, Bug, StaleBugError, bugs
from ..mutants.run import stale
from ..mutants.table import Row

BUGS = bugs()


def applies(bug) -> bool:
    """Whether a bug fits the tree."""
    try:
        bug.check(ROOT)
    except StaleBugError:
        return False
    return True


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_their_tests_are_there(bug):
    file, *names = bug.kills.split("[")[0].split("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert all(f"def {name}(" in text or f"class {name}" in text for name in names)
    assert all((ROOT / name).exists() for name in bug.changed)


def test_they_apply():
    """Each still changes the lines that it is about; whoever moves those mends the bug."""
    assert [bug.name for bug in BUGS if not applies(bug)] == []


def test_names_of_bugs_are_unique():
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    assert all(row.anchor != row.replacement for row in ROWS)


def test_row_is_written_where_its_anchor_is_unique(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\ny = 1\n", encoding="utf-8")
    row = Row("one", "a.py", "y = 1", "y = 2", "what", "tests/test_a.py")
    bug = Bug(row.name, row.what, row.kills, (row.file,), row)
    bug.apply(tmp_path)
    assert (tmp_path / "a.py").read_text(encoding="utf-8") == "x = 1\ny = 2\n"
    with pytest.raises(StaleBugError, match="0 times"):
        bug.check(tmp_path)
    (tmp_path / "a.py").write_text("y = 1\ny = 1\n", encoding="utf-8")
    with pytest.raises(StaleBugError, match="2 times"):
        bug.apply(tmp_path)


def test_compiled_code_is_stale_where_it_uses_what_changed():
    found = stale(ROOT, ["frontal/ordering/amd.py"])
    assert {"frontal.ordering.amd", "frontal.ordering.components"} <= found
    assert "frontal.factor.analysis" in found
    assert not {"frontal.cpu.lu", "frontal.cpu.cholesky", "frontal.symbolic.matching"} & found
    assert stale(ROOT, ["frontal/gpu/kernels/dense/gemv.cu"]) == set()
