"""QR, bidiagonalization and SVD of the public batched module against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from frontal.errors import BatchError
from frontal.gpu import available, batched
from frontal.gpu.dense import launch
from frontal.gpu.dense.arguments import argument
from frontal.gpu.dense.gebrd import gebrd
from frontal.gpu.dense.gesvd import BIDIAGONAL, JACOBI, QR_BIDIAGONAL, QR_JACOBI, Svd, gesvd
from frontal.gpu.dense.lists import Batch as Listed
from frontal.gpu.dense.workspace import real_type
from frontal.gpu.runtime.limits import Limits

from ...emulation.borders import DTYPES, Frame, eps, random
from ...emulation.device import EmulatedDevice
from .batched_tools import Gpu

SHAPES = [(5, 3), (3, 5), (1, 1), (0, 4), (4, 0), (16, 16), (33, 20), (90, 12), (12, 66), (68, 66)]


def close(found, wanted, order, dtype, scale=1.0):
    """Within 20 n eps in the Frobenius norm."""
    assert np.linalg.norm(found - wanted) <= 20 * max(order, 1) * eps(dtype) * scale


def check_unitary(q, dtype):
    q = q.astype(np.promote_types(q.dtype, "f8"))
    close(q.conj().T @ q, np.eye(q.shape[1]), max(q.shape), dtype)


def check(a, u, s, vh, full=False):
    """The SVD of a, in 20 n eps."""
    (m, n), k = a.shape, min(a.shape)
    assert (u.shape, s.shape, vh.shape) == ((m, m if full else k), (k,), (n if full else k, n))
    assert (u.dtype, s.dtype, vh.dtype) == (a.dtype, real_type(a.dtype), a.dtype)
    check_unitary(u, a.dtype)
    check_unitary(vh.conj().T, a.dtype)
    assert (np.diff(s) <= 0).all()
    assert (s >= 0).all()
    wide = np.promote_types(a.dtype, "f8")
    biggest = max(np.abs(a).max(initial=0), float(np.finfo(a.dtype).tiny))
    scaled, values = a.astype(wide) / biggest, s.astype("f8") / biggest
    norm = np.linalg.norm(scaled)
    close((u[:, :k].astype(wide) * values) @ vh[:k].astype(wide), scaled, max(m, n), a.dtype, norm)
    if k:
        exact = np.linalg.svd(scaled, compute_uv=False)
        assert np.abs(exact - values).max() <= 20 * max(m, n) * eps(a.dtype) * norm


@pytest.mark.parametrize("dtype", DTYPES)
def test_svd_of_many_sizes(gpu, dtype):
    rng = np.random.default_rng(1)
    a = [random(rng, shape, dtype) for shape in SHAPES]
    for full, order in ((True, "C"), (False, "F")):
        given = gpu.put(a, order)
        for x, *found in zip(a, *map(gpu.get, batched.svd(given, full)), strict=True):
            check(x, *found, full)
        for x, y in zip(a, gpu.get(given), strict=True):
            np.testing.assert_array_equal(x, y)
    values = gpu.get(batched.svdvals(gpu.put(a)))
    for x, s in zip(a, values, strict=True):
        exact = np.linalg.svd(x.astype(np.promote_types(dtype, "f8")), compute_uv=False)
        close(s, exact, max(x.shape), dtype, np.linalg.norm(x))


@pytest.mark.parametrize("shape", [(2, 7, 7), (3, 4, 9), (1, 66, 40), (2, 0, 3), (0, 3, 3), (9, 5)])
def test_svd_of_stacks_and_single_matrices(gpu, shape):
    a = random(np.random.default_rng(2), shape, "f8")
    found = [gpu.get(x) for x in batched.svd(gpu.put(a), full_matrices=False)]
    for one in zip(*([x] if a.ndim == 2 else x for x in (a, *found)), strict=True):
        check(*one)


@pytest.mark.parametrize("path", [JACOBI, QR_JACOBI, BIDIAGONAL, QR_BIDIAGONAL])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
def test_hard_matrices(device, dtype, path):
    """Graded, rank-deficient, of equal singular values, at both ends of the exponent, not scaled.

    Matrices lie inside borders of NaN, of which nothing may be read and nothing written.
    """
    rng = np.random.default_rng(3)
    q = np.linalg.qr(random(rng, (24, 24), "f8"))[0]
    grades = 10.0 ** np.linspace(0, -30 if dtype == "f4" else -280, 24)
    tiny, huge = float(np.finfo(dtype).tiny), float(np.finfo(dtype).max)
    hard = [q * grades, grades[:, None] * q, q, np.zeros((24, 9)), np.ones((24, 24)), np.eye(24)]
    hard += [
        q[:, :2] @ q[:2],
        np.eye(24, k=1),
        q * (huge / 8),
        q * (8 * tiny),
        np.triu(q),
        q[:, :1],
    ]
    a = [x.astype(dtype) for x in hard]
    real = real_type(dtype)
    frames = [Frame(device, a), Frame(device, [np.ones((x.shape[1], 1), real) for x in a])]
    frames += [Frame(device, [np.ones((len(x), k), dtype) for x in a for k in [x.shape[1]]])]
    frames += [Frame(device, [np.ones((x.shape[1], x.shape[1]), dtype) for x in a])]
    info = gesvd(frames[0].batch, Svd(*(f.batch for f in frames[1:])), path)
    assert not device.download(info).any()
    for x, s, u, v in zip(a, *(f.matrices() for f in frames[1:]), strict=True):
        check(x, u, s[:, 0], v.T)


@pytest.mark.parametrize("dtype", ["f8", "c8"])
def test_panels_of_what_does_not_fit_in_shared_memory(monkeypatch, dtype):
    limit = 80 << 10
    device = EmulatedDevice(Limits(4, limit, limit + (20 << 10), (9, 0)))
    gpu, rng = Gpu(device, monkeypatch), np.random.default_rng(4)
    shapes = [(110, 101), (99, 97), (70, 66), (40, 67)]
    if dtype == "c8":
        shapes = [(100, 99), (340, 66)]
    a = [random(rng, shape, dtype) for shape in shapes]
    for x, *found in zip(a, *map(gpu.get, batched.svd(gpu.put(a), False)), strict=True):
        check(x, *found)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_iterations_wherever_their_memory_is(device, monkeypatch, level):
    """Nothing in shared memory, all but the vectors, or all: the same bits."""
    rng = np.random.default_rng(10)
    a = [random(rng, (n, n), "f8") for n in (7, 1, 40, 2)]
    shared = 8 * 40 * (launch.svd.BDSQR_REALS_PER_ROW + (80 if level == 2 else 0))
    found = []
    for more in (level, 1):
        plan = 96, shared if more else 0, more
        monkeypatch.setattr(launch.svd, "bdsqr", lambda *_, plan=plan: plan)
        frames = [Frame(device, a), Frame(device, [np.ones((len(x), 1)) for x in a])]
        frames += [Frame(device, [np.ones_like(x) for x in a]) for _ in "uv"]
        gesvd(frames[0].batch, Svd(*(f.batch for f in frames[1:])), BIDIAGONAL)
        found.append([f.matrices() for f in frames[1:]])
    for x, s, u, v in zip(a, *found[0], strict=True):
        check(x, u, s[:, 0], v.T)
    for one, other in zip(*found, strict=True):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x, y)


def test_values_that_are_not_finite_are_told(gpu):
    rng = np.random.default_rng(5)
    a = [random(rng, s, "f8") for s in [(6, 4), (6, 4), (90, 5), (70, 67), (4, 4)]]
    a[1][2, 3], a[2][80, 0], a[3][:, 9] = np.nan, np.inf, -np.inf
    *found, info = batched.svd(gpu.put(a), check=False)
    assert gpu.get(info).tolist() == [0, 4, 1, 10, 0]
    for x, u, s, vh in zip(a, *map(gpu.get, found), strict=True):
        if np.isfinite(x).all():
            check(x, u, s, vh, True)
        else:
            assert np.isnan(u).all()
            assert np.isnan(s).all()
            assert np.isnan(vh).all()
    with pytest.raises(BatchError, match=r"svd failed for 3 of 5 matrices: matrix 1 at column 3"):
        batched.svdvals(gpu.put(a))
    assert gpu.get(batched.bidiagonalize(gpu.put(a[1]), check=False)[-1]).tolist() == [4]


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(gpu, dtype):
    rng = np.random.default_rng(6)
    a = [random(rng, shape, dtype) for shape in [*SHAPES, (40, 70)]]
    a[0] *= np.finfo(dtype).max / 16
    for mode in ("full", "economic"):
        for x, q, r in zip(a, *map(gpu.get, batched.qr(gpu.put(a), mode)), strict=True):
            k = min(x.shape) if mode == "economic" else len(x)
            assert (q.shape, r.shape) == ((len(x), k), (k, x.shape[1]))
            assert not np.tril(r, -1).any()
            check_unitary(q, dtype)
            scale = max(np.abs(x).max(initial=0), 1)
            close(q @ (r / scale), x / scale, max(x.shape), dtype, np.linalg.norm(x / scale))
    only = gpu.get(batched.qr(gpu.put(np.ones((2, 3, 3), dtype)), "r"))
    close(np.abs(only[:, 0]), np.full((2, 3), np.sqrt(3)), 3, dtype, 3)
    with pytest.raises(ValueError, match="mode must be"):
        batched.qr(gpu.put(a), "raw")


@pytest.mark.parametrize("dtype", DTYPES)
def test_bidiagonalize(gpu, dtype):
    rng = np.random.default_rng(7)
    a = [random(rng, shape, dtype) for shape in SHAPES]
    for x, d, e, q, ph in zip(a, *map(gpu.get, batched.bidiagonalize(gpu.put(a))), strict=True):
        (m, n), k = x.shape, min(x.shape)
        assert [y.shape for y in (d, e, q, ph)] == [(k,), (max(k - 1, 0),), (m, k), (k, n)]
        check_unitary(q, dtype)
        check_unitary(ph.conj().T, dtype)
        if k:
            b = np.diag(d) + (np.diag(e, 1 if m >= n else -1) if k > 1 else 0)
            close(q @ b @ ph, x, max(m, n), dtype, np.linalg.norm(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares_and_pseudo_inverses(gpu, dtype):
    rng = np.random.default_rng(8)
    a = [random(rng, shape, dtype) for shape in SHAPES]
    a[0][:, 2] = 2 * a[0][:, 0]
    wide = [x.astype(np.promote_types(dtype, "f8")) for x in a]
    cuts = [max(x.shape) * eps(dtype) for x in a]
    inverses, ranks = map(gpu.get, batched.pinv(gpu.put(a), return_rank=True))
    assert [2, *(min(x.shape) for x in a[1:])] == np.asarray(ranks).tolist()
    b = [random(rng, (len(x), 2), dtype) for x in a]
    solutions, ranks, values = map(gpu.get, batched.lstsq(gpu.put(a), gpu.put(b)))
    for x, y, right, z, s, cut in zip(wide, inverses, b, solutions, values, cuts, strict=True):
        exact = np.linalg.pinv(x, rcond=cut)
        condition = s.max(initial=0) / s[s > cut * s.max(initial=0)].min(initial=np.inf)
        close(y, exact, max(x.shape), dtype, condition * np.linalg.norm(exact))
        close(z, exact @ right, max(x.shape), dtype, condition**2 * np.linalg.norm(exact @ right))
    stack, one = random(rng, (2, 6, 4), dtype), random(rng, (2, 6), dtype)
    x = gpu.get(batched.lstsq(gpu.put(stack), gpu.put(one))[0])
    assert x.shape == (2, 4)
    for c, y, right in zip(stack, x, one, strict=True):
        gradient = c.conj().T @ (c @ y - right)
        close(gradient, 0, 6, dtype, np.linalg.norm(c) ** 2 * np.linalg.norm(right))


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bidiagonalization_by_panels(gpu, dtype, once, monkeypatch):
    if not once:  # as for matrices of many rows
        monkeypatch.setattr("frontal.gpu.dense.launch.svd.labrd_once", lambda *_: None)
    rng = np.random.default_rng(10)
    for a in (
        random(rng, (2, 71, 70), dtype),
        [random(rng, shape, dtype) for shape in ((70, 66), (33, 33), (20, 4), (64, 64))],
    ):
        given = gpu.put(a)
        if isinstance(given, list):
            given = Listed.from_list("a", given, gpu.device)
        held = argument("a", given, gpu.device, write=True)
        found = gebrd(held.batch, panels=True)
        out = []
        m, n = held.sizes
        for reflectors, rows in ((found.q, m), (found.p, n)):
            out.append(held.new(rows, n))
            reflectors.form(out[-1].batch)
        sides = (map(gpu.get, x.arrays) for x in out)
        for b, x, q, p in zip(range(len(a)), a, *sides, strict=True):
            check_unitary(q, dtype)
            check_unitary(p, dtype)
            d, e = (_row(gpu, y, b, x.shape[1]) for y in (found.d, found.e))
            middle = np.diag(d) + np.diag(e[:-1], 1)
            close(q @ middle @ p.T, x, max(x.shape), dtype, np.linalg.norm(x))


def _row(gpu, batch, b, n):
    """The only row of matrix b of a workspace."""
    return np.ravel(gpu.get(batch.keep[-1][b]))[:n]


@pytest.mark.skipif(not available(), reason="there is no GPU")
@pytest.mark.parametrize("n", [96, 160, 161, 300])
def test_large_ones(monkeypatch, n):
    from frontal.gpu.runtime.device import device_of

    gpu = Gpu(device_of(), monkeypatch)
    a = random(np.random.default_rng(9), (2, n + 7, n), "c16")
    for one in zip(a, *map(gpu.get, batched.svd(gpu.put(a), False)), strict=True):
        check(*one)
