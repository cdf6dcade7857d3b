"""Signs of the pivots of quasidefinite matrices: those that a user gives, and the error."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import NotPositiveDefiniteError
from ..matrix.canonical import Canonical


class NotQuasidefiniteError(NotPositiveDefiniteError):
    """A pivot of a matrix of ``kind="quasidefinite"`` lacks its sign.

    Attributes
    ----------
    column : int or None
        The column of that pivot, in the numbering of the matrix.
    """

    what = "quasidefinite", "lacks its sign"
    causes = (
        "Likely causes: (a) a diagonal entry is zero and `signs` are not given, (b) it is too "
        "small. Try: signs=, regularize=True, larger diagonal entries, or kind='symmetric'"
    )


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
