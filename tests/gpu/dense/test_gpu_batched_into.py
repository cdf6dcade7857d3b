"""What the public batched functions leave alone, and what they cost: copies, launches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg

from frontal.gpu.dense import batched, potrf
from frontal.gpu.dense.lists import Batch, described
from frontal.gpu.dense.operands import SourceBatch

from ...emulation.borders import eps
from .batched_tools import Gpu, close, each, matrices, numbers, one

ORDERS = ("C", "F", "strided")


def put(gpu: Gpu, a: Any, order: str) -> Any:
    """Arrays of a memory order; strided ones lie in larger memory, with neither side contiguous."""
    if isinstance(a, list):
        return [put(gpu, x, order) for x in a]
    if order != "strided":
        return gpu.put(a, order)
    wide = np.zeros((*a.shape[:-1], 2 * a.shape[-1]), a.dtype)
    wide[..., ::2] = a
    held: Any = gpu.put(wide)
    return held[..., ::2]


def stack(n, dtype, count=3, definite=True):
    return np.stack([one(n, None, dtype, definite, seed) for seed in range(count)])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("n", [1, 7, 16, 30, 90, 130])
def test_cholesky_reads_any_order_and_clears(gpu, n, dtype, lower, order):
    a = stack(n, dtype)
    given = put(gpu, a, order)
    found = gpu.get(batched.cholesky(given, lower=lower))
    np.testing.assert_array_equal(gpu.get(given), a)
    for x, y in zip(found, a, strict=True):
        assert not (np.triu(x, 1) if lower else np.tril(x, -1)).any()
        product = x @ x.conj().T if lower else x.conj().T @ x
        assert np.linalg.norm(product - y) <= 20 * n * eps(dtype) * np.linalg.norm(y)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("variant", ["tiny", "shared", "tiles", "tasks"])
def test_cholesky_of_every_kernel_elsewhere(device, variant, turned, uplo, dtype):
    sizes = [8, 1, 20, 31] if variant == "tiny" else [65, 9, 33] + [140] * (variant != "shared")
    a = [one(n, None, np.dtype(dtype), True, n) for n in sizes]
    # in the triangle that is not read
    wrong = [np.triu(np.full(x.shape, np.nan, dtype), 1) for x in a]
    given = [x + (y if uplo == "L" else y.T) for x, y in zip(a, wrong, strict=True)]
    held = [device.upload(x if turned else x.T).T for x in given]
    out = [device.upload(np.full(x.shape, np.nan, x.dtype)).T for x in a]
    batches = [described(Batch.from_list("a", x, device), device) for x in (held, out)]
    info = device.upload(np.full(len(a), -1, np.int32))
    potrf.potrf(batches[1], info, uplo, variant, SourceBatch(batches[0], turned))
    assert not device.download(info).any()
    for x, y in zip(out, a, strict=True):
        close(device.download(x), scipy.linalg.cholesky(y, lower=uplo == "L"))


@pytest.mark.parametrize("kind", ["matrix", "stack", "list"])
@pytest.mark.parametrize("order", "CF")
def test_products_lie_as_what_is_multiplied(gpu, kind, order):
    """Rows give rows, columns columns, the first time and when launches are known."""
    a, b = (matrices(kind, np.complex128, columns=n, seed=n) for n in (5, 9))
    tall, wide = (put(gpu, x, order) for x in (a, turned(b)))
    for _ in range(3):
        found = batched.gemm(1.0, turned(tall), turned(wide))  # by their transposes: the other way
        for x, y, z in each(found, a, b):
            close(gpu.get(x), y.T @ z)
            if min(x.shape) > 1:
                assert x.flags.f_contiguous == (order == "C")
                assert x.flags.c_contiguous == (order == "F")


def turned(x):
    return [y.T for y in x] if isinstance(x, list) else x.swapaxes(-1, -2)


@pytest.mark.parametrize("order", "CF")
def test_overwriting_clears_too(gpu, order):
    a = stack(40, np.float64)
    given = gpu.put(a, order)
    c = batched.cholesky(given, lower=True, overwrite_a=True)
    for x, y in each(gpu.get(c), a):
        close(x, np.linalg.cholesky(y))
    assert (gpu.device.pointer(c) == gpu.device.pointer(given)) is (order == "F")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 7), (9, 20), (20, 9), (40, 60), (70, 30), (130, 70)])
def test_lu_reads_any_order(gpu, shape, dtype, order):
    a = np.stack([numbers(shape, dtype, seed) for seed in range(3)])
    given = put(gpu, a, order)
    lu, pivots = map(gpu.get, batched.lu_factor(given))
    np.testing.assert_array_equal(gpu.get(given), a)
    for x, p, y in zip(lu, pivots, a, strict=True):
        wanted, piv = scipy.linalg.lu_factor(y)
        np.testing.assert_array_equal(p, piv)
        close(x, wanted, 10)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
@pytest.mark.parametrize("n", [5, 32, 33, 80])
def test_inverses_read_any_order(gpu, n, dtype, order):
    a = stack(n, dtype, definite=False)
    a[1][:, n // 2] = 0
    given = put(gpu, a, order)
    found, info = map(gpu.get, batched.inv(given, check=False))
    assert info.tolist() == [0, n // 2 + 1, 0]
    np.testing.assert_array_equal(gpu.get(given), a)
    for i in (0, 2):
        wanted = np.linalg.inv(a[i])
        close(found[i], wanted, np.abs(wanted).max() * n)


@pytest.mark.parametrize("order", ORDERS)
def test_factorizations_of_lists_read_any_order(gpu, order):
    a = matrices("list", np.complex64, definite=True)
    given = put(gpu, a, order)
    found = [gpu.get(x) for x in (batched.lu_factor(given)[0], batched.inv(given))]
    for c, lu, inverse, x in each(gpu.get(batched.cholesky(given, lower=True)), *found, a):
        close(c, np.linalg.cholesky(x) if x.size else x)
        close(lu, scipy.linalg.lu_factor(x)[0] if x.size else x)
        close(inverse, np.linalg.inv(x), 1e3)
    for x, y in each(gpu.get(given), a):
        np.testing.assert_array_equal(x, y)
