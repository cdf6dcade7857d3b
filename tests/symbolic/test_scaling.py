"""Scaling of rows and columns, and the condition number of what is scaled, against dense NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from frontal.symbolic.equilibrate import exponents, modulus
from frontal.symbolic.scaling import equilibrate, scaled


def badly_scaled(n=60, seed=0, dtype=np.complex128):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.1) + np.eye(n)
    A = A * 10.0 ** rng.uniform(-30, 30, n) * 10.0 ** rng.uniform(-9, 9, (n, 1))
    return sp.csc_array((A * np.exp(1j * rng.uniform(-3, 3, (n, n)))).astype(dtype))


@pytest.mark.parametrize("start", [False, True])
def test_the_largest_entry_of_each_row_and_column_is_near_one(start):
    A = badly_scaled()
    rng = np.random.default_rng(1)
    begin = 10.0 ** rng.uniform(-20, 20, (2, 60)) if start else (None, None)
    row, column = equilibrate(A.indptr, A.indices, A.data, *begin)
    for scale in (row, column):
        assert np.array_equal(np.exp2(np.round(np.log2(scale))), scale)  # nothing is rounded
    dense = modulus(A.toarray() * row[:, None] * column)
    for axis in (0, 1):
        largest = dense.max(axis=axis)
        assert largest.min() >= 2**-0.5
        assert largest.max() <= 2**0.5
    S = sp.csc_array((scaled(A.indptr, A.indices, A.data, row, column), A.indices, A.indptr))
    assert np.array_equal(S.toarray(), A.toarray() * row[:, None] * column)


def test_rows_without_entries_keep_their_scale():
    A = sp.csc_array(np.array([[0.0, 0.0], [8.0, 0.0]]))
    row, column = equilibrate(A.indptr, A.indices, A.data)
    assert (row.tolist(), column.tolist()) == ([1.0, 0.125], [1.0, 1.0])


def test_exponents_of_all_kinds_of_numbers():
    ends = [5e-324, 3e-324 * 3, 1e-310, 2.2250738585072014e-308, 1e308, 1.7e308]
    middle = [np.sqrt(0.5), np.nextafter(np.sqrt(0.5), 0), 1, np.sqrt(2), 1.4142135623730954, 3]
    x = np.array(ends + middle)
    fraction, exponent = np.frexp(x)
    assert exponents(x).tolist() == (exponent - (fraction < np.sqrt(0.5))).tolist()
    assert exponents(np.array([0.0, np.inf, np.nan])).tolist() == [0, 0, 0]
