"""The public batched module against NumPy and SciPy: every kind of input, type and option."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from frontal.errors import BatchError
from frontal.gpu.dense import batched, batched_solve

from .batched_tools import KINDS, close, each, matrices

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)


kinds = pytest.mark.parametrize("kind", KINDS)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda x: np.dtype(x).char)
orders = pytest.mark.parametrize("order", "CF")


# --- factorizations ----------------------------------------------------------------------------


@kinds
@dtypes
@pytest.mark.parametrize("lower", [False, True])
def test_cholesky(gpu, kind, dtype, lower):
    a = matrices(kind, dtype, definite=True)
    given = gpu.put(a)
    found = gpu.get(batched.cholesky(given, lower=lower))
    for c, x in each(found, a):
        wanted = scipy.linalg.cholesky(x, lower=lower) if x.size else x
        close(c, wanted)
        other = np.triu(c, 1) if lower else np.tril(c, -1)
        assert not other.any()
    for before, after in each(a, gpu.get(given)):
        np.testing.assert_array_equal(before, after)


@kinds
@dtypes
def test_lu_factor(gpu, kind, dtype):
    a = matrices(kind, dtype)
    lu, piv = map(gpu.get, batched.lu_factor(gpu.put(a)))
    for f, p, x in zip(*([y] if kind == "matrix" else list(y) for y in (lu, piv, a)), strict=True):
        assert p.dtype == np.int32
        if x.size:
            wanted, pivots = scipy.linalg.lu_factor(x)
            np.testing.assert_array_equal(p, pivots)
            close(f, wanted)


@kinds
@dtypes
def test_inverse(gpu, kind, dtype):
    a = matrices(kind, dtype)
    for x, y in each(gpu.get(batched.inv(gpu.put(a))), a):
        wanted = np.linalg.inv(y)
        close(x, wanted.astype(dtype), np.abs(wanted).max(initial=1.0) * max(len(y), 1))


# --- solving -----------------------------------------------------------------------------------


def right_hand_sides(kind, dtype, columns):
    b = matrices(kind, dtype, columns=columns or 1, seed=50)
    if columns:
        return b
    return [x[:, 0] for x in b] if kind == "list" else b[..., 0]


def check_solution(kind, x, a, b, trans=0):
    op = {0: lambda y: y, 1: lambda y: y.T, 2: lambda y: y.conj().T}[trans]
    whole = [x], [a], [b]
    for u, y, v in zip(*(whole if kind == "matrix" else (x, a, b)), strict=True):
        assert u.shape == v.shape
        assert u.dtype == v.dtype
        scale = np.linalg.norm(y) * np.linalg.norm(u) + np.linalg.norm(v)
        eps = np.finfo(u.dtype).eps
        assert np.linalg.norm(op(y) @ u - v) <= 20 * max(len(y), 1) * eps * scale


@kinds
@dtypes
@pytest.mark.parametrize("columns", [0, 3])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_solve(gpu, kind, dtype, columns, trans):
    a, b = matrices(kind, dtype), right_hand_sides(kind, dtype, columns)
    factors = batched.lu_factor(gpu.put(a))
    x = gpu.get(batched.lu_solve(factors, gpu.put(b), trans))
    check_solution(kind, x, a, b, trans)


@kinds
@dtypes
@pytest.mark.parametrize("columns", [0, 3])
@pytest.mark.parametrize("lower", [False, True])
def test_cho_solve(gpu, kind, dtype, columns, lower):
    a = matrices(kind, dtype, definite=True)
    b = right_hand_sides(kind, dtype, columns)
    c = batched.cholesky(gpu.put(a), lower)
    x = gpu.get(batched.cho_solve((c, lower), gpu.put(b)))
    check_solution(kind, x, a, b)


@kinds
@dtypes
@orders
@pytest.mark.parametrize("columns", [0, 3])
def test_solve(gpu, kind, dtype, order, columns):
    b = right_hand_sides(kind, dtype, columns)
    for assume in ("gen", "pos"):
        a = matrices(kind, dtype, definite=assume == "pos")
        given, right = gpu.put(a, order), gpu.put(b)
        x = gpu.get(batched_solve.solve(given, right, lower=columns == 0, assume_a=assume))
        check_solution(kind, x, a, b)
        for before, after in [*each(a, gpu.get(given)), *each(b, gpu.get(right))]:
            np.testing.assert_array_equal(before, after)


def test_systems_without_a_solution_are_named(gpu):
    a = np.stack([np.eye(3), np.diag([1.0, 0, 1]), -np.eye(3)])
    b = np.arange(9.0).reshape(3, 3)
    for assume, wanted in (("gen", [0, 2, 0]), ("pos", [0, 2, 1])):
        x, info = batched_solve.solve(gpu.put(a), gpu.put(b), check=False, assume_a=assume)
        assert gpu.get(info).tolist() == wanted
        np.testing.assert_array_equal(gpu.get(x)[0], b[0])
        with pytest.raises(BatchError) as error:
            batched_solve.solve(gpu.put(a), gpu.put(b), assume_a=assume)
        assert error.value.indices.tolist() == np.flatnonzero(wanted).tolist()
        np.testing.assert_array_equal(gpu.get(error.value.result)[0], b[0])
    with pytest.raises(ValueError, match="assume_a"):
        batched_solve.solve(gpu.put(a), gpu.put(b), assume_a="sym")


@kinds
@dtypes
@orders
@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize(("lower", "unit"), [(False, False), (True, True)])
def test_solve_triangular(gpu, kind, dtype, order, trans, lower, unit):
    a, b = matrices(kind, dtype), right_hand_sides(kind, dtype, 3)
    given = gpu.put(a, order)
    x = gpu.get(batched.solve_triangular(given, gpu.put(b), trans, lower, unit_diagonal=unit))

    def triangle(y):
        y = np.tril(y) if lower else np.triu(y)
        if unit:
            np.fill_diagonal(y, 1)
        return y

    a = triangle(a) if kind == "matrix" else [triangle(y) for y in a]
    check_solution(kind, x, a, b, trans)


# --- products ----------------------------------------------------------------------------------


OPS = {0: lambda x: x, 1: lambda x: x.swapaxes(-1, -2), 2: lambda x: x.conj().swapaxes(-1, -2)}


@kinds
@dtypes
@orders
@pytest.mark.parametrize(("ta", "tb"), [(0, 0), (1, 0), (0, 2), (2, 1)])
def test_gemm(gpu, kind, dtype, order, ta, tb):
    a, b = matrices(kind, dtype), matrices(kind, dtype, seed=20)
    c = matrices(kind, dtype, seed=40)
    found = gpu.get(batched.gemm(2.0, *(gpu.put(x, order) for x in (a, b)), trans_a=ta, trans_b=tb))
    for f, x, y in each(found, a, b):
        close(f, (2 * OPS[ta](x) @ OPS[tb](y)).astype(dtype))
    given = gpu.put(c, order)
    out = batched.gemm(1.0, gpu.put(a), gpu.put(b), -1.0, given, ta, tb, overwrite_c=True)
    for f, x, y, z in each(gpu.get(out), a, b, c):
        close(f, (OPS[ta](x) @ OPS[tb](y) - z).astype(dtype))
    if order == "F":
        for held, new in zip(*([y] if kind != "list" else y for y in (given, out)), strict=True):
            assert gpu.device.pointer(held) == gpu.device.pointer(new)


@kinds
@dtypes
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("trans", [0, 2])
def test_herk(gpu, kind, dtype, lower, trans):
    a = matrices(kind, dtype, columns=None if trans else 4)
    triangle = np.tril if lower else np.triu
    found = gpu.get(batched.herk(0.5, gpu.put(a, "CF"[lower]), trans=trans, lower=lower))
    for f, x in each(found, a):
        op = OPS[trans](x)
        close(f, triangle(0.5 * op @ op.conj().T).astype(dtype))
    c = matrices(kind, dtype, definite=True, seed=9)
    found = gpu.get(batched.herk(1.0, gpu.put(a), 2.0, gpu.put(c), trans, lower))
    for f, x, z in each(found, a, c):
        op = OPS[trans](x)
        other = np.triu(z, 1) if lower else np.tril(z, -1)
        close(f, (triangle(op @ op.conj().T + 2 * z) + other).astype(dtype))


@kinds
@dtypes
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_gemv(gpu, kind, dtype, trans):
    a, x, y = (matrices(kind, dtype, columns=c, seed=s) for c, s in ((None, 0), (1, 9), (1, 30)))
    x, y = ([v[:, 0] for v in w] if kind == "list" else w[..., 0] for w in (x, y))
    found = gpu.get(batched.gemv(1.5, gpu.put(a), gpu.put(x), 2.0, gpu.put(y), trans))
    alone = gpu.get(batched.gemv(1.5, gpu.put(a), gpu.put(x), trans=trans))
    whole = [[w] if kind == "matrix" else list(w) for w in (found, alone, a, x, y)]
    for f, g, m, u, v in zip(*whole, strict=True):
        close(f, (1.5 * OPS[trans](m) @ u + 2 * v).astype(dtype))
        close(g, (1.5 * OPS[trans](m) @ u).astype(dtype))
