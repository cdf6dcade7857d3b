"""How much a solution may err: condition numbers, estimated from a few solves with the factors.

The relative error of x is at most || |A^-1| w || times the precision, for w = |A||x| + |b| and x of
norm 1 (Skeel 1979; LAPACK's xGERFS). Unlike the condition of A it does not depend on the scaling of
rows, and counts errors in the units of x: a badly scaled matrix is not called ill-conditioned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..accuracy import NORMWISE, Errors
from ..cpu.system import HostSystem
from ..protocol import NumericFactor
from ..symbolic.scaling import shifted
from . import refine
from .exponent import ZERO, Scaled, exponents
from .mixed import ImpreciseError, is_mixed

_TINY = 4  # orders up to which a matrix is formed, where others are estimated
_TURNS = 3  # of the estimate: at most 5 blocks are solved for
_SHOWN = 4
_SMALL = 1e-5  # an error of solutions that is far from what is warned of

Product = Callable[[np.ndarray], np.ndarray]


class Estimate(NamedTuple):
    """A condition number, and what it comes from.

    Attributes
    ----------
    condition : float
        Infinite where the factors give no numbers.
    columns : tuple of int
        The columns of A that a nearly dependent combination has most of; none if the condition
        number is small.
    """

    condition: float
    columns: tuple[int, ...]


def one_norm(
    product: Product, adjoint: Product, n: int, enough: float = 0.0
) -> tuple[float, np.ndarray]:
    """1-norm of a matrix M, estimated from below (Hager 1984; Higham and Tisseur 2000, t = 2).

    It begins with one sum and one alternating sum of columns, and no random numbers.

    Parameters
    ----------
    product, adjoint : callable
        M X and M^H X for (n, k) blocks X.
    n : int
        Order of M.
    enough : float
        No better estimate is sought of a norm that seems to be less.

    Returns
    -------
    norm : float
        NaN where M has entries that are no numbers.
    signs : (n,) array
        Of the largest column found: M^H times it is large.
    """
    place = np.arange(n)
    if n <= _TINY:
        X = np.eye(n)
    else:
        growing = (1 + place / (n - 1)) * np.where(place % 2, -1.0, 1.0)
        X = np.stack([np.full(n, 1 / n), growing / (1.5 * n)], axis=1)
    norm, signs = -1.0, np.zeros(n)
    for turn in range(_TURNS):
        Y = product(X)
        size = np.abs(Y)
        sums = size.sum(axis=0)
        j = int(np.argmax(sums))  # of NaN, if there is one
        if sums[j] < norm:
            break
        S = np.where(size > 0, Y / np.where(size > 0, size, 1), 1)
        norm, signs = float(sums[j]), S[:, j]
        if turn == _TURNS - 1 or n <= _TINY or not np.isfinite(norm):
            break
        Z = adjoint(S)
        gain = np.abs(Z).max(axis=1)  # a column of M has at least this 1-norm
        best = np.argpartition(gain, n - 2)[-2:]
        found = float(gain[best].max())
        if found <= abs(np.vdot(Z[:, j], X[:, j])):
            break
        norm = max(norm, found)
        if norm <= enough:
            break
        X = (place[:, None] == best).astype(np.float64)
    return norm, signs


def solution_condition(
    factor: NumericFactor,
    trans: str,
    X: np.ndarray,
    B: np.ndarray,
    errors: Errors,
    *,
    roughly: bool = False,
) -> Estimate:
    """By how much the relative error of solutions may exceed their precision, infinity norms.

    One estimate for all columns: of || |op(A)^-1| w ||, where each w_i is the largest of all
    columns'. Residuals that are larger than the precision of a row count there.

    Parameters
    ----------
    factor : NumericFactor
    trans : str
        op(A).
    X, B : (n, k) host arrays
        Solutions and right-hand sides. Without any but zero it is the condition of the scaled
        matrix.
    errors : Errors
        Of X.
    roughly : bool
        A condition number that is small is less than it by a factor of about 3.
    """
    if trans == "T":  # the conjugate of a system with A^H
        trans, X, B = "H", X.conj(), B.conj()
    of, error = Scaled.of(factor), float(errors.normwise.max(initial=np.finfo(X.dtype).eps))
    w, g = _weights(of, trans, X, B, error)
    solve, adjoint = _solvers(factor, of, (trans, "H" if trans == "N" else "N"))

    def backward(Y: np.ndarray) -> np.ndarray:
        return w[:, None] * adjoint(g[:, None] * Y)

    def forward(Y: np.ndarray) -> np.ndarray:
        return g[:, None] * solve(w[:, None] * Y)

    with np.errstate(all="ignore"):
        small = _SMALL / error
        norm, signs = one_norm(backward, forward, w.size, small if roughly else 0.0)
        norm = norm if np.isfinite(norm) else np.inf
        if norm <= small:
            return Estimate(norm, ())
        near_null = solve((w * signs)[:, None])[:, 0]
        return Estimate(norm, _dependent(near_null))


def _weights(
    of: Scaled, trans: str, X: np.ndarray, B: np.ndarray, error: float
) -> tuple[np.ndarray, np.ndarray]:
    """w of the scaled system, and the sizes of its unknowns in units of x."""
    (A, magnitude), (row, column) = of.op(trans), of.sides(trans)
    used = X.any(axis=0) & np.isfinite(X).all(axis=0)
    if not used.any():
        return magnitude @ np.ones(row.size), np.ones(row.size)
    if not used.all():
        X, B = X[:, used], B[:, used]
    size = exponents(X).max(axis=0, initial=ZERO)
    with np.errstate(all="ignore"):
        Y, C = shifted(X, -size - column[:, None]), shifted(B, row[:, None] - size)
        w = magnitude @ np.abs(Y) + np.abs(C) + np.abs(C - A @ Y) / error
        return w.max(axis=1), np.ldexp(1.0, column)


def _solvers(factor: NumericFactor, of: Scaled, sides: tuple[str, str]) -> list[Product]:
    """Solutions by the factors alone; refined, where small pivots or rounding hide what A is."""
    mixed = is_mixed(factor)
    small = factor.health().pivot_ratio < np.finfo(factor.dtype).eps ** 0.5
    if mixed or small or factor.perturbed or factor.nulls.size:
        return [_refined(of.system(factor, trans), mixed) for trans in sides]
    return [of.solver(factor, trans) for trans in sides]


def _refined(system: HostSystem, mixed: bool) -> Product:
    def solve(B: np.ndarray) -> np.ndarray:
        X, errors, _ = refine.solve(system, B, None, True)
        if errors is not None and errors.insufficient(system.eps):
            X, error, _ = refine.rescue(system, X, B, errors.normwise)
            if mixed and not (error <= NORMWISE * system.eps).all():
                raise ImpreciseError("no condition number can be estimated")
        return X

    return solve


def _dependent(v: np.ndarray) -> tuple[int, ...]:
    """Places of the few largest entries of a vector."""
    size = np.where(np.isfinite(v), np.abs(v), np.inf)
    largest = np.argsort(-size, kind="stable")[:_SHOWN]
    return tuple(int(j) for j in largest if size[j] >= size[largest[0]] / 2)


def reciprocal_condition(factor: NumericFactor) -> float:
    """1 / (|A| |A^-1|) in the 1-norm, estimated; 0 where that is no number."""
    n = factor.symbolic.n
    if n == 0:
        return 1.0
    of = Scaled.of(factor)
    row, column = of.row, of.column
    solve, adjoint = _solvers(factor, of, ("N", "H"))
    # A^-1 = D_c A'^-1 D_r, with the largest entries of both taken out
    most = int(row.max()), int(column.max())
    left, right = np.ldexp(1.0, column - most[1])[:, None], np.ldexp(1.0, row - most[0])[:, None]
    with np.errstate(all="ignore"):
        inverse, _ = one_norm(
            lambda X: left * solve(right * X), lambda X: right * adjoint(left * X), n
        )
        norm = np.ldexp(factor.matrix.norms[1], most[0] + most[1])
        found = 1 / (norm * inverse)
    return float(min(found, 1.0)) if np.isfinite(found) else 0.0
