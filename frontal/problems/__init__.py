"""Test problems by name and size: partial differential equations, saddle points, networks.

All problems are canonical `scipy.sparse.csc_array` of float64 or complex128, and reproducible bit
by bit. ``catalogue`` maps a name to a function of the size; ``from_name`` parses
``"poisson3d:50"``, the form used by the command line and the benchmarks.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

import scipy.sparse as sp

from .diffusion import aniso2d, aniso3d, biharmonic2d, heat2d, heat3d, poisson2d, poisson3d
from .elasticity import elasticity3d
from .indefinite import (
    conditioned,
    graded,
    near_skew,
    permuted,
    shifted_laplacian,
    turned,
    zero_diagonal,
)
from .networks import circuit, graph_laplacian, mna, random_geometric
from .programs import interior_point, optimal_control
from .saddle import kkt, oseen2d, repeated_constraint, stokes2d
from .transport import convdiff2d, convdiff3d
from .waves import helmholtz2d, helmholtz3d

__all__ = [
    "aniso2d",
    "aniso3d",
    "biharmonic2d",
    "catalogue",
    "circuit",
    "conditioned",
    "convdiff2d",
    "convdiff3d",
    "elasticity3d",
    "from_name",
    "graded",
    "graph_laplacian",
    "heat2d",
    "heat3d",
    "helmholtz2d",
    "helmholtz3d",
    "interior_point",
    "kkt",
    "mna",
    "near_skew",
    "optimal_control",
    "oseen2d",
    "permuted",
    "poisson2d",
    "poisson3d",
    "random_geometric",
    "repeated_constraint",
    "shifted_laplacian",
    "stokes2d",
    "turned",
    "zero_diagonal",
]


def _graph(n: int, shift: float = 1.0, **options) -> sp.csc_array:
    return graph_laplacian(random_geometric(n, **options), shift)


catalogue: dict[str, Callable[..., sp.csc_array]] = {
    "poisson2d": poisson2d,
    "poisson2d9": partial(poisson2d, stencil=9),
    "poisson3d": poisson3d,
    "poisson3d27": partial(poisson3d, stencil=27),
    "aniso2d": aniso2d,
    "aniso3d": aniso3d,
    "heat2d": heat2d,
    "heat3d": heat3d,
    "biharmonic2d": biharmonic2d,
    "elasticity3d": elasticity3d,
    "graph": _graph,
    "convdiff2d": convdiff2d,
    "convdiff3d": convdiff3d,
    "helmholtz2d": helmholtz2d,
    "helmholtz3d": helmholtz3d,
    "stokes2d": stokes2d,
    "kkt": kkt,
    "kktreg": partial(kkt, regularization=1e-6),
    "linear_program": partial(kkt, spread=6.0),
    "circuit": circuit,
    "optimal_control": optimal_control,
    "interior_point": interior_point,
    "quadratic_program": partial(interior_point, quadratic=True),
    "oseen2d": oseen2d,
    "mna": mna,
    "zero_diagonal": zero_diagonal,
    "near_skew": near_skew,
    "conditioned": conditioned,
}


def from_name(name: str) -> sp.csc_array:
    """Return a problem by its name, size and options.

    Parameters
    ----------
    name : str
        ``"name:size"`` or ``"name:size,option=value,..."``; a size is an integer, or several with
        an x between them, such as ``"poisson2d:30x20"``.

    Returns
    -------
    (n, n) csc_array

    Raises
    ------
    ValueError
        If there is no such problem, or its size or options are invalid.

    Examples
    --------
    >>> from_name("poisson3d:10").shape
    (1000, 1000)
    >>> from_name("aniso2d:30x20,eps=1e-4").shape
    (600, 600)
    """
    kind, _, rest = name.partition(":")
    size, *options = rest.split(",")
    if kind not in catalogue:
        raise ValueError(f"no problem {kind!r}; there are {', '.join(catalogue)}")
    try:
        sizes = [int(number) for number in size.split("x")]
        keywords = {
            key.strip(): ast.literal_eval(value)
            for key, value in (option.split("=") for option in options)
        }
        return catalogue[kind](sizes[0] if len(sizes) == 1 else sizes, **keywords)
    except (TypeError, SyntaxError, ValueError) as error:
        raise ValueError(f"cannot make {name!r}, which should read name:size: {error}") from error
