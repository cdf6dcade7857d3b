"""Real matrices: a small backward error, or an error that names the reason."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import frontal

from ..conftest import SHARED, scaled_residual

NAMES = sorted(path.name.removesuffix(".mtx.gz") for path in SHARED.glob("*.mtx.gz"))
SINGULAR = {"test_FW_2500", "Q2Q1_BigA", "kkt_CVXQP1_L_eq"}  # structurally, or by 1e-17
LARGE = {"ngs_poisson_jump_large"}


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LARGE] or ["none"])
def test_scaled_residual(shared_matrix, name):
    A = shared_matrix(name)
    n = A.shape[0]
    b = A @ np.random.default_rng(0).standard_normal(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", frontal.IllConditionedWarning)
        try:
            x, info = frontal.solve(A, b, return_info=True)
        except frontal.SingularMatrixError:
            if name in SINGULAR:
                return
            raise
    assert info.backward_error <= 1e-14
    assert scaled_residual(A, x, b) <= 1e-14
