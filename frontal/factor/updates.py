"""The methods of `Factor` that change it to the factor of A + C C^H or A - C C^H."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .._typing import MatrixLike
from ..backend.protocol import PivotFailure
from ..cpu.updates.update import PanelUpdate, PatternError, has_rotations, matrix_with_products
from ..cpu.updates.vectors import SparseColumns
from ..errors import FactorMemoryError, NotPositiveDefiniteError, SingularMatrixError
from ..matrix.canonical import Canonical
from .attempt import Attempt
from .diagnosis import Diagnosis
from .solve import FactorSolver
from .sparse_columns import sparse_columns
from .state import FactorState, RestoredFactor

if TYPE_CHECKING:
    from typing_extensions import Self


class Updates:
    """The part of `Factor` for low-rank changes of a positive definite matrix.

    The rotations of Davis and Hager, "Modifying a sparse Cholesky factorization" (SIAM J. Matrix
    Anal. Appl. 20, 1999) change the fronts on the paths from the rows of C to the roots. Entries of
    C C^H must be stored in A, if only as zeros.
    """

    _numbers: FactorState

    if TYPE_CHECKING:

        def copy(self) -> Self:
            """See `Factor.copy`."""
            ...

    def update(self, C: MatrixLike) -> Self:
        """Change the factor to that of A + C C^H, in place.

        A few columns take a small part of the time of `refactorize`. With so many that rotations
        would take longer, or after so many updates that their errors add up, the new matrix is
        factorized instead.

        Parameters
        ----------
        C : array (n,) or (n, k), or sparse (n, k)
            In the numbering of A; it is converted to the scalar type of A.

        Returns
        -------
        factor : Factor
            This one.

        Raises
        ------
        ValueError
            If an entry of C C^H is not stored in A, the shape does not fit, or the factor is not
            one of Cholesky on the CPU in the precision of A. `solve_plus` has none of these limits.
        TypeError, NonFiniteInputError
            If C is complex and A real; if C has NaN or infinity, or the new matrix has.
        SingularMatrixError, FactorMemoryError
            As for `refactorize`. After any error the factor is that of A.
        FactorFreedError, FactorInvalidError
            As for `solve`.

        Examples
        --------
        A spring between the unknowns 3 and 4 becomes stiffer by 2:

        >>> import frontal, numpy as np
        >>> A = frontal.problems.poisson2d(10)
        >>> factor, c = frontal.factorize(A), np.zeros(100)
        >>> c[[3, 4]] = np.sqrt(2), -np.sqrt(2)
        >>> x = factor.update(c).solve(np.ones(100))
        >>> bool(np.allclose(A @ x + c * (c @ x), 1)), factor.version
        (True, 1)
        """
        return self._change(C, True)

    def downdate(self, C: MatrixLike) -> Self:
        """Change the factor to that of A - C C^H, in place.

        Parameters
        ----------
        C : array (n,) or (n, k), or sparse (n, k)
            As for `update`.

        Returns
        -------
        factor : Factor
            This one.

        Raises
        ------
        NotPositiveDefiniteError
            If A - C C^H is not positive definite to working precision. Then, and after any other
            error, the factor is that of A with all its bits.
        ValueError, TypeError, NonFiniteInputError
            As for `update`.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.poisson2d(10)
        >>> factor, c = frontal.factorize(A), np.zeros(100)
        >>> c[7] = 1
        >>> factor.downdate(c).logdet() < frontal.factorize(A).logdet()
        True
        """
        return self._change(C, False)

    def updated(self, C: MatrixLike) -> Self:
        """Return the factor of A + C C^H as a copy; see `update`."""
        return self.copy().update(C)

    def downdated(self, C: MatrixLike) -> Self:
        """Return the factor of A - C C^H as a copy; see `downdate`."""
        return self.copy().downdate(C)

    def _change(self, C: MatrixLike, adding: bool) -> Self:
        state = self._numbers
        _require_rotations(state)
        columns = sparse_columns(C, state.analysis.n, state.factor.matrix_dtype)
        if columns.values.size:
            state.revise(partial(_changed, state, columns, adding))
        return self


def _require_rotations(state: FactorState) -> None:
    """Raise ValueError unless the panels of a factor can be rotated."""
    factor = state.factor
    if state.solver.verdict.null_space is not None:
        reason = "the matrix is singular"
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


def _changed(
    state: FactorState, C: SparseColumns, adding: bool, solver: FactorSolver
) -> FactorSolver:
    """Return the solver of A + C C^H, or A - C C^H, by rotations or by a new factorization."""
    old = solver.factor.matrix
    matrix = _new_matrix(old, C, adding)
    update = PanelUpdate(solver.factor, matrix, C, adding)
    try:
        factor = update.run() if update.pays else None
        if factor is None:
            return _factorized(state, matrix, solver.verdict)
        revised = FactorSolver(Diagnosis(factor, state.singular))
        revised.examine(solver.verdict)
        update.complete()
        return revised
    except Exception as failure:
        update.undo()
        error = failure
        if not adding and isinstance(failure, SingularMatrixError):
            error = NotPositiveDefiniteError(failure.column)
        if not update.restored:
            raise RestoredFactor(_factorized(state, old, solver.verdict), error) from failure
        raise error from None


def _new_matrix(matrix: Canonical, C: SparseColumns, adding: bool) -> Canonical:
    """Return A + C C^H, or A - C C^H; raise if its pattern or its values do not fit."""
    try:
        new = matrix_with_products(matrix, C, adding)
    except PatternError as outside:
        raise ValueError(
            f"C C^H has an entry ({outside.row}, {outside.column}), which the pattern of A lacks. "
            "Try: solve_plus(b, C, sign), which allows any C; or factorize A with explicit zeros "
            "where later updates have entries"
        ) from None
    new.refuse_non_finite()
    return new


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
