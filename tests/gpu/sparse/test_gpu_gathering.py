"""Gathering fronts: where they are, and the same numbers as without them."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.batch.forest import joined
from frontal.cpu.backend import CpuBackend
from frontal.gpu.sparse.backend import GpuBackend
from frontal.gpu.sparse.early_setup import EarlySetup
from frontal.gpu.sparse.footprint import on_device_like
from frontal.gpu.sparse.layout import schedule as schedules
from frontal.gpu.sparse.layout.gathering import gathered
from frontal.gpu.sparse.layout.schedule import TILE
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.gpu.sparse.tasks import solves
from frontal.symbolic.plan import FrontArrays, Plan, relative_rows

from ...conftest import fronts_cost, scaled_residual
from ...emulation.borders import eps
from ...matrices import scaled_values
from .test_gpu_fronts import diagonal_and_below
from .wide_tools import hub_system


def analyzed(a, kind="spd", **options):
    with fronts_cost():
        return frontal.analyze(a, kind=kind, ordering="natural", **options)


def star_plan(rows_of_leaves, pivots, n=None):
    """The plan of leaves of one column each, and of a root with `pivots` columns."""
    leaves = len(rows_of_leaves)
    start = np.append(np.arange(leaves + 1), leaves + pivots).astype(np.int32)
    parent = np.append(np.full(leaves, leaves), -1).astype(np.int32)
    pointer = np.append(0, np.cumsum([*map(len, rows_of_leaves), 0]))
    rows = (leaves + np.concatenate(rows_of_leaves)).astype(np.int32)
    fronts = FrontArrays(start, parent, pointer, rows)
    children = np.append(np.zeros(leaves + 1, np.int64), leaves), np.arange(leaves, dtype=np.int32)
    none = np.empty(0, np.int32)
    entries = np.zeros(leaves + 2, np.int64), none.astype(np.int64), none, none
    return Plan(*fronts, relative_rows(fronts), *children, *entries)


def rows_of(plan, s):
    return plan.rows[plan.pointer[s] : plan.pointer[s + 1]]


def check_tree(plan, tree):
    """Fronts with pivots are those of the plan, gathering fronts the unions of their children."""
    k = np.diff(tree.start)
    fronts = np.flatnonzero(k > 0)
    assert fronts.size == plan.parent.size < tree.parent.size
    above = np.append(tree.parent, -1)
    while (skipped := (above[:-1] >= 0) & (k[above[:-1]] == 0)).any():
        above[:-1][skipped] = tree.parent[above[:-1][skipped]]
    number = np.append(np.cumsum(k > 0) - 1, -1)
    np.testing.assert_array_equal(number[above[:-1][fronts]], plan.parent)
    np.testing.assert_array_equal(tree.start[fronts], plan.start[:-1])
    np.testing.assert_array_equal(np.diff(tree.entry_pointer)[fronts], np.diff(plan.entry_pointer))
    for s, own in enumerate(fronts):
        np.testing.assert_array_equal(rows_of(tree, own), rows_of(plan, s))
    low = np.arange(k.size)
    for s in range(k.size):
        children = tree.children[tree.child_pointer[s] : tree.child_pointer[s + 1]]
        np.testing.assert_array_equal(children, np.flatnonzero(tree.parent == s))
        for c in children:
            low[s] = min(low[s], low[c])
            local = np.append(np.arange(tree.start[s], tree.start[s + 1]), rows_of(tree, s))
            place = tree.relative[tree.pointer[c] : tree.pointer[c + 1]]
            np.testing.assert_array_equal(local[place], rows_of(tree, c))
        if k[s] == 0:
            assert 4 <= children.size <= 32
            union = np.unique(np.concatenate([rows_of(tree, c) for c in children]))
            np.testing.assert_array_equal(rows_of(tree, s), union)
            entries = (np.diff(tree.pointer)[children] ** 2).sum()
            assert union.size**2 <= max(TILE**2, entries)
    size = np.bincount(tree.parent[tree.parent >= 0], minlength=k.size)
    assert size.max() <= 64
    for s in range(k.size):  # postorder
        inside = np.arange(low[s], s)
        assert ((tree.parent[inside] >= low[s]) & (tree.parent[inside] <= s)).all()


@pytest.mark.parametrize(("leaves", "levels"), [(70, 1), (1000, 1), (1100, 2), (3000, 2)])
def test_gathered_hub_has_few_children_at_each_front(leaves, levels):
    plan = analyzed(hub_system("spd", leaves=leaves)).plan
    tree = gathered(plan)
    check_tree(plan, tree)
    depth = np.zeros(tree.parent.size, int)
    for s in range(tree.parent.size):
        if tree.parent[s] >= 0:
            depth[tree.parent[s]] = max(depth[tree.parent[s]], depth[s] + 1)
    hub = np.flatnonzero(np.diff(tree.start) > 1)[0]
    assert depth[hub] == 1 + levels
    assert np.diff(tree.child_pointer)[hub] <= 32


def test_gathered_without_wide_parents_is_the_plan_itself():
    for a in (problems.poisson2d(40), problems.poisson3d(9), hub_system("spd", leaves=64)):
        plan = frontal.analyze(a, kind="spd").plan
        assert gathered(plan) is plan
    assert gathered(analyzed(hub_system("spd", leaves=65)).plan).parent.size > 67


def test_children_of_other_tiles_are_not_gathered():
    """No block adds many of them, whichever tile it has."""
    plan = star_plan([[TILE * i, TILE * i + 1] for i in range(100)], 100 * TILE)
    assert gathered(plan) is plan
    plan = star_plan([[TILE * (i // 10), TILE * (i // 10) + 1] for i in range(100)], 10 * TILE)
    check_tree(plan, gathered(plan))


def test_gathered_blocks_have_no_more_entries_than_those_of_children():
    rng = np.random.default_rng(0)
    for size in (2, 5, 40):
        rows = [np.sort(rng.choice(600, size, replace=False)) for _ in range(500)]
        tree = gathered(star_plan(rows, 600))
        m, k = np.diff(tree.pointer), np.diff(tree.start)
        assert (k == 0).any() == (size < 40)
        assert (m[k == 0] ** 2).sum() <= max((m[k == 1] ** 2).sum(), TILE**2 * (k == 0).sum())
    full = star_plan([np.arange(600)] * 500, 600)
    check_tree(full, gathered(full))


def test_large_blocks_among_small_ones_are_not_gathered():
    """Copies of them would cost more than a few small additions."""
    large, small = np.arange(500), np.arange(0, 500, TILE)
    rows = [large if i % 12 == 0 else small for i in range(96)]
    plan = star_plan(rows, 500)
    tree = gathered(plan)
    m, k = np.diff(tree.pointer), np.diff(tree.start)
    assert m[k == 0].max(initial=0) <= TILE


def test_forests_have_the_gathering_fronts_of_their_trees():
    plan = analyzed(hub_system("spd")).plan
    sizes = [plan.source.size] * 3
    wanted = joined([gathered(plan)] * 3, sizes)
    for one, other in zip(gathered(joined([plan] * 3, sizes)), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def both(device, a, kind, small=64):
    """The factors of both backends; fronts up to `small` rows are factorized in one piece."""
    analysis = analyzed(a, kind)
    values = analysis.matching_pattern(frontal.matrix.canonical.canonical(a)).data.astype(a.dtype)
    backend = GpuBackend(analysis.symbolic, device)
    plan, method = gathered(analysis.plan), analysis.symbolic.method
    backend.pattern = DevicePattern(device, plan, method, small, 1)
    assert (backend.pattern.k == 0).any()
    assert (backend.pattern.followed >= 0).all()
    assert backend.pattern.schedule.small[backend.pattern.k == 0].all() == (small > 0)
    return analysis, CpuBackend(analysis.symbolic).factorize(values, None), backend, values


def check_panels(analysis, factor, cpu):
    np.testing.assert_array_equal(factor.pivots, cpu.pivots)
    panels, wanted = factor.to_host().panels, cpu.panels
    if analysis.symbolic.method.one_triangle:
        panels, wanted = (diagonal_and_below(analysis, x) for x in (panels, wanted))
    assert np.abs(panels - wanted).max() <= 100 * eps(panels.dtype) * np.abs(wanted).max()


def solutions(analysis, a, factor, widths=(1, 3)):
    """Sweeps with the factor, plain and transposed, each with a small residual."""
    matrix, found = a[analysis.row_perm][:, analysis.perm], []
    for width in widths:
        b = np.random.default_rng(3).standard_normal((a.shape[0], width)).astype(a.dtype)
        for transposed in (False, True):
            x = b.copy(order="F")
            factor.sweep(x, transposed)
            for i in range(width):
                error = scaled_residual(matrix.T if transposed else matrix, x[:, i], b[:, i])
                assert error <= 20 * eps(a.dtype)
            found.append(x)
    return found


CASES = [(kind, dtype) for kind in ("spd", "general", "symmetric") for dtype in ("f8", "c8")]


@pytest.mark.parametrize(("small", "leaves"), [(0, 300), (64, 300), (64, 1100)])
@pytest.mark.parametrize(("kind", "dtype"), CASES)
def test_factor_and_solutions_are_those_of_the_cpu(device, monkeypatch, kind, dtype, small, leaves):
    """With gathering fronts of up to 16, 32 and 64 rows, and as tiles."""
    monkeypatch.setattr(solves, "_WARPS", 0 if small else 8)  # warps solve with small fronts
    monkeypatch.setattr(schedules, "_MAX_FOLLOWED_FRONTS", 0)  # as on levels with many fronts
    a = hub_system(kind, dtype, leaves)
    analysis, cpu, backend, values = both(device, a, kind, small)
    factor = backend.factorize(values, None, tiny=1e-9)
    check_panels(analysis, factor, cpu)
    panels, first = factor.to_host().panels, solutions(analysis, a, factor)
    again = backend.factorize(values.copy(), None, tiny=1e-9, previous=factor)
    assert again.storage is factor.storage
    np.testing.assert_array_equal(again.to_host().panels, panels)
    for x, y in zip(solutions(analysis, a, again), first, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("hub", [45, 150])
def test_ten_thousand_leaves(device, hub):
    a = hub_system("spd", leaves=10_000, hub=hub)
    analysis, cpu, backend, values = both(device, a, "spd")
    factor = backend.factorize(values, None)
    check_panels(analysis, factor, cpu)
    solutions(analysis, a, factor, (1,))


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_columns_are_delayed_to_and_from_a_wide_parent(gpu_backend, kind):
    """Of five leaves, and of the hub's last column, which only the root can eliminate."""
    a = hub_system(kind)
    hub = np.arange(300, 345)
    last, leaves = hub[-1], np.arange(3, 300, 60)
    size = np.ones(a.nnz)
    column = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    inside = np.isin(a.indices, hub) & np.isin(column, hub)
    size[inside & ((a.indices == last) | (column == last))] = 1e-13
    analysis = analyzed(a, kind, backend="gpu")
    factor = analysis.factorize(a)
    assert factor.analysis.amendments == 0
    weak = sp.csc_array((a.data * size, a.indices, a.indptr), shape=a.shape)
    weak.setdiag(np.where(np.isin(np.arange(a.shape[0]), [*leaves, last]), 1e-13, a.diagonal()))
    factor.refactorize(weak)
    assert factor.info["backend"] == "gpu"
    assert factor.info["perturbed_pivots"] == 0
    assert factor.analysis.amendments == 1
    plan = factor.analysis.plan
    assert np.diff(plan.start).tolist()[-2:] == [49, 41]
    assert np.diff(plan.child_pointer).max() == 295
    for _ in range(2):
        x = np.cos(np.arange(a.shape[0]))
        y, info = factor.solve(weak @ x, return_info=True)
        assert info.backward_error <= 4 * eps("f8")
        np.testing.assert_allclose(y, x, rtol=0, atol=1e-12)
        factor.refactorize(weak)


