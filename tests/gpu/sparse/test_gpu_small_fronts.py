"""Small fronts, factorized whole by front_small.cu, against the CPU's; their inverses by NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.backend.protocol import panel_offsets
from frontal.cpu.backend import CpuBackend
from frontal.gpu.runtime.limits import H200
from frontal.gpu.sparse import launch, structs
from frontal.gpu.sparse.factorize import small_fronts
from frontal.gpu.sparse.layout import schedule as schedules
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.gpu.sparse.storage import State, Storage, allocate
from frontal.gpu.sparse.tasks.small_fronts import small_tasks
from frontal.numeric.method import CHOLESKY, LDLT, LU

from ...conftest import fronts_cost
from ...emulation.borders import DTYPES, eps
from ...matrices import dominant_dense

LIMITS = (16, 32, 64)
TINY = 1e-3


def arrow(n, width):
    """A band whose last columns are full: many leaves below one front."""
    a = sp.lil_array((n, n))
    a.setdiag(3.0 * n)
    a[-width:, :] = 1.0
    a[:, -width:] = 1.0
    a.setdiag(3.0 * n)
    return a.tocsc()


# the seconds that a front costs beside its arithmetic, for which fronts are merged
MATRICES = {
    "grid": (lambda: problems.poisson2d(24), 0.0),
    "merged": (lambda: problems.poisson2d(24), 2e-8),
    "cube": (lambda: problems.poisson3d(7), 1e-9),
    "arrow": (lambda: arrow(40, 9), 0.0),
    "blocks": (
        lambda: sp.block_diag([dominant_dense(n) for n in range(1, 65, 3)]),
        0.0,
    ),
}


CASES = [(name, limit, "f8") for name in MATRICES for limit in LIMITS]
CASES += [
    (name, limit, dtype)
    for name, limit in (("arrow", 16), ("blocks", 32), ("grid", 64))
    for dtype in DTYPES
    if dtype != "f8"
]
cases = pytest.mark.parametrize(("name", "limit", "dtype"), CASES)
# all levels in one launch
chains = pytest.mark.parametrize(
    ("name", "limit", "dtype"),
    [
        ("grid", 64, "f8"),
        ("merged", 64, "f8"),
        ("blocks", 64, "f4"),
        ("cube", 32, "c8"),
        ("arrow", 32, "c16"),
    ],
)


def matrix_of(name, kind, dtype, rng):
    """Hermitian positive definite, or with pivots that are not on the diagonal."""
    a = sp.csc_array(MATRICES[name][0]())
    size = rng.uniform(0.2, 1.0, a.nnz)
    if np.dtype(dtype).kind == "c":
        size = size * np.exp(0.5j * rng.standard_normal(a.nnz))
    b = sp.csc_array((a.data * size, a.indices, a.indptr), a.shape)
    if kind == "general":
        b.data[rng.integers(0, b.nnz, 5)] = 0.05
        return b.astype(dtype)
    lower = sp.tril(b, -1)
    return sp.csc_array(lower + lower.conj().T + sp.diags_array(a.diagonal())).astype(dtype)


class Factored:
    """The small fronts of a matrix by both backends."""

    def __init__(self, device, name, kind, dtype, limit, fewest=1):
        a = matrix_of(name, kind, dtype, np.random.default_rng(7))
        ordering = "natural" if name == "arrow" else "auto"
        with fronts_cost(MATRICES[name][1]):
            analysis = frontal.analyze(a, kind=kind, ordering=ordering)
        values = analysis.matching_pattern(frontal.matrix.canonical.canonical(a)).data.astype(dtype)
        tiny = 0.0 if kind == "spd" else TINY
        self.method, self.plan, self.device = analysis.symbolic.method, analysis.plan, device
        self.cpu = CpuBackend(analysis.symbolic).factorize(values, None)
        self.pattern = DevicePattern(device, self.plan, self.method, limit, fewest)
        self.values, self.tiny, self.dtype = values, tiny, np.dtype(dtype)
        self.run()

    def run(self):
        pattern, device = self.pattern, self.device
        self.storage = allocate(pattern, self.dtype, Storage)
        self.storage.panels[...] = np.nan
        self.state, values = State(pattern, self.storage), device.upload(self.values)
        given = pattern, self.storage, values, self.tiny, self.state
        for level in small_fronts.launches(*given):
            for part in level:
                part()
        self.there = device.download(self.storage.panels)
        self.panels = pattern.to_host(self.there)

    def outcome(self):
        self.state.fetch()
        self.state.ended()
        return self.state.read()

    def fronts(self):
        return np.flatnonzero(self.pattern.schedule.small)

    def panel(self, panels, s):
        """L11 (with U11) above L21, and the transpose of U12."""
        k, m = int(self.pattern.k[s]), int(self.pattern.m[s])
        first = panel_offsets(self.plan, self.method)[s]
        lower = panels[first : first + k * (k + m)].reshape(k, k + m).T
        first += k * (k + m)
        upper = panels[first : first + (self.method.panels - 1) * k * m]
        return np.tril(lower) if self.method.one_triangle else lower, upper

    def inverse(self, s, half=0):
        """A lower triangle; with LU that of the transpose of U for the second half."""
        k, layout = int(self.pattern.k[s]), self.pattern.layout(self.dtype)
        if not self.method.one_triangle:
            first, ld = layout.places.panel[s], layout.ld[s]
            both = self.there[first : first + k * ld].reshape(k, ld).T[:k]
            return folded_inverse(both, k) if half else np.tril(both, -1) + np.eye(k)
        first, ld = layout.places.panel[s] + layout.l11_offset[s], layout.last_ld[s]
        if not self.method.indefinite:
            packed, (columns, rows) = np.zeros((k, k), self.dtype), np.triu_indices(k)
            packed[rows, columns] = self.there[first : first + rows.size]
            return packed
        row = self.there[first : first + ld * (k + 1)].reshape(k + 1, ld).T
        return folded_inverse(row, k)


def folded_inverse(row, w):
    """The inverse of the diagonal tile of a row of tiles, in what L leaves free of it."""
    found = np.zeros((w, w), row.dtype)
    for c in range(w):
        found[c:, c] = row[: w - c, row.shape[1] - 1 - c]
    return found


def check_panels(found, tolerance):
    size = max(np.abs(found.panel(found.cpu.panels, s)[0]).max() for s in found.fronts())
    for s in found.fronts():
        for wanted, panel in zip(
            found.panel(found.cpu.panels, s), found.panel(found.panels, s), strict=True
        ):
            np.testing.assert_allclose(panel, wanted, rtol=0, atol=tolerance * size)


def check_inverse(inverse, factor, tolerance):
    """`inverse` is that of a lower triangle."""
    wanted = np.linalg.inv(factor.astype("c16" if factor.dtype.kind == "c" else "f8"))
    condition = np.abs(wanted).max() * np.abs(factor).max() * len(factor)
    difference = np.abs(inverse - wanted).max() / np.abs(wanted).max()
    assert difference <= tolerance * condition


@pytest.fixture
def one_launch(monkeypatch):
    """Levels with few small fronts share a launch."""
    monkeypatch.setattr(schedules, "_MAX_CHAINED_LEVELS", 1000)
    monkeypatch.setattr(schedules, "_MAX_CHAINED_WITH_PIVOTS", 1000)
    monkeypatch.setattr(schedules, "_MIN_SAVED_LEVELS", 0)


@cases
def test_cholesky(device, name, limit, dtype):
    check_cholesky(Factored(device, name, "spd", dtype, limit), name, dtype)


@chains
def test_cholesky_of_chains(device, name, limit, dtype, one_launch):
    found = Factored(device, name, "spd", dtype, limit, 1000)
    assert found.pattern.schedule.launches == 1
    check_cholesky(found, name, dtype)


def check_cholesky(found, name, dtype):
    assert len(found.fronts())
    assert name != "arrow" or np.diff(found.plan.child_pointer).max() > structs.SMALL_CHILDREN
    check_panels(found, 100 * eps(dtype))
    for s in found.fronts():
        lower = np.tril(found.panel(found.panels, s)[0][: found.pattern.k[s]])
        check_inverse(found.inverse(s), lower, 10 * eps(dtype))
    assert found.outcome()[:2] == (None, 0)


@cases
def test_lu(device, name, limit, dtype):
    check_lu(device, Factored(device, name, "general", dtype, limit), dtype)


@chains
def test_lu_of_chains(device, name, limit, dtype, one_launch):
    found = Factored(device, name, "general", dtype, limit, 1000)
    assert found.pattern.schedule.launches == 1
    check_lu(device, found, dtype)


def check_lu(device, found, dtype):
    assert len(found.fronts())
    columns = np.repeat(found.pattern.schedule.small, found.pattern.k)
    pivots = device.download(found.storage.pivots) - 1
    np.testing.assert_array_equal(pivots[columns], found.cpu.pivots[columns])
    check_panels(found, 3e4 * eps(dtype))
    for s in found.fronts():
        square = found.panel(found.panels, s)[0][: found.pattern.k[s]]
        check_inverse(found.inverse(s), np.tril(square, -1) + np.eye(len(square)), 10 * eps(dtype))
        check_inverse(found.inverse(s, 1), np.triu(square).T, 10 * eps(dtype))
    if found.pattern.schedule.small.all():
        replaced = found.outcome().replaced
        assert replaced == found.cpu.perturbed


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_fronts_with_a_contribution_block_are_finished(device, kind):
    found = Factored(device, "grid", kind, "f8", 32)
    small = found.pattern.schedule.small
    wanted = small & (found.pattern.m > 0)
    assert not small.all()
    np.testing.assert_array_equal(device.download(found.state.finished), wanted)


def test_two_runs_give_the_same_bits(device):
    found = Factored(device, "cube", "spd", "f8", 64)
    before = found.there
    found.run()
    np.testing.assert_array_equal(before, found.there)


@pytest.mark.parametrize("name", ["blocks", "grid"])
def test_the_first_failing_pivot(device, name):
    found = Factored(device, name, "spd", "f8", 64)
    plan, small = found.plan, found.fronts()
    bad = [int(s) for s in small[[-1, len(small) // 3]]]
    for s in bad:  # the first diagonal entry of a front
        first = slice(plan.entry_pointer[s], plan.entry_pointer[s + 1])
        entry = plan.source[first][(plan.row[first] == 0) & (plan.column[first] == 0)]
        found.values[entry] = -1e6
    found.run()
    failure = found.outcome().failure
    assert failure == min(plan.start[s] for s in bad)


def test_lists_hold_every_small_front_once(device):
    analysis = frontal.analyze(problems.poisson2d(40), kind="spd")
    pattern = DevicePattern(device, analysis.plan, CHOLESKY, 64, 1)
    tasks, schedule = small_tasks(pattern, np.dtype(float)), pattern.schedule
    items = device.download(tasks.fronts).view(structs.SMALL_FRONT.dtype)
    np.testing.assert_array_equal(np.sort(items["front"]), np.flatnonzero(schedule.small))
    for level in range(schedule.small_levels):
        own = items[tasks.first[level] : tasks.first[level + 1]]
        assert (schedule.level[own["front"]] == level).all()
        order = own["k"] + own["m"]
        ends = np.cumsum(tasks.counts[level])
        classes = (64, 32), (32, 16), (16, 0)
        for end, begin, (most, less) in zip(ends, (0, *ends), classes, strict=False):
            assert ((order[begin:end] <= most) & (order[begin:end] > less)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_launches_take_each_front_once(dtype):
    for method in (CHOLESKY, LU):
        for counts in ((5, 3, 9), (9000, 90000, 70), (0, 0, 1), (1, 0, 0), (0, 7, 0)):
            parts = launch.small_fronts(dtype, method, counts, H200)
            np.testing.assert_array_equal(np.sum([p.counts for p in parts], axis=0), counts)
            for part in parts:
                assert part.first == sum(sum(p.counts) for p in parts if p.first < part.first)
                assert part.shared <= H200.shared_block


def hard_front(order, pivots, dtype, seed):
    """A front with ties, null columns, and columns whose pivot rows are small."""
    rng = np.random.default_rng(seed)
    a = rng.choice([-1.0, 1.0, 0.5], (order, order))
    a[:, rng.integers(pivots, size=2)] = 0.0
    a[:pivots, rng.integers(pivots, size=2)] *= 1e-3
    phases = np.exp(1j * rng.integers(4, size=a.shape) * np.pi / 2) if dtype[0] == "c" else 1
    return (a * phases).astype(dtype)


def factorized_front(device, a, pivots, chained, method=LU, between=0):
    """Panels, pivots and statistics of one front with the first columns of `a` as pivots.

    Its parent has the other columns; `between` them are fronts without pivots.
    """
    order, ones, count = len(a), sp.csc_array(np.ones(a.shape)), between + 2
    plan = frontal.analyze(ones, kind="spd", ordering="natural").plan
    rows = np.arange(pivots, order, dtype=np.int32)
    column, row = np.divmod(np.arange(a.size), order)
    source = np.flatnonzero((row >= column) | (not method.one_triangle))
    ends = rows.size * np.arange(count + 1)
    plan = plan._replace(
        start=np.array([0, *[pivots] * (count - 1), order], np.int32),
        parent=np.array([*range(1, count), -1], np.int32),
        pointer=np.minimum(ends, ends[-2]),
        rows=np.tile(rows, count - 1),
        relative=np.tile(rows - pivots, count - 1).astype(np.int32),
        child_pointer=np.array([0, *range(count)]),
        children=np.arange(count - 1, dtype=np.int32),
        entry_pointer=np.array([0, *[source.size] * count]),
        source=source,
        row=row[source].astype(np.int32),
        column=column[source].astype(np.int32),
    )
    pattern = DevicePattern(device, plan, method, 64, 1000 * chained)
    assert pattern.schedule.small.all()
    storage = allocate(pattern, np.dtype(a.dtype), Storage)
    state, values = State(pattern, storage), device.upload(a.T.ravel().copy())
    for level in small_fronts.launches(pattern, storage, values, TINY, state):
        for part in level:
            part()
    state.fetch(), state.ended()
    panels = pattern.to_host(device.download(storage.panels))
    first = pivots * (order + (method.panels - 1) * (order - pivots))
    statistics = (
        (device.download(storage.pivots)[:pivots], device.download(storage.largest)[:pivots])
        if method.pivots
        else ()
    )
    return panels[:first], panels[first:], *statistics, state.read().replaced


@pytest.mark.parametrize(("order", "pivots"), [(1, 1), (8, 3), (32, 32), (31, 20), (64, 40)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_lu_in_registers_is_that_by_panels(device, order, pivots, dtype, one_launch, monkeypatch):
    a = hard_front(order, pivots, dtype, order)
    found = factorized_front(device, a, pivots, True)
    constants = small_fronts.small_constants
    monkeypatch.setattr(small_fronts, "small_constants", lambda m: constants(m) | {"WINDOW": 0})
    wanted = factorized_front(device, a, pivots, False)
    for number, other in zip(found[2:], wanted[2:], strict=True):
        np.testing.assert_allclose(number, other, rtol=1e4 * eps(dtype))
    for number, other in zip(found[:2], wanted[:2], strict=True):
        size = np.abs(other).max(initial=0)
        np.testing.assert_allclose(number, other, rtol=0, atol=1e3 * eps(dtype) * size)
    if order > 8:
        assert wanted[3].max() > 100
        assert wanted[4] > 0


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("method", [CHOLESKY, LU, LDLT])
@pytest.mark.parametrize(("order", "pivots"), [(20, 7), (50, 20)])
def test_fronts_without_pivots_pass_blocks_on(device, order, pivots, method, chained, one_launch):
    a = np.random.default_rng(order).uniform(-1, 1, (order, order))
    a += a.T + 3 * order * (method is CHOLESKY) * np.eye(order)
    wanted = factorized_front(device, a, pivots, chained, method)
    found = factorized_front(device, a, pivots, chained, method, between=2)
    for number, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(number, other)
