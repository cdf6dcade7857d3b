"""Matrices and vectors in files: Matrix Market, Harwell-Boeing, Rutherford-Boeing, NumPy."""

from __future__ import annotations

import contextlib
import os
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np
import scipy.io
import scipy.sparse as sp
from numpy.typing import ArrayLike

from .._typing import Sparse
from ..files.atomic_write import replacing
from ..files.declared_sizes import EMPTY, PACKED, SPARSEST, named
from ..matrix.validate import checked
from .harwell_boeing import read_harwell_boeing
from .matrix_market import read_matrix_market
from .npz import read_npy, read_npz

_MATRIX_MARKET = (".mtx", ".mm")
_HARWELL_BOEING = (".rb", ".hb", *(f".{t}{s}a" for t in "rcpi" for s in "suhzr"))


def read_matrix(path: str | os.PathLike[str]) -> sp.csc_array:
    """Read a matrix; the ending of the name selects the format.

    Parameters
    ----------
    path : path
        Matrix Market (``.mtx``), Harwell-Boeing and Rutherford-Boeing (``.rb``, ``.hb``, ``.rua``,
        ``.rsa``, ``.cua``, ...), each also compressed (``.gz``, ``.bz2``), or SciPy's ``.npz``.

    Returns
    -------
    csc_array
        Both triangles of a matrix in half storage; ones for a pattern without values.
        Duplicate entries are summed.

    Raises
    ------
    OSError
        If the file cannot be opened.
    ValueError
        If the ending is unknown, the content is malformed, or it contradicts the header; the
        message names the file and, for text files, line and token.

    Notes
    -----
    Numbers are rounded to the nearest float64. Exponents may have the letters E, D and Q or, with
    a sign, none, as Fortran writes them: ``1.5D+03``, ``0.5-100``. An integer that float64 cannot
    represent, a number beyond its range and a fraction in a file of integers are errors.

    A symmetric, skew-symmetric or Hermitian file stores one triangle, lower or upper; a file with
    both must declare a general matrix. Its diagonal must be zero if skew, real if Hermitian.

    Harwell-Boeing files have fields of fixed width, given by the formats in their header, so fields
    may touch, omit the decimal point, or be blank, which is 0. Right-hand sides are skipped.

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
            return sp.csc_array(read_matrix_market(path))
        if ending in _HARWELL_BOEING:
            return read_harwell_boeing(path)
        if ending == ".npz":
            return read_npz(path)
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
            x = _dense(read_matrix_market(path))
        elif ending == ".npy":
            x = read_npy(path)
        else:
            x = np.loadtxt(path, ndmin=2)
            if x.size == 0:
                raise ValueError("the file contains no numbers")
    return x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x


def write_vector(path: str | os.PathLike[str], x: ArrayLike) -> None:
    """Write a vector (n,), or several as columns (n, k), without rounding.

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
    """Write a sparse matrix without rounding.

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
    """Return the endings of the format and of the compression, or ''."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    return (suffixes[-1] if suffixes else ""), packed


def _unknown(path: Path, known: list[str]) -> ValueError:
    return ValueError(f"{path} has an unknown file extension; known extensions: {', '.join(known)}")


def _dense(stored: np.ndarray | sp.coo_array) -> np.ndarray:
    """Return right-hand sides as a dense array; most of their entries are stored."""
    if isinstance(stored, np.ndarray):
        return stored
    rows, columns = stored.shape
    if rows * columns > max(EMPTY, SPARSEST * stored.nnz):
        raise ValueError(
            f"the file contains a sparse matrix of {rows} rows and {columns} columns with "
            f"{stored.nnz} entries, not right-hand sides"
        )
    return stored.toarray()


def _write_matrix_market(path: Path, a: np.ndarray | Sparse) -> None:
    text = BytesIO()  # the writer seeks, which a compressed stream cannot
    scipy.io.mmwrite(text, a)
    with replacing(path) as stream, _packing(stream, _endings(path)[1]) as packed:
        packed.write(text.getbuffer())


def _packing(stream: BinaryIO, packed: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Return the stream, compressed if the ending says so."""
    pack = PACKED.get(packed)
    return pack(stream, "wb") if pack else contextlib.nullcontext(stream)
