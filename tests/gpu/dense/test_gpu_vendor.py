"""What is left to cuBLAS and cuSOLVER, for which an emulation stands where they are not."""

import ctypes
import itertools
from functools import partial

import numpy as np
import pytest

from frontal.gpu.dense import blas3, launch, vendor

from ...emulation.borders import DTYPES
from .test_gpu_blas3 import check_gemm, check_herk


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", ["N", "T", "C"])
def test_one_large_product_by_the_vendor(device, dtype, trans, monkeypatch):
    if not device.cuda:
        pytest.skip("the vendor's library is not emulated")
    monkeypatch.setattr(launch, "tuning", lambda *_: launch.products.GemmTuning(vendor=1))
    check_gemm(device, dtype, "native", [(65, 33, 48)], (trans, "N"))
    check_gemm(device, dtype, "native", [(65, 33, 48)], ("N", trans))
    for uplo, conjugate in itertools.product("LU", (True, False)):
        if trans == "T" and conjugate and np.dtype(dtype).kind == "c":
            continue  # no such product
        check_herk(device, dtype, "native", [(65, 33)], uplo, trans, conjugate=conjugate)


class Library:
    """Products of stacks in the place of cuBLAS, from addresses, sizes and strides."""

    def __getattr__(self, name):
        letters = {f"{x}gemmStridedBatched": y for x, y in zip("sdcz", DTYPES, strict=True)}
        return partial(self._product, np.dtype(letters[name]))

    def get_cublas_handle(self):
        return "handle"

    def _product(self, dtype, handle, ta, tb, m, n, k, *places):
        assert handle == "handle"
        alpha, a, lda, step_a, b, ldb, step_b, beta, c, ldc, step_c, count = places
        a, b = (
            stacked(dtype, x, ld, step, count, (columns, rows) if t else (rows, columns))
            for x, ld, step, t, rows, columns in (
                (a, lda, step_a, ta, m, k),
                (b, ldb, step_b, tb, k, n),
            )
        )
        a, b = ((x, x.swapaxes(1, 2), x.conj().swapaxes(1, 2))[t] for x, t in ((a, ta), (b, tb)))
        alpha, beta = (stacked(dtype, x, 1, 1, 1, (1, 1))[0, 0, 0] for x in (alpha, beta))
        c = stacked(dtype, c, ldc, step_c, count, (m, n))
        c[...] = alpha * (a @ b) + (beta * c if beta else 0)


def stacked(dtype, address, ld, step, count, shape):
    """Matrices by columns, in memory at an address."""
    (m, n), size = shape, dtype.itemsize
    extent = ((count - 1) * step + (n - 1) * ld + m) * size
    memory = (ctypes.c_char * extent).from_address(address)
    return np.ndarray((count, m, n), dtype, memory, 0, (step * size, size, ld * size))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", ["N", "T", "C"])
def test_products_of_stacks_by_the_vendor(device, dtype, trans, monkeypatch):
    if not device.cuda:
        made = object.__new__(vendor.Vendor)
        made._cublas = made._handles = Library()
        monkeypatch.setattr(blas3, "vendor_of", lambda _: made)
    together = 4000 * (4 if np.dtype(dtype).kind == "c" else 1)  # in whole tiles
    numbers = launch.products.GemmTuning(vendor=9999, stacks=1, together=together)
    monkeypatch.setattr(launch, "tuning", lambda *_: numbers)
    left, calls = vendor.Vendor.gemm_of_stacks, []
    monkeypatch.setattr(
        vendor.Vendor,
        "gemm_of_stacks",
        lambda *of, **more: calls.append(left(*of, **more)) or calls[-1],
    )
    for sizes in ([(7, 5, 6)] * 3, [(1, 20, 10)] * 2):
        for both in {(trans, "N"), ("N", trans)}:
            check_gemm(device, dtype, "batched", sizes, both, stacked=True)
    check_gemm(device, dtype, "vbatched", [(7, 5, 6), (3, 2, 1)], (trans, "N"), stacked=True)
    check_gemm(device, dtype, "batched", [(7, 5, 5)] * 2, stacked=True)
    assert calls == [True] * (len(calls) - 2) + [False] * 2
