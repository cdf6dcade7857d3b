"""Tests of least-squares solutions by a factor on a GPU, beside the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import frontal

from ...least_squares.problems import random_block, with_singular_values


@pytest.mark.parametrize("shape", [(60, 40), (40, 60)])
def test_lstsq_gpu_equals_cpu(gpu_backend, shape):
    A, b = with_singular_values(*shape, np.geomspace(1, 1e-4, 40)), random_block((shape[0], 2))
    x, info = frontal.lstsq(A, b, backend="gpu", return_info=True)
    assert info.backend == "gpu"
    np.testing.assert_allclose(x, frontal.lstsq(A, b, backend="cpu"), rtol=1e-8, atol=1e-9)
    assert info.backward_error <= 1e-15
