"""Changes of a factor to that of another matrix, by rotations or by a new factorization."""

from __future__ import annotations

from collections.abc import Callable

from ..backend.protocol import NumericFactor, PivotFailure
from ..cpu.updates.update import PanelChange, PatternError, has_rotations
from ..errors import (
    FactorMemoryError,
    IllConditionedWarning,
    NotPositiveDefiniteError,
    SingularMatrixError,
    warn,
)
from ..matrix.canonical import Canonical
from ..numeric.linear_system import eps_of
from ..numeric.thresholds import THRESHOLDS
from .attempt import Attempt
from .diagnosis import Diagnosis
from .solve import FactorSolver
from .state import FactorState, RestoredFactor


def require_rotations(state: FactorState) -> None:
    """Raise ValueError unless the panels of a factor can be rotated."""
    factor = state.factor
    if state.solver.verdict.null_space is not None:
        reason = "the matrix is singular"
    elif state.analysis.symbolic.schur is not None:
        reason = "the factor has a Schur complement, which would not change"
    elif has_rotations(factor):
        return
    elif state.analysis.method != "cholesky":
        reason = f"the method is {state.analysis.method}"
    elif factor.backend != "cpu":
        reason = "the factor is on a GPU"
    else:
        reason = "the factor is in single precision and the matrix in double"
    raise ValueError(
        f"{reason}, but updates change factors of Cholesky on the CPU in the precision of the "
        "matrix. Try: solve_plus(b, C, sign), which solves with A + sign C C^H by any factor, or "
        "refactorize with the new values"
    )


def changed(
    state: FactorState,
    start: Callable[[NumericFactor], PanelChange],
    adding: bool,
    solver: FactorSolver,
) -> FactorSolver:
    """Return the solver of a changed matrix, by rotations or by a new factorization.

    If `adding`, the matrix is positive definite in exact arithmetic.
    """
    update = _started(solver.factor, start)
    try:
        if not update.is_finite:
            update.matrix.refuse_non_finite()
        factor = update.run() if update.pays else None
        if factor is None:
            revised = _factorized(state, update.matrix, solver.verdict)
        else:
            revised = FactorSolver(Diagnosis(factor, state.singular))
            revised.examine(solver.verdict)
        _warn_of_cancellation(update)
        if factor is not None:
            update.complete()
        else:
            update.pass_on(revised.factor, True)
        return revised
    except Exception as failure:
        update.undo()
        error = failure
        if not adding and isinstance(failure, SingularMatrixError):
            error = NotPositiveDefiniteError(failure.column)
        if not update.restored:
            old = _factorized(state, solver.factor.matrix, solver.verdict)
            update.pass_on(old.factor, False)
            raise RestoredFactor(old, error) from failure
        raise error from None


def _started(factor: NumericFactor, start: Callable[[NumericFactor], PanelChange]) -> PanelChange:
    """Return a change; raise ValueError if it does not fit into the pattern of A."""
    try:
        return start(factor)
    except PatternError as outside:
        raise ValueError(
            f"the change has an entry ({outside.row}, {outside.column}), which the pattern of A "
            "lacks. Try: solve_plus(b, C, sign), which allows any C; or factorize A with explicit "
            "zeros where later changes have entries"
        ) from None


def _warn_of_cancellation(update: PanelChange) -> None:
    """Warn if the new matrix has an entry that is only the rounding of larger ones before."""
    eps = eps_of(update.matrix.dtype)
    lost = update.lost(THRESHOLDS.warned / eps)
    if lost * eps > THRESHOLDS.warned:
        warn(
            f"this and earlier changes make a diagonal entry about {lost:.0e} times smaller, so "
            f"that its relative error may be {min(lost * eps, 1.0):.0e}. Try: refactorize with "
            "values that were never added to larger ones",
            IllConditionedWarning,
        )


def _factorized(state: FactorState, matrix: Canonical, before: Diagnosis) -> FactorSolver:
    """Return the solver of a new factor by Cholesky, in memory of its own."""
    analysis = state.analysis
    attempt = Attempt(matrix, analysis, state.singular, state.memory, renewed=True)
    try:
        return attempt.run(None, None, before)
    except PivotFailure as failure:
        raise NotPositiveDefiniteError(int(analysis.perm[failure.position])) from None
    except MemoryError as error:
        raise FactorMemoryError.from_error(error) from None
