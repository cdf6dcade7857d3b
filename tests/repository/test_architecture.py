"""ARCHITECTURE.md and CONTRIBUTING.md tell the truth: what they name is there, and so are calls."""

from __future__ import annotations

import re
import traceback
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import frontal
from frontal.problems import poisson2d

from ..emulation.device import EmulatedDevice

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "frontal"
KERNELS = PACKAGE / "gpu" / "kernels"
FOLDERS = (ROOT, PACKAGE, KERNELS, KERNELS / "dense", KERNELS / "sparse")
PAGES = {name: (ROOT / name).read_text("utf-8") for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")}
MADE = ("before.json", ".venv/bin/activate", "build/docs")  # by the commands of the pages
PATH = re.compile(r"[\w.*-]+/[\w./*-]*|[\w*-]+\.(?:cpp|cuh?|hpp|json|md|patch|py|toml)")
DEFINED = re.compile(
    r"\b(?:def|class|struct|void)\s+(\w+)|^\s*(\w+) ?[:=,](?!=)|-D(\w+)=|\)\s+(\w+)\(", re.M
)


def code(page: str) -> set[str]:
    """What stands in backticks, or alone in indented lines."""
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.M | re.S)
    found = re.findall(r"`([^`]+)`", text) + re.findall(r"^ {4}(\S.*)$", text, re.M)
    return {re.sub(r"\s+", " ", one) for one in found}


def words(page: str) -> set[str]:
    return {word.strip("'\"") for one in code(page) for word in one.split()}


@cache
def defined() -> set[str]:
    """Names of functions, classes, fields, constants and kernels."""
    paths = [p for d in (PACKAGE, ROOT / "tests") for p in d.rglob("*") if p.is_file()]
    sources = [p.read_text("utf-8") for p in paths if p.suffix in (".py", ".cu", ".cuh")]
    return {name for text in sources for found in DEFINED.findall(text) for name in found if name}


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or path.is_dir()


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page):
    paths = {word for word in words(page) if PATH.fullmatch(word)} - {*MADE}
    assert paths
    assert [p for p in sorted(paths) if not any(any(f.glob(p)) for f in FOLDERS)] == []


@pytest.mark.parametrize("page", PAGES)
def test_modules_exist(page):
    modules = {m for one in code(page) for m in re.findall(r"-m (\w+\.[\w.]+)", one)}
    modules |= {one for one in code(page) if re.fullmatch(r"(?:frontal|tests)\.[\w.]+", one)}
    assert [m for m in sorted(modules) if not is_module(m)] == []


def test_names_exist():
    names = {one for one in code("ARCHITECTURE.md") if re.fullmatch(r"[A-Za-z_][\w.]*", one)}
    names -= {one for one in names if PATH.fullmatch(one)}
    assert len(names) > 50
    assert [n for n in sorted(names) if not set(n.split(".")) <= defined()] == []


def told(column: int) -> list[tuple[str, str]]:
    """The calls of a column of the table: file and function, the file above where none is named."""
    calls: list[tuple[str, str]] = []
    for row in re.findall(r"^\| \d+ \|(.*)\|(.*)\|$", PAGES["ARCHITECTURE.md"], re.M):
        cell = row[0 if row[1].strip() == "the same" else column]
        found = re.match(r" `(?:\w+\.)?(\w+)`(?: \(`([^`]+)`\))?", cell)
        if found:
            calls.append((found[2] or calls[-1][0], found[1]))
    return calls


def one_line() -> str:
    return " ".join(PAGES["ARCHITECTURE.md"].split())


class ReachedError(Exception):
    """The last call that is looked for."""


def reached(*_: object) -> None:
    raise ReachedError


class Unable(EmulatedDevice):
    """A device that launches nothing."""

    def kernel(self, file, entry, dtype, **constants):
        return reached


def calls_of_solve(backend: str) -> list[tuple[str, str]]:
    """Files and functions below `solve`, down to what raises."""
    A = poisson2d(10)
    with pytest.raises(ReachedError) as error:
        frontal.solve(A, np.ones(100), backend=backend)
    frames = traceback.extract_tb(error.value.__traceback__)
    files = [(Path(f.filename), f.name) for f in frames]
    below = [(p.relative_to(PACKAGE).as_posix(), n) for p, n in files if PACKAGE in p.parents]
    assert below[0] == ("api.py", "solve")
    return below[1:]


def assert_same(calls, expected):
    assert [path for path, _ in calls] == [path for path, _ in expected]
    for (_, name), (_, called) in zip(calls, expected, strict=True):
        assert name in (called, "__init__", "__call__")


def test_the_way_to_compiled_code(monkeypatch):
    monkeypatch.setattr("frontal.cpu.backend.run", reached)
    expected = told(0)
    at = expected.index(("cpu/factorize.py", "run"))
    assert_same(calls_of_solve("cpu"), expected[:at])
    assert f" {len(expected)} calls from `solve` to the first of BLAS" in one_line()


def test_the_way_to_the_first_launch(monkeypatch):
    monkeypatch.setattr("frontal.gpu.runtime.device.device_of", lambda *_: Unable())
    expected = told(1)
    assert_same(calls_of_solve("gpu"), expected[:-1])  # the last one stands for the device
    assert f" {len(expected)} to the first launch" in one_line()
