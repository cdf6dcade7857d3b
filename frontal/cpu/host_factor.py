"""What all factors on the CPU have in common: vectors on the host, and no device."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped
from ..matrix.canonical import Canonical
from ..matrix.value_map import ValueMap
from ..symbolic.phase import Symbolic
from ..symbolic.scaling import ScalingRequest
from .entry_products import entry_products


class HostNumericFactor:
    """The part of `protocol.NumericFactor` that does not depend on the form of the factors."""

    backend, asynchronous, remeasures = "cpu", False, False
    unstable_pivots = np.empty(0, np.int32)  # none: such columns were delayed, or others chosen
    symbolic: Symbolic
    matrix: Canonical

    @property
    def hermitian(self) -> bool:
        """See `NumericFactor`."""
        return self.matrix.hermitian

    def is_symmetric(self) -> bool:
        """See `NumericFactor`."""
        return self.matrix.suits(self.symbolic.method)

    def growth_acceptable(self, few: int, growth: float) -> bool:
        """See `NumericFactor`."""
        return True

    def free(self) -> None:
        """See `NumericFactor`: Python frees the arrays with their last reference."""

    def profile(self) -> NoReturn:
        """See `NumericFactor`."""
        raise ValueError("only factors on a GPU have a profile. Try: backend='gpu'")

    def block(self, b: object) -> None:
        """See `NumericFactor`: the caller prepares arrays of the host."""

    def empty(self, k: int, dtype: np.dtype) -> np.ndarray:
        """See `NumericFactor`."""
        return np.empty((self.symbolic.n, k), dtype, order="F")

    def upload(self, B: np.ndarray) -> np.ndarray:
        """See `NumericFactor`."""
        return B

    def download(self, X: np.ndarray) -> np.ndarray:
        """See `NumericFactor`."""
        return X

    def entry_products(
        self, order: ValueMap, R: np.ndarray, C: np.ndarray, diagonal: float, beside: float
    ) -> np.ndarray:
        """See `NumericFactor`."""
        matrix = self.matrix
        row, column = order.coordinates(matrix.indptr, matrix.indices)
        return entry_products(row, column, R, C, diagonal, beside)

    def residual_with(
        self, values: np.ndarray, X: np.ndarray, B: np.ndarray, trans: str
    ) -> np.ndarray:
        """See `NumericFactor`."""
        matrix = self.matrix
        M = sp.csc_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
        if trans == "H":
            M = M.conj()
        return B - (M if trans == "N" else M.T) @ X

    def begin(self, values: Untyped, scaling: ScalingRequest | None) -> None:
        """See `NumericFactor`: no values are on a device."""

    def device_values(self, A: object, order: ValueMap) -> None:
        """See `NumericFactor`: no values are on a device."""


def largest_part(values: np.ndarray) -> float:
    """Return the largest modulus of real and imaginary parts; 0 if empty."""
    complex_ = np.iscomplexobj(values)
    parts = (np.real(values), np.imag(values)) if complex_ else (values,)
    return max(float(max(x.max(initial=0.0), -x.min(initial=0.0))) for x in parts)
