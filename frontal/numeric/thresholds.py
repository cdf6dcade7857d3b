"""Limits of accuracy: errors without a unit are relative, "roundings" are multiples of eps."""

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
        Roundings. Largest componentwise backward error of a refined solution without a warning
        (Arioli, Demmel and Duff 1989); correct solutions of all kinds tried reach 1.
    long_row : int
        Entries in a row above which its limit grows: the error of a sum of m terms of one sign was
        measured as 0.09 sqrt(m) roundings; the limit is sqrt(m) / 4, which is 16 for 4096 entries.
    normwise, unrefined : float
        Roundings. Normwise and componentwise backward errors up to which a solution by a factor
        in the precision of the matrix is not refined. With a row of m entries `normwise` is at
        least sqrt(m) / 4, the limit of `long_row`.
    tiny_row : float
        Roundings per unknown: for rows whose |A||x| + |b| is smaller than this fraction of
        |A| |x|_max + |b|, |A| |x|_max is added. At most `tiny_row_limit`.
    warned : float
        Relative error of a solution above which a warning is issued.
    margin : float
        Safety factor of the estimated condition number of a factor; a solution's own has none.
        Estimates for one factor were at most 4 times too small.
    margin_single : float
        The same in single precision, whose eps leaves no room beyond that factor of 4.
    weights : float
        Largest ratio of the weights of a solution, (|A||x| + |b| + |r|/error) / |x|_max, to the
        row sums of |A|; follows from the rowwise error, see `numeric.condition`.
    certificate : float
        Smallest M v / (|A| e) of a row in a certificate of a condition number, for its comparison
        matrix M.
    suspected : float
        Condition number times eps above which null vectors are sought, if pivots are small.
    symmetry : float
        Largest difference of transposed entries in a symmetric matrix, in roundings of the smaller
        of the two rows' largest entries. Assembled symmetric matrices differ by 2 at most, the
        least convection tried by 1e4.
    single : float
        Largest condition number, times eps of single precision, that a factor in single precision
        may estimate for the matrix in double.
    corrections : int
        Refinement steps at most, as in LAPACK's xSGESV: with a factor in single precision each
        gains few digits.
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
    """Return the safety factor of estimated condition numbers, for vectors of a scalar type."""
    single = np.finfo(dtype).dtype.itemsize == 4
    return THRESHOLDS.margin_single if single else THRESHOLDS.margin
