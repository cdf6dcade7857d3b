"""The numbers that decide: errors without a unit are relative, "roundings" are multiples of eps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np


@dataclass(frozen=True)
class Thresholds:
    """Limits of backward errors, condition numbers and gaps of symmetry.

    Attributes
    ----------
    accepted : float
        Roundings. Componentwise backward error of a refined solution that needs no warning
        (Arioli, Demmel and Duff 1989); correct solutions of all kinds tried reach 1.
    long_row : int
        Entries from which a row may err by more: rounding of a sum of m terms of one sign was
        measured as 0.09 sqrt(m) roundings, and sqrt(m) / 4 is accepted, which is 16 here.
    normwise, unrefined : float
        Roundings. Normwise and componentwise backward errors up to which a solution by a factor
        in the precision of the matrix is not refined.
    tiny_row : float
        Roundings for each unknown: rows whose |A||x| + |b| is smaller than so much of
        |A| |x|_max + |b| are judged by |x|_max too. At most `tiny_row_limit`.
    warned : float
        Relative error of a solution from which a warning is due.
    margin : float
        Estimated condition numbers count so many times, unless the solution's own is estimated.
        Estimates of one factor were at most 4 times too small.
    margin_single : float
        The same in single precision, whose roundings leave no room for more than the factor of 4.
    weights : float
        Largest ratio of the weights of a solution, (|A||x| + |b| + |r|/error) / |x|_max, to the
        row sums of |A|; follows from the rowwise error, see `numeric.condition`.
    certificate : float
        Least part of |A| e that a certificate of a condition number must leave.
    suspected : float
        Condition number times eps from which a factor with small pivots is searched for null
        vectors.
    symmetry : float
        Roundings of the smaller of two rows' largest entries by which transposed entries may
        differ in a symmetric matrix. Assembled symmetric matrices differ by 2 at most, the least
        convection tried by 1e4.
    single : float
        Condition number times the roundoff of single precision up to which a factor in single
        precision estimates it for the matrix in double.
    corrections : int
        Most steps of refinement, as in LAPACK's xSGESV: a factor in single gains few digits each.
    """

    accepted: float = 16
    long_row: int = 4096
    normwise: float = 4
    unrefined: float = 1000
    tiny_row: float = 1000
    tiny_row_limit: float = 1e-3
    warned: float = 0.01
    margin: float = 1000
    margin_single: float = 4
    weights: float = 8
    certificate: float = 0.01
    suspected: float = 1e-3
    symmetry: float = 16
    single: float = 0.1
    corrections: int = 30


THRESHOLDS = Thresholds()


@cache
def margin_of(dtype: np.dtype) -> float:
    """By how much an estimated condition number counts more, for vectors of a scalar type."""
    single = np.finfo(dtype).dtype.itemsize == 4
    return THRESHOLDS.margin_single if single else THRESHOLDS.margin
