"""Forward and backward substitution over fronts on a device, with the factor of the CPU backend."""

import itertools
import weakref

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.backend.protocol import panel_offsets
from frontal.cpu.backend import CpuBackend
from frontal.gpu.runtime.limits import H200
from frontal.gpu.sparse import launch
from frontal.gpu.sparse.layout.schedule import TILE
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.gpu.sparse.solve.messages import message_rows
from frontal.gpu.sparse.solve.sweeps import DeviceSolver
from frontal.gpu.sparse.storage import SpareMemory, Storage
from frontal.gpu.sparse.tasks import solves
from frontal.numeric.method import CHOLESKY

from ...emulation.borders import DTYPES, eps
from ...matrices import FRONT_MATRICES, tridiagonal, with_phases

MATRICES = {
    **FRONT_MATRICES,
    "cube": lambda: problems.poisson3d(7),
    "chain": lambda: tridiagonal(60, -1.0, 2.5, -1.0),
}
KINDS = ("spd", "general")


def inverse_of(triangle):
    return np.tril(scipy.linalg.solve_triangular(triangle, np.eye(len(triangle)), lower=True))


def fold_inverse(row, inverse):
    """Put a lower triangle into what is above the diagonal at the end of a row of tiles."""
    w, last = len(inverse), row.shape[1] - 1
    for c in range(w):
        row[: w - c, last - c] = inverse[c:, c]


def put_inverses(tile):
    """Those of LU in the place of a diagonal tile, of L without its diagonal."""
    lower = inverse_of(np.tril(tile, -1) + np.eye(len(tile)))
    upper = inverse_of(np.triu(tile).T)
    tile[...] = np.tril(lower, -1)
    fold_inverse(tile, upper)


def put_tile_rows(target, lower, last_ld):
    """L11 by rows of tiles, as `fronts.Layout` has it, and the inverses of its diagonal tiles."""
    k, at = len(lower), 0
    if not last_ld:  # one of them alone
        rows, columns = np.triu_indices(k)
        target[: rows.size] = inverse_of(np.tril(lower))[columns, rows]
        assert 0 <= len(target) - rows.size < 16 // target.itemsize
        return
    for first in range(0, k, TILE):
        end = min(first + TILE, k)
        ld, w = TILE if end < k else last_ld, end - first
        row = target[at : at + (end + 1) * ld].reshape(end + 1, ld).T
        inside = np.arange(first, end)[:, None] >= np.arange(end)
        row[:w, :end][inside] = lower[first:end, :end][inside]
        fold_inverse(row, inverse_of(np.tril(lower[first:end, first:end])))
        at += (end + 1) * ld
    assert at == len(target)


def storage_of(pattern, cpu):
    """The factor of the CPU backend as the device keeps it; NaN where nothing may be read."""
    plan, layout = pattern.plan, pattern.layout(cpu.panels.dtype)
    symmetric, panel_of = pattern.method.one_triangle, panel_offsets(plan, pattern.method)
    panels = np.full(layout.places.entries, np.nan, cpu.panels.dtype)
    for s in range(plan.parent.size):
        k, m, ld = int(pattern.k[s]), int(pattern.m[s]), int(layout.ld[s])
        first, at = int(panel_of[s]), int(layout.places.panel[s])
        panel = cpu.panels[first : first + k * (k + m)].reshape(k, k + m).T
        if symmetric:
            panels[at : at + k * ld].reshape(k, ld).T[:m] = panel[k:]
            own, end = at + int(layout.l11_offset[s]), at + int(layout.size[s])
            put_tile_rows(panels[own:end], panel[:k], int(layout.last_ld[s]))
        else:
            target = panels[at : at + k * ld].reshape(k, ld).T
            target[:k] = panel[:k]
            for t in range(0, k, TILE):
                put_inverses(target[t : min(t + TILE, k), t : min(t + TILE, k)])
            target[layout.below[s] : layout.below[s] + m] = panel[k:]
            first, at, ld = first + k * (k + m), at + k * ld, int(layout.upper_ld[s])
            upper = panels[at : at + k * ld].reshape(k, ld).T
            upper[:m] = cpu.panels[first : first + k * m].reshape(k, m).T
    upload = pattern.device.upload
    pivots = None if symmetric else upload(cpu.pivots + 1)
    none = upload(np.empty(0, panels.dtype))
    spare = SpareMemory(
        upload(np.full(20_000, 0x5A, np.uint8)), none, none
    )  # for some of the messages
    return Storage(upload(panels), pivots, spare=spare)


def factored(device, a, kind):
    analysis = frontal.analyze(a, kind=kind)
    values = analysis.matching_pattern(frontal.matrix.canonical.canonical(a)).data
    cpu = CpuBackend(analysis.symbolic).factorize(values, None)
    symbolic = cpu.symbolic  # columns may have gone to other fronts
    pattern = DevicePattern(device, symbolic.plan, symbolic.method, fewest=0)
    return cpu, pattern, DeviceSolver(pattern, storage_of(pattern, cpu))


