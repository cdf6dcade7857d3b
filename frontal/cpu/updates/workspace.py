"""Data of an update: the vectors, the fronts on their paths, and the rotations of a column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

BLOCK = 8  # vectors of one pass over the fronts


class UpdateWorkspace(NamedTuple):
    """All data that one pass over the fronts reads and writes.

    Attributes
    ----------
    start, parent, pointer, rows
        See `Plan`.
    panel, panels : arrays
        See `HostFactor`.
    reached : (f,) uint8 array
        Bit t is set if vector t is not zero in the rows of the front.
    place : (f,) int64 array
        Number of the first pivot row of each front on a path among the rows of `vectors`.
    vectors : array of the scalar type
        Entry of vector t in row r at ``width * r + t``; zero outside of the paths, so that only
        rows of their fronts are stored.
    width : int
        Number of vectors, at most `BLOCK`.
    local : array of the scalar type
        The vectors in the rows of one front, one after the other.
    active : (BLOCK,) int64 array
        Numbers of the vectors in `local`.
    keep, mix, cosine, sine : (BLOCK,) arrays of the scalar type
        Rotations of a column: l becomes keep l + mix w, and w becomes cosine w - sine l, with the
        previous l for an update and with the new one for a downdate.
    adding : bool
        Whether A + C C^H is factorized; else A - C C^H.
    """

    start: np.ndarray
    parent: np.ndarray
    pointer: np.ndarray
    rows: np.ndarray
    panel: np.ndarray
    panels: np.ndarray
    reached: np.ndarray
    place: np.ndarray
    vectors: np.ndarray
    width: int
    local: np.ndarray
    active: np.ndarray
    keep: np.ndarray
    mix: np.ndarray
    cosine: np.ndarray
    sine: np.ndarray
    adding: bool
