"""The k eigenpairs near a shift or at an end of the spectrum, as SciPy's eigsh selects them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator
from scipy.sparse.linalg import eigsh as arpack

from ..api import factorize
from ..errors import SingularMatrixError
from .pencil import Pencil
from .report import MissingEigenvaluesError
from .ritz import Eigenpairs, Search, accepted, is_dense, near_shift, rayleigh_ritz, selected
from .shifts import ShiftedFactors

_CLOSE = 1e-10  # a shift that is an eigenvalue is moved so far, relative to all eigenvalues
_FAR = 0.9e-2  # of the distance of the k-th eigenvalue from sigma: largest move
_FARTHER = 10.0  # factor of a move without k eigenpairs
_LEAST = 2.0**-48  # largest move at rounding level, relative to all eigenvalues
_ROUNDING = 2.0**-42  # distance of eigenvalues that equal sigma, relative to all eigenvalues
_MAX_SHIFTS = 10
_INNER = 1e-3  # of the last gap: largest distance of the counted end from the k-th eigenvalue
_COUNTED = 2.0**-40  # the same, relative to all eigenvalues
_MAX_MISSING = 32  # eigenvalues of one further search


def at_shift(factors: ShiftedFactors, sigma: float, search: Search, complete: bool) -> Eigenpairs:
    """Return eigenpairs selected by 1 / (s - sigma), as in SciPy's shift-invert mode.

    Parameters
    ----------
    factors : ShiftedFactors
    sigma : float
        Moved if it is an eigenvalue, or too close to one for accurate pairs.
    search : Search
    complete : bool
        Prove for ``which="LM"`` that no closer eigenvalue is missing.

    Raises
    ------
    MissingEigenvaluesError
    """
    shift, pairs = _at_good_shift(factors, sigma, search)
    if complete and search.which == "LM":
        return _completed(factors, sigma, shift, search, pairs)
    return pairs


class Candidate(NamedTuple):
    """Eigenpairs of a search at a shift that was moved from sigma.

    Attributes
    ----------
    move : float
    pairs : Eigenpairs
    is_full : bool
        Whether k pairs, or all, were computed.
    error : float
        Largest backward error, relative to the accepted one.
    limit : float
        Largest move that the distances of the pairs from sigma allow.
    """

    move: float
    pairs: Eigenpairs
    is_full: bool
    error: float
    limit: float

    @property
    def is_good(self) -> bool:
        """Whether the pairs are full and accurate, and the shift close enough to sigma."""
        return self.is_full and self.error <= 1 and self.move <= self.limit


def _at_good_shift(
    factors: ShiftedFactors, sigma: float, search: Search
) -> tuple[float, Eigenpairs]:
    """Return a shift, which is sigma or close to it, and the pairs of a search there.

    A shift too close to an eigenvalue leaves few digits for the others; one too far from sigma has
    other close eigenvalues. Moves between both are bisected.
    """
    candidates: list[Candidate] = []
    move, near, far, size = 0.0, 0.0, np.inf, factors.pencil.scale_at(sigma)
    failure: Exception = SingularMatrixError(f"no shift near {sigma:.6g} has accurate eigenpairs")
    for _ in range(_MAX_SHIFTS):
        last = None
        try:
            last = _candidate(factors, sigma, move, search)
        except ArpackNoConvergence:
            raise
        except (SingularMatrixError, ArpackError) as error:
            failure = error
        if last is not None:
            candidates.append(last)
            if last.is_good:
                return sigma + move, last.pairs
        if last is not None and last.is_full and move > last.limit:
            far, move = move, last.limit / 2
        else:
            near, move = max(near, move), _farther_move(last, move, _CLOSE * size)
        if move >= far or move <= near:
            move = float(np.sqrt(max(near, _LEAST * size / 4) * far))
        if not near < move < min(far, np.inf) or far < 4 * near:
            break
    allowed = [last for last in candidates if last.move <= max(last.limit, _CLOSE * size)]
    if not allowed:
        raise failure
    best = min(allowed, key=lambda last: (not last.is_full, max(last.error, 1.0), last.move))
    return sigma + best.move, best.pairs


def _farther_move(last: Candidate | None, move: float, least: float) -> float:
    """Return a larger move: the largest one that a candidate allows, or a multiple."""
    if last is not None and last.is_full:
        return last.limit / 2
    allowed = 0.0 if last is None else last.limit / 2
    return max(_FARTHER * move, least, allowed)


def _candidate(factors: ShiftedFactors, sigma: float, move: float, search: Search) -> Candidate:
    """Return the pairs of a search at a moved shift, and how good they are."""
    pencil, pairs = factors.pencil, _search(factors, sigma + move, search)
    size = pencil.scale_at(sigma)
    distance = float(np.abs(pairs.values - sigma).max(initial=0.0))
    limit = max(_FAR * distance, _LEAST * size)
    if distance <= _ROUNDING * size:  # no shift can tell the pairs from sigma
        limit = _CLOSE * size
    error = float(pencil.backward_errors(*pairs).max(initial=0.0))
    error /= max(accepted(pencil), search.tol)
    return Candidate(move, pairs, pairs.values.size >= min(search.k, pencil.n), error, limit)


def _search(
    factors: ShiftedFactors, shift: float, search: Search, locked: np.ndarray | None = None
) -> Eigenpairs:
    factor, definite = factors.factor_at(shift), factors.definite
    return near_shift(factors.pencil, factor, shift, search, definite=definite, locked=locked)


def _completed(
    factors: ShiftedFactors, sigma: float, shift: float, search: Search, pairs: Eigenpairs
) -> Eigenpairs:
    """Return the pairs closest to sigma, with those that the search at a shift has missed.

    The interval around sigma up to the last pair is counted by two inertias; further searches are
    M-orthogonal to the computed vectors.
    """
    pencil = factors.pencil
    while True:
        distance = np.sort(np.abs(pairs.values - sigma))[: search.k]
        error = pencil.value_errors(*pairs)
        certain = _COUNTED * pencil.scale_at(sigma)
        radius = _inner_radius(distance, float(error.max(initial=0.0)), certain)
        if radius <= 0:
            break
        ends, count = _counted_around(factors, sigma, radius)
        depth = np.minimum(pairs.values - ends[0], ends[1] - pairs.values)
        inside = np.flatnonzero(depth > -error)  # a pair within its error of an end may be inside
        missing = count - inside.size
        if missing <= 0:
            break
        more = search._replace(k=min(missing, _MAX_MISSING))
        longer = _search(factors, shift, more, pairs.vectors)
        if longer.values.size <= pairs.values.size:
            raise MissingEigenvaluesError(ends, count, *pairs.chosen(inside))
        pairs = longer
    closest = np.argsort(np.abs(pairs.values - sigma), kind="stable")[: search.k]
    return pairs.chosen(np.sort(closest))


def _counted_around(
    factors: ShiftedFactors, sigma: float, radius: float
) -> tuple[tuple[float, float], int]:
    """Return an interval around sigma, with ends moved outward from eigenvalues, and its count."""
    low, below = factors.certain(sigma - radius, -1.0)
    high, through = factors.certain(sigma + radius, 1.0)
    return (low, high), through - below


def _inner_radius(distance: np.ndarray, error: float, certain: float) -> float:
    """Return a radius a little below the last of ascending distances, between two of them.

    An inertia is probably certain at the distance `certain` from an eigenvalue.
    """
    if not distance.size:
        return 0.0
    last = distance[-1]
    closer = distance[distance < last - max(4 * error, _INNER**2 * last)]
    gap = last - (closer[-1] if closer.size else 0.0)
    return float(last - max(min(_INNER * gap, certain), 2 * error))


def without_shift(factors: ShiftedFactors, search: Search, complete: bool) -> Eigenpairs:
    """Return eigenpairs selected by the eigenvalues themselves.

    The smallest moduli are those closest to zero; so are the smallest values of a positive
    (semi)definite A.
    """
    pencil = factors.pencil
    if search.which == "SM":
        return at_shift(factors, 0.0, search._replace(which="LM"), complete)
    if search.which == "SA" and bool((pencil.A.diagonal().real > 0).all()):
        for shift in (0.0, -_CLOSE * pencil.scale_at(0.0)):
            try:
                definite = factors.factor_at(shift).analysis.method == "cholesky"
            except SingularMatrixError:
                continue
            if definite:
                return at_shift(factors, shift, search._replace(which="LM"), complete)
    if is_dense(pencil.n, search.k) and factors.definite:
        M = None if pencil.M is None else pencil.M.toarray()
        values, vectors = scipy.linalg.eigh(pencil.A.toarray(), M)
        index = selected(values, search.k, search.which)
        return Eigenpairs(values[index], vectors[:, index])
    _, V = arpack(pencil.A, M=pencil.M, Minv=_mass_inverse(pencil), **search._asdict())
    return rayleigh_ritz(pencil, V)


def _mass_inverse(pencil: Pencil) -> LinearOperator | None:
    if pencil.M is None:
        return None
    return factorize(pencil.M, kind="spd").as_linear_operator(refine=0)


def transformed(factors: ShiftedFactors, sigma: float, search: Search) -> Eigenpairs:
    """Return eigenpairs by the modes "buckling" and "cayley", as ARPACK computes them."""
    pencil = factors.pencil
    factor = factors.factor_at(sigma)
    inverse = factor.as_linear_operator(refine=0)
    values, vectors = arpack(pencil.A, M=pencil.M, sigma=sigma, OPinv=inverse, **search._asdict())
    return Eigenpairs(values, vectors).chosen(np.argsort(values, kind="stable"))