@pytest.mark.parametrize("kind", ["spd", "general", "symmetric"])
def test_what_is_asked_of_a_factor_is_that_of_the_cpu(gpu_backend, kind):
    a = hub_system(kind)
    analysis = analyzed(a, kind, backend="gpu")
    there, here = analysis.factorize(a), analyzed(a, kind, backend="cpu").factorize(a)
    assert there.info["backend"] == "gpu"
    assert there.analysis.n_fronts == here.analysis.n_fronts
    np.testing.assert_allclose(there.slogdet(), here.slogdet(), rtol=1e-14)
    np.testing.assert_allclose(there.diag(), here.diag(), rtol=1e-13)
    for one, other in ((there.L, here.L), (there.to_cpu().L, here.L)):
        assert abs(one - other).max() <= 1e-13 * abs(other).max()
    assert there.rcond() == pytest.approx(here.rcond(), rel=1e-6)
    x = np.cos(np.arange(a.shape[0]))
    assert scaled_residual(a, there.to_cpu().solve(a @ x), a @ x) <= 4 * eps("f8")
    assert there.growth == pytest.approx(here.growth, rel=1e-12)


@pytest.mark.parametrize("kind", ["spd", "general", "symmetric"])
def test_segments_have_the_same_bits(gpu_backend, kind):
    a = hub_system(kind)
    analysis, found = analyzed(a, kind, backend="gpu"), []
    b = np.cos(np.arange(2.0 * a.shape[0])).reshape(-1, 2)
    for memory in ("device", "streamed"):
        factor = analysis.factorize(a, memory=memory)
        found.append([factor.solve(b), factor.refactorize(a).solve(b[:, 0]), factor.L.data])
    assert "host" in factor.info["device"]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", ["spd", "general", "symmetric"])
