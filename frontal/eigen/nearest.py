"""The k eigenpairs near a shift or at an end of the spectrum, as SciPy's eigsh selects them."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import eigsh as arpack

from ..api import factorize
from ..errors import SingularMatrixError
from .pencil import Pencil
from .report import MissingEigenvaluesError
from .ritz import Eigenpairs, Search, accepted, is_dense, near_shift, rayleigh_ritz, selected
from .shifts import UNCERTAIN, ShiftedFactors

_CLOSE = 1e-10  # a shift that is an eigenvalue is moved so far, relative to all eigenvalues
_FAR = 1e-2  # of the distance of the k-th eigenvalue: largest such move
_FARTHER = 1e3  # factor of a move that was too close
_LEAST = 2.0**-48  # smallest move, relative to all eigenvalues
_MAX_SHIFTS = 4
_INNER = 1e-3  # of the last gap: distance of the counted interval from the k-th eigenvalue


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
        return _completed(factors, shift, search, pairs)
    return pairs


def _at_good_shift(
    factors: ShiftedFactors, sigma: float, search: Search
) -> tuple[float, Eigenpairs]:
    """Return a shift, which is sigma or close to it, and the pairs of a search there."""
    move = 0.0
    for _ in range(_MAX_SHIFTS):
        shift = sigma + move
        try:
            pairs = _search(factors, shift, search)
        except SingularMatrixError:
            pairs = None
        better = _better_move(factors.pencil, sigma, move, pairs, search.tol)
        if pairs is not None and better is None:
            return shift, pairs
        move = better or 0.0
    return sigma + move, _search(factors, sigma + move, search)


def _search(
    factors: ShiftedFactors, shift: float, search: Search, locked: np.ndarray | None = None
) -> Eigenpairs:
    factor, definite = factors.factor_at(shift), factors.definite
    return near_shift(factors.pencil, factor, shift, search, definite=definite, locked=locked)


def _better_move(
    pencil: Pencil, sigma: float, move: float, pairs: Eigenpairs | None, tol: float
) -> float | None:
    """Return a better distance of the shift from sigma; None if it is good.

    A shift too close to an eigenvalue leaves few digits for the others; one too far from sigma has
    other close eigenvalues. `pairs` is None if the shift is an eigenvalue.
    """
    size = pencil.scale_at(sigma)
    farther = max(_FARTHER * abs(move), _CLOSE * size)
    if pairs is None:
        return farther
    farthest = float(np.abs(pairs.values - sigma - move).max(initial=0.0))
    if abs(move) > max(_FAR * farthest, _LEAST * size) and farthest > 0:
        return max(_FAR * _FAR * farthest, _LEAST * size)
    if (pencil.backward_errors(*pairs) > max(accepted(pencil), tol)).any():
        return farther
    return None


def _completed(
    factors: ShiftedFactors, shift: float, search: Search, pairs: Eigenpairs
) -> Eigenpairs:
    """Return the pairs closest to a shift, with those that the search has missed.

    The interval up to the last pair is counted by two inertias; further searches are M-orthogonal
    to the computed vectors.
    """
    pencil = factors.pencil
    while True:
        distance = np.sort(np.abs(pairs.values - shift))[: search.k]
        radius = _inner_radius(distance, float(pencil.value_errors(*pairs).max(initial=0.0)))
        if radius <= 0:
            break
        ends = shift - radius, shift + radius
        try:
            below, through = (factors.count_below(end) for end in ends)
        except UNCERTAIN:  # an eigenvalue that was not computed
            below, through = (
                factors.certain(end, side)[1] for end, side in zip(ends, (-1.0, 1.0), strict=True)
            )
        missing = through - below - int((distance < radius).sum())
        if missing <= 0:
            break
        more = search._replace(k=missing)
        longer = _search(factors, shift, more, pairs.vectors)
        if longer.values.size == pairs.values.size:
            raise MissingEigenvaluesError(ends, through - below, *pairs)
        pairs = longer
    closest = np.argsort(np.abs(pairs.values - shift), kind="stable")[: search.k]
    return pairs.chosen(np.sort(closest))


def _inner_radius(distance: np.ndarray, error: float) -> float:
    """Return a radius a little below the last of ascending distances, between two of them."""
    if not distance.size:
        return 0.0
    last = distance[-1]
    closer = distance[distance < last - max(4 * error, _INNER**2 * last)]
    gap = last - (closer[-1] if closer.size else 0.0)
    return float(last - max(_INNER * gap, 2 * error))


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
