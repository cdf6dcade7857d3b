"""Quasidefinite matrices: signs that a user gives, the growth of factors, and the error."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..backend.protocol import NumericFactor
from ..errors import NotPositiveDefiniteError
from ..matrix.canonical import Canonical
from ..numeric.linear_system import eps_of


class NotQuasidefiniteError(NotPositiveDefiniteError):
    """A pivot of a matrix of ``kind="quasidefinite"`` lacks its sign.

    Attributes
    ----------
    column : int or None
        The column of that pivot, in the numbering of the matrix.
    """

    what = "quasidefinite", "lacks its sign"
    causes = (
        "Likely causes: (a) a diagonal entry is zero and `signs` are not given, (b) signs are "
        "wrong, (c) the matrix is another one. Replaced pivots may not be enough for solutions. "
        "Try: signs=, regularize=True, larger diagonal entries, or kind='symmetric'"
    )


def refuse_replaced_signs(factor: NumericFactor) -> None:
    """Raise if solutions are inaccurate since pivots without their sign were replaced."""
    if factor.symbolic.method.signed and factor.perturbed:
        raise NotQuasidefiniteError


def has_grown(growth: float, dtype: np.dtype, digits: float = 0.5) -> bool:
    """Return whether factors with this growth have lost a share of the `digits` of A.

    Pivots are not searched, so that they may be tiny beside their columns. Solutions are refined;
    determinants, inertia and entries of the inverse are not.
    """
    return not growth <= eps_of(dtype) ** -digits


def required_signs(signs: ArrayLike | None, matrix: Canonical) -> np.ndarray | None:
    """Return the `signs` of `frontal.analyze` as int8, checked for a matrix; None if not given."""
    if signs is None:
        return None
    if not matrix.method.signed:
        raise ValueError("signs are for kind='quasidefinite' only")
    given = np.asarray(signs)
    if given.shape != (matrix.n,):
        raise ValueError(f"signs has shape {given.shape}, the matrix needs {(matrix.n,)}")
    wrong = np.flatnonzero((given != 1) & (given != -1))
    if wrong.size:
        raise ValueError(f"signs[{wrong[0]}] is {given[wrong[0]]}; each sign is 1 or -1")
    return given.astype(np.int8)
