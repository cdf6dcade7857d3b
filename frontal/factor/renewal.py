"""New values for a factor: which array of values is meant, and what becomes of the old numbers."""

from __future__ import annotations

from contextlib import _GeneratorContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy.sparse as sp

from ..matrix import Canonical, canonical, on_device, working_dtype
from ..values import StoredOrder
from .lifecycle import Last

if TYPE_CHECKING:
    from ..gpu.sparse.system import ResidentSystem
    from ..protocol import NumericFactor, Progress
    from .analysis import Analysis

Self = TypeVar("Self", bound="Renewal")


class Renewal:
    """The part of `Factor` that takes new values."""

    analysis: Analysis
    _order: StoredOrder  # of the matrix that was given last

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, int]: ...
        def _last_numbers(self) -> Last: ...
        def _overwriting(self) -> _GeneratorContextManager[Last]: ...
        def _factorize(
            self, matrix: Canonical, progress: Progress | None, previous: NumericFactor | None
        ) -> None: ...
        def _factorize_on_device(
            self, resident: Any, values: Any, previous: Any, check_finite: bool
        ) -> None: ...

    def refactorize(self: Self, A: Any, *, check_finite: bool = True) -> Self:
        """Factorize new values of the same pattern, in place.

        Parameters
        ----------
        A : sparse matrix or array (n, n), or array of values
            The matrix, or its values alone: those are in the stored order of the matrix that this
            factor was given last, by `frontal.factorize`, `Analysis.factorize` or `refactorize`.
            They are what ``A.data`` of that very CSC, CSR, COO or BSR matrix would be, explicit
            zeros among them, entries that are given several times once for each time; of CSC and
            CSR its indices need not be sorted. Other formats have no such array (that of DIA is
            padded), and want the matrix itself.

            Where the factor is on the GPU and A too, an array or a CSC or CSR matrix of CuPy, all
            stays there: one small download tells whether it went well. LU then keeps the scaling
            of the last factorization whose values came from the host; pass host values,
            ``A.get()``, to have it computed anew when values change by orders of magnitude.
        check_finite : bool
            Refuse NaN and infinity.

        Returns
        -------
        Factor
            This one.

        Raises
        ------
        ValueError
            If pattern or number of values differ, or an array of values has no meaning; the factor
            is as before then. If the matrix is not Hermitian, where ``kind="spd"`` promised it.
        NonFiniteInputError, NotPositiveDefiniteError, SingularMatrixError
            If the values have no factor. From then on, as after an interrupt, this is none:
            `FactorInvalidError` is raised until a `refactorize` succeeds.
        FactorFreedError
            After `free`.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> from frontal.problems import convdiff2d
        >>> A = convdiff2d(4).tocsr()
        >>> factor = frontal.factorize(A)
        >>> growth = -factor.logdet() + factor.refactorize(2 * A.data).logdet()
        >>> round(float(growth / np.log(2)), 9)
        16.0
        >>> bool(np.allclose(factor.solve(2 * A @ np.ones(16)), 1))
        True
        """
        last = self._last_numbers()
        values = None if last.resident is None else self._values_there(A, last.resident)
        matrix = self._matrix_of(A) if values is None else None
        with self._overwriting():
            if matrix is None:
                self._factorize_on_device(last.resident, values, last.numeric, check_finite)
            else:
                if check_finite:
                    matrix.refuse_non_finite()
                self._factorize(matrix, None, last.numeric)
        return self

    def _matrix_of(self, A: Any) -> Canonical:
        """What is to be factorized, on the host; nothing is overwritten if that fails."""
        analysis, order = self.analysis, None
        if self._order.is_of(A):
            order, values = self._order, A.get() if hasattr(A, "get") else np.asarray(A)
            work, pattern = working_dtype(values.dtype, "A"), (analysis.indices, analysis.indptr)
            values = order.arranged(values, work, *pattern[::-1])
            A = sp.csc_array((values, *pattern), shape=self.shape)
        matrix = canonical(A, kind="general", check_finite=False, ordered=order is None)
        analysis.matching_pattern(matrix)
        self._order = order or matrix.order or self._order
        return matrix

    def _values_there(self, A: Any, resident: ResidentSystem) -> Any | None:
        """A copy of the values of A by columns, if they are on the device; else None."""
        order = None
        if on_device(A):
            order = self._order if self._order.is_of(A) else None
        elif getattr(A, "format", "") in ("csc", "csr") and on_device(A.indices):
            order, A = resident.entries.order_of(A), A.data
        if order is None:
            return None
        values = resident.entries.arranged(A, order)
        self._order = order
        return values