def test_batches_of_wide_trees(gpu_backend, monkeypatch, kind):
    """Solved as a forest, and each by a warp."""
    a, rng = hub_system(kind, leaves=100, hub=20), np.random.default_rng(2)
    values, b = scaled_values(a, 3), rng.standard_normal((3, a.shape[0]))
    for least in (0, 1 << 20):
        monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees.MIN_SYSTEMS", least)
        with fronts_cost():
            factors = frontal.factorize_batch(
                a, values, kind=kind, ordering="natural", backend="gpu"
            )
        x = factors.solve(b)
        for i in range(3):
            matrix = sp.csc_array((values[i], a.indices, a.indptr), shape=a.shape)
            assert scaled_residual(matrix, x[i], b[i]) <= 4 * eps("f8")


def test_memory_is_counted_with_gathering_fronts(device):
    symbolic = analyzed(hub_system("spd", leaves=3000)).symbolic
    backend = GpuBackend(symbolic, device)
    planned, dtype = on_device_like(device.limits, symbolic), np.dtype("f8")
    assert planned.k.size == backend.pattern.k.size > symbolic.plan.parent.size
    assert planned.layout(dtype).places.entries == backend.pattern.layout(dtype).places.entries


def test_layout_of_a_wide_tree_is_not_begun_early(device):
    """It depends on the rows of gathering fronts, which are unknown then."""
    a, dtype = hub_system("spd"), np.dtype("f8")
    symbolic, setup = analyzed(a).symbolic, EarlySetup(device, lambda flops: True, dtype)
    plan = symbolic.plan
    setup.fronts(symbolic.method, plan.start, plan.parent, plan.pointer)
    pattern = setup.backend(symbolic).pattern
    for one, other in zip(pattern.plan, gathered(plan), strict=True):
        np.testing.assert_array_equal(one, other)
