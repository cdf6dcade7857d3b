"""Kernels on devices with less shared memory: 64 KB a block of sm_75, 99 KB of sm_86 and others."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from frontal import problems
from frontal.gpu.dense.launch import cholesky, lu, products
from frontal.gpu.dense.potrf import potrf
from frontal.gpu.runtime.limits import Limits
from frontal.gpu.sparse import launch
from frontal.numeric.method import CHOLESKY, LDLH, LDLT, LU

from ...emulation.borders import DTYPES, eps
from ...matrices import dominant_dense, unsymmetric_front, with_phases
from ..dense.test_gpu_potrf import run
from .indefinite_tools import factored, product
from .test_gpu_fronts import check_solutions, factors

KB = 1 << 10
SMALL = {
    "sm_75": Limits(4, 64 * KB, 64 * KB, (7, 5), threads=1024),
    "sm_86": Limits(4, 99 * KB, 100 * KB, (8, 6), threads=1536),
}
OWN = 1024  # bytes of shared memory that CUDA takes, or kernels declare


def smaller(device, name):
    """A device that tells of fewer bytes than it has."""
    found = copy.copy(device)
    found.limits = replace(SMALL[name], multiprocessors=device.limits.multiprocessors)
    found._kernels = {}
    return found


def sparse_launches(dtype, limits):
    for method in (CHOLESKY, LDLT, LDLH, LU):
        yield launch.front_tiles(dtype, method, limits)
        order = launch.small_order(method, limits)
        counts = [(64, 0, 0), (0, 64, 0), (0, 0, 64)][(64, 32, 16).index(order) :]
        for count in counts:
            yield from launch.small_fronts(dtype, method, count, limits)
    for width in (1, 2, 4, 8):
        width = launch.solve_width(dtype, width)
        yield launch.front_solve(dtype, width, limits)
        yield launch.front_solve_small(dtype, width, limits)


def dense_launches(dtype, limits):
    numbers = cholesky.PotrfTuning()
    for n in (20, 33, 64, 96, 100, 3000, 20000):
        for count in (1, 1000):
            yield from cholesky.potrf(np.full(count, n), dtype, limits, numbers)
    for width in (None, 16, 64):
        for left in (False, True):
            of = np.full(1000, 100), left, dtype, limits, products.TrsmTuning(), width
            yield from (products.trsm(order, *of) for order in (32, 500))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SMALL)
def test_all_launches_fit(name, dtype):
    limits = SMALL[name]
    shared = [plan.shared for plan in sparse_launches(dtype, limits)]
    shared += [plan.shared for plan in dense_launches(dtype, limits)]
    shared.append(products.trtri(100, dtype, limits)[2] - OWN)  # declares none itself
    shared.append(lu.getrf_update(dtype).shared)
    for side in (10, 30, 100, 5000):
        numbers = products.GemmTuning(tall=1024)
        tile = products.product_tile(side, side, 10**9, dtype, limits, numbers)
        shared.append(tile.shared(dtype) - OWN)
    assert max(shared) + OWN <= limits.shared_block


@pytest.mark.parametrize(("name", "dtype"), [("sm_75", "f8"), ("sm_86", "c16")])
def test_cholesky(device, name, dtype):
    a = with_phases(dominant_dense(150), dtype)
    a += sp.diags_array(np.arange(150.0)).astype(dtype)
    analysis, _, gpu = factors(smaller(device, name), sp.csc_array(a), small=0)
    check_solutions(analysis, sp.csc_array(a), gpu)


def test_lu(device):
    a = unsymmetric_front("dense", "c16")
    analysis, _, gpu = factors(smaller(device, "sm_75"), a, "general", 1e-3, 64)
    check_solutions(analysis, a, gpu)


def test_ldl(device):
    a = with_phases(problems.poisson2d(12) - 2 * sp.eye_array(144), "c16", LDLT)
    factor = factored(smaller(device, "sm_86"), a, LDLT, small=0)
    found, size = product(factor)
    perm = factor.symbolic.perm
    error = np.abs(found - a.toarray()[np.ix_(perm, perm)])
    assert (error <= 300 * eps("c16") * (size + size.max())).all()


@pytest.mark.parametrize(("name", "dtype"), [("sm_75", "c16"), ("sm_86", "f8")])
def test_dense_cholesky(device, name, dtype):
    run(smaller(device, name), "vbatched", [130, 70, 5], dtype, "L", "tiles", potrf)
