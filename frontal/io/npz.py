"""Matrices in the format of SciPy's `save_npz`, and vectors in that of NumPy's `save`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import scipy.sparse as sp

from .._typing import Sparse
from ..files.declared_sizes import check_npy, check_npz, check_shape
from ..matrix.validate import checked

_INDICES = {
    **dict.fromkeys(("csc", "csr", "bsr"), ("indices", "indptr")),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}


def read_npz(path: Path) -> sp.csc_array:
    """Read a sparse matrix, with checks: SciPy's `load_npz` casts indices of any type to integers.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is malformed, or holds an array whose number of dimensions is not two.
    """
    check_npz(path)
    with np.load(path, allow_pickle=False) as stored:
        members = dict(stored)
    form, shape = _form(members), _shape(members)
    if form == "coo" and "coords" in members:
        coords = members["coords"]
        if coords.ndim != 2 or len(coords) != 2:
            raise ValueError(f"coords has shape {coords.shape}, but needs two rows")
        members["row"], members["col"] = coords
    data, *indices = (_array(members, name) for name in ("data", *_INDICES[form]))
    for name, values in zip(_INDICES[form], indices, strict=True):
        if values.dtype.kind not in "iu" or values.ndim != 1:
            raise ValueError(f"{name} is {values.dtype} {values.shape}, not a vector of integers")
    check_shape(*shape, data.size)
    _check_data(data, form)
    named = dict(zip(_INDICES[form], indices, strict=True))
    arrays = SimpleNamespace(
        format=form, shape=shape, ndim=2, data=data, coords=tuple(indices), **named
    )
    checked(cast(Sparse, arrays), "the matrix")  # before SciPy uses them
    content = (data, tuple(indices)) if form == "coo" else (data, *indices)
    return sp.csc_array(getattr(sp, f"{form}_array")(content, shape=shape))


def read_npy(path: Path) -> np.ndarray:
    """Read a vector (n,), or several as columns (n, k).

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is malformed, holds no numbers, or has zero or more than two dimensions.
    """
    check_npy(path)
    x = np.load(path, allow_pickle=False)
    if x.dtype.kind not in "biufc" or x.ndim not in (1, 2):
        raise ValueError(
            f"the file contains an array of {x.dtype} and shape {x.shape}; right-hand sides must "
            "be numbers, a vector (n,) or columns (n, k)"
        )
    return x


def _array(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    if name not in arrays:
        raise ValueError(
            f"the file contains no array {name!r}: it was not written by SciPy's save_npz"
        )
    return arrays[name]


def _form(arrays: dict[str, np.ndarray]) -> str:
    """Return the name of the sparse format."""
    stored = _array(arrays, "format")
    form = stored.item() if stored.size == 1 else None
    form = form.decode("ascii", "replace") if isinstance(form, bytes) else form
    if not isinstance(form, str) or form not in _INDICES:
        raise ValueError(f"unknown sparse format {form!r}; known formats: {', '.join(_INDICES)}")
    return form


def _shape(arrays: dict[str, np.ndarray]) -> tuple[int, int]:
    shape = _array(arrays, "shape")
    if shape.dtype.kind not in "iu" or shape.ndim != 1:
        raise ValueError(f"shape is {shape.dtype} {shape.shape}, not a vector of integers")
    if shape.size != 2:
        raise ValueError(f"the file contains an array of {shape.size} dimensions, a matrix has two")
    rows, columns = shape.tolist()
    return rows, columns


def _check_data(data: np.ndarray, form: str) -> None:
    """Raise if values are not numbers, or have other dimensions than their format."""
    ndim = {"dia": 2, "bsr": 3}.get(form, 1)
    if data.dtype.kind not in "biufc" or data.ndim != ndim:
        raise ValueError(
            f"data is {data.dtype} {data.shape}; a matrix in the format {form!r} has numbers in "
            f"{ndim} dimension{'s' * (ndim > 1)}"
        )
