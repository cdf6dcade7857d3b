"""Each example runs, and its numbers are right."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest

import frontal

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


def marginal_variances(result):
    observations, freedom, remaining = result
    assert observations == 79
    assert 1 < freedom < observations
    assert 0 < remaining < 1


def structure_modes(result):
    counted, computed, gap, ratio = result
    assert counted == computed == 11
    assert gap < 1e-9
    assert ratio == pytest.approx(1, abs=0.03)


CHECKS = (
    *(poisson_disc, elastic_cantilever, transient_heat, newton_diffusion, helmholtz_scattering),
    *(convection_diffusion, gmrf, effective_resistance, chemical_reactors, grid_contingencies),
    *(marginal_variances, structure_modes),
)


def test_recorder_of_the_gallery_counts_batches():
    """The gallery told 0 seconds of examples that solve batches alone."""
    gallery = pytest.importorskip("docs.gallery")
    A, recorder = frontal.problems.convdiff2d(4), gallery.Recorder()
    values = np.array([[1.0], [2.0], [0.0]]) * A.data  # the last one is singular
    with recorder.recording():
        factors = frontal.factorize_batch(A, values, check=False)
        factors.solve(np.ones((3, 16)), check=False)
        factors.refactorize(4 * values, where=[True, False, False])
        x = factors.solve(np.ones(16), "T", check=False)
        frontal.solve_batch([A, 2 * A], b=[np.ones(16), np.ones(16)])
    assert recorder.seconds > 0
    assert (
        gallery._counted(recorder.calls) == "2 solutions from scratch, 3 factorizations, 4 solves"
    )
    assert [call[1] for call in recorder.calls if call[0] == "factor.solve"] == [0, 1, 2, 1]
    (_, quadruple, _, _) = [call for call in recorder.calls if call[0] == "factorize"][2]
    np.testing.assert_allclose(quadruple.T @ x[0], 1)
    assert gallery.scipy_seconds(recorder.calls) > 0


def test_page_of_the_gallery_without_calls_tells_no_time():
    gallery = pytest.importorskip("docs.gallery")
    found = {"told": "A title.", "picture": False, "printed": "1", "text": "1", "calls": ""}
    found |= {"ours": 0.0, "scipy": "0"}
    assert "seconds" not in gallery.page("one", found)
    assert "SciPy takes" not in gallery.index({"one": found})
    assert "| 0.5 |" in gallery.page("one", found | {"calls": "1 solve", "ours": 0.5})


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
