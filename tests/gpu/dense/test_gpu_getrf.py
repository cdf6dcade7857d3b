"""LU factorizations, inverses and solutions of batches, against NumPy in double precision."""

import numpy as np
import pytest
import scipy.linalg

from frontal.gpu.dense import getrf as lu
from frontal.gpu.dense import launch
from frontal.gpu.dense.operands import MatrixBatch
from frontal.gpu.runtime.limits import H200

from ...emulation.borders import DTYPES, SIZES, WRAPPERS, Frame, eps, op, random, shapes, wide


def pivot_frame(device, shapes, wrapper):
    columns = [np.zeros((min(shape), 1), np.int32) for shape in shapes]
    return Frame(device, columns, "batched" if wrapper == "pointers" else wrapper)


def rows_after(pivots, m):
    rows = np.arange(m)
    for i, p in enumerate(pivots):
        rows[[i, p - 1]] = rows[[p - 1, i]]
    return rows


def factors_agree(a, found, pivots):
    m, n = a.shape
    k = min(m, n)
    assert (pivots >= np.arange(1, k + 1)).all()
    assert (pivots <= m).all()
    low = np.tril(wide(found)[:, :k], -1) + np.eye(m, k)
    up = np.triu(wide(found)[:k])
    largest = np.abs(low.real).max(initial=0) + np.abs(low.imag).max(initial=0)
    assert largest <= (1 + 8 * eps(a.dtype) if a.dtype.kind == "f" else 3)
    error = np.linalg.norm(wide(a)[rows_after(pivots, m)] - low @ up)
    scale = max(np.linalg.norm(a), np.linalg.norm(np.abs(low) @ np.abs(up)) if k else 0)
    assert error <= 20 * max(m, n) * eps(a.dtype) * scale


def check(device, matrices, wrapper, variant=None, failures=None, extra=3):
    """Factor matrices; those that are not to fail must have factors. Returns factors and pivots."""
    frame = Frame(device, matrices, wrapper, extra)
    pivots = pivot_frame(device, [a.shape for a in matrices], wrapper)
    info = device.upload(np.full(len(matrices), -7, np.int32))
    lu.getrf(frame.batch, pivots.batch, info, variant)
    expected = np.zeros(len(matrices), np.int32) if failures is None else failures
    np.testing.assert_array_equal(device.download(info), expected)
    found, interchanges = frame.matrices(), [p[:, 0] for p in pivots.matrices()]
    for a, f, p, failed in zip(matrices, found, interchanges, expected, strict=True):
        if not failed:
            factors_agree(a, f, p)
    return found, interchanges


