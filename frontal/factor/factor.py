"""Factor: a factorized matrix, which solves systems and answers questions about A."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..cached import cached_property
from ..errors import (
    IllConditionedWarning,
    NotPositiveDefiniteError,
    PerformanceWarning,
    SingularMatrixError,
    warn,
)
from ..matrix import Canonical
from ..protocol import NumericFactor, PivotFailure, Progress, get_backend, requested
from ..symbolic.scaling import Scaling, scaled, scaling_of
from ..symmetry import check_promise
from ..values import StoredOrder
from .condition import scaled_condition, witnessed_condition
from .factors import TriangularFactors
from .lifecycle import LifeCycle
from .renewal import Renewal
from .solve import Solutions

if TYPE_CHECKING:
    from ..gpu.sparse.profile import FactorProfile
    from ..gpu.sparse.system import ResidentSystem
    from .analysis import Analysis

log = logging.getLogger("frontal")


class Factor(Solutions, TriangularFactors, Renewal, LifeCycle):
    """A factorized matrix: A = L L^H, or P_r D_r A D_c P_c = L U.

    Made by `frontal.factorize` or `Analysis.factorize`. It keeps the values of A, with which
    residuals are computed: later changes of A are not seen. On a GPU factor and values stay there,
    and so do right-hand sides and solutions that are there. Pickles hold everything on the host.

    Attributes
    ----------
    analysis : Analysis
        Ordering, tree and plan.
    shape : tuple of int
    dtype : numpy.dtype
        Scalar type of the factors.
    """

    def __init__(self, analysis: Analysis, matrix: Canonical, progress: Progress | None) -> None:
        self.analysis = analysis
        self._numeric: Any = None
        self._resident: ResidentSystem | None = None
        self._order = matrix.order or StoredOrder.by_columns(matrix.indices.size)
        self._factorize(matrix, progress, None)

    @classmethod
    def compute(
        cls, matrix: Canonical, analysis: Analysis, progress: Progress | None = None
    ) -> Factor:
        """Factorize a canonical matrix of the analyzed pattern."""
        return cls(analysis, matrix, progress)

    # --- factorization -----------------------------------------------------------------------

    def _factorize(
        self, matrix: Canonical, progress: Progress | None, previous: NumericFactor | None
    ) -> None:
        # the user may go on to change A
        of, data = self.analysis, matrix.data.copy()
        kept = replace(matrix, indptr=of.indptr, indices=of.indices, data=data, order=None)
        self._begin(kept, matrix.dtype)
        self._run(progress, previous)

    def _factorize_on_device(
        self, resident: ResidentSystem, values: Any, previous: Any, check_finite: bool
    ) -> None:
        self._begin(None, values.dtype)
        self._resident, self._scaling = resident.renewed(values), resident.scaling
        self._run(None, previous, check_finite)

    def _begin(self, matrix: Canonical | None, dtype: np.dtype) -> None:
        for cached in ("A", "_magnitude", "_norms", "growth"):
            self.__dict__.pop(cached, None)
        self._matrix = matrix  # None while the values are on the device only
        self._assessed = False
        self._dtype = np.dtype(dtype)

    def _run(
        self,
        progress: Progress | None,
        previous: NumericFactor | None,
        unchecked: bool = False,
    ) -> None:
        began, failed = time.perf_counter(), None
        here = self._matrix is not None  # else the device looks at values, with their factor
        suited = not here or self._suits_method()
        if suited:
            try:
                self._compute(progress, previous)
            except PivotFailure as failure:
                failed = int(self.analysis.perm[failure.position])
            if unchecked:
                self._refuse_non_finite(failed is not None)
            suited = failed is None and (here or self._suits_method())
        if not suited:
            self._go_on_by_lu(failed, progress)
        self.seconds = {"factorization": time.perf_counter() - began}
        try:
            self._judge()
        except SingularMatrixError:
            matrix = self.matrix
            if self._resident is not None:  # which looks for pivots in tiles, not in whole fronts
                warn(
                    "no accurate factor by the pivots that the GPU chose, the CPU takes over",
                    PerformanceWarning,
                )
                self.analysis = self.analysis.on_cpu()
            elif self.analysis.paired:
                self.analysis = self.analysis.unpaired(matrix)
            else:
                raise
            self._factorize(matrix, progress, None)

    def _suits_method(self) -> bool:
        """Whether Cholesky, which reads one triangle, gets a Hermitian matrix, up to rounding."""
        resident = self._resident if self._matrix is None else None
        known = resident is not None and resident.health.hermitian
        return not self.analysis.rule.one_triangle or known or self.matrix.nearly_hermitian

    def _go_on_by_lu(self, column: int | None, progress: Progress | None) -> None:
        """Leave Cholesky, after a pivot that is not positive or for a matrix not Hermitian."""
        matrix = self.matrix
        if not self.analysis.fallback:
            check_promise("spd", matrix.indptr, matrix.indices, matrix.data)
            raise NotPositiveDefiniteError(column)
        reason = "not Hermitian" if column is None else f"not positive definite at column {column}"
        log.info("%s: going on with LU", reason)
        self.analysis = self.analysis.as_general(matrix)
        self._compute(progress, None)

    def _compute(self, progress: Progress | None, previous: NumericFactor | None) -> None:
        if self._matrix is not None:
            self._scaling = self._equilibrated(self._matrix)
        runner, tiny = cast(Any, self.analysis.runner), self._tiny
        if runner.name == "gpu":
            try:
                self._compute_on_device(tiny, progress, previous)
            except MemoryError as error:
                if requested(self.analysis.backend) != "auto":
                    raise
                warn(f"the GPU is too small, the CPU takes over: {error}", PerformanceWarning)
                matrix, self.analysis = self.matrix, self.analysis.on_cpu()
                runner, previous = self.analysis.runner, None
                self._scaling = self._equilibrated(matrix)
            else:
                return
        self._resident, values = None, self.matrix.data
        if self._scaling is not None:
            of = self.matrix.indptr, self.matrix.indices
            values = scaled(*of, values, self._scaling.row, self._scaling.column)
        values = np.require(values, requirements=["C", "W"])
        self._numeric = runner.factorize(values, tiny, progress, previous)

    def _compute_on_device(
        self, tiny: float, progress: Progress | None, previous: NumericFactor | None
    ) -> None:
        from ..gpu.sparse.health import memory_told
        from ..gpu.sparse.system import ResidentSystem

        analysis, runner = self.analysis, cast(Any, self.analysis.runner)
        with memory_told(runner.pattern.device, lambda: analysis.memory_for(self._dtype)["total"]):
            if self._matrix is not None:
                values = runner.pattern.device.upload(self._matrix.data)
                hermitian = self._matrix.hermitian
                self._resident = ResidentSystem(analysis.entries, values, self._scaling, hermitian)
            resident: Any = self._resident
            values = resident.scaled()
            self._numeric = runner.factorize(values, tiny, progress, previous, resident.examination)
        resident.numeric = self._numeric

    @property
    def _tiny(self) -> float:
        """What tiny pivots of LU are replaced by."""
        return float(np.sqrt(np.finfo(self._dtype).eps))

    def _equilibrated(self, matrix: Canonical) -> Scaling | None:
        """Scaling of a matrix for LU; None for Cholesky."""
        if not self.analysis.rule.scaling:
            return None
        return scaling_of(matrix, self.analysis.matching)

    def _refuse_non_finite(self, look: bool = False) -> None:
        """Raise for NaN or infinity among values that came from the device."""
        resident = self._resident
        if resident is None:  # the CPU took over
            self.matrix.refuse_non_finite()
        elif look or not resident.health.finite:
            resident.refuse_non_finite(self.analysis.indptr, self.analysis.indices)

    def _judge(self) -> None:
        """Assess factors that are suspicious: with pivots that were replaced, or near rounding."""
        near = 1e3 * float(np.finfo(self.dtype).eps)
        if self._numeric.perturbed or self._pivot_ratio() < near:
            self._assess()

    def _assess(self) -> None:
        """Refuse a singular matrix, warn of a nearly singular one.

        A matrix is refused where inverse iteration proves a condition number near 1/eps, or where
        not even refined solutions have a small backward error.
        """
        self._assessed = True
        eps, replaced = float(np.finfo(self.dtype).eps), bool(self._numeric.perturbed)
        condition, scaling = scaled_condition(self.A, self._scaling, self._direct), self._scaling
        if scaling is not None and (replaced or condition * eps > 0.1):
            # rounding hides from solutions how near to singular A is, where the factors tell it
            bound = 0.1 if condition * eps >= 10 else 1.0 if replaced else np.inf
            condition = max(condition, self._witnessed(scaling, bound / eps))
        if condition * eps > 0.1:
            warn(
                f"the matrix is singular to working precision or nearly so: its condition number "
                f"is about {condition:.0e}; solutions have a small residual and few right digits",
                IllConditionedWarning,
            )

    def _witnessed(self, scaling: Scaling, bound: float) -> float:
        """Condition number proved by refined solutions.

        Raises
        ------
        SingularMatrixError
            If it is above `bound`, or if the factor gives no solutions.
        """
        errors = []

        def solved(B: np.ndarray, trans: str) -> np.ndarray:
            X, found, _ = self._solve_on_host(B, trans, None)
            errors.append(found.normwise[0])
            return X

        condition = witnessed_condition(self.A, scaling, solved)
        if condition >= bound or not max(errors) <= np.finfo(self.dtype).eps ** 0.75:
            raise SingularMatrixError.numerical(self._smallest_pivot_column())
        return condition

    def _relative_pivots(self) -> np.ndarray:
        """Pivots over the size of what they came from: diag(A) for Cholesky, 1 for scaled LU."""
        pivots = np.abs(self._diagonal)
        if self._scaling is None:
            return pivots**2 / np.abs(self.A.diagonal()[self.analysis.perm])
        return pivots / pivots.max(initial=np.finfo(pivots.dtype).tiny)

    def _pivot_ratio(self) -> float:
        if self._resident is not None:
            return self._resident.health.pivot_ratio
        return float(self._relative_pivots().min(initial=1.0))

    def _smallest_pivot_column(self) -> int:
        return int(self.analysis.perm[int(np.argmin(self._relative_pivots()))])

    # --- questions ---------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.analysis.n, self.analysis.n

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors."""
        return self._dtype

    @property
    def nnz(self) -> int:
        """Stored entries of the factors, zeros of merged fronts included."""
        return self.analysis.nnz_factor

    @property
    def matrix(self) -> Canonical:
        """The factorized matrix on the host; its values may have to come from the device."""
        if self._matrix is None:
            resident: Any = self._resident
            values = resident.entries.device.download(resident.values)
            of = self.analysis.indptr, self.analysis.indices, values, self.analysis.n
            self._matrix = Canonical(*of, self.analysis.rule, False)
        return self._matrix

    @cached_property
    def growth(self) -> float:
        """Largest entry of the factors over the largest of the (scaled) matrix."""
        if self._resident is not None:
            return self._resident.growth()
        panels = self._numeric.panels
        parts = (np.real(panels), np.imag(panels)) if np.iscomplexobj(panels) else (panels,)
        largest = max(max(x.max(initial=0.0), -x.min(initial=0.0)) for x in parts)
        matrix = self._norms[0] if self._scaling is None else 1.0
        return float(largest / matrix) if matrix else 0.0

    def profile(self) -> FactorProfile:
        """Factorize once more, with clocks: time by level and by size of the fronts.

        Returns
        -------
        FactorProfile
            Rows of fronts, their time in milliseconds, and the least that moving their bytes and
            computing would take at the device's measured ceilings.

        Raises
        ------
        ValueError
            If the factor is not on a GPU.
        """
        if self._resident is None:
            raise ValueError('only factors on a GPU have a profile; take backend="gpu"')
        from ..gpu.sparse.profile import profile

        return profile(self._resident.entries.pattern, self._resident.scaled(), self._tiny)

    @property
    def info(self) -> dict[str, Any]:
        """Backend, method, ordering, cost and health of this factorization."""
        analysis, resident = self.analysis, self._resident
        numeric: Any = self._numeric
        there = "cpu" if resident is None else "gpu"
        return {
            "backend": there,
            "device": resident.entries.device.name if resident else get_backend("cpu").device,
            "method": analysis.method,
            "ordering": analysis.ordering.method,
            "dtype": str(self.dtype),
            "perturbed_pivots": numeric.perturbed,
            "growth": self.growth,
            "nnz_factor": analysis.nnz_factor,
            "flops": analysis.flops,
            "memory": int(numeric.nbytes if resident else numeric.panels.nbytes),
            "seconds": {**analysis.seconds, **self.seconds},
        }

    def __repr__(self) -> str:
        analysis = self.analysis
        return (
            f"<Factor of a {self.shape[0]} x {self.shape[1]} {self.dtype} matrix: "
            f"{analysis.method}, {analysis.nnz_factor} entries, {analysis.ordering.method}"
            f"{self._state and ', ' + self._state}>"
        )
