"""What the triangular factors tell: L, U, permutations, determinant, the inverse as operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ..cpu import extract
from ..cpu.triangular import factor_diagonal
from ..protocol import panel_offsets

if TYPE_CHECKING:
    from ..gpu.sparse.system import ResidentSystem
    from ..protocol import NumericFactor
    from ..symbolic.scaling import Scaling
    from .analysis import Analysis


class TriangularFactors:
    """The part of `Factor` that reads the factors and never computes them."""

    analysis: Analysis
    _numeric: NumericFactor
    _scaling: Scaling | None  # None for Cholesky
    _resident: ResidentSystem | None  # None on the CPU

    if TYPE_CHECKING:

        @property
        def dtype(self) -> np.dtype: ...
        def solve(self, b: Any, trans: str = "N") -> Any: ...

    @property
    def _diagonal(self) -> np.ndarray:
        if self._resident is not None:
            return self._resident.factor.diagonal()
        plan, method = self.analysis.plan, self.analysis.rule
        return factor_diagonal(plan, panel_offsets(plan, method), self._numeric.panels)

    def slogdet(self) -> tuple[Any, float]:
        """Sign (or phase) and logarithm of the modulus of det(A).

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> sign, log = frontal.factorize(sp.csc_array([[0.0, 2.0], [3.0, 1.0]])).slogdet()
        >>> float(sign), round(log, 12) == round(1.791759469228, 12)
        (-1.0, True)
        """
        diagonal = self._diagonal
        size = np.abs(diagonal).astype(np.float64)
        with np.errstate(divide="ignore"):
            logdet = float(np.log(size).sum())
        if self._scaling is None:
            return diagonal.dtype.type(1), 2 * logdet
        logdet -= float(np.log(self._scaling.row).sum() + np.log(self._scaling.column).sum())
        phase = np.prod(diagonal / np.where(size > 0, size, 1.0))
        for perm in (self.perm_r, self.perm_c):
            phase = phase * extract.permutation_sign(perm)
        return diagonal.dtype.type(phase), logdet

    def logdet(self) -> float:
        """Natural logarithm of det(A).

        Raises
        ------
        ValueError
            If det(A) is not positive; `slogdet` gives its sign.
        """
        sign, value = self.slogdet()
        if not (np.imag(sign) == 0 and np.real(sign) > 0):
            raise ValueError(f"det(A) is not positive (its sign is {sign}); use slogdet()")
        return value

    @property
    def perm_c(self) -> np.ndarray:
        """Position of each column of A: ``(Pr @ A @ Pc)`` has column j at ``perm_c[j]``."""
        return np.argsort(self.analysis.perm).astype(np.int32)

    @property
    def perm_r(self) -> np.ndarray:
        """Position of each row of A, as scipy's ``SuperLU.perm_r``; ``Pr @ A @ Pc == L @ U``."""
        return self._positions[np.argsort(self.analysis.row_perm)]

    @property
    def _positions(self) -> np.ndarray:
        return extract.row_positions(self.analysis.plan, self._numeric.pivots)

    @property
    def L(self) -> sp.csc_array:
        """Lower factor: of ``Pr @ A @ Pc``, unit diagonal for LU."""
        plan, method, panels = self.analysis.plan, self.analysis.rule, self._numeric.panels
        L = extract.lower_factor(plan, method, panels, self._positions)
        if self._scaling is None:
            return L
        row = self._scaling.row[np.argsort(self.perm_r)]
        unscaled = sp.diags_array(1 / row) @ L @ sp.diags_array(row)
        return sp.csc_array(unscaled).astype(L.dtype)

    @property
    def U(self) -> sp.csc_array:
        """Upper factor of ``Pr @ A @ Pc``; the adjoint of L for Cholesky."""
        if self._scaling is None:
            return sp.csc_array(self.L.conj().T)
        plan, method = self.analysis.plan, self.analysis.rule
        U = extract.upper_factor(plan, method, self._numeric.panels, self._positions)
        row = self._scaling.row[np.argsort(self.perm_r)]
        column = self._scaling.column[self.analysis.perm]
        return sp.csc_array(sp.diags_array(1 / row) @ U @ sp.diags_array(1 / column)).astype(
            U.dtype
        )

    def as_linear_operator(self) -> LinearOperator:
        """The inverse of A as an operator, for Krylov methods and eigensolvers."""
        return LinearOperator(
            (self.analysis.n, self.analysis.n),
            matvec=self.solve,
            rmatvec=lambda b: self.solve(b, "H"),
            matmat=self.solve,
            rmatmat=lambda b: self.solve(b, "H"),
            dtype=self.dtype,
        )
