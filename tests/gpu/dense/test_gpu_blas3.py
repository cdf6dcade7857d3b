"""Products and triangular solves of batches, against NumPy in double precision."""

import itertools

import numpy as np
import pytest

from frontal.gpu.dense import blas3, launch
from frontal.gpu.dense.operands import MatrixBatch, Submatrix
from frontal.gpu.dense.worklists import work_items
from frontal.gpu.runtime.limits import H200

from ...emulation.borders import DTYPES, SIZES, WRAPPERS, Frame, eps, op, random, shapes, wide

TRANS = ("N", "T", "C")


def scalars(dtype):
    return (0.5 - 0.25j, -1.5 + 1j) if np.dtype(dtype).kind == "c" else (0.5, -1.5)


def close(found, expected, depth, dtype, scale=1.0):
    error = np.abs(wide(found) - expected).max(initial=0.0)
    assert error <= 8 * (depth + 2) * eps(dtype) * scale * max(1.0, np.abs(expected).max(initial=0))


def stored(rng, m, n, trans, dtype):
    return random(rng, (m, n) if trans == "N" else (n, m), dtype)


def check_gemm(device, dtype, wrapper, sizes, transposes=("N", "N"), tile=None, **options):
    rng = np.random.default_rng(7)
    alpha, beta = scalars(dtype)
    alpha, beta = options.pop("alpha", alpha), options.pop("beta", beta)
    a, b, c = ([], [], [])
    for m, n, k in sizes:
        a.append(stored(rng, m, k, transposes[0], dtype))
        b.append(stored(rng, k, n, transposes[1], dtype))
        c.append(random(rng, (m, n), dtype))
        if beta == 0:
            c[-1][...] = np.nan
    frames = [
        Frame(device, x, wrapper, extra) for x, extra in zip((a, b, c), (3, 2, 1), strict=False)
    ]
    a_of, b_of, c_of = (frame.batch for frame in frames)
    blas3.gemm(*transposes, alpha, a_of, b_of, beta, c_of, tile=tile, **options)
    frames[0].matrices(), frames[1].matrices()
    for x, y, old, new in zip(a, b, c, frames[2].matrices(), strict=True):
        expected = alpha * (op(wide(x), transposes[0]) @ op(wide(y), transposes[1]))
        expected += beta * wide(old) if beta != 0 else 0
        close(new, expected, len(x) + x.size // max(len(x), 1), dtype)


def triples(sizes=SIZES, seed=1):
    rng = np.random.default_rng(seed)
    return list(
        zip(rng.permutation(sizes), rng.permutation(sizes), rng.permutation(sizes), strict=False)
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_gemm(device, dtype, wrapper):
    check_gemm(device, dtype, wrapper, shapes(wrapper, [(33, 65, 17), *triples()]))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tile", range(5))
def test_gemm_of_each_tile(device, dtype, tile):
    sizes = triples(SIZES[:11] if tile < 2 else SIZES)
    check_gemm(device, dtype, "vbatched", sizes, ("N", "C"), tile)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transposes", list(itertools.product(TRANS, TRANS)), ids="".join)
def test_gemm_of_transposes(device, dtype, transposes):
    if np.dtype(dtype).kind != "c" and "C" in transposes:
        pytest.skip("the same kernel as T")
    check_gemm(device, dtype, "vbatched", [(33, 20, 40), (16, 48, 8), (64, 33, 17)], transposes, 2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("alpha", [1, -1])
def test_gemm_adds_to_whole_tiles(device, dtype, alpha):
    for tile in (1, 2, 4) if dtype == "f8" else (2,):
        sizes = [(130, 129, 20), (64, 64, 0), (64, 32, 16)]
        check_gemm(device, dtype, "vbatched", sizes, ("N", "C"), tile, alpha=alpha)


@pytest.mark.parametrize("extra", [0, 1])
def test_gemm_of_aligned_and_odd_columns(device, extra):
    rng = np.random.default_rng(3)
    a, b, c = (random(rng, (64, 64), "f8") for _ in range(3))
    frames = [Frame(device, [x], "native", extra, pad=38) for x in (a, b, c)]
    blas3.gemm("N", "T", 1.0, frames[0].batch, frames[1].batch, 1.0, frames[2].batch, tile=4)
    close(frames[2].matrices()[0], c + a @ b.T, 64, "f8")


def test_gemm_without_beta_does_not_read_c(device):
    check_gemm(device, "f8", "batched", shapes("batched", [(17, 9, 5)]), beta=0)
    check_gemm(device, "c16", "vbatched", [(17, 9, 5), (40, 3, 0)], beta=0)


def test_gemm_without_alpha_scales(device):
    nan = np.full((3, 2), np.nan)
    a, b, c = (Frame(device, [x], "native") for x in (nan, nan[:2], np.ones((3, 2))))
    blas3.gemm("N", "N", 0.0, a.batch, b.batch, 3.0, c.batch)
    assert (c.matrices()[0] == 3).all()
    a, c = Frame(device, [nan], "native"), Frame(device, [np.ones((2, 2))], "native")
    blas3.herk("L", "C", 0.0, a.batch, 3.0, c.batch)
    assert (c.matrices()[0] == [[3, 1], [3, 3]]).all()


def test_gemm_of_parts_and_of_one_matrix_for_all(device):
    rng = np.random.default_rng(5)
    sizes = (3, 30, 50)
    one = random(rng, (40, 40), "f8")
    many, old = ([random(rng, (n, n), "f8") for n in sizes] for _ in range(2))
    a, b = Frame(device, [one], "native"), Frame(device, many)
    c = Frame(device, old)
    left, right = Submatrix(a.batch, 4, 1, 2, 2), Submatrix(b.batch, 1, 0, 2)
    blas3.gemm("N", "N", 1.0, left, right, 1.0, Submatrix(c.batch, 0, 0, 2))
    for x, before, new in zip(many, old, c.matrices(), strict=True):
        expected = before.copy()
        expected[:2] += one[4:6, 1:3] @ x[1:3]
        close(new, expected, 2, "f8")


def test_gemm_of_a_stack_and_a_list(device):
    rng = np.random.default_rng(6)
    a, b = ([random(rng, (5, 5), "f8") for _ in range(3)] for _ in range(2))
    c = [np.zeros((5, 5))] * 3
    frames = [Frame(device, x, w) for x, w in ((a, "batched"), (b, "vbatched"), (c, "batched"))]
    blas3.gemm("N", "N", 1.0, *(f.batch for f in frames[:2]), 0.0, frames[2].batch)
    for x, y, new in zip(a, b, frames[2].matrices(), strict=True):
        close(new, x @ y, 5, "f8")


def test_gemm_refuses_sizes_that_do_not_fit(device):
    a, b, c = (MatrixBatch.from_array(device, device.xp.ones((3, n), order="F")) for n in (2, 2, 3))
    with pytest.raises(ValueError, match=r"sizes of op\(A\), op\(B\) and C differ: .* in matrix 0"):
        blas3.gemm("N", "N", 1.0, a, b, 0.0, c)


def check_herk(
    device, dtype, wrapper, sizes, uplo="L", trans="N", tile=None, conjugate=True, alpha=0.5
):
    rng = np.random.default_rng(11)
    alpha, beta = (alpha, -1.5) if conjugate else scalars(dtype)
    a = [stored(rng, n, k, trans, dtype) for n, k in sizes]
    c = [random(rng, (n, n), dtype) for n, _ in sizes]
    frames = Frame(device, a, wrapper), Frame(device, c, wrapper, 2)
    blas3.herk(uplo, trans, alpha, frames[0].batch, beta, frames[1].batch, tile, conjugate)
    frames[0].matrices()
    for x, old, new in zip(a, c, frames[1].matrices(), strict=False):
        y = op(wide(x), trans if trans == "N" or conjugate else "T")
        product = y @ (y.conj().T if conjugate else y.T)
        expected = alpha * product + beta * wide(old)
        if conjugate:
            np.fill_diagonal(expected, expected.diagonal().real)
        inside = np.tri(len(old), dtype=bool) if uplo == "L" else np.tri(len(old), dtype=bool).T
        assert (new[~inside] == old[~inside]).all()
        close(
            np.where(inside, new, 0),
            np.where(inside, expected, 0),
            x.size // max(len(old), 1),
            dtype,
        )
        assert not conjugate or (new.diagonal().imag == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_herk(device, dtype, wrapper):
    sizes = [(65, 33), *((n, k) for n, k, _ in triples())]
    check_herk(device, dtype, wrapper, shapes(wrapper, sizes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", ["N", "C"])
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_herk_of_triangles_and_transposes(device, dtype, trans, uplo):
    for tile in range(5) if dtype == "f8" else (0, 2):
        check_herk(device, dtype, "vbatched", [(129, 16), (64, 40), (31, 5)], uplo, trans, tile)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_herk_subtracts_from_whole_tiles(device, dtype, uplo):
    sizes = [(130, 20), (128, 0), (300, 8)] if dtype == "f8" else [(130, 20)]
    check_herk(device, dtype, "vbatched", sizes, uplo, tile=2, alpha=-1)
    check_herk(device, dtype, "vbatched", sizes, uplo, tile=4, alpha=-1)


def test_syrk(device):
    check_herk(device, "c16", "vbatched", [(17, 9), (40, 33)], "U", "N", conjugate=False)
    check_herk(device, "c8", "vbatched", [(17, 9), (40, 33)], "L", "T", conjugate=False)


def triangle(rng, n, dtype):
    """A well-conditioned matrix whose both triangles can be solved with."""
    a = random(rng, (n, n), dtype) / max(n, 1) ** 0.5 / 2
    a[range(n), range(n)] += 1.5
    return a.astype(dtype)


def check_trsm(device, dtype, wrapper, sizes, about=("L", "L", "N", "N"), width=None, extra=3):
    rng = np.random.default_rng(13)
    side, uplo, trans, diag = about
    alpha = scalars(dtype)[1]
    a = [triangle(rng, n, dtype) for n, _ in sizes]
    b = [random(rng, (n, k) if side == "L" else (k, n), dtype) for n, k in sizes]
    used = [np.tril(x) if uplo == "L" else np.triu(x) for x in a]
    for x, kept in zip(a, used, strict=False):  # nothing else may be read
        x[kept == 0] = np.nan
        if diag == "U":
            np.fill_diagonal(x, np.nan)
            np.fill_diagonal(kept, 1)
            kept[...] = np.eye(len(x)) + (kept - np.eye(len(x))) / max(len(x), 1) ** 0.5
            x[...] = np.where(np.isnan(x), x, kept)
    frames = Frame(device, a, wrapper, extra), Frame(device, b, wrapper, extra)
    blas3.trsm(*about, alpha, frames[0].batch, frames[1].batch, width=width)
    frames[0].matrices()
    for x, right, new in zip(used, b, frames[1].matrices(), strict=False):
        e, solution = op(wide(x), trans), wide(new)
        found = e @ solution if side == "L" else solution @ e
        scale = max(1.0, np.abs(solution).max(initial=0.0))
        assert (
            np.abs(found - alpha * wide(right)).max(initial=0)
            <= 8 * (len(x) + 4) * eps(dtype) * scale
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("side", ["L", "R"])
def test_trsm(device, dtype, wrapper, side):
    sizes = [(65, 33), *((n, k) for n, k, _ in triples())]
    about = (side, "L", "N" if side == "L" else "C", "N")
    check_trsm(device, dtype, wrapper, shapes(wrapper, sizes), about)


ABOUTS = list(itertools.product("LR", "LU", "NTC", "NU"))


@pytest.mark.parametrize("about", ABOUTS, ids="".join)
def test_trsm_of_all_kinds(device, about):
    for dtype in ("f8", "c8") if about[2] == "C" else ("f8",):
        check_trsm(device, dtype, "vbatched", [(70, 9), (33, 20), (8, 3)], about, width=16)


@pytest.mark.parametrize("about", ["LUNN", "RLNN"])
def test_trsm_backwards_that_inverts_diagonal_blocks_itself(device, about):
    """Of orders for which no other kernel makes the inverses: the last block comes first."""
    check_trsm(device, "f8", "vbatched", [(64, 9), (33, 20), (40, 3)], tuple(about), width=16)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_trsm_of_each_width(device, dtype, width):
    for about in ("RLCN", "LUNN"):
        check_trsm(device, dtype, "vbatched", [(40, 70), (16, 40), (100, 1)], tuple(about), width)


@pytest.mark.parametrize("about", ["LLNN", "LUNU", "RLNN", "RLTN", "LLTN"])
def test_trsm_in_steps(device, about, monkeypatch):
    numbers = launch.products.TrsmTuning(fused=32)
    monkeypatch.setattr(
        launch,
        "tuning",
        lambda name, _: numbers if name == "trsm" else launch.products.GemmTuning(),
    )
    check_trsm(device, "f8", "vbatched", [(70, 9), (33, 20), (129, 3), (0, 4)], tuple(about))
    check_trsm(device, "f8", "native", [(70, 9)], tuple(about))


def test_work_items_are_exact():
    sizes = np.array([0, 1, 64, 130]), np.array([5, 1, 65, 130]), np.array([1, 1, 8, 9])
    items = work_items(*sizes, (64, 32))
    assert len(items) == 0 + 1 + 3 + 15
    assert items[0, 0] == 3
    assert len({tuple(item) for item in items}) == len(items)
    square = np.array([130])
    lower = work_items(square, square, square, (64, 64), "L")
    upper = work_items(square, square, square, (64, 64), "U")
    assert sorted(map(tuple, lower[:, 1:3])) == sorted((j, i) for i, j in upper[:, 1:3])
    assert len(lower) == 6


def test_work_items_in_groups_cover_everything():
    n = np.array([300, 40])
    items = work_items(n, n, n, (32, 32), group=128)
    assert {tuple(x) for x in items} == {tuple(x) for x in work_items(n, n, n, (32, 32))}
    first = items[:16]
    assert first[:, 1:3].max() < 128


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiles_fit_on_the_device(dtype):
    for tile in launch.products.tiles(dtype):
        assert tile.shared(dtype) <= H200.shared_block


def test_tiles_grow_with_the_products():
    def tile(n, count):
        numbers = launch.products.GemmTuning()
        return launch.products.product_tile(n, n, count * n * n, "f8", H200, numbers).index

    assert [tile(n, 1000) for n in (8, 32, 64, 256, 1024)] == [0, 1, 2, 2, 3]
    assert tile(1024, 1) == 2  # large ones would be too few


def test_trsm_takes_narrow_strips_where_blocks_are_few():
    def width(rights, count):
        sides = np.full(count, rights)
        return launch.products.trsm(64, sides, True, "f8", H200, launch.products.TrsmTuning()).width

    assert [width(64, 1000), width(64, 200), width(64, 1), width(3, 1000)] == [64, 32, 16, 16]