def matrix(name, dtype, kind):
    """A matrix that for LU needs interchanges, within diagonal tiles: the CPU's go farther."""
    a = with_phases(MATRICES[name](), dtype).tocoo()
    if kind == "general":
        rng = np.random.default_rng(5)
        size = np.where(a.row // TILE == a.col // TILE, 1.0, 1e-3 if name == "dense" else 1.0)
        a.data *= (size * rng.uniform(-1.0, 1.0, a.nnz)).astype(a.real.dtype)
        if name == "dense":
            a.data[a.row == a.col] = 0.1
    return a.tocsc()


def check(device, cpu, solver, width, transposed, dtype):
    rng = np.random.default_rng(width)
    n, symmetric = int(solver.pattern.plan.start[-1]), solver.pattern.method.one_triangle
    b = rng.standard_normal((n, width)) + 1j * rng.standard_normal((n, width))
    b = (b if np.dtype(dtype).kind == "c" else b.real).astype(dtype)
    wanted = b.copy()
    cpu.sweep(wanted, transposed)
    conjugate = transposed and symmetric and np.dtype(dtype).kind == "c"
    x = device.upload(np.ascontiguousarray((b.conj() if conjugate else b).T)).T
    solver.solve(x, transposed and not symmetric)
    found = device.download(x)
    found = found.conj() if conjugate else found
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=3e3 * eps(dtype) * scale)
    return found


@pytest.fixture(params=["warps", "tiles"])
def size(request, monkeypatch):
    """Small fronts by warps, or all of them by tiles."""
    if request.param == "tiles":
        monkeypatch.setattr(solves, "_SMALL_ENTRIES", 0)
        monkeypatch.setattr(solves, "_MAX_SUMMED_TILES", 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MATRICES)
