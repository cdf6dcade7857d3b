"""Refusal of queries that no refinement corrects, for factors with replaced pivots."""

from __future__ import annotations

import numpy as np

from ..errors import FrontalError
from ..messages import named_columns
from .quasidefinite import has_grown
from .solve import FactorSolver


class InverseInaccurateError(FrontalError, ArithmeticError):
    """A query about the factors has no answer for A: pivots were replaced, or entries have grown.

    Attributes
    ----------
    query : str
        What was requested, such as entries of the inverse.
    replaced : int
        Number of replaced pivots.
    null_columns : int array
        Columns of A that depend on the others, to working precision; may be empty.
    growth : float
        `Factor.growth` of ``kind="quasidefinite"`` if no pivot was replaced; else 0.
    """

    def __init__(
        self,
        replaced: int,
        null_columns: np.ndarray,
        query: str = "entries of the inverse",
        growth: float = 0.0,
    ) -> None:
        super().__init__(replaced, null_columns, query, growth)
        self.replaced, self.null_columns, self.query = replaced, null_columns, query
        self.growth = growth

    def __str__(self) -> str:
        if self.growth:
            return (
                f"the factor has no accurate {self.query}: its entries have grown to "
                f"{self.growth:.0e} times those of the matrix. Likely causes: (a) the matrix is "
                "not quasidefinite, (b) its regularization is tiny. Try: kind='symmetric', or "
                "larger diagonal entries"
            )
        null, count = self.null_columns, self.replaced
        depend = "depend" if null.size > 1 else "depends"
        dependent = f", and {named_columns(null)} {depend} on the others" if null.size else ""
        return (
            f"the factor has no {self.query}: {count} of its pivots "
            f"{'was' if count == 1 else 'were'} replaced{dependent}. Likely causes: (a) the matrix "
            "is singular, which singular='warn' or 'allow' accepts, (b) no stable pivots were "
            "found. Try: fix one unknown of each free motion, remove dependent equations, or, if "
            "the matrix is regular, solve with the whole factor, whose solutions are refined"
        )


def require_exact_pivots(solver: FactorSolver, query: str = "entries of the inverse") -> None:
    """Raise if the factor is that of another matrix.

    Raises
    ------
    InverseInaccurateError
    """
    factor, null = solver.factor, solver.verdict.null_space
    replaced = max(factor.perturbed, factor.nulls.size)
    if replaced or null is not None:
        columns = np.empty(0, np.int64) if null is None else null.columns.copy()
        raise InverseInaccurateError(replaced, columns, query)
    if factor.symbolic.method.signed and has_grown(solver.growth, factor.dtype):
        raise InverseInaccurateError(0, np.empty(0, np.int64), query, solver.growth)
