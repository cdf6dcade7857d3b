"""Arrays for the tests of the public batched module: on a device and back, of every kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import frontal.gpu.runtime.device
from frontal.gpu.dense import batched, batched_lstsq, batched_products, batched_solve, batched_svd

KINDS = ("matrix", "stack", "list")
SIZES = (5, 1, 0, 33, 12)  # of a list


class Gpu:
    """Moves arrays to a device and back."""

    def __init__(self, device, monkeypatch):
        monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
        self.device, self.xp = device, device.xp

    def put(self, arrays, order="C"):
        if isinstance(arrays, list):
            return [self.put(a, order) for a in arrays]
        if order == "C" or arrays.ndim == 1:
            return self.device.upload(arrays)
        return self.device.upload(arrays.swapaxes(-1, -2)).swapaxes(-1, -2)

    def get(self, arrays):
        if isinstance(arrays, Sequence):
            return [self.get(a) for a in arrays]
        return np.array(self.device.download(arrays))


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, shape)
    return (
        (x + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
        if np.dtype(dtype).kind == "c"
        else x.astype(dtype)
    )


def matrices(kind, dtype, columns=None, definite=False, seed=0):
    """Square matrices, or ones of so many columns: host arrays of a kind."""
    if kind == "list":
        return [one(n, columns, dtype, definite, seed + i) for i, n in enumerate(SIZES)]
    if kind == "matrix":
        return one(9, columns, dtype, definite, seed)
    return np.stack([one(9, columns, dtype, definite, seed + i) for i in range(3)])


def one(n, columns, dtype, definite, seed):
    a = numbers((n, n if columns is None else columns), dtype, seed)
    if definite:
        return a @ a.conj().T + n * np.eye(n, dtype=dtype)
    return a if columns is not None else a + 2 * np.eye(n, dtype=dtype)


def each(*kinds):
    """The matrices of arguments side by side, whatever their kind."""

    def split(x):
        return list(x) if isinstance(x, Sequence) or x.ndim == 3 else [x]

    return zip(*map(split, kinds), strict=True)


def close(found, wanted, scale=1.0):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    eps = np.finfo(found.dtype).eps
    size = max(1, np.abs(wanted).max(initial=0.0)) * scale
    np.testing.assert_allclose(
        found, wanted, rtol=0, atol=200 * max(wanted.shape or (1,)) * eps * size
    )


def public_calls(definite, others, right, vectors):
    """Public functions by name, on lists or stacks; each call returns a tuple."""
    factors, piv = batched.lu_factor(others)
    c = batched.cholesky(definite)
    y = batched_products.gemv(1.0, definite, vectors)
    return {
        "cholesky": lambda: batched.cholesky(definite, check=False),
        "lower": lambda: batched.cholesky(definite, lower=True, check=False),
        "lu": lambda: batched.lu_factor(others, check=False),
        "inv": lambda: batched.inv(others, check=False),
        "cho": lambda: (batched.cho_solve((c, False), right),),
        "lu_solve": lambda: (batched.lu_solve((factors, piv), vectors),),
        "adjoint": lambda: (batched.lu_solve((factors, piv), right, 2),),
        "triangle": lambda: (batched.solve_triangular(c, right),),
        "vectors": lambda: (batched.solve_triangular(c, vectors, 2),),
        "solve": lambda: batched_solve.solve(others, right, check=False),
        "definite": lambda: batched_solve.solve(definite, vectors, check=False, assume_a="pos"),
        "product": lambda: (batched_products.gemm(2.0, others, definite, trans_b=2),),
        "herk": lambda: (batched_products.herk(1.0, others, lower=True),),
        "gemv": lambda: (batched_products.gemv(1.0, others, vectors),),
        "sum": lambda: (batched_products.gemm(2.0, others, definite, 0.5, c),),
        "update": lambda: (batched_products.herk(1.0, others, 2.0, definite),),
        "residual": lambda: (batched_products.gemv(-1.0, others, vectors, 1.0, y),),
        "qr": lambda: batched_svd.qr(right),
        "svd": lambda: batched_svd.svd(right, check=False),
        "thin": lambda: batched_svd.svd(right, False, check=False),
        "values": lambda: batched_svd.svdvals(right, check=False),
        "bidiagonal": lambda: batched_svd.bidiagonalize(right, check=False),
        "pinv": lambda: batched_lstsq.pinv(right, return_rank=True, check=False),
        "lstsq": lambda: batched_lstsq.lstsq(right, vectors, check=False),
    }
