"""Random hard systems: none is answered wrong without a word, none refused without a reason."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.trust import count


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no reference in long double")
@pytest.mark.parametrize("seed", [1, 2])
def test_no_system_breaks_a_rule(seed):
    record = count.run(seed, range(170), "cpu")
    assert record["offenders"] == []
    counts = record["counts"]
    assert min(counts[k] for k in ("solved", "warned", "refused", "inertia equal")) > 5
    assert counts["false alarm"] <= 3


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no reference in long double")
@pytest.mark.parametrize(
    ("seed", "number"),
    [
        *[(3, 1490), (3, 2765), (5, 606), (5, 1660), (5, 15362), (5, 16756), (5, 18436)],
        *[(5, 14222), (6, 4853), (6, 7718), (8, 11843), (9, 3955)],
    ],
)
def test_systems_that_broke_one(seed, number):
    """Regular in a scaling that is not the factor's; ranks and inertias of single precision;
    warnings of small pivots that rounding has left as they should be."""
    record = count.run(seed, range(number, number + 1), "cpu")
    assert record["offenders"] == record["alarms"] == []


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no reference in long double")
def test_distance_from_singular_alone_shows_a_regular_matrix(monkeypatch):
    """In the scaling that is best for its null vectors, without a solve in other scalings."""
    monkeypatch.setattr("frontal.factor.nullspace._in_other_scalings", lambda *_: True)
    assert count.run(3, range(2765, 2766), "cpu")["offenders"] == []
