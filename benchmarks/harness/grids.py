"""The grid problems of the GPU comparison by name and edge: `p2d:300`, `el27:30`, `hz3d:30`.

Those that the package has itself come from there; the others are made here, with the values that
the figures of the peers were measured on.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from benchmarks.harness.cases import DTYPES
from frontal import problems

SHIFT = 0.1  # on the diagonal of the 27-point Laplacian, which is singular without
COUPLING = np.array([[2.0, 0.5, 0.5], [0.5, 2.0, 0.5], [0.5, 0.5, 2.0]])
BELOW = 0.63  # a shift among the lower eigenvalues of the Laplacian
WAVE = 0.6 + 0.05j  # squared wave number times squared width, damped


def laplacian27(n: int) -> sp.csc_array:
    """Return the graph Laplacian of the 27-point stencil on n³ points, shifted to be definite."""
    line = sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=(-1, 0, 1))
    near = sp.csc_array(sp.kron(sp.kron(line, line), line)) - sp.eye_array(n**3, format="csc")
    near.eliminate_zeros()
    return sp.csc_array(sp.diags_array(near.sum(axis=0) + SHIFT) - near)


def three_unknowns(n: int) -> sp.csc_array:
    """Return the pattern of trilinear elasticity: `laplacian27` with 3 × 3 blocks as entries."""
    return sp.csc_array(sp.kron(laplacian27(n), COUPLING))


def damped_waves(n: int) -> sp.csc_array:
    """Return the 7-point Helmholtz matrix on n³ points: complex symmetric, indefinite."""
    return sp.csc_array(problems.poisson3d(n) - WAVE * sp.eye_array(n**3, format="csc"))


def shifted(n: int) -> sp.csc_array:
    """Return the 7-point Laplacian on n³ points less a shift: symmetric, indefinite."""
    return sp.csc_array(problems.poisson3d(n) - BELOW * sp.eye_array(n**3, format="csc"))


@dataclass(frozen=True)
class Grid:
    """How to make a problem, what the matrix is, and an edge at which it is a warm-up."""

    build: Callable[[int], sp.csc_array]
    kind: str
    small: int


GRIDS = {
    "p2d": Grid(problems.poisson2d, "spd", 40),
    "p3d": Grid(problems.poisson3d, "spd", 12),
    "p27": Grid(laplacian27, "spd", 10),
    "el27": Grid(three_unknowns, "spd", 7),
    "cd2d": Grid(problems.convdiff2d, "general", 40),
    "cd3d": Grid(problems.convdiff3d, "general", 12),
    "hz3d": Grid(damped_waves, "symmetric", 12),
    "ind3d": Grid(shifted, "symmetric", 12),
}


def split(name: str) -> tuple[Grid, int]:
    """Return the grid and the edge of a ``name:edge``.

    Raises
    ------
    ValueError
        If there is no such grid or the edge is no number.
    """
    grid, _, edge = name.partition(":")
    if grid not in GRIDS or not edge.isdigit():
        raise ValueError(f"{name!r} is not a name:edge; the names are {', '.join(GRIDS)}")
    return GRIDS[grid], int(edge)


def letters(text: str) -> str:
    """Return scalar types as letters, checked for a command line."""
    if not text or set(text) - set(DTYPES):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the letters {''.join(DTYPES)}")
    return text


def make(name: str, letter: str = "d") -> tuple[sp.csc_array, str]:
    """Make a problem.

    Parameters
    ----------
    name : str
        ``"name:edge"``, the edge being the number of points along each axis.
    letter : {"s", "d", "c", "z"}
        Scalar type; where the problem is complex, "s" stands for "c" and "d" for "z".

    Returns
    -------
    A : (n, n) csc_array
        With sorted rows in each column.
    kind : {"spd", "symmetric", "general"}
    """
    grid, edge = split(name)
    A = grid.build(edge)
    if np.iscomplexobj(A):
        letter = {"s": "c", "d": "z"}.get(letter, letter)
    A = sp.csc_array(A.astype(DTYPES[letter]))
    A.sort_indices()
    return A, grid.kind


def warm_up(name: str) -> str:
    """Return a small problem of the same grid, which takes the same path through a solver."""
    return f"{name.partition(':')[0]}:{split(name)[0].small}"