SQUARES = [(n, n) for n in (32, *SIZES[:10])]
RECTANGLES = [(31, 17), (8, 32), (1, 30), (30, 1), (20, 3), (5, 0), (0, 4), (16, 15), (2, 25)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("sizes", [SQUARES, RECTANGLES], ids=["squares", "rectangles"])
def test_in_registers(device, dtype, wrapper, sizes):
    rng = np.random.default_rng(1)
    check(device, [random(rng, s, dtype) for s in shapes(wrapper, sizes)], wrapper)


@pytest.mark.parametrize("n", [1, 5, 8, 12, 16, 24])
def test_in_registers_of_one_size(device, n):
    rng = np.random.default_rng(2)
    a = [random(rng, (n, n), "f8") for _ in range(19)]
    found, pivots = check(device, a, "batched")
    for x, f, p in zip(a, found, pivots, strict=True):
        expected, interchanges = scipy.linalg.lu_factor(x)
        np.testing.assert_array_equal(p - 1, interchanges)
        np.testing.assert_allclose(f, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_in_shared_memory(device, monkeypatch, dtype, wrapper):
    monkeypatch.setattr(launch, "tuning", choose(getrf=launch.lu.GetrfTuning(block=128)))
    rng = np.random.default_rng(3)
    n = 65 if np.dtype(dtype) == np.float64 else 49
    sizes = [(n, n), (33, 33), (64, 64), (48, 40), (17, 70), (70, 17), (33, 0), (20, 20)]
    check(device, [random(rng, s, dtype) for s in shapes(wrapper, sizes)], wrapper, "block")


def test_in_shared_memory_of_129(device, monkeypatch):
    a = random(np.random.default_rng(4), (129, 129), "f8")
    monkeypatch.setattr(launch, "tuning", choose(getrf=launch.lu.GetrfTuning(block=160)))
    kind, _ = lu._group(129, 129, a.dtype, device.limits, launch.tuning("getrf", ""), None)
    assert kind == "block"
    check(device, [a], "native")


@pytest.mark.parametrize("variant", ["left", "panel"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_by_columns(device, dtype, wrapper, variant):
    rng = np.random.default_rng(5)
    n = 129 if np.dtype(dtype) == np.float64 else 65
    sizes = [(n, n), (33, 33), (64, 64), (40, 110), (90, 48), (70, 1), (1, 70), (40, 0), (97, 96)]
    check(device, [random(rng, s, dtype) for s in shapes(wrapper, sizes)], wrapper, variant)


@pytest.mark.parametrize("wrapper", ["native", "batched", "vbatched"])
@pytest.mark.parametrize("sizes", [[(150, 150), (70, 70), (129, 129)], [(100, 170)], [(170, 100)]])
def test_by_products(device, monkeypatch, wrapper, sizes):
    numbers = launch.lu.GetrfTuning(strips=0, outer=64, panel=16)
    monkeypatch.setattr(launch, "tuning", choose(getrf=numbers))
    rng = np.random.default_rng(6)
    check(device, [random(rng, s, "f8") for s in shapes(wrapper, sizes)], wrapper, "panel")


def choose(**chosen):
    kept = launch.tuning
    return lambda routine, name: chosen.get(routine) or kept(routine, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", ["native", "batched", "vbatched"])
def test_panels_that_blocks_share(device, monkeypatch, dtype, wrapper):
    numbers = launch.lu.GetrfTuning(strips=0, tall=0, panel=16)
    monkeypatch.setattr(launch, "tuning", choose(getrf=numbers))
    rng = np.random.default_rng(14)
    matrices = [random(rng, s, dtype) for s in shapes(wrapper, [(70, 70), (40, 40), (65, 65)])]
    check(device, matrices, wrapper, "panel")


def test_several_rows_a_thread(device, monkeypatch):
    a = random(np.random.default_rng(7), (90, 40), "f8")
    for plan in (launch.lu.PanelPlan(16, 2), launch.lu.PanelPlan(8, 4)):
        monkeypatch.setattr(launch.lu, "getrf_panel", lambda *_, plan=plan: plan)
        check(device, [a], "native", "panel")


@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_all_kinds_in_one_batch(device, dtype):
    rng = np.random.default_rng(8)
    sizes = [(7, 7), (160, 150), (0, 0), (40, 40), (32, 32), (16, 300), (300, 16), (2, 2)]
    check(device, [random(rng, s, dtype) for s in sizes], "vbatched")


VARIANTS = [("tiny", 13), ("tiny", 32), ("block", 40), ("left", 50), ("panel", 50)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("variant", "n"), VARIANTS)
def test_failures_are_reported(device, dtype, variant, n):
    rng = np.random.default_rng(9)
    a = [random(rng, (n, n), dtype) for _ in range(6)]
    a[1][:, 0] = 0
    a[2][:, n // 2] = a[2][:, 1] * 0
    a[3][n - 1, n // 3] = np.nan
    a[4][0, n - 1] = np.inf
    frame = Frame(device, a, "vbatched")
    info = device.upload(np.zeros(6, np.int32))
    pivots = pivot_frame(device, [x.shape for x in a], "vbatched")
    lu.getrf(frame.batch, pivots.batch, info, variant)
    found = device.download(info)
    assert found[[0, 1, 2, 5]].tolist() == [0, 1, n // 2 + 1, 0]
    assert found[3] > 0
    assert found[4] > 0
    factors, interchanges = frame.matrices(), pivots.matrices()
    for k in (0, 5):
        factors_agree(a[k], factors[k], interchanges[k][:, 0])
    assert (interchanges[1][:, 0] >= np.arange(1, n + 1)).all()


@pytest.mark.parametrize("n", [600, 1025])
@pytest.mark.parametrize("dtype", DTYPES)
def test_one_large_matrix_by_the_vendor(device, dtype, n):
    if not device.cuda:
        pytest.skip("the vendor's library is not emulated")
    a = random(np.random.default_rng(12), (n, n), dtype)
    check(device, [a], "native")
    a[:, 1] = a[:, 0]
    a[:, 5] = 0
    info = device.upload(np.zeros(1, np.int32))
    frame, pivots = Frame(device, [a], "native"), pivot_frame(device, [a.shape], "native")
    lu.getrf(frame.batch, pivots.batch, info)
    assert 2 <= int(device.download(info)[0]) <= 6


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_info_of_given_factors(device, dtype, wrapper):
    rng = np.random.default_rng(13)
    factors = [random(rng, shape, dtype) for shape in shapes(wrapper, [(300, 290), (7, 9), (0, 3)])]
    wanted = [0] * len(factors)
    if wrapper != "native":
        factors[1][5, 5], wanted[1] = np.nan, 6
        factors[1][6, 6] = 0
    frame = Frame(device, factors, wrapper)
    info = device.upload(np.full(len(factors), -7, np.int32))
    name = f"getrf_info_{frame.batch.wrapper}"
    kernel = device.kernel("getrf_info.cu", name, frame.batch.dtype)
    kernel((len(factors),), (256,), (frame.batch.locator, info))
    assert device.download(info).tolist() == wanted


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("variant", "n"), VARIANTS)
def test_tiny_pivots_are_replaced_and_counted(device, dtype, variant, n):
    rng, tiny = np.random.default_rng(16), 1e-3
    a = [random(rng, (n, n), dtype) for _ in range(4)]
    a[1][:, 0] = 0
    a[2][:, n // 2] = a[2][:, 1]
    a[3][3, 4] = np.nan
    frame = Frame(device, a, "vbatched")
    pivots = pivot_frame(device, [x.shape for x in a], "vbatched")
    info = device.upload(np.full(4, -7, np.int32))
    lu.getrf(frame.batch, pivots.batch, info, variant, tiny)
    found = device.download(info)
    assert found[:3].tolist() == [0, 1, 1]
    assert found[3] > 0
    factors, interchanges = frame.matrices(), pivots.matrices()
    for k in range(3):
        low = np.tril(wide(factors[k]), -1) + np.eye(n)
        up = np.triu(wide(factors[k]))
        size = np.abs(up.diagonal().real) + np.abs(up.diagonal().imag)
        assert size.min() >= tiny * (1 - 1e-5)
        change = np.abs(wide(a[k])[rows_after(interchanges[k][:, 0], n)] - low @ up)
        limit = 20 * n * eps(dtype) * np.abs(np.abs(low) @ np.abs(up)).max()
        assert change.max() <= limit + (2 * tiny if k else 0)


@pytest.mark.parametrize(
    ("variant", "n"), [("tiny", 16), ("tiny", 32), ("block", 64), ("left", 64), ("panel", 64)]
)
def test_equal_magnitudes_take_the_first(device, variant, n):
    a = scipy.linalg.hadamard(n).astype(float)[np.random.default_rng(10).permutation(n)]
    _, (pivots,) = check(device, [a], "native", variant)
    np.testing.assert_array_equal(pivots - 1, scipy.linalg.lu_factor(a)[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_inverse(device, dtype, wrapper):
    rng = np.random.default_rng(11)
    sizes = (32, 8, 0, 1, 2, 7, 15, 16, 17, 31, 24, 33, 48)
    if wrapper != "vbatched":
        sizes = {"native": (16,), "batched": (7,) * 9, "pointers": (33,) * 2}[wrapper]
    a = [random(rng, (n, n), dtype) for n in sizes]
    frame, info = Frame(device, a, wrapper), device.upload(np.full(len(a), -1, np.int32))
    lu.inverse(frame.batch, info)
    assert not device.download(info).any()
    for x, found in zip(a, frame.matrices(), strict=True):
        n = len(x)
        error = np.linalg.norm(wide(x) @ wide(found) - np.eye(n))
        assert error <= 20 * max(n, 1) * eps(dtype) * np.linalg.norm(x) * np.linalg.norm(found)


@pytest.mark.parametrize("n", [5, 20, 40])
def test_inverse_that_is_not(device, n):
    rng = np.random.default_rng(12)
    a = [random(rng, (n, n), "f8") for _ in range(3)]
    a[1][:, 2] = 0
    frame, info = Frame(device, a, "batched"), device.upload(np.zeros(3, np.int32))
    lu.inverse(frame.batch, info)
    assert device.download(info).tolist() == [0, 3, 0]
    found = frame.matrices()
    np.testing.assert_allclose(found[2] @ a[2], np.eye(n), atol=1e-8)
    if n <= 32:
        np.testing.assert_array_equal(found[1], a[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("trans", ["N", "T", "C"])
def test_solve(device, dtype, wrapper, trans):
    if np.dtype(dtype).kind != "c" and trans == "C":
        pytest.skip("the same kernel as T")
    rng = np.random.default_rng(13)
    for sizes in ((16, 1, 0, 7, 8), (32, 31, 2, 17), (40, 5, 33)):
        if wrapper != "vbatched":
            sizes = sizes[:1] * (1 if wrapper == "native" else 3)
        solve(device, rng, sizes, dtype, wrapper, trans)


def solve(device, rng, sizes, dtype, wrapper, trans):
    rights = [5 + i if wrapper == "vbatched" else 5 for i in range(len(sizes))]
    a = [random(rng, (n, n), dtype) for n in sizes]
    b = [random(rng, (n, k), dtype) for n, k in zip(sizes, rights, strict=True)]
    factors = [scipy.linalg.lu_factor(x) if len(x) else (x, np.zeros(0, int)) for x in a]
    frame = Frame(device, [f.astype(dtype) for f, _ in factors], wrapper)
    columns = [(p + 1).astype(np.int32)[:, None] for _, p in factors]
    pivots = Frame(device, columns, "batched" if wrapper == "pointers" else wrapper)
    right = Frame(device, b, wrapper, extra=2)
    lu.getrs(frame.batch, pivots.batch, right.batch, trans)
    frame.matrices(), pivots.matrices()
    for x, old, found in zip(a, b, right.matrices(), strict=True):
        error = np.linalg.norm(op(wide(x), trans) @ wide(found) - wide(old))
        scale = np.linalg.norm(x) * np.linalg.norm(found) + np.linalg.norm(old)
        assert error <= 20 * max(len(x), 1) * eps(dtype) * scale


def test_choices():
    limits, numbers = H200, launch.lu.GetrfTuning()
    for n in (33, 64):
        plan = launch.lu.getrf_block(n, n, "f8", limits, numbers)
        assert plan.threads >= n
        assert plan.shared <= limits.shared_block
    assert launch.lu.getrf_block(65, 65, "f8", limits, numbers) is None
    assert [launch.lu.getrf_left(m, "f8", limits, numbers).residents for m in (128, 256, 512)] == [
        4,
        2,
        1,
    ]
    assert launch.lu.getrf_left(513, "f8", limits, numbers) is None
    assert launch.lu.getrf_left(257, "c16", limits, numbers) is None
    assert launch.lu.getrf_panel(512, "f8", numbers) == launch.lu.PanelPlan(32, 1)
    assert launch.lu.getrf_panel(1000, "f8", numbers) == launch.lu.PanelPlan(16, 2)
    assert launch.lu.laswp_through_shared(1 << 16, "f8", limits)[0] == 0


def test_no_matrices(device):
    a = MatrixBatch.from_array(device, device.upload(np.zeros((0, 5, 5))).swapaxes(-1, -2))
    pivots = MatrixBatch.from_array(
        device, device.upload(np.zeros((0, 1, 5), np.int32)).swapaxes(-1, -2)
    )
    info = device.upload(np.zeros(0, np.int32))
    lu.getrf(a, pivots, info)
    lu.inverse(a, info)
    lu.getrs(a, pivots, a)
