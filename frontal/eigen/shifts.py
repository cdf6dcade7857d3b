"""Factors of A - s M for a sequence of shifts, and the numbers of eigenvalues below them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ..api import analyze, factorize
from ..errors import InertiaUncertainError, NotPositiveDefiniteError, SingularMatrixError
from ..factor.analysis import Analysis
from ..factor.factor import Factor
from .pencil import Pencil

_FIRST_MOVE = 2.0**10  # roundings by which a shift is moved from an eigenvalue first
_MOVE_FACTOR = 32.0  # ratio of a move to the previous one
_MAX_MOVES = 8
_MIN_RCOND = 64  # roundings: for a smaller rcond a factor by Cholesky proves no definiteness
_SEMIDEFINITE = 100  # roundings times n by which M may miss definiteness

_EPS = 2.0**-52

UNCERTAIN = SingularMatrixError, InertiaUncertainError  # a shift that is nearly an eigenvalue


class ShiftedFactors:
    """The factor of A - s M at the last shift, and the counts of all shifts.

    Cholesky is tried at a first shift that is not positive, if the diagonal is; all later shifts
    above it have LDL^T or LDL^H.

    Attributes
    ----------
    pencil : Pencil
    definite : bool
        Whether M is positive definite; else it is semidefinite.
    shifts : list of float
        Shifts that were factorized.
    """

    def __init__(self, pencil: Pencil, *, definite: bool) -> None:
        self.pencil, self.definite = pencil, definite
        self.shifts: list[float] = []
        self._analysis: Analysis | None = None
        self._factor: Factor | None = None
        self._shift: float | None = None
        self._counts: dict[float, int] = {}
        self._below_all = -np.inf  # a shift at which A - s M has a Cholesky factor

    def factor_at(self, shift: float) -> Factor:
        """Return the factor of A - shift M, valid until the next shift.

        Raises
        ------
        SingularMatrixError
            If the shift is an eigenvalue, up to rounding.
        """
        if self._factor is not None and self._shift == shift:
            return self._factor
        self._shift = None
        self.shifts.append(shift)
        if self._factor is not None and self._is_above(shift):
            self._factor.free()
            self._factor = None
        if self._factor is None:
            self._factor = self._new_factor(shift)
        else:
            self._factor.refactorize(self.pencil.values_at(shift))
        self._shift = shift
        if self._factor.analysis.method == "cholesky":
            self._below_all = max(self._below_all, shift)
        return self._factor

    def _is_above(self, shift: float) -> bool:
        """Return whether the analysis is for Cholesky, but the shift probably above eigenvalues."""
        analysis = self._analysis
        return analysis is not None and analysis.method == "cholesky" and shift > self._below_all

    def _new_factor(self, shift: float) -> Factor:
        """Analyze the pattern if necessary, and factorize."""
        matrix = self.pencil.matrix_at(shift)
        if self._analysis is None:
            positive = shift <= 0 and bool((matrix.diagonal().real > 0).all())
            kind = "auto" if positive else self.pencil.kind
            self._analysis = analyze(matrix, kind=kind)
        elif self._is_above(shift):
            self._analysis = self._analysis.as_indefinite()
        return self._analysis.factorize(matrix)

    def count_below(self, shift: float) -> int:
        """Return the number of negative eigenvalues of A - shift M.

        For M positive definite these are the eigenvalues of the pencil below the shift (Sylvester's
        law of inertia); for M semidefinite the number differs from it by a constant.

        Raises
        ------
        SingularMatrixError, InertiaUncertainError
            If the shift is nearly an eigenvalue.
        """
        count = 0 if shift < self._below_all else self._counts.get(shift)
        if count is None:
            factor = self.factor_at(shift)
            count = self._counts[shift] = _negative(factor)
        return count

    def nearby(self, shift: float, direction: float) -> tuple[float, Factor]:
        """Return the first shift that is no eigenvalue, moved in a direction, and its factor.

        Raises
        ------
        SingularMatrixError
        """
        place = self._moved(shift, direction, self.factor_at)
        return place, self.factor_at(place)

    def certain(self, shift: float, direction: float) -> tuple[float, int]:
        """Return the first shift with a certain count, moved in a direction, and this count.

        Raises
        ------
        SingularMatrixError, InertiaUncertainError
        """
        place = self._moved(shift, direction, self.count_below)
        return place, self.count_below(place)

    def _moved(self, shift: float, direction: float, query: Callable[[float], object]) -> float:
        """Return the first of a sequence of shifts at which a query does not fail."""
        scale, step = self.pencil.scale_at(shift) * _EPS, 0.0
        for _ in range(_MAX_MOVES):
            try:
                query(shift + direction * step)
            except UNCERTAIN:
                step = max(_MOVE_FACTOR * step, _FIRST_MOVE * scale)
            else:
                return shift + direction * step
        raise SingularMatrixError(
            f"A - s M is singular, up to rounding, for {_MAX_MOVES} shifts s from {shift:.6g} to "
            f"{shift + direction * step / _MOVE_FACTOR:.6g}. Likely causes: (a) A and M have a "
            "common null vector, (b) eigenvalues are too dense. Try: remove unknowns without "
            "stiffness and mass, or another interval or sigma"
        )


def _negative(factor: Factor) -> int:
    """Return the number of negative eigenvalues of a factorized matrix."""
    if factor.analysis.method != "cholesky":
        return factor.inertia.negative
    if factor.rcond() <= _MIN_RCOND * _EPS:
        raise InertiaUncertainError(factor.shape[0] - 1, 0, 1)
    return 0


def is_definite(M: sp.csc_array | None) -> bool:
    """Return whether M is positive definite, as the identity (None) is; False if semidefinite.

    Raises
    ------
    ValueError
        If M has a negative eigenvalue.
    """
    if M is None:
        return True
    diagonal = M.diagonal().real
    largest, smallest = diagonal.max(initial=0.0), diagonal.min(initial=np.inf)
    if smallest >= 0 and largest > 0:
        if np.count_nonzero(M.data) == np.count_nonzero(diagonal):
            return bool(smallest > 0)
        scaled = _with_unit_diagonal(M)
        if smallest > 0 and _has_cholesky(scaled):
            return True
        slack = _SEMIDEFINITE * M.shape[0] * _EPS
        coupled = np.bincount(M.indices, M.data != 0, M.shape[0]) > 0
        enlarged = sp.csc_array(scaled + slack * sp.eye_array(M.shape[0]))
        if not (coupled & (diagonal == 0)).any() and _has_cholesky(enlarged):
            return False
    raise ValueError(
        "M must be positive definite or semidefinite, and not zero. Likely causes: (a) A and M are "
        "exchanged, (b) the elements have negative masses. Try: eigsh(M, M=A), whose eigenvalues "
        "are the reciprocals, if A is positive definite"
    )


def _with_unit_diagonal(M: sp.csc_array) -> sp.csc_array:
    """Return M with rows and columns scaled by powers of two.

    Positive diagonal entries become 1/2 to 2. Rounding errors of each entry are then relative
    to its own row and column.
    """
    diagonal = M.diagonal().real
    exponent = np.frexp(np.where(diagonal > 0, diagonal, 1.0))[1]
    scale = sp.diags_array(np.ldexp(1.0, -(exponent // 2)))
    return sp.csc_array(scale @ M @ scale)


def _has_cholesky(M: sp.csc_array) -> bool:
    try:
        factorize(M, kind="spd")
    except (NotPositiveDefiniteError, SingularMatrixError):
        return False
    return True
