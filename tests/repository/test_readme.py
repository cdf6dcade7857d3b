"""The README and the guide tell the truth: code runs, tables list what there is, links lead on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import frontal
from frontal import errors, gpu
from frontal.ordering import metis

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


GUIDE = (ROOT / "docs" / "guide" / "errors.md").read_text(encoding="utf-8")


def section(title: str, page: str = README) -> str:
    """Return the text under a heading of a page."""
    return page.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(title: str) -> set[str]:
    """Return the code words of the first column of a table of the guide."""
    return set(re.findall(r"^\| `([^`]+)`", section(title, GUIDE), re.MULTILINE))


def test_the_quick_start_runs():
    code = re.search(r"```python\n(.*?)```", section("Quick start"), re.DOTALL)
    assert code is not None
    names: dict = {}
    exec(code[1].replace("poisson3d:30", "poisson3d:8"), names)
    assert np.abs(2 * names["A"] @ names["x"] - names["b"]).max() < 1e-12
    assert names["info"].backward_error < 1e-14


def test_it_is_short_and_its_links_lead_on():
    assert len(README.splitlines()) <= 200
    links = {x.split("#")[0] for x in re.findall(r"\]\(([^)]+)\)", README)} - {""}
    assert len(links) > 10
    assert [x for x in sorted(links) if not (ROOT / x).exists()] == []
    pictures = [ROOT / x for x in links if x.endswith((".png", ".svg"))]
    assert len(pictures) == 2
    assert all(p.stat().st_size < 150_000 for p in pictures)


def test_versions_are_the_same():
    found = {
        re.search(rf'^{name}"?([\w.]+)', (ROOT / path).read_text("utf-8"), re.MULTILINE)[1]
        for path, name in (("pyproject.toml", "version = "), ("CITATION.cff", "version: "))
    }
    assert found == {frontal.__version__}


def test_the_file_of_the_first_command_exists():
    found = re.search(r"frontal solve (\S+)", section("Two commands"))
    assert found is not None
    assert (ROOT / found[1]).exists()


def test_the_environment_variables_are_those_of_the_code():
    sources = [p.read_text(encoding="utf-8") for p in (ROOT / "frontal").rglob("*.py")]
    used = {name for text in sources for name in re.findall(r"\bFRONTAL_[A-Z_]+\b", text)}
    assert used == first_column("Environment variables")


def test_every_error_is_listed():
    kinds = (errors.FrontalError, errors.IllConditionedWarning, errors.PerformanceWarning)
    items = (vars(errors) | vars(gpu) | vars(metis)).items()
    there = {n for n, item in items if isinstance(item, type) and issubclass(item, kinds)}
    assert there - {"FrontalError"} == first_column("Errors")
