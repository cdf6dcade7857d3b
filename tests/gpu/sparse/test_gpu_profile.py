"""Where the time of a factorization goes, on the emulated device and on a real one."""

import numpy as np
import pytest

import frontal
from frontal import problems
from frontal.gpu.sparse.factorize.profile import profile
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.symbolic.plan import front_flops


@pytest.mark.parametrize("limit", [0, 32])
@pytest.mark.parametrize("kind", ["spd", "general"])
def test_levels_and_classes_hold_every_front_once(device, kind, limit):
    a = problems.poisson3d(6)
    analysis = frontal.analyze(a, kind=kind)
    values = analysis.matching_pattern(frontal.matrix.canonical.canonical(a)).data
    pattern = DevicePattern(device, analysis.plan, analysis.symbolic.method, limit, 1)
    found = profile(pattern, device.upload(values), 1e-8)
    flops = front_flops(analysis.plan.start, analysis.plan.pointer).sum()
    for rows in (found.levels, found.classes):
        assert sum(row.fronts for row in rows) == analysis.n_fronts
        total = sum(row.flops for row in rows)
        np.testing.assert_allclose(total, flops * (1 if kind == "spd" else 2))
        assert all(row.bandwidth_floor > 0 for row in rows)
    assert found.total > 0
    assert min(found.ceilings.values()) > 0
