"""The methods of `Factor` about entries of the inverse."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._typing import MatrixLike, Untyped
from ..info import InverseInfo
from ..matrix.exact import refuse_masked
from .inverse_entries import inverse_entries
from .selected_inverse import (
    diagonal_of_inverse,
    quadratic_diagonal,
    reported_diagonal,
    selected_inverse,
    trace_of_product,
)
from .state import FactorState


class InverseQueries:
    """Entries of the inverse of A, from its factors.

    All queries compute on the host, on all threads if the matrix is large; a factor on a GPU is
    copied there. A factor of ``precision="mixed"`` is replaced by one in double precision, and LU
    by columns is repeated by fronts, once for each factorization. Entries by fronts are not
    refined.
    """

    _numbers: FactorState

    def diag_inv(self, return_info: bool = False) -> np.ndarray | tuple[np.ndarray, InverseInfo]:
        """Return the diagonal of the inverse of A, such as marginal variances of a precision.

        It takes about twice the time of a `refactorize` (Takahashi's recurrence by fronts, as in
        Lin et al., "SelInv", ACM TOMS 37, 2011). If a matching has moved rows of an unsymmetric
        matrix, some entries may need solves, as for `inverse_entries`.

        Parameters
        ----------
        return_info : bool
            Return `info` too: the diagonal is compared with solutions for four unit vectors.

        Returns
        -------
        diagonal : (n,) array
            In the numbering of A, in the scalar type of A.
        info : InverseInfo
            If `return_info`.

        Raises
        ------
        InverseInaccurateError
            If pivots were replaced, as for a singular matrix.
        SolutionOverflowError
            If an entry is too large for its type.
        FactorMemoryError
            If the working memory, less than that of the factor, is not available.
        FactorFreedError, FactorInvalidError
            As for `solve`.

        Warns
        -----
        IllConditionedWarning
            If the entries alone show that they have less than two correct digits.
        PerformanceWarning
            If pivots amplify errors so much that the diagonal is computed by solves instead.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> A = sp.csc_array([[2.0, 1.0], [1.0, 2.0]])
        >>> frontal.factorize(A).diag_inv().round(3)
        array([0.667, 0.667])
        """
        query = reported_diagonal if return_info else diagonal_of_inverse
        return self._numbers.answer_by_fronts(query)

    def selected_inverse(self, pattern: str | MatrixLike = "A") -> sp.csc_array:
        """Return the entries of the inverse of A in a sparse pattern.

        Parameters
        ----------
        pattern : {"A", "factor"} or sparse array (n, n)
            The pattern of A, that of L + U with zeros from amalgamation, or that of an array, whose
            values are ignored. Stored zeros belong to a pattern. If A was given by one triangle,
            ``"A"`` is the complete pattern.

        Returns
        -------
        Z : csc_array (n, n)
            Entry (i, j) is that of A^-1, and not of its transpose.

        Raises
        ------
        ValueError, TypeError
            If `pattern` is no name, has another shape or corrupt indices; if it is not sparse.
        InverseInaccurateError, SolutionOverflowError, FactorMemoryError
            As for `diag_inv`.

        Notes
        -----
        Entries outside of the pattern of L + U take a solve for each of their columns. If a
        matching moved rows of an unsymmetric matrix, A's pattern has such entries.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.poisson2d(5)
        >>> Z = frontal.factorize(A).selected_inverse()
        >>> bool(np.allclose(Z.diagonal(), np.linalg.inv(A.toarray()).diagonal())), Z.nnz == A.nnz
        (True, True)
        """
        return self._numbers.answer_by_fronts(lambda solver: selected_inverse(solver, pattern))

    def inverse_entries(self, rows: Untyped, cols: Untyped) -> np.ndarray:
        """Return entries (rows[e], cols[e]) of the inverse of A.

        Entries in the pattern of L + U are computed by fronts: those that contain an entry, and
        all fronts above them. For other entries the columns of the inverse are computed by solves.

        Parameters
        ----------
        rows, cols : int or int arrays
            Of equal shapes, or of shapes that can be broadcast.

        Returns
        -------
        values : array
            Of the common shape, in the scalar type of A.

        Raises
        ------
        ValueError, TypeError, IndexError
            If shapes differ; if numbers are not integers; if they are not in ``range(n)``.
        InverseInaccurateError, SolutionOverflowError, FactorMemoryError
            As for `diag_inv`.

        Examples
        --------
        >>> import frontal
        >>> factor = frontal.factorize(frontal.problems.poisson2d(5))
        >>> factor.inverse_entries([0, 24], [0, 0]).round(4)
        array([0.3017, 0.0027])
        """
        i, j = np.broadcast_arrays(*(self._checked_numbers(x) for x in (rows, cols)))
        rows, cols = i.ravel(), j.ravel()
        values = self._numbers.answer_by_fronts(lambda solver: inverse_entries(solver, rows, cols))
        return values.reshape(i.shape)

    def _checked_numbers(self, numbers: Untyped) -> np.ndarray:
        """Return numbers of rows or columns after a check."""
        refuse_masked(numbers, "the numbers of rows and columns")
        x, n = np.asarray(numbers), self._numbers.analysis.n
        if x.dtype.kind not in "iu" and x.size:
            raise TypeError(f"numbers of rows and columns are integers, not {x.dtype}")
        if x.size and (x.min() < 0 or x.max() >= n):
            raise IndexError(f"rows and columns are numbered from 0 to {n - 1}")
        return x.astype(np.int32)

    def trace_inv(self, B: MatrixLike) -> np.number:
        """Return the trace of A^-1 B for a sparse B.

        It is the derivative of `logdet` in the direction B. Nothing is computed but the entries
        of A^-1 in the pattern of B's transpose.

        Parameters
        ----------
        B : sparse array (n, n)

        Returns
        -------
        trace : scalar
            Of the common type of A and B.

        Raises
        ------
        ValueError, TypeError
            If B has another shape or corrupt indices; if it is not sparse.
        InverseInaccurateError, SolutionOverflowError, FactorMemoryError
            As for `diag_inv`.

        Examples
        --------
        >>> import frontal
        >>> A = frontal.problems.poisson2d(5)
        >>> round(float(frontal.factorize(A).trace_inv(A)), 10)
        25.0
        """
        return self._numbers.answer_by_fronts(lambda solver: trace_of_product(solver, B))

    def quadratic_diag(self, M: MatrixLike) -> np.ndarray:
        """Return the diagonal of M A^-1 M^H for sparse rows of M.

        These are leverages of observations, or variances of predictions. Rows with at most 32
        entries are computed from entries of A^-1 if these are in the pattern of L + U; others
        take a solve each.

        Parameters
        ----------
        M : sparse array (p, n)

        Returns
        -------
        values : (p,) array
            In the common scalar type of A and M.

        Raises
        ------
        ValueError, TypeError
            If M has another number of columns or corrupt indices; if it is not sparse.
        InverseInaccurateError, SolutionOverflowError, FactorMemoryError
            As for `diag_inv`.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> A = sp.diags_array([1.0, 2.0, 4.0]).tocsc()
        >>> frontal.factorize(A).quadratic_diag(sp.csr_array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]))
        array([1.5, 1. ])
        """
        return self._numbers.answer_by_fronts(lambda solver: quadratic_diagonal(solver, M))
