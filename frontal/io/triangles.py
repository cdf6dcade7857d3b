"""Completion of matrices from files that store one triangle."""

from __future__ import annotations

import numpy as np

Triplets = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, columns, values


def complete(triplets: Triplets, symmetry: str) -> Triplets:
    """Return the entries of both triangles; mirrored entries come last.

    Parameters
    ----------
    triplets : tuple of array (nnz,)
        Rows, columns and values of one triangle, lower or upper.
    symmetry : str
        "general", "symmetric", "skew-symmetric" or "hermitian".

    Examples
    --------
    >>> complete((np.array([0, 1]), np.array([0, 0]), np.array([2, 1j])), "hermitian")[2].tolist()
    [(2+0j), 1j, -1j]
    """
    if symmetry == "general":
        return triplets
    rows, columns, values = triplets
    off = np.flatnonzero(rows != columns)
    rows, columns = (
        np.concatenate([rows, columns[off]]),
        np.concatenate([columns, rows[off]]),
    )
    return rows, columns, np.concatenate([values, _mirrored(values[off], symmetry)])


def complete_dense(stored: np.ndarray, n: int, symmetry: str) -> np.ndarray:
    """Return an array of order n from its lower triangle by columns.

    The triangle of a skew-symmetric matrix has no diagonal.

    Raises
    ------
    ValueError
        If the diagonal of a Hermitian matrix is not real.

    Examples
    --------
    >>> complete_dense(np.array([1, 2, 3]), 2, "symmetric").tolist()
    [[1, 2], [2, 3]]
    """
    columns, rows = np.triu_indices(n, 1 if symmetry == "skew-symmetric" else 0)
    A = np.zeros((n, n), stored.dtype)
    A[columns, rows] = _mirrored(stored, symmetry)
    A[rows, columns] = stored
    check_triangle(np.arange(n), np.arange(n), A.diagonal(), symmetry)
    return A


def check_triangle(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, symmetry: str
) -> None:
    """Raise ValueError if entries are not those of one triangle of such a matrix."""
    lower, upper = np.flatnonzero(rows > columns), np.flatnonzero(rows < columns)
    if lower.size and upper.size:
        low, high = ((rows[k] + 1, columns[k] + 1) for k in (lower[0], upper[0]))
        raise ValueError(
            f"entries ({low[0]}, {low[1]}) and ({high[0]}, {high[1]}) are on opposite sides of the "
            f"diagonal, but a {symmetry} file stores only one triangle. If the file stores both "
            "triangles, it should declare a general matrix"
        )
    on = np.flatnonzero(rows == columns)
    wrong = {"hermitian": np.imag(values[on]), "skew-symmetric": values[on]}.get(symmetry)
    if wrong is not None and np.any(wrong != 0):
        k = on[np.flatnonzero(wrong != 0)[0]]
        raise ValueError(
            f"{values[k]} on the diagonal, in column {columns[k] + 1}, contradicts the symmetry "
            f"{symmetry!r}"
        )


def _mirrored(values: np.ndarray, symmetry: str) -> np.ndarray:
    """Return the values of the transposed entries."""
    if symmetry != "skew-symmetric":
        return values.conj() if symmetry == "hermitian" else values
    if values.dtype.kind == "i" and np.any(values == np.iinfo(values.dtype).min):
        raise ValueError(f"-({values.min()}) is too large for a 64-bit integer")
    return -values
