"""Matrices and vectors in files: Matrix Market, Harwell-Boeing, Rutherford-Boeing, NumPy."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import scipy.io
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ._replacing import replacing
from ._typing import Sparse
from .checked import checked
from .file_sizes import (
    PACKED,
    check_entries,
    check_matrix_market,
    check_npy,
    check_npz,
    check_shape,
    named,
    unpacked,
)

_MATRIX_MARKET = (".mtx", ".mm")
_HARWELL_BOEING = (".rb", ".hb", *(f".{t}{s}a" for t in "rcpi" for s in "suhzr"))
_NPZ = {
    **dict.fromkeys(("csc", "csr", "bsr"), ("indices", "indptr")),
    "coo": ("row", "col"),
    "dia": ("offsets",),
}
# SciPy 1.18 warns where it is not told; older ones cannot be told
_NEW = "spmatrix" in inspect.signature(scipy.io.mmread).parameters
_mmread = partial(scipy.io.mmread, spmatrix=False) if _NEW else scipy.io.mmread
_LONGEST = 1000  # columns of a line; cards had 80
_FORTRAN_FORMAT = re.compile(r"(\d*)[\s(]*[IEDFG](\d+)")


def read_matrix(path: str | os.PathLike[str]) -> sp.csc_array:
    """Read a matrix; the name's ending tells the format.

    Parameters
    ----------
    path : path
        Matrix Market (``.mtx``), Harwell-Boeing and Rutherford-Boeing (``.rb``, ``.hb``, ``.rua``,
        ``.rsa``, ``.cua``, ...), each also compressed (``.gz``, ``.bz2``), or SciPy's ``.npz``.

    Returns
    -------
    csc_array
        Both triangles of a matrix that is stored by one; ones for a pattern without values.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the ending is unknown or the content malformed; it names the file.

    Examples
    --------
    >>> import pathlib, tempfile, scipy.sparse as sp
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.mtx.gz"
    >>> write_matrix(path, sp.eye_array(3, format="csc"))
    >>> read_matrix(path).diagonal()
    array([1., 1., 1.])
    """
    path = Path(path)
    ending, _ = _endings(path)
    with named(path):
        if ending in _MATRIX_MARKET:
            return sp.csc_array(_read_matrix_market(path))
        if ending in _HARWELL_BOEING:
            return _read_harwell_boeing(path)
        if ending == ".npz":
            return _read_npz(path)
    raise _unknown(path, [*_MATRIX_MARKET, ".npz", *_HARWELL_BOEING])


def read_vector(path: str | os.PathLike[str]) -> np.ndarray:
    """Read a vector, or several as columns.

    Parameters
    ----------
    path : path
        Matrix Market (``.mtx``, also ``.gz`` or ``.bz2``; dense or sparse), ``.npy`` or ``.txt``.

    Returns
    -------
    (n,) array, or (n, k) for k > 1 columns

    Raises
    ------
    OSError, ValueError
        As `read_matrix`.
    """
    path = Path(path)
    ending, _ = _endings(path)
    if ending not in (*_MATRIX_MARKET, ".npy", ".txt"):
        raise _unknown(path, [*_MATRIX_MARKET, ".npy", ".txt"])
    with named(path):
        if ending in _MATRIX_MARKET:
            stored = _read_matrix_market(path)
            x = stored if isinstance(stored, np.ndarray) else stored.toarray()
        elif ending == ".npy":
            check_npy(path)
            x = np.load(path, allow_pickle=False)
        else:
            x = np.loadtxt(path, ndmin=2)
    return x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x


def write_vector(path: str | os.PathLike[str], x: ArrayLike) -> None:
    """Write a vector (n,), or several as columns (n, k), to the last bit.

    Parameters
    ----------
    path : path
        ``.mtx`` (also ``.gz`` or ``.bz2``), ``.npy`` or ``.txt``.
    x : array (n,) or (n, k)

    Raises
    ------
    OSError, ValueError
        If the file cannot be written or the ending is unknown.
    """
    path, x = Path(path), np.asarray(x)
    ending, _ = _endings(path)
    if ending in _MATRIX_MARKET:
        _write_matrix_market(path, x.reshape(x.shape[0], -1))
    elif ending == ".npy":
        with replacing(path) as stream:
            np.save(stream, x, allow_pickle=False)
    elif ending == ".txt":
        with replacing(path) as stream:
            np.savetxt(stream, x, fmt="%.17g")
    else:
        raise _unknown(path, [*_MATRIX_MARKET, ".npy", ".txt"])


def write_matrix(path: str | os.PathLike[str], A: Sparse) -> None:
    """Write a sparse matrix to the last bit.

    Parameters
    ----------
    path : path
        ``.mtx`` (also ``.gz`` or ``.bz2``) or ``.npz``.
    A : sparse matrix or array

    Raises
    ------
    OSError, ValueError
        If the file cannot be written or the ending is unknown.
    """
    path, A = Path(path), checked(A, "A") if sp.issparse(A) else A
    ending, _ = _endings(path)
    if ending in _MATRIX_MARKET:
        _write_matrix_market(path, sp.coo_array(A))
    elif ending == ".npz":
        with replacing(path) as stream:
            sp.save_npz(stream, sp.csc_array(A))
    else:
        raise _unknown(path, [*_MATRIX_MARKET, ".npz"])


def _endings(path: Path) -> tuple[str, str]:
    """Ending that tells the format, and that of the compression or ''."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    return (suffixes[-1] if suffixes else ""), packed


