"""New values with other pivots: what solves have prepared of the old ones is renewed."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device

from ..conftest import scaled_residual
from ..matrices import bordered_pattern


def values(full, seed):
    return np.random.default_rng(seed).uniform(-1, 1, full.shape) * full


def test_solves_on_the_host_follow_the_pivots():
    check("cpu")


def test_solves_on_a_device_follow_the_pivots(device, monkeypatch):
    monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
    check("gpu")


def check(where):
    full = bordered_pattern((90, 20, 30, 10), 40)
    first, second = (sp.csc_array(values(full, seed)) for seed in (1, 2))
    analysis = frontal.analyze(first, kind="general", ordering="natural", backend=where)
    factor = analysis.factorize(first)
    seen = []
    for A in (first, second, first):
        if seen:
            factor.refactorize(A)
        seen.append(np.array(factor._numbers.factor.pivots))
        for trans, op in (("N", A), ("T", A.T)):
            for k in (1, 3):
                b = np.random.default_rng(k).standard_normal((190, k))
                assert scaled_residual(op, factor.solve(b, trans, refine=0), b) <= 1e-12
        assert scaled_residual(A, factor.solve(b), b) <= 1e-15
    assert (seen[0] != seen[1]).sum() > 20
    assert np.array_equal(seen[0], seen[2])
    assert factor.info["backend"] == where
    assert factor.info["perturbed_pivots"] == 0
