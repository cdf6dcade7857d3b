"""Matrix-vector products on the device against NumPy."""

import numpy as np
import pytest

from frontal.gpu.dense import launch
from frontal.gpu.dense.gemv import gemv
from frontal.gpu.dense.operands import MatrixBatch
from frontal.gpu.runtime.limits import H200

from ...emulation.borders import DTYPES, SIZES, WRAPPERS, Frame, eps, mixed_sizes, op, random

VARIANTS = ("big-tile", "classic", None)


def scalars(dtype):
    return (1.5 - 0.5j, -0.5 + 2j) if np.dtype(dtype).kind == "c" else (1.5, -0.5)


def check(device, wrapper, shapes, dtype, trans, variant=None, beta=None, extra=3):
    """Compute, and compare each entry with its error bound."""
    rng = np.random.default_rng(len(shapes) + sum(map(sum, shapes)))
    alpha, default = scalars(dtype)
    beta = default if beta is None else beta
    a = [random(rng, shape, dtype) for shape in shapes]
    x = [random(rng, (op(b, trans).shape[1], 1), dtype) for b in a]
    y = [random(rng, (op(b, trans).shape[0], 1), dtype) for b in a]
    if beta == 0:
        y = [np.full_like(v, np.nan) for v in y]
    frames = [Frame(device, v, wrapper, extra) for v in (a, x, y)]
    gemv(trans, alpha, frames[0].batch, frames[1].batch, beta, frames[2].batch, variant)
    for before, after in zip((a, x), frames[:2], strict=True):
        assert all(map(np.array_equal, before, after.matrices()))
    for matrix, vector, old, found in zip(a, x, y, frames[2].matrices(), strict=True):
        wide = np.promote_types(dtype, "f8")
        old = old.astype(wide) if beta else np.zeros(old.shape, wide)
        wanted = alpha * (op(matrix, trans).astype(wide) @ vector) + beta * old
        scale = abs(alpha) * (abs(op(matrix, trans)) @ abs(vector)) + abs(beta) * abs(old)
        bound = 2 * (max(matrix.shape) + 4) * eps(dtype) * scale
        assert (abs(found - wanted) <= bound).all(), (matrix.shape, abs(found - wanted).max())


@pytest.mark.parametrize("trans", "NTC")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_square(device, wrapper, dtype, trans):
    if wrapper == "vbatched":
        sizes = mixed_sizes(np.random.default_rng(0))
        check(device, wrapper, [(n, n) for n in sizes], dtype, trans)
        return
    for n in SIZES:
        check(device, wrapper, [(n, n)] * (1 if wrapper == "native" else 3), dtype, trans)


@pytest.mark.parametrize("trans", "NT")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_rectangular(device, variant, dtype, trans):
    shapes = [(0, 5), (5, 0), (1, 300), (300, 1), (3, 130), (130, 3), (257, 66), (66, 257)]
    check(device, "vbatched", shapes, dtype, trans, variant)
    for shape in shapes:
        check(device, "native", [shape], dtype, trans, variant)
    check(device, "batched", [(129, 65)] * 3, dtype, trans, variant)


@pytest.mark.parametrize("trans", "NT")
@pytest.mark.parametrize("extra", range(5))
def test_any_alignment_of_columns(device, extra, trans):
    for m in (200, 513):
        check(device, "native", [(m, 37)], "f8", trans, extra=extra)
        check(device, "vbatched", [(m, 37), (m + 1, 36), (m + 2, 7)], "f4", trans, extra=extra)


