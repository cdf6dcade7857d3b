"""Each example runs, and its numbers are right."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
PLOTS = importlib.util.find_spec("matplotlib") is not None


def poisson_disc(error):
    assert error < 5e-5


def elastic_cantilever(ratio):
    assert ratio == pytest.approx(1, abs=0.03)


def transient_heat(error):
    assert error < 2e-4


def newton_diffusion(result):
    steps, last, error = result
    assert steps <= 7
    assert last < 1e-10
    assert error < 3e-4


def helmholtz_scattering(error):
    assert error < 0.12


def convection_diffusion(result):
    measured, adjoint = result
    assert measured > 1
    assert measured == pytest.approx(adjoint, rel=1e-12)


def gmrf(result):
    logdet, square, error = result
    line = 4 * np.sin(np.arange(1, 65) * np.pi / 130) ** 2
    assert logdet == pytest.approx(2 * np.log(np.add.outer(line, line) + 0.005).sum(), rel=1e-12)
    assert square == pytest.approx(1, abs=4 * np.sqrt(2 / 64**2))
    assert error < 0.5


def effective_resistance(result):
    total, expected = result
    assert total == pytest.approx(expected, rel=1e-12)


def chemical_reactors(result):
    lost, saved = result
    assert lost < 1e-12
    assert 0 < saved < 0.5


def grid_contingencies(result):
    steps, mismatch, lowest = result
    assert steps <= 6
    assert mismatch < 1e-10
    assert 0.8 < lowest < 1


CHECKS = (
    *(poisson_disc, elastic_cantilever, transient_heat, newton_diffusion, helmholtz_scattering),
    *(convection_diffusion, gmrf, effective_resistance, chemical_reactors, grid_contingencies),
)


def test_each_example_is_checked():
    assert {check.__name__ for check in CHECKS} == {path.stem for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_example(check, monkeypatch, tmp_path):
    path = FOLDER / f"{check.__name__}.py"
    assert len(path.read_text(encoding="utf-8").splitlines()) < 60
    spec = importlib.util.spec_from_file_location(check.__name__, path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    plot = PLOTS and "plot" in inspect.signature(example.main).parameters
    check(example.main(plot=True) if plot else example.main())
    assert [file.name for file in tmp_path.iterdir()] == ([f"{check.__name__}.png"] if plot else [])
