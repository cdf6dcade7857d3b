"""Kernels whose blocks wait for each other, with blocks that take turns and memory full of garbage.

Sums are taken in a fixed order, so whatever blocks do first, the numbers are those of one block
after another, bit by bit; and each factorization and solve meets what the one before has left.
"""

from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.backend.protocol import PivotFailure
from frontal.errors import FactorMemoryError
from frontal.gpu.sparse.backend import GpuBackend
from frontal.gpu.sparse.factorize.entries import PatternEntries
from frontal.gpu.sparse.layout import interval_packing, panels
from frontal.gpu.sparse.layout import schedule as schedules
from frontal.gpu.sparse.layout.gathering import gathered
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.gpu.sparse.tasks import solves
from frontal.numeric.method import LDLT, SIGNED_LDLH

from ...conftest import fronts_cost
from ...emulation.device import EmulatedDevice
from ...emulation.interleaved import InterleavedDevice, available
from ...matrices import bordered_pattern
from .wide_tools import hub_system

pytestmark = pytest.mark.skipif(not available(), reason="no C++ compiler that tells of accesses")

SCHEDULES = (("random", 1, 8), ("youngest", 1, 6), ("lazy", 1, 4))
KINDS = ("spd", "general", "indefinite")
TINY = 1e-8
# fronts of 3 to 6 tiles, the last ones partial
TILES = sp.csc_array(bordered_pattern((10, 50, 130), 150).astype(float))


# The matrix and its ordering; the order up to which fronts are done whole, and their entries up to
# which a warp solves with them; what a front costs beside its arithmetic, by which they are merged
CASES = {
    "tiles": (lambda: (TILES, "natural"), 0, 0, 1e-12),
    "tree": (lambda: (problems.poisson2d(17), "auto"), 0, 1000, None),
    "small": (lambda: (problems.poisson2d(22), "auto"), 20, 200, 1e-9),
    "wide": (lambda: (abs(hub_system("spd", leaves=150, hub=30)), "natural"), 16, 200, 1e-12),
    "chains": (lambda: (problems.poisson2d(14), "auto"), 64, 200, 1e-9),
}


def orders(name):
    """The rows up to which fronts are small, and the fronts of a level that make it a launch."""
    return CASES[name][1], 1000 if name == "chains" else 1


@cache
def case(name, kind):
    """Analysis, and values of three matrices of its pattern that ask for different pivots."""
    make, _, _, cost = CASES[name]
    pattern, ordering = make()
    rng, all_values = np.random.default_rng(8), []
    for _ in range(3):
        a = sp.csc_array(pattern, copy=True)
        a.data = rng.uniform(-1, 1, a.nnz)
        if kind != "general":
            a = sp.csc_array(a + a.T + 2 * a.shape[0] * sp.eye_array(a.shape[0]))
        with fronts_cost(cost) if cost else nullcontext():
            analysis = frontal.analyze(
                a, kind="general" if kind == "general" else "spd", ordering=ordering
            )
        if kind == "signed":  # dominant, so that D has the signs of the diagonal
            a -= sp.diags_array(2 * a.diagonal() * (np.arange(a.shape[0]) % 3 == 1))
        if kind == "indefinite":
            a -= sp.diags_array(a.diagonal() - rng.uniform(-1, 1, a.shape[0]))
        if kind == "general" and len(all_values) == 2:  # few interchanges, after good columns
            diagonal = np.full(a.shape[0], 2.0 * a.shape[0])
            diagonal[24::90] = 1e-3 - a.diagonal()[24::90]
            a += sp.diags_array(diagonal)
        all_values.append(analysis.matching_pattern(frontal.matrix.canonical.canonical(a)).data)
    if kind == "spd":
        all_values[1][analysis.plan.source[::7]] *= -1  # fails
    symbolic = analysis.symbolic
    method = {"indefinite": LDLT, "signed": SIGNED_LDLH}.get(kind, symbolic.method)
    return replace(symbolic, method=method), all_values


