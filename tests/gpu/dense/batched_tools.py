"""Arrays for the tests of the public batched module: on a device and back, of every kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import frontal.gpu.runtime.device

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
