"""The parts of a factor as matrices, and solves with them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped
from ..matrix.canonical import prepare_rhs
from . import extract
from .part_solver import SYSTEMS
from .state import FactorState


class FactorParts:
    """The part of `Factor` for L, D, U and its permutations."""

    _numbers: FactorState

    def diag(self) -> np.ndarray:
        """Return the pivots by columns of A: diagonal of U or D, or squares of Cholesky's L.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> frontal.factorize(sp.diags_array([4.0, -2.0]).tocsc()).diag()
        array([ 4., -2.])
        """
        return extract.pivots(self._numbers.factor)

    @property
    def perm_c(self) -> np.ndarray:
        """Position of each column of A: ``Pr @ A @ Pc`` has column j at ``perm_c[j]``."""
        return extract.column_positions(self._numbers.factor)

    @property
    def perm_r(self) -> np.ndarray:
        """Position of each row of A, as scipy's ``SuperLU.perm_r``; ``Pr @ A @ Pc == L @ U``."""
        return extract.row_positions(self._numbers.factor)

    @property
    def L(self) -> sp.csc_array:
        """Lower factor of ``Pr @ A @ Pc``; unit diagonal except for Cholesky."""
        return extract.lower_factor(self._numbers.factor)

    @property
    def U(self) -> sp.csc_array:
        """Upper factor of ``Pr @ A @ Pc``: L^H for Cholesky, D L^H for LDL^H.

        Raise ValueError if D has 2x2 blocks, as D L^H is not triangular then: use `D`.
        """
        return extract.upper_factor(self._numbers.factor)

    @property
    def D(self) -> sp.csc_array:
        """Block diagonal factor, (n, n): ``Pr @ A @ Pc == L @ D @ L.conj().T`` (``L.T`` for LDL^T).

        Blocks are 1x1 and 2x2. Raise ValueError for Cholesky and LU.
        """
        return extract.block_diagonal(self._numbers.factor)

    @property
    def has_pairs(self) -> bool:
        """Return whether D has 2x2 blocks."""
        return bool(self._numbers.factor.subdiagonal().any())

    def _solve_part(
        self, b: Untyped, system: str, trans: str, refine: int | None, return_info: bool
    ) -> Untyped:
        """Solve a system with a part of the factors; see `Factor.solve`."""
        if not isinstance(system, str) or system not in SYSTEMS:
            raise ValueError(f"system is {system!r}; choose one of {', '.join(map(repr, SYSTEMS))}")
        if trans != "N" or refine or return_info:
            raise ValueError(
                f"system={system!r} is a part of the factors, which has no transpose, refinement "
                "or report. Try: trans='N', refine=None and return_info=False; for the transpose "
                "of 'L' use system='Lt', if the method has one triangle"
            )
        state = self._numbers
        B, restore = prepare_rhs(b, state.analysis.n, state.factor.matrix_dtype)
        return restore(state.answer_by_parts(lambda parts: parts(B, system)))
