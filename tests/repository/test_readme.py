"""The README tells the truth: its code runs, its tables list what there is."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from frontal import errors, gpu
from frontal.ordering import metis

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text under a heading of the README."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_column(title: str) -> set[str]:
    """Return the code words of the first column of a section's table."""
    return set(re.findall(r"^\| `([^`]+)`", section(title), re.MULTILINE))


def test_the_quick_start_runs():
    code = re.search(r"```python\n(.*?)```", section("Quick start"), re.DOTALL)
    assert code is not None
    names: dict = {}
    exec(code[1].replace("poisson3d:30", "poisson3d:8"), names)
    assert np.abs(2 * names["A"] @ names["x"] - names["b"]).max() < 1e-12
    assert names["info"].backward_error < 1e-14


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
