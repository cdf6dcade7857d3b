"""Fronts with next to no update rows, whose columns are solved for by fours."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal

from ..conftest import fronts_cost, scaled_residual


def band(n, wide, kind, dtype):
    """A matrix of this half bandwidth, whose diagonal is the largest of each row."""
    rng = np.random.default_rng(n)
    A = rng.standard_normal((n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        A += 1j * rng.standard_normal((n, n))
    A = A + {"general": 0 * A, "symmetric": A.T}.get(kind, A.conj().T)
    A = np.triu(np.tril(A, wide), -wide)
    np.fill_diagonal(A, 2 * (wide + 1) * (1 + np.abs(A).max()))
    return sp.csc_array(A.astype(dtype))


@pytest.mark.parametrize("kind", ["spd", "symmetric", "hermitian", "general"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_every_number_of_columns_and_few_update_rows(dtype, kind):
    sizes = set()
    for n in (*range(1, 14), 16, 30):
        for wide, seconds in ((0, 0.0), (1, 2e-9), (2, 3e-9), (3, 3e-9), (n, 1.0)):
            A = band(n, wide, kind, dtype)
            with fronts_cost(seconds):
                factor = frontal.factorize(A, kind=kind, ordering="natural", backend="cpu")
            k, m = factor.analysis.front_sizes()
            sizes |= set(zip(k.tolist(), m.tolist(), strict=True))
            b = np.arange(1, n + 1).astype(dtype)
            for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
                x = factor.solve(b, trans, refine=0)
                assert scaled_residual(op, x, b) < 8 * np.finfo(dtype).eps
    assert {(k, 0) for k in range(1, 14)} <= sizes
    assert all(any(k >= 4 and m == few for k, m in sizes) for few in (1, 2, 3)), sizes
