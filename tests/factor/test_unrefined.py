"""Solutions of plain vectors without refinement, in one compiled call."""

from __future__ import annotations

import numpy as np
import pytest

import frontal
from frontal.errors import NonFiniteInputError

from ..conftest import TYPES
from ..matrices import dominant_system

KINDS = ["spd", "symmetric", "hermitian", "general"]


@pytest.fixture(autouse=True)
def from_the_first_call(monkeypatch):
    """Compiled calls are used from the first call on."""
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 0)
    monkeypatch.setattr("frontal.cpu.small.warmup.GENERAL_FACTORIZATIONS", 0)


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_unrefined_vectors_have_the_bits_of_others(kind, dtype, trans):
    A, b = dominant_system(40, kind, dtype, 0)
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    solver = factor._numbers.solver
    tiny, huge = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max) / 8
    for size, fast in ((1.0, True), (0.0, True), (tiny, False), (huge, False)):
        right = (size * b / np.abs(b).max()).astype(dtype)
        assert (solver.solve_unrefined(right, trans) is not None) == fast
        expected = solver.solve(right, trans, 0, None)[0]
        np.testing.assert_array_equal(factor.solve(right, trans, refine=0), expected)
    b[3] = np.nan
    with pytest.raises(NonFiniteInputError, match="b"):
        factor.solve(b, trans, refine=0)


def test_unrefined_vectors_leave_judged_ones_fast():
    A, b = dominant_system(40, "general", np.float64, 0)
    factor = frontal.factorize(A, backend="cpu")
    factor.solve(np.full(40, 1e300), refine=0)
    assert factor._numbers.solver.solve_fast(b, "N") is not None
