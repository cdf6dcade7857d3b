"""Triangular solves in registers: every kind, every instance of the kernel, B from elsewhere."""

import itertools

import numpy as np
import pytest

from frontal.gpu.dense import blas3, launch
from frontal.gpu.dense.lists import Batch as Listed
from frontal.gpu.dense.lists import described
from frontal.gpu.dense.operands import MatrixBatch, SourceBatch
from frontal.gpu.runtime.limits import H200, Limits

from ...emulation.borders import DTYPES, WRAPPERS, random, shapes
from .test_gpu_blas3 import ABOUTS, check_trsm, close, triangle

SIZES = [(30, 9), (8, 40), (17, 3), (1, 1), (0, 4), (5, 0), (32, 33), (24, 16)]


@pytest.mark.parametrize("about", ABOUTS, ids="".join)
def test_all_kinds(device, about):
    for dtype in ("f8", "c8") if about[2] == "C" else ("f8",):
        check_trsm(device, dtype, "vbatched", SIZES, about)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(("n", "k"), [(7, 3), (16, 12), (20, 40), (32, 1)])
def test_each_instance(device, dtype, wrapper, n, k):
    sizes = shapes(wrapper, [(n, k), (n - 3, k), (n, max(k - 2, 0)), (1, k), (0, k)])[::-1]
    check_trsm(device, dtype, wrapper, sizes, ("L", "U", "C", "N"))
    check_trsm(device, dtype, wrapper, sizes, ("R", "L", "N", "U"))


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize(("turned", "side"), [*itertools.product((False, True), "LR")])
def test_b_stays_where_it_is_elsewhere(device, wrapper, turned, side):
    rng = np.random.default_rng(2)
    sizes = shapes(wrapper, [(9, 20), (20, 5), (3, 3), (0, 2)])
    a = [np.tril(triangle(rng, n, "c16")) for n, _ in sizes]
    b = [random(rng, (n, k) if side == "L" else (k, n), "c16") for n, k in sizes]

    def batch(arrays):
        columns = [device.upload(x.T) for x in arrays]
        if wrapper == "vbatched":
            return described(Listed.from_list("a", [x.T for x in columns], device), device), columns
        stack = device.upload(np.stack([x.T for x in arrays])).swapaxes(-1, -2)
        return MatrixBatch.from_array(device, stack[0] if wrapper == "native" else stack), stack

    held, out = (
        batch([x.T for x in b] if turned else b),
        batch([np.full_like(x, np.nan) for x in b]),
    )
    triangles = batch(a)[0]
    blas3.trsm(side, "L", "C", "N", 1, triangles, out[0], source=SourceBatch(held[0], turned))
    for x, y, z in zip(a, b, out[1], strict=True):
        found = device.download(z).T if wrapper == "vbatched" else device.download(z)
        adjoint = x.conj().T
        wanted = np.linalg.solve(adjoint, y) if side == "L" else np.linalg.solve(adjoint.T, y.T).T
        close(found, wanted, len(x), "c16")
    for z, y in zip(held[1], b, strict=True):
        kept = device.download(z).T if wrapper == "vbatched" else device.download(z)
        np.testing.assert_array_equal(kept, y.T if turned else y)


def test_a_zero_on_the_diagonal_is_infinite(device):
    a, b = (
        MatrixBatch.from_array(device, device.xp.zeros((1, 1), order="F")),
        device.xp.ones((1, 1), order="F"),
    )
    blas3.trsm("L", "L", "N", "N", 1.0, a, MatrixBatch.from_array(device, b))
    assert np.isinf(device.download(b)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_launches_fit_on_any_device(dtype):
    for limits in (H200, Limits(30, 48 << 10, 64 << 10, (7, 5))):
        for order, rights in itertools.product((1, 8, 9, 24, 32), (1, 8, 9, 17, 200)):
            plan = launch.products.trsm_tiny(order, rights, dtype, limits)
            assert plan.shared <= limits.shared_block
            assert plan.width >= order
            assert plan.threads % plan.lanes == 0
