"""Replaced pivots keep their sign and phase: the smallest change of A that makes them pivots.

They are the last resort: on the device a part of the first factor, before columns move.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device
from frontal.backend.protocol import DelayFailure
from frontal.cpu.backend import CpuBackend
from frontal.gpu.sparse import backend as gpu_backend
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.matrix.canonical import canonical

from ..conftest import fronts_cost, scaled_residual

APART = -1.0  # seconds a front: the more the better
# far below what stands under them, in rows of other fronts
PIVOTS = [-1e-30, 1e-30, 1e-30j, 1e-30 * np.exp(2.5j), 0.0]


def systems(pivot, tied=False):
    """Three columns that meet in the later half of a dense block; two matrices of that pattern.

    The third has a pivot of 4 and the given one, as the second has where they are `tied`.
    """
    rng, n = np.random.default_rng(0), 43
    full = np.eye(n, dtype=bool)
    full[3:, 3:] = full[:3, 23:] = full[23:, :3] = True
    full[1:3, 1:3] |= tied
    a = rng.uniform(1, 2, (n, n)) + 20 * np.eye(n)
    column, row = np.nonzero(full.T)
    for entry in (4.0, pivot):
        values = a[row, column].astype(np.result_type(pivot))
        values[(row == 2) & (column == 2)] = entry
        if tied:
            values[(row == 1) & (column == 1)] = entry
            values[(row + column == 3) & (row > 0) & (column > 0)] = 0
        yield sp.csc_array((values, row, np.searchsorted(column, np.arange(n + 1))), shape=(n, n))


def analyzed(good, where, sizes):
    with fronts_cost(APART):
        analysis = frontal.analyze(good, kind="general", ordering="natural", backend=where)
    assert analysis.front_sizes()[0].tolist() == sizes
    return analysis


def solves(factor, bad):
    b = np.cos(np.arange(43.0))
    assert scaled_residual(bad, factor.solve(b), b) <= 1e-14


def keeps_its_phase(found, pivot, least):
    wanted = pivot / abs(pivot) if pivot else 1.0
    assert abs(found) > least
    np.testing.assert_allclose(found / abs(found), wanted, atol=1e-12)


@pytest.fixture
def cramped(monkeypatch):
    """No room for columns that are delayed."""
    factorize = CpuBackend.factorize

    def refused(self, *given, delaying, **more):
        if delaying:
            raise DelayFailure
        return factorize(self, *given, delaying=False, **more)

    monkeypatch.setattr(CpuBackend, "factorize", refused)


@pytest.mark.parametrize("pivot", PIVOTS)
def test_on_the_host(cramped, pivot):
    good, bad = systems(pivot)
    factor = analyzed(good, "cpu", [1, 1, 1, 20, 20]).factorize(bad)
    assert factor.info["perturbed_pivots"] == 1
    keeps_its_phase(factor.U.diagonal()[factor.perm_c[2]], pivot, 1e-13)
    solves(factor, bad)


@pytest.fixture
def on_device(device, monkeypatch):
    """Let the device of the test take fronts of up to so many rows whole, others by tiles."""

    def choose(small):
        monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
        monkeypatch.setattr(
            gpu_backend, "DevicePattern", partial(DevicePattern, small=small, fewest=1)
        )

    return choose


@pytest.mark.parametrize("pivot", PIVOTS)
@pytest.mark.parametrize("small", [0, 64])
def test_on_a_device(on_device, small, pivot):
    on_device(small)
    good, bad = systems(pivot)
    analysis = analyzed(good, "gpu", [1, 1, 1, 20, 20])
    first = analysis.engine.factorize(analysis.matching_pattern(canonical(bad)).data, None)
    assert first.perturbed == 1
    keeps_its_phase(first.diagonal()[2], pivot, 1e-15)
    check_moved(analysis.factorize(bad), bad)


def check_moved(factor, bad):
    """Columns are with others: no pivot is replaced any more."""
    assert factor.info["backend"] == "gpu"
    assert factor.info["perturbed_pivots"] == 0
    assert factor.analysis.amendments == 1
    solves(factor, bad)


def test_each_counts_on_the_host(cramped):
    good, bad = systems(0.0, tied=True)
    factor = analyzed(good, "cpu", [1, 2, 20, 20]).factorize(bad)
    assert factor.info["perturbed_pivots"] == 2
    solves(factor, bad)


@pytest.mark.parametrize("small", [0, 64])
def test_each_counts_on_a_device(on_device, small):
    on_device(small)
    good, bad = systems(0.0, tied=True)
    analysis = analyzed(good, "gpu", [1, 2, 20, 20])
    first = analysis.engine.factorize(analysis.matching_pattern(canonical(bad)).data, None)
    assert first.perturbed == first.unstable_pivots.size == 2
    check_moved(analysis.factorize(bad), bad)
