"""L D L^T and L D L^H on the device: factors, solutions, and columns whose pivots are too small."""

import numpy as np
import pytest
import scipy.sparse as sp

from frontal import problems
from frontal.cpu.backend import CpuBackend
from frontal.gpu.sparse.factorize import launches as front_factor
from frontal.gpu.sparse.layout import schedule as schedules
from frontal.gpu.sparse.tasks import solves
from frontal.gpu.sparse.tasks import tiles as front_tasks
from frontal.numeric.method import LDLH, LDLT

from ...conftest import fronts_cost
from ...emulation.borders import eps
from ...matrices import bordered, with_phases
from .indefinite_tools import KINDS, error, factored, parts, residual


def dense(n, seed=0):
    """Zeros on the diagonal, and as large off it."""
    a = np.random.default_rng(seed).uniform(-1, 1, (n, n))
    np.fill_diagonal(a, 0)
    return sp.csc_array(a + a.T)


def coupled(dtype, method):
    """Fronts of several tiles. In some, columns are good in pairs alone, behind an odd number.

    In the first tile of the second front, pivots of order 1 come before a pair.
    """
    a = bordered("f8", "general").toarray()
    a += a.T
    one, other = np.r_[70:78, 140, 421, 462], np.r_[100:108, 141, 424, 480]
    a[one, one] = a[other, other] = 0
    a[one, other] = a[other, one] = 100
    a[range(110, 119), range(110, 119)] = 95
    a[[280, 300], [280, 300]], a[[280, 300], [300, 280]] = 0, 1000
    return with_phases(sp.csc_array(a), dtype, method)


def blocks(*orders):
    """Fronts of their own, whose columns are good in pairs alone."""
    return sp.block_diag([dense(n, n) for n in orders], format="csc")


