"""Mixed precision: factors in single, solutions in double, fallback to a factor in double.

A factor in single precision takes half the memory and half the time. It only has to lead to a
solution: residuals, their norms and condition numbers are those of the matrix in double. It never
causes a warning or an error, as rounding makes matrices of condition 1e7 singular in single: if it
does not lead to a solution that needs no warning, a factor in double decides.
"""

from __future__ import annotations

import numbers

import numpy as np

from ..backend.protocol import NumericFactor

PRECISIONS = ("full", "mixed")
_SINGLE = {np.dtype(np.float64): np.float32, np.dtype(np.complex128): np.complex64}
_MAX_SAFE_MODULUS = 2.0**60  # numbers, their inverses and products of two stay finite in single


class ImpreciseError(Exception):
    """Insufficient accuracy of a factor in single precision; caught before it reaches users."""


def require_precision(precision: str) -> None:
    """Raise if `precision` is not a valid option.

    Raises
    ------
    ValueError
    """
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; choose 'full' or 'mixed'")


def require_double(precision: str, dtype: np.dtype) -> None:
    """Raise for values in single in mixed precision, since they have no lower precision.

    Raises
    ------
    ValueError
    """
    if precision == "mixed" and np.dtype(dtype) not in _SINGLE:
        raise ValueError(
            f"precision='mixed' factorizes a double-precision matrix in single precision, but the "
            f"matrix is already {dtype}. Try: A.astype('float64'), or precision='full'"
        )


def require_refinement(precision: str, steps: int | None) -> None:
    """Raise for an invalid number of steps, and for unrefined solutions in mixed precision.

    Raises
    ------
    ValueError, TypeError
    """
    if steps is None:
        return
    if not isinstance(steps, numbers.Integral) or isinstance(steps, bool):
        raise TypeError(
            f"refine is {steps!r}, a {type(steps).__name__}: it is the largest number of "
            "refinement steps. Try: refine=None for as many steps as help, refine=0 for none, or "
            "another integer"
        )
    if steps < 0:
        raise ValueError(
            f"refine is {steps}, and a number of refinement steps is not negative. Try: "
            "refine=None for as many steps as help, or refine=0 for none"
        )
    if steps == 0 and precision == "mixed":
        raise ValueError(
            "refine=0 returns unrefined solutions, which have only single precision with "
            "precision='mixed'. Try: refine=None, or precision='full'"
        )


def single(dtype: np.dtype) -> np.dtype:
    """Return the single precision type of a double precision type."""
    return np.dtype(_SINGLE[np.dtype(dtype)])


def is_mixed(factor: NumericFactor) -> bool:
    """Return whether a factor has a lower precision than its matrix."""
    return factor.dtype != factor.matrix_dtype


def require_range(diagonal: np.ndarray) -> None:
    """Raise if a matrix, not scaled for Cholesky, is too large or small for single.

    Raises
    ------
    ImpreciseError
    """
    size = np.abs(diagonal)
    if not (
        size.max(initial=1.0) <= _MAX_SAFE_MODULUS
        and size.min(initial=1.0) >= 1 / _MAX_SAFE_MODULUS
    ):
        raise ImpreciseError("diagonal entries are out of range for single precision")