def _unknown(path: Path, known: list[str]) -> ValueError:
    return ValueError(f"{path} has an unknown ending; these are known: {', '.join(known)}")


def _read_matrix_market(path: Path) -> np.ndarray | Sparse:
    check_matrix_market(path)
    if not _endings(path)[1]:
        return _mmread(str(path))
    with unpacked(path) as stream:
        return _mmread(stream)


def _write_matrix_market(path: Path, a: np.ndarray | Sparse) -> None:
    text = BytesIO()  # the writer seeks, which a compressed stream cannot
    scipy.io.mmwrite(text, a)
    with replacing(path) as stream, _packing(stream, _endings(path)[1]) as packed:
        packed.write(text.getbuffer())


def _packing(stream: BinaryIO, packed: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """The stream, compressed as an ending says."""
    pack = PACKED.get(packed)
    return pack(stream, "wb") if pack else contextlib.nullcontext(stream)


def _read_npz(path: Path) -> sp.csc_array:
    """Read what SciPy's save_npz writes; its load_npz makes integers of any index."""
    check_npz(path)
    with np.load(path, allow_pickle=False) as stored:
        parts = dict(stored)
    form, shape = parts["format"].item(), parts["shape"]
    form = form.decode("ascii") if isinstance(form, bytes) else form
    if form not in _NPZ:
        raise ValueError(f"it holds the sparse format {form!r}; {', '.join(_NPZ)} are known")
    if form == "coo" and "coords" in parts:
        parts["row"], parts["col"] = parts["coords"]
    data, *indices = (parts[name] for name in ("data", *_NPZ[form]))
    for name, values in zip(("shape", *_NPZ[form]), (shape, *indices), strict=True):
        if values.dtype.kind not in "iu":
            raise ValueError(f"{name} has the type {values.dtype}, not integers")
    if form == "dia" and np.any(indices[0] != indices[0].astype(np.int32)):
        raise ValueError("an offset needs more than 32 bits")
    if shape.size == 2:
        rows, columns = shape.tolist()
        check_shape(rows, columns, data.size)
    content = (data, tuple(indices)) if form == "coo" else (data, *indices)
    A = getattr(sp, f"{form}_array")(content, shape=tuple(shape.tolist()))
    return sp.csc_array(checked(A, "the matrix"))


def _read_harwell_boeing(path: Path) -> sp.csc_array:
    """Read an assembled matrix of Duff, Grimes and Lewis's collection, or of its successor.

    Fields have fixed columns and may touch each other (User's guide for the Harwell-Boeing sparse
    matrix collection, 1992; the Rutherford-Boeing sparse matrix collection, 1997).
    """
    with unpacked(path) as stream:
        text = stream.read()
    lines = text.decode("ascii", "replace").splitlines()
    if len(lines) < 4:
        raise ValueError("the header has less than four lines")
    counts = [int(field or 0) for field in _fields(lines[1], 14, 5)]
    kind = lines[2][:3].upper()
    rows, columns, nnz, elemental = (int(field or 0) for field in _fields(lines[2], 14, 5)[1:])
    if kind[2:] != "A" or elemental:
        raise ValueError(f"a matrix of type {kind!r} is not assembled")
    if kind[0] not in "RCIP" or kind[1] not in "SUHZR":
        raise ValueError(f"unknown matrix type {kind!r}")
    formats = [lines[3][:16], lines[3][16:32], lines[3][32:52]]
    sizes = [columns + 1, nnz, 0 if kind[0] == "P" else nnz * (1 + (kind[0] == "C"))]
    check_entries(max(sizes), 2, len(text))
    check_shape(rows, columns, nnz)
    at, parts = 4 + (counts[4] > 0), []
    for format_, size, length in zip(formats, sizes, counts[1:4], strict=True):
        parts.append(_numbers(lines[at : at + length], format_, size))
        at += length
    indptr, indices = (_whole(part) - 1 for part in parts[:2])
    data = parts[2].view(np.complex128) if kind[0] == "C" else parts[2]
    data = np.ones(nnz) if kind[0] == "P" else data
    A = checked(sp.csc_array((data, indices, indptr), shape=(rows, columns)), "the matrix")
    if kind[1] in "SHZ" and rows != columns:
        raise ValueError(f"a matrix of type {kind!r} is square, not {rows} by {columns}")
    return _completed(A, kind[1])


def _fields(line: str, width: int, count: int) -> list[str]:
    return [line[i * width : (i + 1) * width].strip() for i in range(count)]


def _numbers(lines: list[str], format_: str, size: int) -> np.ndarray:
    """`size` float64 numbers of one section; its Fortran format, as (1P,4D20.12), cuts fields."""
    words = " ".join(lines).upper().replace("D", "E").split()
    if len(words) == size:  # true unless fields touch
        return np.array(words, dtype="S").astype(np.float64)
    found = _FORTRAN_FORMAT.search(re.sub(r"\d+P,?", "", format_.upper()))
    if not found:
        raise ValueError(f"cannot read the Fortran format {format_.strip()!r}")
    line = int(found[1] or 1) * int(found[2])
    if line > _LONGEST:
        raise ValueError(f"the Fortran format {format_.strip()!r} promises lines of {line} columns")
    joined = "".join(part[:line].ljust(line) for part in lines).upper().replace("D", "E")
    if len(joined) < size * int(found[2]):
        raise ValueError(f"the file ends before {size} numbers were read")
    fields = joined[: size * int(found[2])].encode()
    return np.frombuffer(fields, f"S{found[2]}").astype(np.float64)


def _whole(numbers: np.ndarray) -> np.ndarray:
    """Indices, read as floating-point numbers, as int64."""
    if not np.all(np.abs(numbers) < 2**53) or np.any(numbers % 1):
        raise ValueError("an index is no whole number")
    return numbers.astype(np.int64)


def _completed(A: sp.csc_array, symmetry: str) -> sp.csc_array:
    """Both triangles of a matrix that is stored by one."""
    if symmetry in "UR":
        return A
    other = (sp.tril(A, -1) + sp.triu(A, 1)).T
    if symmetry == "H":
        other = other.conj()
    return sp.csc_array(A - other if symmetry == "Z" else A + other)
