"""Queries of a factor about its dense Schur complement.

With A2 the rows and columns of ``schur`` and A11 the others, S = A22 - A21 A11^-1 A12 is the front
that is eliminated last. A x = b then is S x2 = b2 - A21 A11^-1 b1 and A11 x1 = b1 - A12 x2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import Untyped
from ..matrix.canonical import check_finite_rhs, prepare_rhs
from ..symbolic.phase import Symbolic
from .inverse_entries import finite
from .schur_solver import SchurSolver, require_schur
from .state import FactorState


class SchurComplement:
    """The part of `Factor` for the Schur complement of `frontal.factorize`."""

    _numbers: FactorState

    def schur(self) -> np.ndarray:
        """Return the dense Schur complement S = A22 - A21 A11^-1 A12.

        Block 2 are the unknowns that `frontal.analyze` or `frontal.factorize` got as ``schur``,
        block 1 are the others. The accuracy of S is that of solutions with A11.

        Returns
        -------
        S : (k, k) array
            In the order of ``schur``; exactly symmetric or Hermitian if the method of the factor
            is. A new array with each call, on the host.

        Raises
        ------
        ValueError
            If there is no ``schur``.
        SingularMatrixError
            If pivots of A11 were replaced, for ``kind="quasidefinite"``.
        SolutionOverflowError
            If an entry is too large for its type.

        Warns
        -----
        IllConditionedWarning
            If S may have fewer than two correct digits, because A11 is nearly singular or factors
            have grown; not with ``singular="allow"``. The first query of a factorization expands
            and condenses a random vector for this check.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> A = sp.csc_array([[4.0, 2.0, 2.0], [2.0, 5.0, 0.0], [2.0, 0.0, 6.0]])
        >>> frontal.factorize(A, schur=[1, 2]).schur()
        array([[ 4., -1.],
               [-1.,  5.]])
        """
        return self._numbers.answer_by(SchurSolver, SchurSolver.complement)

    def schur_condense(self, b: Untyped) -> Untyped:
        """Return g = b2 - A21 A11^-1 b1, the right-hand side of S x2 = g.

        Parameters
        ----------
        b : array (n,) or (n, c)
            Right-hand sides of A x = b; they may be complex with a real factor.

        Returns
        -------
        g : array (k,) or (k, c)
            In the order of ``schur``, on the device of b.

        Raises
        ------
        ValueError, TypeError, NonFiniteInputError
            As for `solve`, and if there is no ``schur``.
        SingularMatrixError, SolutionOverflowError
            As for `schur`.

        Warns
        -----
        IllConditionedWarning
            As for `schur`; if the backward error of A11^-1 b1 stays large after refinement.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A, b = frontal.problems.poisson2d(5), np.ones(25)
        >>> factor = frontal.factorize(A, schur=[12, 3])
        >>> xs = np.linalg.solve(factor.schur(), factor.schur_condense(b))
        >>> bool(np.allclose(factor.schur_expand(xs, b), factor.solve(b)))
        True
        """
        B, restore = self._block(b)
        g = self._numbers.answer_by(SchurSolver, lambda solver: solver.condensed(B))
        return restore(finite(g))

    def schur_expand(self, xs: Untyped, b: Untyped) -> Untyped:
        """Return x with x2 = xs and A11 x1 = b1 - A12 xs.

        If S xs = `schur_condense` (b), x is the solution of A x = b. The equations of
        A11 are refined.

        Parameters
        ----------
        xs : array (k,) or (k, c)
            In the order of ``schur``.
        b : array (n,) or (n, c)
            As for `schur_condense`.

        Returns
        -------
        x : array of b's shape
            In the common scalar type of A, xs and b.

        Raises
        ------
        ValueError, TypeError, NonFiniteInputError, SingularMatrixError, SolutionOverflowError
            As for `schur_condense`; if xs does not fit to b.

        Warns
        -----
        IllConditionedWarning
            As for `schur_condense`.

        Examples
        --------
        See `schur_condense`.
        """
        B, restore = self._block(b)
        known = _known_part(xs, self._numbers.analysis.symbolic, B, np.ndim(b))
        x = self._numbers.answer_by(SchurSolver, lambda solver: solver.expanded(known, B))
        return restore(finite(x))

    def _block(self, b: Untyped) -> tuple[np.ndarray, Callable[[np.ndarray], Untyped]]:
        """Return right-hand sides as a block on the host, and the way back for results."""
        factor = self._numbers.factor
        require_schur(factor)
        return prepare_rhs(b, factor.symbolic.n, factor.matrix_dtype)


def _known_part(xs: Untyped, symbolic: Symbolic, B: np.ndarray, ndim: int) -> np.ndarray:
    """Return x2 as a block of the scalar type of B or a wider one.

    Raises
    ------
    ValueError, TypeError, NonFiniteInputError
    """
    k = 0 if symbolic.schur is None else symbolic.schur.size
    shape = np.shape(xs)
    if shape != ((k,) if ndim == 1 else (k, B.shape[1])):
        expected = (k,) if ndim == 1 else (k, B.shape[1])
        raise ValueError(f"xs has shape {shape}, but with this b and `schur` it must be {expected}")
    block, _ = prepare_rhs(xs, k, B.dtype, check_finite=False)
    check_finite_rhs(block, ndim, "xs")
    return block
