"""Cholesky kernels on the device against LAPACK's backward error."""

import numpy as np
import pytest

from frontal.gpu.dense.potrf import potrf, potrs

from ...emulation.borders import DTYPES, SIZES, WRAPPERS, Frame, eps, mixed_sizes, random

UPLO = ("L", "U")


def definite(rng, n, dtype):
    """A Hermitian positive definite matrix with eigenvalues from 0.1 to about n."""
    b = random(rng, (n, n), np.promote_types(dtype, "f8"))
    a = (b @ b.conj().T / max(n, 1) + 0.1 * np.eye(n)).astype(dtype)
    a[np.diag_indices(n)] = a.diagonal().real
    return a


def half(a, uplo):
    """The triangle that is read, NaN in the other one."""
    other = np.triu(np.ones(a.shape, bool), 1)
    return np.where(other if uplo == "L" else other.T, np.nan, a).astype(a.dtype)


def check(a, found, uplo):
    """The factor's residual, and the other triangle as it was."""
    n = len(a)
    other = np.triu(np.ones((n, n), bool), 1) if uplo == "L" else np.tril(np.ones((n, n), bool), -1)
    assert np.isnan(found[other]).all()
    factor = np.where(other, 0, found).astype(np.promote_types(a.dtype, "f8"))
    assert (factor.diagonal().imag == 0).all()
    product = factor @ factor.conj().T if uplo == "L" else factor.conj().T @ factor
    assert np.linalg.norm(product - a) <= 20 * n * eps(a.dtype) * np.linalg.norm(a), n


def run(device, wrapper, sizes, dtype, uplo, variant=None, factor=potrf):
    rng = np.random.default_rng(sum(sizes))
    a = [definite(rng, n, dtype) for n in sizes]
    frame = Frame(device, [half(x, uplo) for x in a], wrapper)
    info = device.upload(np.full(len(a), -1, np.int32))
    factor(frame.batch, info, uplo, variant)
    assert (device.download(info) == 0).all()
    for x, found in zip(a, frame.matrices(), strict=True):
        check(x, found, uplo)


@pytest.mark.parametrize("uplo", UPLO)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_sizes(device, wrapper, dtype, uplo):
    if wrapper == "vbatched":
        run(device, wrapper, mixed_sizes(np.random.default_rng(0)), dtype, uplo)
        return
    for n in SIZES:
        run(device, wrapper, [n] * (1 if wrapper == "native" else 3), dtype, uplo)


@pytest.mark.parametrize(
    ("variant", "sizes"),
    [
        ("shared", [96, 0, 64, 65, 31, 1, 33, 49]),
        ("tasks", [129, 0, 64, 300, 31, 1]),
        ("tiles", [129, 0, 64, 200, 31, 1, 257]),
        ("tiles", [150]),
    ],
)
@pytest.mark.parametrize("uplo", UPLO)
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_variant_factorizes_many_sizes(device, dtype, uplo, variant, sizes):
    run(device, "vbatched", sizes, dtype, uplo, variant)


@pytest.mark.parametrize("uplo", UPLO)
@pytest.mark.parametrize("dtype", ["f8", "c8"])
@pytest.mark.parametrize("variant", ["tiny", "shared", "tiles", "tasks"])
def test_the_other_triangle_keeps_its_bits(device, variant, dtype, uplo):
    """Numbers there are as untouched as the NaN of the other tests."""
    rng = np.random.default_rng(9)
    sizes = [8, 1, 20, 31] if variant == "tiny" else [65, 9, 33] + [140] * (variant != "shared")
    a = [definite(rng, n, dtype) for n in sizes]
    given = [np.where(np.isnan(half(x, uplo)), random(rng, x.shape, dtype), x) for x in a]
    frame = Frame(device, given, "vbatched")
    potrf(frame.batch, device.upload(np.ones(len(a), np.int32)), uplo, variant)
    for x, before, found in zip(a, given, frame.matrices(), strict=True):
        other = np.isnan(half(x, uplo))
        assert before[other].tobytes() == found[other].tobytes()
        check(x, np.where(other, np.nan, found).astype(dtype), uplo)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("variant", ["tiny", "shared", "tiles", "tasks", None])
def test_failures_are_told_and_disturb_no_other(device, dtype, variant):
    rng = np.random.default_rng(5)
    sizes = [31, 9, 20, 32, 5, 1, 17] if variant == "tiny" else [70, 33, 9, 140, 65, 129, 100]
    bad = {0: (0, np.nan), 1: (8, -1.0), 3: (sizes[3] - 1, np.inf), 4: (3, 0.0)}
    a = [definite(rng, n, dtype) for n in sizes]
    for k, (j, value) in bad.items():
        a[k][j, :j] = a[k][:j, j] = 0
        a[k][j, j] = value
    frame = Frame(device, [half(x, "L") for x in a], "vbatched")
    info = device.upload(np.full(len(a), -1, np.int32))
    potrf(frame.batch, info, "L", variant)
    wanted = [bad[k][0] + 1 if k in bad else 0 for k in range(len(a))]
    assert list(device.download(info)) == wanted
    for k, found in enumerate(frame.matrices()):
        if k not in bad:
            check(a[k], found, "L")


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_extreme_scales(device, dtype):
    rng = np.random.default_rng(6)
    a = definite(rng, 40, dtype)
    for scale in (np.sqrt(np.finfo(dtype).max) / 4, np.finfo(dtype).tiny ** 0.45):
        scaled = (a * np.dtype(dtype).type(scale)) * np.dtype(dtype).type(scale)
        for size in (20, 40):
            frame = Frame(device, [half(scaled[:size, :size], "L")], "batched")
            info = device.upload(np.ones(1, np.int32))
            potrf(frame.batch, info)
            assert (device.download(info) == 0).all()
            found = np.tril(frame.matrices()[0]).astype("f8") / np.float64(scale)
            error = np.linalg.norm(found @ found.T - a[:size, :size])
            assert error <= 20 * size * eps(dtype) * np.linalg.norm(a)


@pytest.mark.parametrize("uplo", UPLO)
@pytest.mark.parametrize("dtype", DTYPES)
def test_solve(device, dtype, uplo):
    rng = np.random.default_rng(7)
    sizes = [0, 1, 7, 33, 65]
    a = [definite(rng, n, dtype) for n in sizes]
    b = [random(rng, (n, 5), dtype) for n in sizes]
    frames = [Frame(device, [half(x, uplo) for x in a]), Frame(device, b)]
    info = device.upload(np.ones(len(a), np.int32))
    potrf(frames[0].batch, info, uplo)
    potrs(frames[0].batch, frames[1].batch, uplo)
    for matrix, right, x in zip(a, b, frames[1].matrices(), strict=True):
        scale = np.linalg.norm(matrix) * np.linalg.norm(x) + np.linalg.norm(right)
        assert np.linalg.norm(matrix @ x - right) <= 20 * len(a) * eps(dtype) * scale + 0.0


def test_unknown_variants_are_refused(device):
    frame = Frame(device, [np.eye(3)])
    with pytest.raises(ValueError, match="variant must be one of"):
        potrf(frame.batch, device.upload(np.zeros(1, np.int32)), "L", "exclusive")
