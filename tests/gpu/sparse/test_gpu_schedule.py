"""Levels of the assembly tree, and where contribution blocks lie meanwhile."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.gpu.runtime.graph import Launch
from frontal.gpu.sparse import launch
from frontal.gpu.sparse.pattern import Pattern
from frontal.gpu.sparse.schedule import contribution_entries, make_schedule
from frontal.method import CHOLESKY, LDLT, LU

from .test_gpu_fronts import MATRICES


@pytest.mark.parametrize("method", [CHOLESKY, LU])
@pytest.mark.parametrize("name", MATRICES)
def test_blocks_that_live_together_lie_apart(name, method):
    plan = frontal.analyze(MATRICES[name](), kind="spd").plan
    schedule = make_schedule(plan, method, 20)
    height, above = schedule.level, plan.parent >= 0
    assert (height[plan.parent[above]] > height[above]).all()
    assert (height[~schedule.small] >= schedule.small_levels).all()
    assert schedule.small[plan.parent[above]].sum() <= schedule.small[above].sum()
    last = np.where(above, height[plan.parent], height) + 1  # while some of a level still read
    m = np.diff(plan.pointer)
    sizes = contribution_entries(m, method)
    for i in range(schedule.levels):
        alive = np.flatnonzero((height <= i) & (last >= i) & (sizes > 0))
        alive = alive[np.argsort(schedule.block[alive])]
        ends = schedule.block[alive] + sizes[alive]
        assert (ends[:-1] <= schedule.block[alive][1:]).all()
    assert (schedule.block + sizes).max(initial=0) <= max(schedule.blocks, 0)


@pytest.mark.parametrize("name", MATRICES)
def test_products_of_a_level_and_the_next_lie_apart(device, name):
    """Those of two levels below may still be read: who takes their place waits for them."""
    pattern = Pattern(device, frontal.analyze(MATRICES[name](), kind="spd").plan, LDLT, 0, 1)
    schedule, at = pattern.schedule, pattern.schedule.product
    sizes = pattern.k * pattern.layout(np.dtype("f4")).ld
    for i in range(schedule.levels):
        alive = np.flatnonzero((schedule.level == i) | (schedule.level == i - 1))
        alive = alive[np.argsort(at[alive])]
        assert (at[alive] + sizes[alive] <= np.append(at[alive][1:], schedule.products)).all()
    assert (at % 4 == 0).all()
    assert make_schedule(pattern.plan, CHOLESKY).products == 0
    small = make_schedule(pattern.plan, LDLT, 1000)
    assert small.products == 0
    assert schedule.products < pattern.layout(np.dtype("f4")).panel[-1] + 4 * pattern.k.sum()


def test_contribution_blocks_are_packed_by_columns_of_tiles():
    m = np.array([0, 1, 64, 65, 200])
    lower = [sum(min(64, n - j) * (n - j) for j in range(0, n, 64)) for n in m]
    np.testing.assert_array_equal(contribution_entries(m, CHOLESKY), lower)
    np.testing.assert_array_equal(contribution_entries(m, LU), m * m)


def test_deep_trees(device):
    """A chain of fronts has as many levels: they are tasks, since launches would be too many."""
    n = 70_000
    plan = frontal.analyze(MATRICES["chain"](), kind="spd").plan._replace(
        start=np.arange(n + 1, dtype=np.int32),
        parent=np.append(np.arange(1, n), -1).astype(np.int32),
        pointer=np.append(np.arange(n), n - 1),
        rows=np.arange(1, n, dtype=np.int32),
        relative=np.zeros(n - 1, np.int32),
        child_pointer=np.append(0, np.arange(n)),
        children=np.arange(n - 1, dtype=np.int32),
        entry_pointer=np.zeros(n + 1, np.int64),
        source=np.empty(0, np.int64),
        row=np.empty(0, np.int32),
        column=np.empty(0, np.int32),
    )
    for method in (CHOLESKY, LU, LDLT):
        pattern = Pattern(device, plan, method)
        assert not pattern.schedule.small.any()
        assert pattern.schedule.blocks < 10
        tasks = device.download(pattern.tasks.list)
        level, part = tasks[:, 3] & ((1 << 30) - 1), tasks[:, 3] >> 30
        np.testing.assert_array_equal(np.unique(level), np.arange(n))
        assert part.any() == (method.panels == 2)


def test_rows_of_wide_fronts_are_interchanged_by_pieces(device):
    n, tile, rng = 1100, 64, np.random.default_rng(0)
    ones = sp.csc_array(np.ones((n, n)))
    plan = frontal.analyze(ones, kind="spd", ordering="natural").plan
    pattern, dtype = Pattern(device, plan, LU, 0, 1), np.dtype(float)
    firsts = range(0, n, tile)
    given = [rng.permutation(min(tile, n - first)) for first in firsts]
    given[3] = np.arange(tile)
    panel = rng.standard_normal((n, int(pattern.layout(dtype).ld[0]))).T
    there, pivots = device.upload(panel.T.ravel()), device.upload(np.concatenate(given, dtype="i4"))
    tree, left, constants = pattern.struct(dtype), pattern.tasks.left, LU.constants
    rows = device.kernel("front_pivots.cu", "front_rows", dtype, **constants)
    Launch(rows, *launch.front_rows(len(left)), (tree, left, pivots, there))()
    told = device.kernel("front_pivots.cu", "front_pivots", dtype, **constants)
    Launch(told, *launch.front_pivots(len(left)), (tree, left, pivots))()
    found, interchanges = device.download(pivots), np.arange(n)
    for j, p in enumerate(found - 1):
        interchanges[[j, p]] = interchanges[[p, j]]
    for first, place in zip(firsts, given, strict=True):
        end = first + len(place)
        np.testing.assert_array_equal(interchanges[first:end][place], np.arange(first, end))
        panel[first:end, :first] = panel[first:end, :first][np.argsort(place)]
    np.testing.assert_array_equal(device.download(there).reshape(n, -1).T, panel)
