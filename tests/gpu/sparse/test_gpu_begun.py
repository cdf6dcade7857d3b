"""What is compiled ahead is what a first factorization and solve take."""

import numpy as np
import pytest

import frontal
from frontal.gpu.runtime import device as devices
from frontal.problems import convdiff3d, poisson3d

from ...emulation.compiling import COMPILER
from ...emulation.device import EmulatedDevice

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to emulate kernels with")


@pytest.mark.parametrize(("kind", "n"), [("spd", 6), ("general", 6)])
def test_all_that_is_needed_and_no_more(monkeypatch, kind, n):
    device = EmulatedDevice()
    monkeypatch.setattr(devices, "device_of", lambda array=None: device)
    a = poisson3d(n) if kind == "spd" else convdiff3d(n)
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    for _ in range(2):  # with a certificate, and without
        factor.solve(np.ones(a.shape[0]))
    used = {(file, *rest) for file, _, *rest in device._kernels}
    begun = set(device.begun)
    assert len(begun) == len(device.begun)
    # without a certificate of the condition number, probes would be solved for
    probes = {one for one in begun if one[0] == "condition.cu" or ("WIDTH", 4) in one[2]}
    assert begun - probes == used - probes
    assert used <= begun
