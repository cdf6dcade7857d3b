"""Right-hand sides: any layout and kind becomes one block, and the solution its shape and kind."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.errors import NonFiniteInputError
from frontal.machine.threads import columnwise
from frontal.matrix import canonical
from frontal.matrix.canonical import prepare_rhs, working_dtype

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def layouts():
    block = np.arange(15.0).reshape(5, 3)
    yield "vector", block[:, 0].copy()
    yield "strided vector", block[:, 1]
    yield "reversed vector", block[::-1, 1]
    yield "column", block[:, :1]
    yield "C block", block
    yield "F block", np.asfortranarray(block)
    yield "strided block", np.arange(60.0).reshape(10, 6)[::2, ::2]
    yield "no columns", np.zeros((5, 0))
    yield "list", [1, 2, 3, 4, 5]
    yield "bool", np.array([True, False, True, True, False])
    yield "integers", np.arange(5, dtype=np.int16)
    yield "half", np.arange(5, dtype=np.float16)
    yield "complex", np.arange(5) * 1j


@pytest.mark.parametrize(("n", "k"), [(5001, 3), (100_003, 7)])
def test_long_ones_by_rows_become_columns(n, k):
    b = np.random.default_rng(n).standard_normal((n, k))
    for given in b, np.frombuffer(b.tobytes()).reshape(n, k), (100 * b).astype(np.int16):
        B, _ = prepare_rhs(given, n, np.float64)
        assert B.flags.f_contiguous
        assert B.flags.writeable
        np.testing.assert_array_equal(B, given)


@pytest.mark.parametrize(("name", "b"), list(layouts()))
@pytest.mark.parametrize("dtype", DTYPES)
def test_right_hand_sides_keep_their_shape(name, b, dtype):
    B, restore = prepare_rhs(b, 5, dtype)
    dense = np.asarray(b)
    assert B.ndim == 2
    assert B.flags.f_contiguous
    assert B.dtype == working_dtype(np.result_type(dtype, dense.dtype), "b")
    x = restore(B)
    assert x.shape == dense.shape
    np.testing.assert_array_equal(x, dense)


@pytest.mark.parametrize("make", [sp.csc_array, sp.csc_matrix, sp.coo_array, sp.dok_matrix])
@pytest.mark.parametrize("columns", [1, 3])
def test_sparse_right_hand_sides_stay_sparse(make, columns):
    dense = np.tril(np.ones((5, columns)))
    B, restore = prepare_rhs(make(dense), 5, np.float64)
    x = restore(B)
    assert sp.issparse(x)
    assert x.format == "csc"
    assert isinstance(x, sp.sparray) == isinstance(make(dense), sp.sparray)
    np.testing.assert_array_equal(x.toarray(), dense)


def test_a_sparse_vector():
    B, restore = prepare_rhs(sp.coo_array(np.array([0, 1.0, 0])), 3, np.float64)
    assert B.shape == (3, 1)
    assert restore(B).shape == (3,)


@pytest.mark.parametrize("b", [np.ones(4), np.ones((1, 5)), np.ones((5, 2, 2)), 1.0])
def test_right_hand_sides_that_do_not_fit(b):
    with pytest.raises(ValueError, match=r"b has shape .* and the matrix \(5, 5\)"):
        prepare_rhs(b, 5, np.float64)


@pytest.mark.parametrize("b", [np.array([1, None]), np.array(["1", "2"]), None])
def test_right_hand_sides_that_are_no_numbers(b):
    with pytest.raises(TypeError):
        prepare_rhs(b, 2, np.float64)


def test_right_hand_sides_that_are_not_finite():
    with pytest.raises(NonFiniteInputError, match=r"b\[1\] is nan"):
        prepare_rhs([0, np.nan, np.inf], 3, np.float64)
    with pytest.raises(NonFiniteInputError, match=r"b\[0, 1\] is inf"):
        prepare_rhs([[0, np.inf], [0, 0]], 2, np.float32)
    assert np.isnan(prepare_rhs([np.nan], 1, float, check_finite=False)[0]).all()
    assert prepare_rhs(np.full(3, 1e308), 3, float)[0].shape == (3, 1)  # its sum is infinite


@pytest.mark.parametrize("code", ["g", "G"])
def test_long_double_is_refused(code):
    with pytest.raises(TypeError, match="b has dtype"):
        prepare_rhs(np.ones(3, code), 3, np.float64)


class OnDevice:
    """What lives on a device, as far as duck typing sees it."""

    __module__ = "cupy"

    def __init__(self, host):
        self.host = host

    def get(self):
        return self.host


def test_device_right_hand_sides_go_back(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(asarray=OnDevice))
    sparse = types.SimpleNamespace(csc_matrix=OnDevice)
    cupyx = types.SimpleNamespace(scipy=types.SimpleNamespace(sparse=sparse))
    monkeypatch.setitem(sys.modules, "cupyx", cupyx)
    B, restore = prepare_rhs(OnDevice(np.arange(3.0)), 3, np.float64)
    x = restore(B)
    assert isinstance(x, OnDevice)
    np.testing.assert_array_equal(x.host, np.arange(3.0))
    B, restore = prepare_rhs(OnDevice(sp.csc_matrix(np.eye(3))), 3, np.float64)
    assert sp.issparse(restore(B).host)


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
def test_solve_converts_right_hand_sides_once(form, monkeypatch):
    calls = []
    monkeypatch.setattr(canonical, "columnwise", lambda *args: calls.append(0) or columnwise(*args))
    A, X = frontal.problems.poisson2d(5), np.arange(50.0).reshape(25, 2)
    x = frontal.solve(A, form(A @ X))
    assert type(x) is (np.ndarray if form is np.ascontiguousarray else sp.csc_array)
    np.testing.assert_allclose(x if form is np.ascontiguousarray else x.toarray(), X, atol=1e-12)
    assert len(calls) == 1
