"""The methods of `Factor` that change it to the factor of A + C C^H or A - C C^H."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from .._typing import MatrixLike, Untyped
from ..cpu.updates.row_change import RowChange
from ..cpu.updates.update import PanelUpdate
from .change import changed, require_rotations
from .mixed import require_refinement
from .sparse_columns import scalar_type, sparse_columns
from .state import FactorState
from .woodbury import LowRankChange, solve_changed

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

        solve: Callable[..., Untyped]

        @property
        def info(self) -> dict[str, Untyped]:
            """See `Factor.info`."""
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

        Warns
        -----
        IllConditionedWarning
            If so much of a diagonal entry is removed that less than two of its digits are correct.

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

    def rowadd(self, i: int, column: MatrixLike) -> Self:
        """Replace row and column i of A by `column`, in place; its conjugate is the row.

        The factor changes along the path of column i, and in row i: two rotations, see Davis,
        Hager, "Row modifications of a sparse Cholesky factorization" (SIAM J. Matrix Anal. Appl.
        26, 2005). CHOLMOD's function of this name requires a row of the identity before.

        Parameters
        ----------
        i : int
            In ``range(n)``.
        column : array (n,), or sparse (n,) or (n, 1)
            Entries outside of the pattern of A are zero.

        Returns
        -------
        factor : Factor
            This one.

        Raises
        ------
        NotPositiveDefiniteError
            If the new matrix is not positive definite to working precision; as for `downdate`.
        ValueError
            If an entry is not stored in A, or the diagonal entry is not real; as for `update`.
        IndexError, TypeError, NonFiniteInputError
            If i is not in the range; as for `update`.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> factor = frontal.factorize(sp.csc_array([[4.0, 1.0], [1.0, 3.0]]), kind="spd")
        >>> factor.rowadd(1, [2.0, 5.0]).A.toarray()
        array([[4., 2.],
               [2., 5.]])
        """
        state = self._numbers
        require_rotations(state)
        n = state.analysis.n
        if not isinstance(i, numbers.Integral) or isinstance(i, bool):
            raise TypeError(f"i is {i!r}; it is the number of a row, an integer")
        if not 0 <= i < n:
            raise IndexError(f"i is {i}, but rows and columns are numbered from 0 to {n - 1}")
        columns = sparse_columns(column, n, state.factor.matrix_dtype, "column")
        if columns.columns != 1:
            raise ValueError(f"column has {columns.columns} columns; it must be ({n},) or ({n}, 1)")
        if np.imag(columns.values[columns.rows == i]).any():
            raise ValueError(f"column[{i}] is not real, as the diagonal of a Hermitian matrix is")
        state.revise(partial(changed, state, lambda x: RowChange(x, int(i), columns), False))
        return self

    def rowdel(self, i: int) -> Self:
        """Replace row and column i of A by those of the identity, in place.

        Parameters
        ----------
        i : int
            In ``range(n)``.

        Returns
        -------
        factor : Factor
            This one.

        Raises
        ------
        ValueError, IndexError, TypeError
            As for `rowadd`.

        Examples
        --------
        >>> import frontal
        >>> factor = frontal.factorize(frontal.problems.poisson2d(5)).rowdel(7)
        >>> x = factor.solve(range(25))
        >>> float(x[7])
        7.0
        """
        unit = np.zeros(self._numbers.analysis.n)
        if isinstance(i, numbers.Integral) and 0 <= i < unit.size:
            unit[i] = 1
        return self.rowadd(i, unit)

    def solve_plus(
        self,
        b: Untyped,
        C: MatrixLike,
        sign: int = 1,
        *,
        D: MatrixLike | None = None,
        refine: int | None = None,
        return_info: bool = False,
    ) -> Untyped:
        """Solve (A + sign C D^H) x = b without a change of the factor, by Woodbury's formula.

        It works with the factors of all kinds and backends and with any C. It takes a solve for
        each column of C and of b, and a few more for the condition number; vectors are on the host.

        Parameters
        ----------
        b : array (n,) or (n, r), or sparse (n, r)
            As for `solve`.
        C : array (n,) or (n, k), or sparse (n, k)
        sign : {1, -1}
        D : array or sparse array of C's shape, optional
            C by default.
        refine, return_info
            As for `solve`. Refinement corrects errors of Woodbury's formula too.

        Returns
        -------
        x : array of b's shape and kind, in the common scalar type of A, b, C and D
        info : SolveInfo
            If `return_info`: errors are those of the changed system, the condition number is that
            of the bordered system [A C; D^H -sign I].

        Raises
        ------
        ValueError, TypeError, NonFiniteInputError
            If shapes do not fit, `sign` is neither 1 nor -1, A is singular, or an array has NaN or
            infinity; as for `solve`.
        SingularMatrixError
            If the changed matrix is singular to working precision.
        FactorFreedError, FactorInvalidError
            As for `solve`.

        Warns
        -----
        IllConditionedWarning
            As for `solve`.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.convdiff2d(10)
        >>> factor, c = frontal.factorize(A), np.ones(100)
        >>> x = factor.solve_plus(np.ones(100), c)
        >>> bool(np.allclose(A @ x + c * (c @ x), 1))
        True
        """
        state, n = self._numbers, self._numbers.analysis.n
        if sign not in (1, -1):
            raise ValueError(f"sign is {sign!r}; choose 1 for A + C D^H, or -1 for A - C D^H")
        require_refinement(state.precision, refine)
        if state.solver.verdict.null_space is not None:
            raise ValueError(
                "A is singular, and Woodbury's formula needs its inverse. Try: factorize the "
                "changed matrix"
            )
        dtype = np.result_type(
            state.factor.matrix_dtype, *(scalar_type(x, "C and D") for x in (C, D) if x is not None)
        )
        left = sparse_columns(C, n, dtype)
        right = left if D is None else sparse_columns(D, n, dtype, "D")
        if left.columns != right.columns:
            raise ValueError(f"C has {left.columns} columns and D has {right.columns}")
        if not (left.values.size and right.values.size):
            return self.solve(b, refine=refine, return_info=return_info)
        about = (lambda: self.info) if return_info else None
        change = partial(
            LowRankChange.scaled, C=left, D=right, sign=int(sign), dtype=np.dtype(dtype)
        )
        x, info = state.answer(partial(solve_changed, change, b, refine, about))
        return x if info is None else (x, info)

    def _change(self, C: MatrixLike, adding: bool) -> Self:
        state = self._numbers
        require_rotations(state)
        columns = sparse_columns(C, state.analysis.n, state.factor.matrix_dtype)
        if columns.values.size:
            state.revise(partial(changed, state, lambda x: PanelUpdate(x, columns, adding), adding))
        return self
