"""Pictures of an analysis show what it has."""

from __future__ import annotations

import numpy as np
import pytest

import frontal
from frontal.cli import commands as cli
from frontal.cli import draw
from frontal.problems import from_name

pytest.importorskip("matplotlib")
NAMES = ("poisson2d:12", "convdiff2d:9", "kkt:60", "poisson3d:5")


@pytest.mark.parametrize("name", NAMES)
def test_densities_count_the_entries_of_the_factor(name):
    analysis = frontal.analyze(from_name(name))
    n, (k, m) = analysis.n, analysis.front_sizes()
    stored = int((k * (k + 1) // 2 + k * m).sum())
    whole = draw.factor_density(analysis.plan, n)
    assert set(np.unique(whole)) <= {0, 1}
    assert whole.sum() == stored
    assert (np.triu(whole, 1) == 0).all()
    assert (whole.diagonal() == 1).all()
    permuted = analysis.symbolic.with_values(np.ones(analysis.symbolic.indices.size)).A
    permuted = abs(permuted).toarray()[analysis.row_perm][:, analysis.perm]
    assert (whole[np.tril(permuted + permuted.T) > 0] == 1).all()
    for size in (1, 7, n // 2 + 1):
        cell = np.arange(n) * size // n
        binned = np.zeros((size, size))
        np.add.at(binned, np.ix_(cell, cell), whole)
        assert (draw.factor_density(analysis.plan, size) == binned).all()


def test_the_fronts_of_most_work_are_shown_with_their_parents():
    plan = frontal.analyze(from_name("poisson2d:40")).plan
    flops = np.ones(plan.parent.size)
    shown = draw._largest_subtrees(plan.parent, flops, 20)
    assert 1 <= shown.sum() <= 20
    parents = plan.parent[np.flatnonzero(shown)]
    assert shown[parents[parents >= 0]].all()
    x, depth = draw._places(plan.parent, shown)
    inner = np.flatnonzero(shown & (plan.parent >= 0))
    assert (depth[inner] == depth[plan.parent[inner]] + 1).all()
    assert x.min() >= 0
    assert x.max() == 1


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_analyze_draws(ending, tmp_path, capsys):
    path = tmp_path / f"fill.{ending}"
    assert cli.main(["analyze", "poisson2d:20", "--plot", str(path)]) == 0
    assert path.stat().st_size > 10_000
    assert "Fronts" in capsys.readouterr().out


def test_small_ones_are_drawn(tmp_path):
    for size in (0, 1, 2):
        A = from_name("poisson2d:5")[:size, :size]
        draw.analysis(frontal.analyze(A), str(tmp_path / f"{size}.png"))


def test_unknown_formats_are_refused(tmp_path, capsys):
    assert cli.main(["analyze", "poisson2d:5", "--plot", str(tmp_path / "a.what")]) == 1
    assert "what" in capsys.readouterr().err
