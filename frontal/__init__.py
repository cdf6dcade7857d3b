"""frontal: a multifrontal sparse direct solver for SciPy matrices.

>>> import frontal, numpy as np
>>> from frontal.problems import poisson2d
>>> A = poisson2d(20)
>>> bool(np.allclose(frontal.solve(A, A @ np.ones(400)), 1))
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.3.0"

if TYPE_CHECKING:
    from . import gpu, io, linalg, ordering, problems
    from .api import analyze, factorize, solve
    from .batch.api import factorize_batch, solve_batch
    from .batch.factors import BatchFactor, BatchInfo
    from .eigen.report import EigenInfo, MissingEigenvaluesError
    from .errors import (
        BatchError,
        FactorFreedError,
        FactorInvalidError,
        FactorMemoryError,
        FrontalError,
        IllConditionedWarning,
        InertiaUncertainError,
        NonFiniteInputError,
        NotPositiveDefiniteError,
        OrderingTimeout,
        PerformanceWarning,
        SingularMatrixError,
        SolutionOverflowError,
        StaleFactorError,
        TriangleWarning,
    )
    from .factor.analysis import Analysis
    from .factor.factor import Factor
    from .factor.quasidefinite import NotQuasidefiniteError
    from .factor.replaced_pivots import InverseInaccurateError
    from .info import InverseInfo, LeastSquaresInfo, SolveInfo
    from .least_squares.api import LeastSquares, lstsq
    from .least_squares.rank import RankUncertainError
    from .solver import Solver

# Names are imported on first use: `import frontal` loads neither Numba nor SciPy.
_HOME = {
    "analyze": "api",
    "factorize": "api",
    "solve": "api",
    "lstsq": "least_squares.api",
    "factorize_batch": "batch.api",
    "solve_batch": "batch.api",
    "BatchFactor": "batch.factors",
    "BatchInfo": "batch.factors",
    "Analysis": "factor.analysis",
    "Factor": "factor.factor",
    "EigenInfo": "eigen.report",
    "InverseInfo": "info",
    "LeastSquares": "least_squares.api",
    "LeastSquaresInfo": "info",
    "SolveInfo": "info",
    "Solver": "solver",
    "BatchError": "errors",
    "FactorFreedError": "errors",
    "FactorInvalidError": "errors",
    "FactorMemoryError": "errors",
    "FrontalError": "errors",
    "IllConditionedWarning": "errors",
    "InertiaUncertainError": "errors",
    "InverseInaccurateError": "factor.replaced_pivots",
    "MissingEigenvaluesError": "eigen.report",
    "NonFiniteInputError": "errors",
    "NotPositiveDefiniteError": "errors",
    "NotQuasidefiniteError": "factor.quasidefinite",
    "OrderingTimeout": "errors",
    "PerformanceWarning": "errors",
    "RankUncertainError": "least_squares.rank",
    "SingularMatrixError": "errors",
    "SolutionOverflowError": "errors",
    "StaleFactorError": "errors",
    "TriangleWarning": "errors",
}
_MODULES = ("gpu", "io", "linalg", "ordering", "problems")

__all__ = [
    "Analysis",
    "BatchError",
    "BatchFactor",
    "BatchInfo",
    "EigenInfo",
    "Factor",
    "FactorFreedError",
    "FactorInvalidError",
    "FactorMemoryError",
    "FrontalError",
    "IllConditionedWarning",
    "InertiaUncertainError",
    "InverseInaccurateError",
    "InverseInfo",
    "LeastSquares",
    "LeastSquaresInfo",
    "MissingEigenvaluesError",
    "NonFiniteInputError",
    "NotPositiveDefiniteError",
    "NotQuasidefiniteError",
    "OrderingTimeout",
    "PerformanceWarning",
    "RankUncertainError",
    "SingularMatrixError",
    "SolutionOverflowError",
    "SolveInfo",
    "Solver",
    "StaleFactorError",
    "TriangleWarning",
    "analyze",
    "factorize",
    "factorize_batch",
    "gpu",
    "io",
    "linalg",
    "lstsq",
    "ordering",
    "problems",
    "solve",
    "solve_batch",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
