"""The GPU backend against the CPU's, on small trees."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device
from frontal import problems
from frontal.backend.protocol import PivotFailure, panel_offsets
from frontal.cpu.backend import CpuBackend
from frontal.gpu.runtime.limits import H200, Limits
from frontal.gpu.sparse import launch
from frontal.gpu.sparse.backend import GpuBackend
from frontal.gpu.sparse.factorize import launches as front_factor
from frontal.gpu.sparse.layout import schedule as schedules
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.gpu.sparse.tasks import tiles as front_tasks
from frontal.gpu.sparse.tasks.tiles import tile_tasks
from frontal.numeric.method import CHOLESKY, LDLT, LU

from ...emulation.borders import DTYPES, eps
from ...matrices import FRONT_MATRICES, bordered, unsymmetric_front, with_phases


def factors(device, a, kind="spd", tiny=0.0, small=64, ordering="auto"):
    """The factor of both backends, of one analysis; fronts up to `small` rows are done whole."""
    analysis = frontal.analyze(a, kind=kind, ordering=ordering)
    values = analysis.matching_pattern(frontal.matrix.canonical.canonical(a)).data
    cpu, gpu = CpuBackend(analysis.symbolic), GpuBackend(analysis.symbolic, device)
    gpu.pattern = DevicePattern(device, analysis.plan, analysis.symbolic.method, small, 1)
    values = values.astype(a.dtype)
    return analysis, cpu.factorize(values, None), gpu.factorize(values, None, tiny=tiny)


def diagonal_and_below(analysis, panels):
    """Panels with the other triangle of their diagonal blocks left out."""
    out, plan = [], analysis.plan
    first = panel_offsets(plan, analysis.symbolic.method)
    for s in range(plan.parent.size):
        k, order = plan.start[s + 1] - plan.start[s], 0
        order = k + plan.pointer[s + 1] - plan.pointer[s]
        panel = panels[first[s] : first[s] + k * order].reshape(k, order).T
        out.append(np.tril(panel).ravel())
    return np.concatenate(out)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("small", [0, 64])
@pytest.mark.parametrize("name", FRONT_MATRICES)
def test_the_same_factor_and_solution(device, name, small, dtype):
    a = with_phases(FRONT_MATRICES[name](), dtype)
    analysis, cpu, gpu = factors(device, a, small=small)
    wanted = diagonal_and_below(analysis, cpu.panels)
    found = diagonal_and_below(analysis, gpu.to_host().panels)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=300 * eps(dtype) * np.abs(wanted).max())
    rng = np.random.default_rng(3)
    for width in (1, 3):
        b = rng.standard_normal((a.shape[0], width)).astype(dtype)
        for transposed in (False, True):
            x = b.copy()
            gpu.sweep(x, transposed)
            matrix = a[analysis.perm][:, analysis.perm]
            residual = (matrix.conj() if transposed else matrix) @ x - b
            scale = sp.linalg.norm(a, np.inf) * np.abs(x).max() + np.abs(b).max()
            assert np.abs(residual).max() <= 100 * eps(dtype) * scale


@pytest.mark.parametrize(("large", "dtype"), [*((48, dtype) for dtype in DTYPES), (2, "f8")])
@pytest.mark.parametrize(("kind", "few"), [("spd", 512), ("spd", 0), ("general", 0)])
def test_fronts_of_several_tiles(device, monkeypatch, kind, few, large, dtype):
    """In both orders of tasks; with last diagonal tiles that others follow, and without."""
    monkeypatch.setattr(front_tasks, "_MIN_LARGE_TILES", large)
    monkeypatch.setattr(schedules, "_MAX_FOLLOWED_FRONTS", few)
    a = bordered(dtype, kind)
    analysis, cpu, gpu = factors(device, a, kind, 1e-8, 0, "natural")
    assert np.diff(analysis.plan.start).max() > 128
    tasks = device.download(gpu.pattern.tasks.list).reshape(-1, 4)
    assert len(np.unique(tasks, axis=0)) == len(tasks)
    followed = gpu.pattern.pivot_tiles - ((few == 0) | (gpu.pattern.m == 0))
    assert gpu.pattern.layout(np.dtype(dtype)).places.messages == 64 * 64 * followed.sum() * (
        1 if kind == "spd" else 2
    )
    check_solutions(analysis, a, gpu)
    if kind == "spd":
        wanted, found = (diagonal_and_below(analysis, x.to_host().panels) for x in (cpu, gpu))
        size = np.abs(wanted).max()
        np.testing.assert_allclose(found, wanted, rtol=0, atol=300 * eps(dtype) * size)


def needed(i, j, part, pivots, symmetric):
    """Tiles of a front (row, column, part) whose tasks must come before that of tile (i, j)."""
    diagonal = {c: (c, c - 1, 0) if symmetric and c else (c, c, 0) for c in range(pivots)}
    last = min(j, pivots)
    if symmetric and i == j < pivots:
        return {(i, p, 0) for p in range(i - 1)}
    rows = {(r, p, q) for r in (i, j) for p in range(last) for q in range(1 if symmetric else 2)}
    rows = {diagonal[r] if r == p else (r, p, q) for r, p, q in rows}
    if j < i and j < pivots:
        rows.add(diagonal[j])
        if symmetric and i == j + 1 < pivots:  # goes on with the diagonal tile
            rows.add((i, i, 0))
    return rows - {(i, j, part)}


@pytest.mark.parametrize("method", [CHOLESKY, LU, LDLT])
@pytest.mark.parametrize("large", [48, 2])
def test_tasks_come_after_what_they_need(device, monkeypatch, large, method):
    """Blocks take tasks in order, so that nothing can lock however few blocks there are."""
    kind = "spd" if method.one_triangle else "general"
    monkeypatch.setattr(front_tasks, "_MIN_LARGE_TILES", large)
    for a, ordering in ((bordered("f8", kind), "natural"), (problems.poisson3d(14), "metis")):
        plan = frontal.analyze(a, kind=kind, ordering=ordering).plan
        pattern = DevicePattern(device, plan, method, 0, 1)
        tasks = device.download(pattern.tasks.list).reshape(-1, 4)
        level, part = tasks[:, 3] & ((1 << 30) - 1), tasks[:, 3] >> 30
        assert (np.diff(level) >= 0).all()
        seen = [set() for _ in pattern.k]
        for (s, i, j), q in zip(tasks[:, :3].tolist(), part.tolist(), strict=True):
            wanted = needed(i, j, q, int(pattern.pivot_tiles[s]), kind == "spd")
            assert wanted <= seen[s], (s, i, j, q, wanted - seen[s])
            seen[s].add((i, j, q))
        with monkeypatch.context() as patch:  # numbers that are sorted by have no room for another
            patch.setattr(front_tasks, "_BITS", 0)
            np.testing.assert_array_equal(tile_tasks(pattern).list, tasks)


def multipliers(factor):
    """Largest entry of L in a pivot block."""
    plan, largest = factor.pattern.plan, 0.0
    first, panels = panel_offsets(plan, factor.pattern.method), factor.to_host().panels
    for s in range(plan.parent.size):
        k, m = int(factor.pattern.k[s]), int(factor.pattern.m[s])
        panel = panels[first[s] : first[s] + k * (k + m)].reshape(k, k + m).T
        for t in range(0, k, 64):
            tile = np.tril(panel[t : min(t + 64, k), t : t + 64], -1)
            largest = max(largest, (np.abs(tile.real) + np.abs(tile.imag)).max(initial=0.0))
    return largest


def check_solutions(analysis, a, factor):
    dtype = a.dtype
    b = np.random.default_rng(3).standard_normal((a.shape[0], 2)).astype(dtype)
    matrix = a[analysis.row_perm][:, analysis.perm]
    for transposed in (False, True):
        x = b.copy()
        factor.sweep(x, transposed)
        residual = (matrix.T if transposed else matrix) @ x - b
        scale = sp.linalg.norm(a, np.inf) * np.abs(x).max() + np.abs(b).max()
        assert np.abs(residual).max() <= 1e3 * eps(dtype) * scale


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("small", [0, 64])
@pytest.mark.parametrize("name", FRONT_MATRICES)
def test_a_sound_factor_by_lu(device, name, small, dtype):
    a = unsymmetric_front(name, dtype)
    analysis, cpu, gpu = factors(device, a, "general", 1e-3, small)
    assert gpu.perturbed == cpu.perturbed
    row = np.concatenate([np.arange(n) for n in np.diff(analysis.plan.start)])
    np.testing.assert_array_equal(gpu.pivots // 64, row // 64)  # of tiles of 64 rows
    assert multipliers(gpu) <= 8 * (1 + 10 * eps(dtype))
    check_solutions(analysis, a, gpu)


@pytest.mark.parametrize("small", [0, 64])
@pytest.mark.parametrize("name", FRONT_MATRICES)
def test_largest_pivots(device, monkeypatch, name, small):
    """With the strictest threshold the GPU chooses as LAPACK does, inside tiles of 64 rows."""
    monkeypatch.setattr(front_factor, "_MULTIPLIER", 1)
    a = unsymmetric_front(name, "f8")
    analysis, cpu, gpu = factors(device, a, "general", 1e-3, small)
    check_solutions(analysis, a, gpu)
    assert multipliers(gpu) <= 1 + 10 * eps("f8")
    if np.diff(analysis.plan.start).max() > 64 or cpu.symbolic is not analysis.symbolic:
        return  # the CPU looks in the whole front, or has delayed columns
    np.testing.assert_array_equal(gpu.pivots, cpu.pivots)
    size = np.abs(cpu.panels).max()
    np.testing.assert_allclose(
        gpu.to_host().panels, cpu.panels, rtol=0, atol=1e3 * eps("f8") * size
    )


def swapped(n, dtype):
    """A dense matrix with large entries beside the diagonal, in and across blocks of 8 columns."""
    rng = np.random.default_rng(11)
    a = rng.uniform(-1e-3, 1e-3, (n, n))
    for first, step in ((0, 1), (16, 8), (40, 12), (64, 1), (96, 16)):
        for i in range(first, min(first + step, n - step)):
            a[i, i + step] = a[i + step, i] = 1 + i / n
    for i in np.flatnonzero(np.abs(a).max(1) < 0.5):
        a[i, i] = 1.5
    return sp.csc_array(a.astype(dtype))


def test_launches_fit_smaller_devices():
    """LU takes both inverses of a tile at once where there is room for that."""
    a100 = Limits(108, 166912, 167936, (8, 0))
    ada = Limits(128, 101376, 102400, (8, 9))
    for limits in (H200, a100, ada):
        for dtype in DTYPES:
            for method in (CHOLESKY, LU, LDLT):
                plan = launch.front_tiles(dtype, method, limits)
                assert plan.shared + 2816 <= limits.shared_block
                assert plan.residents * (plan.shared + 1024) <= limits.shared_multiprocessor
                assert not (plan.two_inverses and method is not LU)
                if limits is H200 and method is LDLT:  # as many as of Cholesky
                    assert plan.residents == (1 if dtype == "c16" else 3)
                if dtype == "f8":
                    assert plan.two_inverses == (limits is H200 and method is LU)


def test_inverses_one_after_the_other(device, monkeypatch):
    """As where shared memory is scarce."""
    choose = launch.front_tiles
    scarce = Limits(4, 101376, 102400, (8, 9))
    monkeypatch.setattr(launch, "front_tiles", lambda d, s, _: choose(d, s, scarce))
    a = unsymmetric_front("dense", "f8")
    analysis, _, gpu = factors(device, a, "general", 1e-3, 0)
    check_solutions(analysis, a, gpu)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("n", [9, 37, 64, 90, 150])
def test_interchanges_in_some_blocks_of_columns(device, n, dtype):
    a = swapped(n, dtype)
    plan = frontal.analyze(a, kind="general", ordering=np.arange(n))
    values = plan.matching_pattern(frontal.matrix.canonical.canonical(a)).data
    gpu = GpuBackend(plan.symbolic, device)
    gpu.pattern = DevicePattern(device, plan.plan, LU, 0, 1)
    factor = gpu.factorize(values, None, tiny=1e-8)
    assert factor.perturbed == 0
    assert (factor.pivots != np.arange(n)).any()
    assert multipliers(factor) <= 8 * (1 + 10 * eps(dtype))
    check_solutions(plan, a, factor)


def test_numbers_with_all_bits_set_pass(device):
    """Such a NaN is what messages are before they are sent: nobody waits for it."""
    a = bordered("f8", "spd")
    analysis = frontal.analyze(a, kind="spd", ordering="natural")
    values = analysis.matching_pattern(frontal.matrix.canonical.canonical(a)).data
    values[analysis.plan.source[:: len(values) // 9]] = np.array(-1).view("f8")
    backend = GpuBackend(analysis.symbolic, device)
    with pytest.raises(PivotFailure):
        backend.factorize(values, None)


def test_progress_ends_at_the_number_of_fronts(device):
    a = with_phases(FRONT_MATRICES["cube"](), "f8")
    analysis, steps = frontal.analyze(a, kind="spd"), []
    values = analysis.matching_pattern(frontal.matrix.canonical.canonical(a)).data
    backend = GpuBackend(analysis.symbolic, device)
    first = backend.factorize(values, None, progress=lambda *step: steps.append(step))
    assert steps[-1] == ("factorization", analysis.n_fronts, analysis.n_fronts)
    assert backend.factorize(4 * values, None, previous=first).storage is first.storage