def test_solutions_are_those_of_the_cpu(device, size, name, kind, dtype):
    cpu, _, solver = factored(device, matrix(name, dtype, kind), kind)
    if kind == "general" and name in ("grid", "cube", "dense"):
        start = np.repeat(cpu.symbolic.plan.start[:-1], np.diff(cpu.symbolic.plan.start))
        step = np.arange(start.size) - start
        assert (cpu.pivots != step).any()
        assert (cpu.pivots // TILE == step // TILE).all()
    widths = (1, 3, 8, 17) if name in ("cube", "dense") else (1, 2)
    if dtype != "f8":  # each width is a kernel of its own to be compiled
        widths = (1, 9)
    for width in widths:
        for transposed in (False, True):
            check(device, cpu, solver, width, transposed, dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_fronts_of_many_tiles(device, monkeypatch, kind):
    monkeypatch.setattr(solves, "_MAX_SUMMED_TILES", 1)
    a = problems.poisson3d(15)
    if kind == "general":
        size = np.random.default_rng(7).uniform(0.5, 1.0, a.nnz)
        a.data *= np.where(a.data > 0, 1.0, size)
    cpu, pattern, solver = factored(device, a, kind)
    assert ((pattern.k > TILE) & (pattern.m > TILE)).any()
    assert solver.tasks.partials
    for transposed in (False, True):
        check(device, cpu, solver, 1, transposed, "f8")


@pytest.mark.parametrize("kind", KINDS)
def test_a_solve_leaves_all_as_it_found_it(device, kind):
    """So that solutions are the same bits again, whatever the widths in between."""
    cpu, _, solver = factored(device, matrix("cube", "f8", kind), kind)
    first = [check(device, cpu, solver, w, t, "f8") for w, t in ((1, False), (8, True), (2, True))]
    messages = solver._messages[-1]
    again = [check(device, cpu, solver, w, t, "f8") for w, t in ((1, False), (8, True), (2, True))]
    assert solver._messages[-1] is messages
    for begin, end in messages._in_use:  # solutions
        messages.sent[1][begin:end] = 0xFF
    free = messages.sent[0], messages.of_rows, messages.sent[2]
    assert all((device.download(sent) == 0xFF).all() for sent in free)
    for x, y in zip(first, again, strict=True):
        np.testing.assert_array_equal(x, y)


def test_solutions_of_graphs_are_no_messages(device, monkeypatch):
    """Whenever they are replayed, wider ones before narrower ones."""
    cpu, _, solver = factored(device, matrix("grid", "f8", "spd"), "spd")
    first = check(device, cpu, solver, 1, False, "f8")
    check(device, cpu, solver, 8, False, "f8")
    wide, narrow = (solver.sweeps(width, False) for width in (8, 1))
    messages = solver._messages[-1]
    messages._solved = 1  # as it was when a graph was recorded
    narrow.vectors[...] = 1
    narrow.enqueue()
    again = device.download(narrow.solution).copy()
    with monkeypatch.context() as patch:
        patch.setattr(device, "capturing", lambda: True)
        messages._solved = 1
        wide._run.enqueue()
        narrow.vectors[...] = 1
        narrow()
        np.testing.assert_array_equal(device.download(narrow.solution), again)
    wide._run.enqueue()  # as replayed
    np.testing.assert_array_equal(check(device, cpu, solver, 1, False, "f8"), first)


@pytest.mark.parametrize("captured", [False, True])
def test_messages_of_narrower_solves_stay_if_captured(device, monkeypatch, captured):
    """A graph that the caller captured may go on to send them: wider ones lie elsewhere."""
    cpu, _, solver = factored(device, matrix("grid", "f8", "spd"), "spd")
    check(device, cpu, solver, 1, False, "f8")
    with monkeypatch.context() as patch:
        patch.setattr(device, "capturing", lambda: captured)
        check(device, cpu, solver, 1, False, "f8")
    narrow = weakref.ref(solver._messages[-1])
    check(device, cpu, solver, 8, False, "f8")
    assert (narrow() is not None) == captured
    if captured:
        taken = sorted(
            (device.pointer(x), device.pointer(x) + x.nbytes)
            for one in solver._messages
            for x in (*one.sent, one.vectors_of(one.width))
            if x.nbytes
        )
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(taken))


def test_solution_without_update_rows_has_room(device):
    """A diagonal matrix, whose fronts send nothing."""
    a = sp.csc_array(sp.diags_array(np.arange(1.0, 301.0)))
    cpu, pattern, solver = factored(device, a, "spd")
    assert message_rows(pattern, np.dtype("f8")) == (0, 300, 0, 300)
    for width in (1, 4):
        check(device, cpu, solver, width, False, "f8")


def test_nan_and_infinity_come_through(device):
    cpu, _, solver = factored(device, matrix("grid", "f8", "spd"), "spd")
    n = cpu.symbolic.plan.start[-1]
    for bad in (np.nan, np.inf, np.full(8, 0xFF, np.uint8).view(np.float64)[0]):
        b = np.zeros((n, 1))
        b[5] = bad
        x = device.upload(np.ascontiguousarray(b.T)).T
        solver.solve(x, False)
        assert not np.isfinite(device.download(x)).all()
    check(device, cpu, solver, 1, False, "f8")


def test_nothing_to_solve(device):
    _, _, solver = factored(device, matrix("chain", "f8", "spd"), "spd")
    solver.solve(device.upload(np.zeros((0, 60))).T, False)


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("name", MATRICES)
def test_tasks_wait_for_earlier_ones_alone(device, monkeypatch, name, small):
    monkeypatch.setattr(solves, "_MAX_SUMMED_TILES", 1)
    if not small:
        monkeypatch.setattr(solves, "_SMALL_ENTRIES", 0)
    plan = frontal.analyze(MATRICES[name](), kind="spd").plan
    pattern = DevicePattern(device, plan, CHOLESKY, fewest=0)
    tasks = pattern.solve_tasks(np.dtype("f8"))
    assert pattern.solve_tasks(np.dtype("f8")) is tasks
    few, forward, backward = (
        list(device.download(x).reshape(-1).view(solves.TASK))
        for x in (tasks.small, tasks.forward, tasks.backward)
    )
    front = {int(p): s for s, p in enumerate(plan.start[:-1])}
    complete, tiles = set(), {}
    for task in few + forward:
        s, pivot_tiles = front[int(task["start"])], -(-int(task["k"]) // TILE)
        children = plan.children[plan.child_pointer[s] : plan.child_pointer[s + 1]]
        assert complete.issuperset(children.tolist())
        total = pivot_tiles - (-int(task["m"]) // TILE)
        count, ready = max(int(task["count"]), 1), tiles.setdefault(s, 0)
        small_one = int(task["count"]) == 0
        assert small_one or int(task["tile"]) == ready
        tiles[s] = total if small_one else ready + count
        if tiles[s] == total:
            complete.add(s)
    assert len(complete) == plan.parent.size
    done, parts = set(), set()
    for task in backward + few[::-1]:
        s, t = front[int(task["start"])], int(task["tile"])
        if plan.parent[s] >= 0:
            assert (plan.parent[s], 0) in done
        later = range(t + 1, -(-int(task["k"]) // TILE)) if task["count"] == 0 else ()
        assert all((s, i) in done for i in later)
        partial = int(task["partial"])
        if task["count"]:
            assert partial not in parts
            parts.add(partial)
        else:
            assert parts.issuperset(range(partial, partial + int(task["parts"])))
            done.add((s, t))
    assert len(parts) == tasks.partials
    slots = np.sort(device.download(tasks.slots)[np.repeat(plan.parent >= 0, pattern.m)])
    np.testing.assert_array_equal(slots, np.arange(tasks.messages))


@pytest.mark.parametrize("choose", [launch.front_solve, launch.front_solve_small])
@pytest.mark.parametrize("dtype", DTYPES)
def test_launches_fit_the_device(dtype, choose):
    for wanted, width in ((1, 1), (2, 2), (3, 4), (5, 8), (8, 8), (17, 8)):
        width = min(width, 64 // np.dtype(dtype).itemsize) if dtype == "c16" else width
        assert launch.solve_width(dtype, wanted) == width
        plan = choose(dtype, width, H200)
        assert plan.width == width
        assert plan.shared <= H200.shared_block
        assert plan.residents * (plan.shared + 2560) <= H200.shared_multiprocessor
