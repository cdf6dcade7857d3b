"""The options of the symbolic phase."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .preprocess import Pairs


class SymbolicOptions(NamedTuple):
    """User options of the symbolic phase.

    Attributes
    ----------
    ordering : str
        A method of `frontal.ordering.order`.
    perm : (n,) int array or None
        The order to use, with ``ordering="given"``.
    reuse : int
        Expected number of factorizations of this pattern: the more, the sooner a better ordering
        pays.
    pairs : {"auto", "all", "none"}
        For a symmetric pattern with tiny diagonal entries: the columns that share a front with a
        partner, stranded columns or all. With ``"none"`` LU permutes rows.
    alone : bool
        The matrix is factorized by itself: a GPU may wait for the longest path of its fronts.
    signs : (n,) int8 array or None
        Signs of the pivots of a quasidefinite matrix, in the numbering of A; None for those of its
        diagonal.
    regularize : bool
        Replace pivots of a quasidefinite matrix without their sign; else refuse the matrix.
    schur : (k,) int32 array or None
        As in `Symbolic`.
    """

    ordering: str = "auto"
    perm: np.ndarray | None = None
    reuse: int = 1
    pairs: Pairs = "auto"
    alone: bool = True
    signs: np.ndarray | None = None
    regularize: bool = True
    schur: np.ndarray | None = None

    @property
    def lasting(self) -> SymbolicOptions:
        """The options that other orderings keep."""
        return SymbolicOptions(alone=self.alone, schur=self.schur)