def saddle(n):
    """A grid, and constraints that come after their unknowns."""
    a = problems.poisson2d(n) - 1.3 * sp.eye_array(n * n)
    b = sp.eye_array(n * n // 3, n * n) - sp.eye_array(n * n // 3, n * n, k=n * n // 2)
    return sp.csc_array(sp.block_array([[a, b.T], [b, None]]))


MATRICES = {
    "grid": lambda: problems.poisson2d(17) - 1.37 * sp.eye_array(289),
    "cube": lambda: problems.poisson3d(6) - 2.37 * sp.eye_array(216),
    "saddle": lambda: saddle(12),
    "pairs": lambda: blocks(2, 5, 16, 17, 33, 64, 70),
}


@pytest.mark.parametrize(("dtype", "method"), KINDS)
@pytest.mark.parametrize("small", [0, 64])
@pytest.mark.parametrize("name", MATRICES)
def test_factors_and_solutions(device, name, small, dtype, method):
    check_factor(device, name, small, dtype, method)


@pytest.mark.parametrize(("dtype", "method"), KINDS)
@pytest.mark.parametrize("name", ["grid", "pairs"])
def test_factors_of_small_fronts_in_one_launch(device, name, dtype, method, monkeypatch):
    monkeypatch.setattr(schedules, "_MAX_CHAINED_WITH_PIVOTS", 1000)
    monkeypatch.setattr(schedules, "_MIN_SAVED_LEVELS", 0)
    monkeypatch.setitem(MATRICES, "pairs", lambda: blocks(2, 5, 16, 17, 33, 64))
    factor = check_factor(device, name, 64, dtype, method, 1000)
    assert factor.pattern.schedule.launches == 1


def check_factor(device, name, small, dtype, method, fewest=1):
    a = with_phases(MATRICES[name](), dtype, method)
    ordering = "natural" if name == "saddle" else "auto"
    factor = factored(device, a, method, ordering, small, fewest=fewest)
    assert factor.perturbed == 0
    assert error(factor, a) <= 20
    grown = max(np.abs(lower).max() for lower, *_ in parts(factor))
    assert residual(factor, a) <= 100 + 100 * grown
    assert len(factor.unstable_pivots) == 0 or grown > 100
    host, x = factor.to_host(), np.ones((a.shape[0], 1), dtype)
    y = x.copy()
    factor.sweep(x, False)
    CpuBackend(factor.symbolic).from_host(host, factor.matrix, None).sweep(y, False)
    np.testing.assert_allclose(y, x, rtol=0, atol=1e5 * eps(dtype) * np.abs(x).max())
    if method.adjoint:
        assert (factor.diagonal().imag == 0).all()
    return factor


@pytest.mark.parametrize(("large", "few"), [(48, 8), (2, 4)])
@pytest.mark.parametrize(("dtype", "method"), KINDS)
def test_fronts_of_several_tiles(device, monkeypatch, dtype, method, large, few):
    monkeypatch.setattr(front_tasks, "_MIN_LARGE_TILES", large)
    monkeypatch.setattr(solves, "_MAX_SUMMED_TILES", few)
    a = coupled(dtype, method)
    factor = factored(device, a, method, "natural", 0)
    assert np.diff(factor.symbolic.plan.start).max() > 128
    assert error(factor, a) <= 20
    assert residual(factor, a, 3) <= 2000
    pairs = np.flatnonzero(factor.subdiagonal())
    row = np.concatenate([np.arange(k) for k in np.diff(factor.symbolic.plan.start)])
    assert (row[pairs] % 2 == 1).any() or dtype == "c16"  # which looks at 4 columns at once
    assert (row[pairs] % 64 != 63).all()
    tile = np.cumsum(row % 64 == 0)
    first = pairs[np.unique(tile[pairs], return_index=True)[1]]
    assert (row[first] % 64 >= 16).any() or method.adjoint  # columns before are followed
    np.testing.assert_array_equal(factor.pivots // 64, row // 64)
    moved = factor.pivots != row
    assert np.setdiff1d(tile[moved], tile[pairs]).size  # by pivots of order 1 alone


@pytest.mark.parametrize(("dtype", "method"), [("f8", LDLT), ("c16", LDLH)])
@pytest.mark.parametrize("n", [1, 8, 31, 32, 62, 63, 64, 65, 128, 150])
def test_one_front(device, n, dtype, method, monkeypatch):
    monkeypatch.setattr(schedules, "_MAX_CHAINED_WITH_PIVOTS", 1000)
    monkeypatch.setattr(schedules, "_MIN_SAVED_LEVELS", 0)
    a = with_phases(dense(n, n) if n > 1 else -np.eye(1), dtype, method)
    for small, fewest in ((0, 1), (64, 1), (64, 1000)):
        factor = factored(device, a, method, np.arange(n), small, fewest=fewest)
        assert error(factor, a) <= 20
        assert residual(factor, a) <= 2000


def test_no_search_where_pivots_are_good(device, monkeypatch):
    """As Cholesky would, and the same numbers with a search that nothing asks for."""
    a = sp.csc_array(-1.0 * bordered("f8", "spd"))
    found = []
    for multiplier in (8, 1e6):
        monkeypatch.setattr(front_factor, "_OF_LDL", multiplier)
        factor = factored(device, a, LDLT, "natural", 0)
        found.append(factor.to_host())
        assert not found[-1].subdiagonal.any()
        assert (factor.diagonal() < 0).all()
        assert factor.largest_multiplier <= 1
    np.testing.assert_array_equal(found[0].panels, found[1].panels)


@pytest.mark.parametrize(("dtype", "method"), [("f8", LDLT), ("c16", LDLT), ("c16", LDLH)])
@pytest.mark.parametrize(
    ("k", "small", "few"),
    [(20, 64, 512), (20, 65, 512), (20, 0, 512), (100, 0, 512), (100, 0, 0)],
)
def test_columns_whose_pivots_are_too_small(device, monkeypatch, k, small, few, dtype, method):
    """Sound in their own block, but not for the rows below: the host hears which.

    Of more than 64 rows, small fronts share a launch.
    """
    monkeypatch.setattr(schedules, "_MAX_CHAINED_WITH_PIVOTS", 1000)
    monkeypatch.setattr(schedules, "_MIN_SAVED_LEVELS", 0)
    fewest = 1000 if small > 64 else 1
    monkeypatch.setattr(schedules, "_MAX_FOLLOWED_FRONTS", few)
    rng, n = np.random.default_rng(4), k + 30
    a = np.zeros((n, n))
    a[:k, :k] = 1e-7 * (dense(k).toarray() + 3 * np.eye(k))
    a[: k // 2, : k // 2] *= 1e7
    a[k : k + 10, :k] = rng.uniform(-1, 1, (10, k))
    a[k:, k:] = dense(30, 1).toarray() + 5 * np.eye(30)
    a = with_phases(np.tril(a) + np.tril(a, -1).T, dtype, method)
    with fronts_cost(1e-12):
        factor = factored(device, a, method, "natural", small, fewest=fewest)
    assert factor.pattern.schedule.chained == (small > 64)
    assert k in np.diff(factor.symbolic.plan.start)
    assert np.isfinite(factor.to_host().panels).all()
    failed, far = factor.unstable_pivots, np.zeros(n)
    for lower, _, _, begin in parts(factor):
        width = lower.shape[1]
        own = np.arange(width)[:, None] // 64 == np.arange(width) // 64
        below = np.abs(lower.real) + np.abs(lower.imag)
        if not (small and lower.shape[0] <= small):
            below[:width][own] = 0
        np.fill_diagonal(below, 0)
        far[begin : begin + width] = below.max(0, initial=0)
    assert failed.size
    assert (factor.symbolic.perm[failed] < k).all()
    np.testing.assert_array_equal(failed, np.flatnonzero(far > 100))
    assert factor.largest_multiplier == pytest.approx(far.max(), rel=1e-6)
    assert factor.health().pivot_ratio < 1e-4
    grown, largest = factor.growth(), max(far.max(), *np.abs(factor.diagonal())) / abs(a).max()
    monkeypatch.setattr(device, "download", None)  # what was found is enough for a few
    assert factor.growth_acceptable(failed.size, 4 * largest)  # D by bounds, A by its parts
    monkeypatch.undo()
    assert not factor.growth_acceptable(failed.size, 0.999 * grown)
    assert not factor.growth_acceptable(failed.size - 1, np.inf)
    factor._examined[[1, 4]] = 0, 1e200  # D, and L
    assert factor._growth_at_most() >= 1e190
    for place in (1, 4):
        factor._examined[[1, 4]], factor._examined[place] = 1, np.nan
        assert not factor._growth_at_most() <= np.inf


@pytest.mark.parametrize(("dtype", "method"), KINDS)
def test_small_fronts_look_at_update_rows(device, dtype, method):
    """The first pivot would do for its own columns; after the second one it does for all rows."""
    a = np.zeros((32, 32))
    a[2:, 2:] = dense(30).toarray() + 40 * np.eye(30)
    a[:2, :2] = (0.02, 0.1), (0.1, -0.05)
    a[2, 0] = a[0, 2] = 5
    a = with_phases(a, dtype, method)
    with fronts_cost(1e-12):
        factor = factored(device, a, method, "natural")
    assert factor.symbolic.plan.start[1] == 2
    assert factor.unstable_pivots.size == 0
    assert factor.pivots[0] == 1
    assert error(factor, a) <= 20


@pytest.mark.parametrize(("dtype", "method"), KINDS)
@pytest.mark.parametrize(
    ("n", "small", "fewest"), [(30, 64, 1), (60, 64, 1000), (30, 0, 1), (90, 0, 1)]
)
def test_zero_pivots_are_replaced(device, n, small, fewest, dtype, method, monkeypatch):
    """Finite, of the size that the host gives, and told."""
    monkeypatch.setattr(schedules, "_MAX_CHAINED_WITH_PIVOTS", 1000)
    monkeypatch.setattr(schedules, "_MIN_SAVED_LEVELS", 0)
    a = dense(n).toarray()
    a[5] = a[:, 5] = a[20] = a[:, 20] = 0
    a[n - 7] = a[:, n - 7] = 0
    a = with_phases(a, dtype, method)
    factor = factored(device, a, method, np.arange(n), small, tiny=1e-5, fewest=fewest)
    assert factor.perturbed == 3
    assert factor.largest_multiplier == np.inf
    assert len(factor.unstable_pivots) == 3
    assert np.isfinite(factor.to_host().panels).all()
    np.testing.assert_allclose(np.abs(factor.diagonal()[factor.unstable_pivots]), 1e-5, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "method"), [("f8", LDLT), ("c16", LDLH), ("c16", LDLT)])
def test_new_values_and_copies(device, dtype, method):
    a = with_phases(MATRICES["saddle"](), dtype, method)
    factor = factored(device, a, method, "natural", 32)
    twin, values = factor.copy(), device.download(factor.values)
    assert factor.memory == twin.memory > factor.storage.panels.nbytes
    wanted, solution = factor.to_host(), np.ones((a.shape[0], 1), dtype)
    twin_solution = solution.copy()
    factor.sweep(solution, False)
    for scale in (2.0, 4.0, 1.0):  # from the second on it is a graph
        again = backend_of(device, factor).factorize(scale * values, None, previous=factor)
        assert again.storage is factor.storage
        factor = again
        x = np.ones((a.shape[0], 1), dtype)
        factor.sweep(x, False)
        np.testing.assert_array_equal(scale * x, solution)
        assert factor.health().hermitian
    for one, other in zip(factor.to_host(), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    factor.storage.blocks.diagonal[...] = np.nan
    twin.sweep(twin_solution, False)
    np.testing.assert_array_equal(twin_solution, solution)


def backend_of(device, factor):
    """A backend of the same pattern, whose arrays are those of the factor."""
    from frontal.gpu.sparse.backend import GpuBackend

    backend = GpuBackend(factor.symbolic, device)
    backend.pattern, backend.entries = factor.pattern, factor.entries
    return backend
