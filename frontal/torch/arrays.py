"""Tensors as the arrays of NumPy and CuPy, without copies.

CuPy's arrays are exchanged by DLPack, which lets the streams of both libraries wait for each other.
"""

from __future__ import annotations

import sys

import numpy as np
import torch

from .._typing import Untyped


def array_of(tensor: torch.Tensor) -> Untyped:
    """Return the array of a dense tensor, NumPy's or on a GPU CuPy's; it may share memory."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_cuda:
        import cupy

        return cupy.from_dlpack(tensor)
    return tensor.numpy()


def host_array_of(tensor: torch.Tensor) -> np.ndarray:
    """Return an array on the host."""
    return array_of(tensor.detach().cpu())


def tensor_of(array: Untyped, device: torch.device) -> torch.Tensor:
    """Return the tensor of an array on a device; it may share memory."""
    if isinstance(array, np.ndarray):
        return torch.from_numpy(array).to(device)
    return torch.from_dlpack(array)


def equal(a: Untyped, b: Untyped) -> bool:
    """Return whether two arrays of one library have the same shape and entries; NaN differ."""
    if a.shape != b.shape:
        return False
    return bool(sys.modules[type(a).__module__.partition(".")[0]].array_equal(a, b))