@pytest.mark.parametrize("trans", "NT")
@pytest.mark.parametrize("shape", [(1100, 140), (140, 1100), (600, 600), (40, 20000)])
def test_sums_that_several_tiles_make(device, shape, trans):
    check(device, "native", [shape], "f8", trans, "classic")
    check(device, "batched", [shape] * 2, "f8", trans, "classic")
    check(device, "vbatched", [shape, (5, 7), shape], "c8", trans, "classic")


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("shape", [(1024, 1024), (128, 100000), (100000, 128), (16384, 16384)])
def test_one_matrix_is_for_all_multiprocessors(shape, trans):
    plan = launch.vectors.gemv(trans, *shape, 8, 1, H200, launch.vectors.GemvTuning())
    tiles = -(-shape[0] // plan.tile_m) * -(-shape[1] // plan.tile_n)
    assert tiles >= H200.multiprocessors


@pytest.mark.parametrize("trans", "NT")
@pytest.mark.parametrize("unroll", [2, 8])
def test_other_numbers_of_reads_under_way(device, monkeypatch, unroll, trans):
    numbers = launch.vectors.GemvTuning(unroll=unroll)
    monkeypatch.setattr(launch, "tuning", lambda *_: numbers)
    for variant in VARIANTS[:2]:
        check(device, "vbatched", [(130, 65), (31, 17), (5, 200)], "f8", trans, variant)
        check(device, "batched", [(70, 40)] * 3, "c8", trans, variant)


@pytest.mark.parametrize("trans", "NT")
def test_y_is_not_read_for_beta_zero(device, trans):
    for wrapper in ("native", "vbatched"):
        check(device, wrapper, [(70, 33)], "f8", trans, beta=0)
    check(device, "native", [(900, 90)], "f8", trans, "classic", beta=0)


@pytest.mark.parametrize("trans", "NT")
def test_a_is_not_read_for_alpha_zero(device, trans):
    a, x, y = (
        Frame(device, [v], "native") for v in (np.full((9, 9), np.nan), *2 * [np.ones((9, 1))])
    )
    gemv(trans, 0, a.batch, x.batch, 3, y.batch)
    assert (y.matrices()[0] == 3).all()


@pytest.mark.parametrize("trans", "NT")
def test_infinity_stays_in_its_row(device, trans):
    a = np.ones((65, 35))
    a[64, 34] = np.inf
    x = np.ones((35 if trans == "N" else 65, 1))
    y = Frame(device, [np.zeros((a.shape[trans == "T"], 1))], "native")
    frames = [Frame(device, [v], "native") for v in (a, x)]
    gemv(trans, 1, frames[0].batch, frames[1].batch, 0, y.batch)
    (found,) = y.matrices()
    assert np.isinf(found[-1])
    assert np.isfinite(found[:-1]).all()


@pytest.mark.parametrize("trans", "NT")
@pytest.mark.parametrize("variant", VARIANTS[:2])
def test_bitwise_reproducible(device, variant, trans):
    rng = np.random.default_rng(3)
    a, x = (
        Frame(device, [random(rng, (500, 500), "f8")]),
        Frame(device, [random(rng, (500, 1), "f8")]),
    )
    results = []
    for _ in range(2):
        y = Frame(device, [np.zeros((500, 1))])
        gemv(trans, 1, a.batch, x.batch, 0, y.batch, variant)
        results.append(y.matrices()[0])
    assert np.array_equal(*results)


def test_operands_that_do_not_fit_are_refused(device):
    a, x, y = (Frame(device, [np.zeros(s)], "native").batch for s in ((3, 2), (2, 1), (3, 1)))
    gemv("N", 1, a, x, 0, y)
    with pytest.raises(ValueError, match="x must have one column"):
        gemv("T", 1, a, x, 0, y)
    with pytest.raises(ValueError, match="trans must be"):
        gemv("n", 1, a, x, 0, y)
    other = Frame(device, [np.zeros((2, 1))], "vbatched").batch
    with pytest.raises(ValueError, match="x is vbatched"):
        gemv("N", 1, a, other, 0, y)
    assert isinstance(a, MatrixBatch)


@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("item", [4, 8, 16])
@pytest.mark.parametrize("count", [1, 1000])
def test_launches_are_possible(trans, item, count):
    numbers = launch.vectors.GemvTuning()
    for rows in (1, 2, 8, 31, 64, 129, 1000, 16384):
        for columns in (1, 3, 16, 33, 100, 1024, 16384):
            for variant in VARIANTS:
                plan = launch.vectors.gemv(
                    trans, rows, columns, item, count, H200, numbers, variant
                )
                threads = plan.x * plan.y
                assert 32 <= threads * plan.z <= 256
                assert plan.z == 1 or threads == 32
                assert plan.shared in (0, 16 * threads * plan.z)
                assert min(plan.tile_m, plan.tile_n) >= 32
                if trans:
                    assert plan.x in (4, 8, 16, 32)
                    assert threads % 32 == 0
