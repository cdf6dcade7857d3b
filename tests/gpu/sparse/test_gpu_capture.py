"""Solves that a caller captures into a CUDA graph of his own."""

import numpy as np
import pytest

import frontal

from ...emulation.traffic import OnDevice, put
from ...matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend")


@pytest.fixture
def emulated(device):
    """The device of the test where that is emulated."""
    if device.cuda:
        pytest.skip("needs a device that only says that it captures")
    return device


def test_what_a_captured_solve_would_copy_is_refused(emulated, monkeypatch):
    """The graph would read the copy when it is gone."""
    a = grid_system("spd", "f8")
    factor = frontal.factorize(a, backend="gpu")
    b = np.ones((81, 2))
    fits = put(emulated, b.T).T
    wanted = factor.solve(fits, refine=0)
    monkeypatch.setattr(emulated, "is_capturing", True, raising=False)
    with pytest.raises(ValueError, match="solve once for 8 right-hand sides before"):
        factor.solve(put(emulated, np.ones((8, 81))).T, refine=0)
    np.testing.assert_array_equal(factor.solve(fits, refine=0), wanted)
    for copied in (put(emulated, b), fits.astype("f4"), fits.astype("c16")):
        with pytest.raises(ValueError, match="a graph is being captured"):
            factor.solve(copied.view(OnDevice), refine=0)
