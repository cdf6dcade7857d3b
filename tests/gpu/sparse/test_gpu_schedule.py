"""Levels of the assembly tree, and where contribution blocks lie meanwhile."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.gpu.runtime.graph import Launch
from frontal.gpu.sparse import launch
from frontal.gpu.sparse import places as module
from frontal.gpu.sparse import schedule as schedules
from frontal.gpu.sparse.pattern import Pattern
from frontal.gpu.sparse.places import place
from frontal.gpu.sparse.schedule import Schedule, contribution_entries, make_schedule
from frontal.method import CHOLESKY, LDLT, LU

from .test_gpu_fronts import MATRICES


@pytest.mark.parametrize("method", [CHOLESKY, LU])
@pytest.mark.parametrize("name", MATRICES)
def test_levels_and_times(name, method):
    plan = frontal.analyze(MATRICES[name](), kind="spd").plan
    schedule, above = make_schedule(plan, method, 20), plan.parent >= 0
    level, time, small = schedule.level, schedule.time, schedule.small
    assert (level[plan.parent[above]] > level[above]).all()
    assert (level[~small] >= schedule.small_levels).all()
    assert small[plan.parent[above]].sum() <= small[above].sum()
    np.testing.assert_array_equal(time[small], level[small])
    np.testing.assert_array_equal(np.sort(schedule.tiled), np.flatnonzero(~small))
    order = time[schedule.tiled]
    assert (np.diff(order) >= 0).all()
    np.testing.assert_array_equal(
        np.unique(order), schedule.small_levels + np.arange(schedule.epochs)
    )


def check_owners(places, schedule, parent, sizes):
    """Nothing has two owners, in any order that launches and waits allow."""
    time, launches = schedule.time.astype(int), schedule.small_levels
    dies = np.where(parent >= 0, time[parent], time)
    begin = np.concatenate([places.panel, places.block, places.product])
    end = begin + np.concatenate(sizes)
    first, last = np.tile(time, 3), np.concatenate([np.full(time.size, 10**6), dies, time])
    need = np.tile(places.need, 3)
    assert (places.need <= np.maximum(time - launches, 0)).all()
    assert (places.panel + sizes[0] <= places.panels).all()
    assert end.max(initial=0) <= places.entries
    full = np.flatnonzero(end > begin)
    for i in full:
        later = full[(begin[full] < end[i]) & (end[full] > begin[i]) & (full != i)]
        later = later[first[later] >= first[i]]
        assert (first[later] > last[i]).all()
        assert (need[later] > last[i] - launches).all()  # of no matter before the first epoch


@pytest.mark.parametrize("seed", range(12))
def test_nothing_has_two_owners(seed, monkeypatch):
    monkeypatch.setattr(module, "_SLACK", seed // 4)
    rng, fronts = np.random.default_rng(seed), 60
    parent = np.append(np.minimum(np.arange(1, 60) + rng.geometric(0.3, 59), 59), -1)
    parent[rng.random(fronts) < 0.05] = -1
    time = np.zeros(fronts, int)
    for s in range(fronts):
        if parent[s] >= 0:
            time[parent[s]] = max(time[parent[s]], time[s] + rng.integers(1, 3) - (seed % 2))
    time = np.unique(time, return_inverse=True)[1].astype(np.int32)
    schedule = Schedule(time < 3, time, 3, np.empty(0, int), np.empty(0, int), time)
    sizes = [rng.integers(1, 100, fronts) for _ in range(3)]
    sizes[1][parent < 0] = 0
    sizes[2][(time < 3) | (seed % 3 == 0)] = 0
    places = place(schedule, parent, *sizes, 1000 * (seed % 4))
    check_owners(places, schedule, parent, sizes)
    alive = [sum(sizes[1][(time <= t) & (time[parent] >= t)]) for t in range(time.max() + 1)]
    assert max(sum(sizes[0]), max(alive)) <= places.entries <= sum(map(sum, sizes))


@pytest.mark.parametrize("method", [CHOLESKY, LU, LDLT])
@pytest.mark.parametrize("name", MATRICES)
def test_parts_of_fronts_have_one_owner(device, name, method, monkeypatch):
    monkeypatch.setattr(schedules, "_EPOCH", 1)
    monkeypatch.setattr(schedules, "_GROUP", 1)
    pattern = Pattern(device, frontal.analyze(MATRICES[name](), kind="spd").plan, method, 20, 1)
    layout, small = pattern.layout(np.dtype("f4")), pattern.schedule.small
    sizes = [layout.size, contribution_entries(pattern.m, method), layout.size.copy()]
    if not method.indefinite:
        sizes[2][:] = 0
    sizes[2][small] = 0
    check_owners(layout.places, pattern.schedule, pattern.plan.parent, sizes)
    for part in layout.places[:3]:
        assert (part % 4 == 0).all()


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
        places = pattern.layout(np.dtype("f8")).places
        assert places.entries < 1.1 * places.panels
        tasks = device.download(pattern.tasks.list)
        epoch, part = tasks[:, 3] & ((1 << 30) - 1), tasks[:, 3] >> 30
        np.testing.assert_array_equal(np.unique(epoch), np.arange(pattern.schedule.epochs))
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
    for first, to in zip(firsts, given, strict=True):
        end = first + len(to)
        np.testing.assert_array_equal(interchanges[first:end][to], np.arange(first, end))
        panel[first:end, :first] = panel[first:end, :first][np.argsort(to)]
    np.testing.assert_array_equal(device.download(there).reshape(n, -1).T, panel)
