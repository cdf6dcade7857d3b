"""All eigenvalues in an interval, proved complete by inertia: spectrum slicing.

The number of eigenvalues between two shifts is the difference of two inertias. A slice with many
eigenvalues is cut at its middle; the eigenvalues of a small one are those nearest to a shift in it.
If fewer were computed than counted, the search is repeated M-orthogonally to the computed vectors,
which finds further vectors of multiple eigenvalues; then the slice is cut.

R. G. Grimes, J. G. Lewis, H. D. Simon, "A shifted block Lanczos algorithm for solving sparse
symmetric generalized eigenproblems", SIAM J. Matrix Anal. Appl. 15 (1994).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ..errors import InertiaUncertainError
from .pencil import Pencil
from .report import MissingEigenvaluesError
from .ritz import Eigenpairs, Search, accepted, near_shift, rayleigh_ritz
from .shifts import UNCERTAIN, ShiftedFactors

_MAX_SEARCHED = 32  # eigenvalues of one search
_MAX_EMPTY_CUTS = 4  # cuts in sequence of which one side is empty, before a search
_MAX_CUTS = 40  # of one slice: then it is as narrow as rounding allows
_MAX_RESTARTS = 30  # of ARPACK in one search
_FRACTIONS = 0.5, 0.45, 0.57, 0.39, 0.62, 0.31  # of a slice, where a shift may lie
_MAX_COUPLING = 1e-10  # entries of V^H M V - I of vectors of different slices


class Slice(NamedTuple):
    """An interval and the numbers of eigenvalues below its ends.

    Attributes
    ----------
    low, high : float
    below, through : int
        Eigenvalues below `low` and below `high`.
    cuts : int
        Cuts that led to the slice.
    empty_cuts : int
        Last cuts, in sequence, of which the other side had no eigenvalue.
    """

    low: float
    high: float
    below: int
    through: int
    cuts: int = 0
    empty_cuts: int = 0

    @property
    def size(self) -> int:
        """Number of eigenvalues."""
        return self.through - self.below

    def sides(self, shift: float, below: int) -> list[Slice]:
        """Return the sides of a cut that have eigenvalues."""
        left = Slice(self.low, shift, self.below, below, self.cuts + 1)
        right = Slice(shift, self.high, below, self.through, self.cuts + 1)
        sides = [side for side in (left, right) if side.size > 0]
        if len(sides) == 1:
            return [sides[0]._replace(empty_cuts=self.empty_cuts + 1)]
        return sides


def counted(factors: ShiftedFactors, interval: tuple[float, float]) -> Slice:
    """Return an interval, with ends moved outward from eigenvalues, and its counts.

    Parameters
    ----------
    factors : ShiftedFactors
    interval : tuple of float
        Infinite ends need a definite M.

    Raises
    ------
    ValueError
        If the interval is not one.
    SingularMatrixError
        If the pencil is singular.
    """
    low, high = (float(end) for end in interval)
    pencil = factors.pencil
    if not low <= high:  # NaN, too
        raise ValueError(f"interval is ({low}, {high}); the first end must not exceed the second")
    if not (factors.definite or np.isfinite(low + high)):
        raise ValueError(
            "an interval without end needs a positive definite M: for a semidefinite one the "
            "number of finite eigenvalues is not known. Try: finite ends"
        )
    if pencil.n == 0:
        return Slice(low, high, 0, 0)
    below, through = 0, pencil.n
    if np.isfinite(low):
        low, below = factors.certain(low, -1.0)
    if np.isfinite(high):
        high, through = factors.certain(high, 1.0)
    if through < below:
        raise InertiaUncertainError(pencil.n - below, through, below - through)
    return Slice(low, high, below, through)


def bounded(factors: ShiftedFactors, interval: Slice) -> Slice:
    """Return the interval with infinite ends replaced by bounds of the spectrum.

    They are sought by inertia in steps that double.
    """
    step, n = factors.pencil.scale_at(0.0), factors.pencil.n
    low, high = interval.low, interval.high
    if np.isinf(high):
        start = low if np.isfinite(low) else 0.0
        high = _beyond(factors, start, step, n)
    if np.isinf(low):
        low = _beyond(factors, high, -step, 0)
    return interval._replace(low=low, high=high)


def _beyond(factors: ShiftedFactors, start: float, step: float, below: int) -> float:
    """Return the first shift start + step, start + 2 step, ... with a number of values below it."""
    shift, count = factors.certain(start + step, math.copysign(1.0, step))
    while count != below:
        step *= 2
        shift, count = factors.certain(start + step, math.copysign(1.0, step))
    return shift


def all_in(factors: ShiftedFactors, interval: Slice, v0: np.ndarray | None) -> Eigenpairs:
    """Return all eigenpairs in a counted interval.

    Parameters
    ----------
    factors : ShiftedFactors
    interval : Slice
    v0 : (n,) array
        First vector of searches.

    Raises
    ------
    MissingEigenvaluesError
        If fewer pairs were computed than counted, or vectors are dependent.
    """
    pencil = factors.pencil
    empty = np.empty((pencil.n, 0), pencil.A.dtype)
    if interval.size == 0:
        return Eigenpairs(np.empty(0), empty)
    pieces, results = [bounded(factors, interval)], [Eigenpairs(np.empty(0), empty)]
    while pieces:
        piece = pieces.pop()
        shift, sides = _cut(factors, piece)
        if _is_cut(piece, sides):
            pieces += sides
            continue
        pairs = _searched(factors, piece, shift, v0)
        if pairs.values.size != piece.size and piece.cuts < _MAX_CUTS:
            pieces += [side._replace(empty_cuts=0) for side in sides]
        else:
            results.append(pairs)
    merged = _merged(pencil, results)
    if merged.values.size != interval.size:
        ends = interval.low, interval.high
        raise MissingEigenvaluesError(ends, interval.size, *merged)
    return merged


def _cut(factors: ShiftedFactors, piece: Slice) -> tuple[float, list[Slice]]:
    """Return a shift in a slice whose inertia is certain, and the sides of the cut."""
    for fraction in _FRACTIONS:
        shift = piece.low + fraction * (piece.high - piece.low)
        try:
            below = factors.count_below(shift)
        except UNCERTAIN:
            continue
        if piece.below <= below <= piece.through:
            return shift, piece.sides(shift, below)
    # all of the slice is at rounding level of an eigenvalue: its end has a factor
    factors.factor_at(piece.low)
    return piece.low, [piece._replace(cuts=_MAX_CUTS)]


def _is_cut(piece: Slice, sides: list[Slice]) -> bool:
    """Return whether sides of a slice are searched instead of the slice.

    A side without eigenvalues shows that the shift is far from them.
    """
    if piece.cuts >= _MAX_CUTS:
        return False
    if len(sides) == 1:
        return piece.empty_cuts < _MAX_EMPTY_CUTS
    return piece.size > _MAX_SEARCHED


def _searched(
    factors: ShiftedFactors, piece: Slice, shift: float, v0: np.ndarray | None
) -> Eigenpairs:
    """Return the eigenpairs in a slice that searches at a shift in it compute."""
    pencil, factor = factors.pencil, factors.factor_at(shift)
    options = {"definite": factors.definite, "incomplete": True}
    locked, inside = None, np.empty(0, np.intp)
    while True:
        k, previous = min(piece.size - inside.size, _MAX_SEARCHED), inside.size
        search = Search(k, v0=v0, maxiter=_MAX_RESTARTS)
        pairs = near_shift(pencil, factor, shift, search, locked=locked, **options)
        accurate = pencil.backward_errors(*pairs) <= accepted(pencil)
        pairs = pairs.chosen(np.flatnonzero(accurate))
        inside = _inside(pencil, piece, pairs)
        if inside.size >= piece.size or inside.size <= previous:
            return pairs.chosen(inside)
        locked = pairs.vectors


def _inside(pencil: Pencil, piece: Slice, pairs: Eigenpairs) -> np.ndarray:
    """Return the positions of the pairs in a slice, ascending.

    An eigenvalue within its error of an end is inside if the count says so.
    """
    depth = np.minimum(pairs.values - piece.low, piece.high - pairs.values)
    error = pencil.value_errors(*pairs)
    deepest = np.argsort(-depth, kind="stable")
    certain = int((depth > error).sum())
    possible = int((depth > -error).sum())
    return np.sort(deepest[: max(certain, min(possible, piece.size))])


def _merged(pencil: Pencil, results: list[Eigenpairs]) -> Eigenpairs:
    """Return the pairs of all slices, ascending and M-orthonormal; fewer if they are dependent."""
    values = np.concatenate([pairs.values for pairs in results])
    pairs = Eigenpairs(values, np.hstack([pairs.vectors for pairs in results]))
    pairs = pairs.chosen(np.argsort(values, kind="stable"))
    gram = pairs.vectors.conj().T @ pencil.mass_times(pairs.vectors)
    coupling = np.abs(gram - np.eye(values.size)).max(initial=0.0)
    return pairs if coupling <= _MAX_COUPLING else rayleigh_ritz(pencil, pairs.vectors)
