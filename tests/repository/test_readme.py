"""The README and the guide tell the truth: code runs, tables list what there is, links lead on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import frontal
from benchmarks.report import readme
from frontal import errors, gpu
from frontal.cli import commands as cli
from frontal.compile import workers
from frontal.eigen import report
from frontal.factor import quasidefinite, replaced_pivots
from frontal.least_squares import rank
from frontal.numeric.method import CHOLESKY, LDLH, LDLT, LU, SIGNED_LDLH
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
    kinds = (errors.FrontalError, UserWarning, errors.IllConditionedWarning)
    modules = errors, gpu, metis, quasidefinite, rank, replaced_pivots, report
    items = [item for module in modules for item in vars(module).items()]
    there = {n for n, item in items if isinstance(item, type) and issubclass(item, kinds)}
    assert there - {"FrontalError"} == first_column("Errors")


# --- numbers ---------------------------------------------------------------------------------


def test_generated_parts_follow_from_the_results():
    """`python -m benchmarks.report.readme` writes them."""
    assert readme.filled(README) == README


def test_real_matrices_are_counted_as_in_the_results():
    records = map(json.loads, (ROOT / "benchmarks/results/matrices.jsonl").open(encoding="utf-8"))
    times: dict[str, dict[str, float]] = {}
    for record in records:
        found = record.get("phases", {}).get("scratch", {}).get("median")
        times.setdefault(record["problem"], {})[record["solver"]] = found
    ratios = []
    for by in times.values():
        ours, peers = by.pop("frontal"), [t for t in by.values() if t]
        if ours and peers:
            ratios.append(ours / min(peers))
    assert sorted(readme.real_matrices()) == pytest.approx(sorted(ratios))
    mean, behind = np.exp(np.log(ratios).mean()), sum(x > 1 for x in ratios)
    text = " ".join(README.split())
    assert f"{mean:.2f} for {len(ratios)} real matrices, on {behind} of which a peer" in text


def test_no_ratio_is_written_by_hand():
    by_hand = re.sub(r"<!-- (\w+): begin -->.*?<!-- \1: end -->", "", README, flags=re.DOTALL)
    assert re.findall(r"(?<!≥ )\b\d\.\d\d\b", by_hand) == []
    assert re.findall(r"\d+ seconds", by_hand) == []


def test_seconds_of_a_first_call_are_those_measured():
    seconds = readme.compile_seconds()
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    found = re.search(r"(\d+) to (\d+) seconds", page)
    assert found is not None
    low, high = map(int, found.groups())
    assert low <= min(seconds) <= max(seconds) <= high


def test_numbers_of_the_guide_are_those_of_the_code():
    assert f"at most {workers.MAX_PROCESSES} and" in section("Environment variables", GUIDE)
    many = (ROOT / "docs" / "guide" / "many.md").read_text(encoding="utf-8")
    assert f"up to {workers.MAX_PROCESSES} processes compile" in " ".join(many.split())


def test_kinds_and_methods_are_listed_whole():
    kinds, methods = (
        set(cli.KINDS) - {"auto"},
        {m.name for m in (CHOLESKY, SIGNED_LDLH, LDLT, LDLH, LU)},
    )
    listed = [
        (frontal.Analysis, "kind", kinds),
        (frontal.Analysis, "method", methods),
        (frontal.solve, "kind", set(cli.KINDS)),
    ]
    for documented, name, there in listed:
        found = re.search(rf"{name} : \{{(.*?)\}}", documented.__doc__ or "")
        assert found is not None
        assert set(found[1].replace('"', "").split(", ")) == there


def test_every_public_name_is_in_the_reference():
    pages = (ROOT / "docs" / "reference").glob("*.md")
    text = "\n".join(p.read_text(encoding="utf-8") for p in pages)
    documented = set(re.findall(r"auto\w+:: (?:frontal\.)?(?:\w+\.)*(\w+)", text))
    modules = {"gpu", "io", "linalg", "ordering", "problems"}
    assert set(frontal.__all__) - {"__version__"} - modules - documented == set()
