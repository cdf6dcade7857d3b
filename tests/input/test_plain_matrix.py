"""Matrices that need no conversion, checked in one compiled call."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from frontal.matrix.canonical import canonical
from frontal.matrix.plain import plain_matrix


@pytest.mark.parametrize("kind", ["auto", "general", "symmetric"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_plain_matrices_are_checked_as_all_others(dtype, kind):
    """The one compiled call finds the arrays, the method and the symmetry of the general path."""
    rng = np.random.default_rng(0)
    D = rng.standard_normal((9, 9)) * (rng.random((9, 9)) < 0.4) + 9 * np.eye(9)
    D = D + 1j * D if np.dtype(dtype).kind == "c" else D
    for S in (D + D.T, D + D.conj().T, D) if kind != "symmetric" else (D + D.T,):
        A = sp.csc_array(S.astype(dtype))
        found, expected = plain_matrix(A, kind, None), canonical(A, kind=kind)
        assert (found.method, found.hermitian) == (expected.method, expected.hermitian)
        for name in ("indptr", "indices", "data"):
            one, other = getattr(found, name), getattr(expected, name)
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)


def test_matrices_that_need_more_are_not_plain():
    """NaN, unsorted rows, corrupt indices, another type or format: the general path reports."""
    A = sp.csc_array([[2.0, 1.0], [1.0, 3.0]])
    assert plain_matrix(A, "auto", None) is not None
    others = [A.tocsr(), A.astype(int), sp.csc_array(np.ones((2, 3)))]
    for name, values in (
        ("data", [2.0, 1.0, np.nan, 3.0]),
        ("indices", [1, 0, 0, 1]),
        ("indices", [0, 2, 0, 1]),
        ("indptr", [0, 3, 4, 4]),
    ):
        B = A.copy()
        setattr(B, name, np.array(values, getattr(A, name).dtype))
        others.append(B)
    for B in others:
        assert plain_matrix(B, "auto", None) is None
    assert plain_matrix(A, "auto", np.dtype(np.float32)) is None