def run(device, name, kind, anew=False, least=False):
    """All numbers of factorizations and solves, one after the other, or each of them anew.

    In the `least` memory a factor has many segments.
    """
    symbolic, all_values = case(name, kind)
    plan, backend, factor, told = gathered(symbolic.plan), GpuBackend(symbolic, device), None, []
    rng = np.random.default_rng(3)
    for turn in (0, 1, 2) if kind == "spd" else (0, 2):
        if factor is None or anew:
            factor = None
            backend.pattern = DevicePattern(device, plan, symbolic.method, *orders(name))
            backend.entries = PatternEntries(symbolic, backend.pattern)
        memory = least_of(backend) if least else "device"
        given = {"tiny": TINY, "previous": factor, "memory": memory}
        try:
            factor = backend.factorize(all_values[turn].copy(), None, **given)
        except PivotFailure as failure:
            assert turn == 1
            told.append(np.array(failure.position))
            continue
        told += [factor.to_host().panels, factor.pivots, np.array(factor.perturbed)]
        told += [factor.subdiagonal(), factor.unstable_pivots]
        for transposed in (False, kind == "general"):
            x = rng.standard_normal((int(plan.start[-1]), 2))
            if anew:
                factor.storage.solver = None
            factor.sweep(x, transposed)
            told.append(x)
        # what one solve leaves would be messages of another, of other widths
        messages = factor.storage.solver._messages[-1]
        for begin, end in messages._in_use:
            messages.sent[1][begin:end] = 0xFF
        free = messages.sent[0], messages.of_rows, messages.sent[2]
        assert all((sent == 0xFF).all() for sent in free)
    return told


@cache
def reference(name, kind, *_):
    """The same with one block after another, and nothing left of what was before."""
    return run(EmulatedDevice(), name, kind, True)


@pytest.fixture(autouse=True)
def tight(monkeypatch):
    """Places are taken as early as ever."""
    monkeypatch.setattr(schedules, "_EPOCH", 1)
    monkeypatch.setattr(schedules, "_GROUP", 1)
    monkeypatch.setattr(schedules, "_MAX_CHAINED_LEVELS", 1000)
    monkeypatch.setattr(schedules, "_MAX_CHAINED_WITH_PIVOTS", 1000)
    monkeypatch.setattr(schedules, "_MIN_SAVED_LEVELS", 0)
    monkeypatch.setattr(interval_packing, "SLACK", 0)
    monkeypatch.setattr(panels, "_SLACK", interval_packing.NO_SLACK)
    reference.cache_clear()


@pytest.fixture(scope="module")
def device():
    return InterleavedDevice()


def least_of(backend):
    with pytest.raises(FactorMemoryError) as error:
        backend.memory(np.dtype("f8"), np.dtype("f8"), 1, 0)
    return error.value.required


def check(device, name, kind, schedule, *variant, least=False):
    wanted = reference(name, kind, *variant)
    device.use(*schedule)
    for found, number in zip(run(device, name, kind, least=least), wanted, strict=True):
        np.testing.assert_array_equal(found, number)
    assert all(np.isfinite(number).all() for number in wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ["tree", "small", "wide", "chains"])
def test_many_fronts(device, monkeypatch, name, schedule, kind):
    monkeypatch.setattr(solves, "_SMALL_ENTRIES", CASES[name][2])
    monkeypatch.setattr(solves, "_WARPS", 0)
    check(device, name, kind, schedule)


@pytest.mark.parametrize("name", ["tiles", "small"])
def test_signed_pivots(device, name):
    check(device, name, "signed", SCHEDULES[0])


def test_segments(device, monkeypatch):
    """One after another, with the same numbers as all at once."""
    monkeypatch.setattr(solves, "_SMALL_ENTRIES", CASES["small"][2])
    monkeypatch.setattr(solves, "_WARPS", 0)
    check(device, "small", "indefinite", SCHEDULES[2], least=True)


@pytest.mark.parametrize(
    ("kind", "few"),
    [("spd", 512), ("spd", 0), ("general", 512), ("general", 0), ("indefinite", 0)],
)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fronts_of_several_tiles(device, monkeypatch, schedule, kind, few):
    """With last diagonal tiles that others follow, and without."""
    monkeypatch.setattr(schedules, "_MAX_FOLLOWED_FRONTS", few)
    monkeypatch.setattr(solves, "_MAX_SUMMED_TILES", 1)
    check(device, "tiles", kind, schedule, few)
