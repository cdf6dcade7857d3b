"""Levels of the assembly tree, and where contribution blocks lie meanwhile."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.gpu.runtime.graph import Launch
from frontal.gpu.sparse import launch
from frontal.gpu.sparse.layout import interval_packing as module
from frontal.gpu.sparse.layout import schedule as schedules
from frontal.gpu.sparse.layout.interval_packing import Slack
from frontal.gpu.sparse.layout.offsets import Parts, place
from frontal.gpu.sparse.layout.schedule import (
    Schedule,
    contribution_entries,
    followed_tiles,
    make_schedule,
    message_entries,
)
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.numeric.method import CHOLESKY, LDLT, LU
from frontal.problems import poisson3d

from ...matrices import FRONT_MATRICES


@pytest.mark.parametrize("method", [CHOLESKY, LU])
@pytest.mark.parametrize("name", FRONT_MATRICES)
def test_levels_and_times(name, method):
    plan = frontal.analyze(FRONT_MATRICES[name](), kind="spd").plan
    schedule, above = make_schedule(plan, method, 20), plan.parent >= 0
    level, time, small = schedule.level, schedule.time, schedule.small
    assert (level[plan.parent[above]] > level[above]).all()
    assert (level[~small] >= schedule.small_levels).all()
    assert small[plan.parent[above]].sum() <= small[above].sum()
    np.testing.assert_array_equal(time[small], level[small])
    np.testing.assert_array_equal(np.sort(schedule.tiled), np.flatnonzero(~small))
    order = time[schedule.tiled]
    assert (np.diff(order) >= 0).all()
    np.testing.assert_array_equal(np.unique(order), schedule.launches + np.arange(schedule.epochs))


def check_owners(places, schedule, parent, sizes):
    """Nothing has two owners, in any order that launches and waits allow."""
    time, launches = schedule.time.astype(int), schedule.launches
    dies = np.where(parent >= 0, time[parent], time)
    order, messages = np.argsort(time, kind="stable"), np.zeros(time.size, int)
    messages[order] = places.sent + np.cumsum(sizes.messages[order]) - sizes.messages[order]
    assert places.messages == sizes.messages.sum()
    begin = np.concatenate([places.panel, places.block, places.product, messages])
    end = begin + np.concatenate(sizes)
    first = np.append(np.tile(time, 3), np.full(time.size, -1))  # messages are cleared before all
    last = np.concatenate([np.full(time.size, 10**6), dies, time, time])
    need = np.tile(places.need, 4)
    assert (places.need <= np.maximum(time - launches, 0)).all()
    assert (places.panel + sizes.panels <= places.panels).all()
    assert end.max(initial=0) <= places.entries
    full = np.flatnonzero(end > begin)
    for i in full:
        later = full[(begin[full] < end[i]) & (end[full] > begin[i]) & (full != i)]
        later = later[(first[later] > first[i]) | ((first[later] == first[i]) & (later > i))]
        assert (first[later] > last[i]).all()
        assert (need[later] > last[i] - launches).all()  # of no matter before the first epoch


@pytest.mark.parametrize("seed", [*range(12), 18, 24])
def test_nothing_has_two_owners(seed, monkeypatch):
    monkeypatch.setattr(module, "SLACK", seed // 4)
    monkeypatch.setattr(module, "_MAX_SEARCHED_INTERVALS", 10_000 * (seed % 3))
    monkeypatch.setattr(
        "frontal.gpu.sparse.layout.offsets._PARTS", (256, 8)[seed % 2]
    )  # of some fronts
    rng, fronts = np.random.default_rng(seed), 60
    parent = np.append(np.minimum(np.arange(1, 60) + rng.geometric(0.3, 59), 59), -1)
    parent[rng.random(fronts) < 0.05] = -1
    time = np.zeros(fronts, int)
    for s in range(fronts):
        if parent[s] >= 0:
            time[parent[s]] = max(time[parent[s]], time[s] + rng.integers(1, 3) - (seed % 2))
    time = np.unique(time, return_inverse=True)[1].astype(np.int32)
    schedule = Schedule(time < 3, time, 3, 3, np.empty(0, int), np.empty(0, int), time)
    sizes = Parts(*(rng.integers(1, 100, fronts) for _ in range(4)))
    sizes.blocks[parent < 0] = 0
    sizes.products[(time < 3) | (seed % 3 == 0)] = 0
    sizes.messages[(time < 3) | (seed % 5 == 0)] = 0
    places = place(schedule, parent, sizes, Slack(1000 * (seed % 4), 3000 * (seed % 2)), 8)
    assert places.panels % 8 == places.sent % 8 == places.entries % 8 == 0
    check_owners(places, schedule, parent, sizes)
    alive = [sum(sizes.blocks[(time <= t) & (time[parent] >= t)]) for t in range(time.max() + 1)]
    assert max(sum(sizes.panels), max(alive)) <= places.entries <= sum(map(sum, sizes)) + 16


@pytest.mark.parametrize("method", [CHOLESKY, LU, LDLT])
@pytest.mark.parametrize("name", FRONT_MATRICES)
def test_parts_of_fronts_have_one_owner(device, name, method, monkeypatch):
    monkeypatch.setattr(schedules, "_EPOCH", 1)
    monkeypatch.setattr(schedules, "_GROUP", 1)
    pattern = DevicePattern(
        device, frontal.analyze(FRONT_MATRICES[name](), kind="spd").plan, method, 20, 1
    )
    layout, small = pattern.layout(np.dtype("f4")), pattern.schedule.small
    blocks, products = contribution_entries(pattern.m, method), layout.size.copy()
    products[small | (not method.indefinite)] = 0
    tiles = followed_tiles(pattern.schedule, pattern.k, pattern.m)
    sizes = Parts(layout.size, blocks, products, message_entries(tiles, method))
    check_owners(layout.places, pattern.schedule, pattern.plan.parent, sizes)
    for part in layout.places[:3]:
        assert (part % 4 == 0).all()


@pytest.mark.parametrize("depth", [0, 2, 3])
def test_large_fronts_at_the_top_come_one_after_another(depth, monkeypatch):
    monkeypatch.setattr(schedules, "_MIN_SOLO_TILES", 3)
    monkeypatch.setattr(schedules, "_DEPTHS", (depth,))
    monkeypatch.setattr(schedules, "_MAX_MEMORY_RATIO", 2.0)  # whatever it saves
    analysis = frontal.analyze(poisson3d(14), kind="spd", ordering="dissection")
    plan, above = analysis.plan, analysis.plan.parent >= 0
    schedule = make_schedule(plan, CHOLESKY, 20)
    level, rows = schedule.level, np.diff(plan.start) + np.diff(plan.pointer)
    assert (level[plan.parent[above]] > level[above]).all()
    depths = np.zeros(level.size, int)
    for s in np.flatnonzero(above)[::-1]:
        depths[s] = depths[plan.parent[s]] + 1
    alone = np.flatnonzero((depths < depth) & (rows > 2 * schedules.TILE))
    assert alone.size >= (0, 0, 3, 5)[depth]
    assert np.unique(level[alone]).size == alone.size
    assert not np.isin(np.delete(level, alone), level[alone]).any()


def test_fronts_above_raised_ones_come_later():
    parent, level = np.array([2, 2, 3, -1]), np.array([0, 0, 1, 2], np.int32)
    large = np.array([True, True, False, False])
    found, raised = schedules._one_by_one(parent, level, large, 3)
    assert raised == 2
    np.testing.assert_array_equal(found, [3, 4, 5, 6])


def test_tops_of_trees_are_staggered_where_that_saves_memory(monkeypatch):
    plan = frontal.analyze(poisson3d(16), kind="spd", ordering="dissection", backend="cpu").plan
    k, m = np.diff(plan.start).astype(int), np.diff(plan.pointer)
    none, taken = np.zeros_like(k), []
    sizes = Parts(k * (k + 2 * m), contribution_entries(m, LU), none, none)
    for large in (1000, 2):
        monkeypatch.setattr(schedules, "_MIN_SOLO_TILES", large)
        schedule = make_schedule(plan, LU, 20, 1)
        taken.append(place(schedule, plan.parent, sizes).entries)
        check_owners(place(schedule, plan.parent, sizes), schedule, plan.parent, sizes)
    assert taken[1] < 0.9 * taken[0]
    monkeypatch.setattr(schedules, "_MAX_SOLO_FRONTS", 2)  # as where many systems are one forest
    assert make_schedule(plan, LU, 20, 1).levels < schedule.levels


def test_messages_lie_where_panels_come_later_and_blocks_take_their_place():
    time, parent = np.array([0, 1, 2, 3]), np.array([3, 3, 3, -1])
    schedule = Schedule(np.zeros(4, bool), time, 0, 0, np.empty(0, int), np.empty(0, int), time)
    sizes = Parts(*np.array([[10, 10, 10, 100], [0, 0, 50, 0], [0] * 4, [60, 160, 20, 1]]))
    places = place(schedule, parent, sizes)
    assert (places.panels, places.sent, places.messages, places.entries) == (130, 20, 241, 261)
    assert (places.block[2], places.need.tolist()) == (130, [0, 0, 2, 2])
    check_owners(places, schedule, parent, sizes)


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_are_placed_first_if_they_are_few(seed, monkeypatch):
    """What lives long and is large has its place before the others, which fill gaps."""
    rng, fronts = np.random.default_rng(seed), 200
    parent = np.append(np.minimum(np.arange(1, fronts) + rng.geometric(0.1, fronts - 1), 199), -1)
    time, none = np.arange(fronts), np.zeros(fronts, int)
    schedule = Schedule(np.zeros(fronts, bool), time, 0, 0, none[:0], none[:0], time)
    sizes = Parts(none + 1, (1000 * rng.random(fronts) ** 6).astype(int), none, none)
    found = []
    for many in (0, 1000):
        monkeypatch.setattr(module, "_MAX_SEARCHED_INTERVALS", many)
        found.append(place(schedule, parent, sizes))
        check_owners(found[-1], schedule, parent, sizes)
    alive = [sizes.blocks[(time <= t) & (parent >= t)].sum() for t in time]
    assert found[1].entries < found[0].entries
    assert found[1].entries < 1.1 * (max(alive) + fronts)


def test_contribution_blocks_are_packed_by_columns_of_tiles():
    m = np.array([0, 1, 64, 65, 200])
    lower = [sum(min(64, n - j) * (n - j) for j in range(0, n, 64)) for n in m]
    np.testing.assert_array_equal(contribution_entries(m, CHOLESKY), lower)
    np.testing.assert_array_equal(contribution_entries(m, LU), m * m)


@pytest.mark.parametrize(("ratio", "entries"), [(0, 1 << 20), (1, 1 << 16), (1, 1 << 20)])
def test_deep_trees_have_few_launches(device, ratio, entries, monkeypatch):
    """A chain of fronts has as many levels: they are tasks, or share one launch."""
    monkeypatch.setattr(schedules, "_MAX_CHAINED_LEVELS", ratio)
    monkeypatch.setattr(schedules, "_MAX_CHAINED_WITH_PIVOTS", ratio)
    monkeypatch.setattr(schedules, "_MIN_SAVED_LEVELS", 0)
    monkeypatch.setattr(schedules, "_MAX_CHAINED_ENTRIES", entries)
    n = 70_000
    plan = frontal.analyze(FRONT_MATRICES["chain"](), kind="spd").plan._replace(
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
        pattern = DevicePattern(device, plan, method)
        if ratio and n <= entries:
            assert pattern.schedule.small.all()
            assert (pattern.schedule.launches, pattern.schedule.small_levels) == (1, n)
            assert (pattern.schedule.time == 0).all()
            continue
        assert not pattern.schedule.small.any()
        places = pattern.layout(np.dtype("f8")).places
        assert places.entries - places.messages < 1.1 * places.panels
        tasks = device.download(pattern.tasks.list)
        epoch, part = tasks[:, 3] & ((1 << 30) - 1), tasks[:, 3] >> 30
        np.testing.assert_array_equal(np.unique(epoch), np.arange(pattern.schedule.epochs))
        assert part.any() == (method.panels == 2)


def test_rows_of_wide_fronts_are_interchanged_by_pieces(device):
    n, tile, rng = 1100, 64, np.random.default_rng(0)
    ones = sp.csc_array(np.ones((n, n)))
    plan = frontal.analyze(ones, kind="spd", ordering="natural").plan
    pattern, dtype = DevicePattern(device, plan, LU, 0, 1), np.dtype(float)
    firsts = range(0, n, tile)
    given = [rng.permutation(min(tile, n - first)) for first in firsts]
    given[3] = np.arange(tile)
    panel = rng.standard_normal((n, int(pattern.layout(dtype).ld[0]))).T
    there, pivots = device.upload(panel.T.ravel()), device.upload(np.concatenate(given, dtype="i4"))
    tree, left, constants = pattern.struct(dtype), pattern.tasks.row_pieces, LU.constants
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
