"""One attempt to factorize a matrix: its settings, the checks of its factor, its outcomes.

An outcome is an exception that `fallbacks.FALLBACKS` maps to the next attempt.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from .._typing import Untyped
from ..backend.memory_limit import Memory, byte_limit
from ..backend.protocol import ColumnPivotFailure, NumericFactor, Progress
from ..errors import SingularMatrixError
from ..matrix.canonical import Canonical
from ..matrix.value_map import ValueMap
from ..numeric.linear_system import eps_of
from ..symbolic.phase import Symbolic
from ..symbolic.scaling import Scaling, ScalingRequest, scaling_of
from .analyzed import Analyzed
from .diagnosis import Diagnosis
from .extract import row_at
from .mixed import require_range, single
from .report import smallest_pivot_column
from .solve import FactorSolver

log = logging.getLogger("frontal")

_MAX_MOVES = 5  # GPU attempts with moved columns
_MAX_UNSTABLE_PIVOTS = 40  # per factor: refinement corrects these if growth is moderate


class DeviceValues(NamedTuple):
    """New values of a pattern, on the device.

    Attributes
    ----------
    array : device array (nnz,)
        By columns.
    check_finite : bool
        Refuse NaN and infinity.
    order : ValueMap, optional
        Order of the user's values.
    """

    array: Untyped
    check_finite: bool
    order: ValueMap | None = None

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the values."""
        return np.dtype(self.array.dtype)


class SymmetryFailure(Exception):  # noqa: N818 - no error if LU follows
    """An unsymmetric matrix for a method that reads one triangle."""


class LargeGrowth(Exception):  # noqa: N818 - no error if columns can be moved
    """Unstable pivots: positions of their columns in the plan, and of the rows they lie in."""

    def __init__(self, factor: NumericFactor) -> None:
        super().__init__()
        self.rows = row_at(factor)[factor.unstable_pivots]
        self.columns = self.rows if factor.symbolic.method.one_triangle else factor.unstable_pivots


class OutdatedMatching(Exception):  # noqa: N818 - no error if values can be matched
    """Tiny pivots with a matching of other values."""


class NullPivotsUnproven(Exception):  # noqa: N818 - no error if another scaling has pivots
    """Null pivots that the scaling may have caused."""


@dataclass
class Attempt:
    """The settings of one attempt to factorize a matrix.

    Attributes
    ----------
    matrix : Canonical or DeviceValues
        A canonical matrix is stored without a copy.
    analysis : Analyzed
    singular, memory
        See `frontal.factorize`.
    mixed : bool
        Factorize values in double precision in single precision.
    renewed : bool
        The analysis may be of other values.
    matched, regular : bool
        See `Diagnosis`.
    delaying : bool
        As for `Backend.factorize`.
    plain : bool
        Scale by the largest entries alone, not by a matching, whose scaling can make a regular
        matrix with few large entries singular to working precision.
    moves : int
        Number of earlier attempts whose unstable columns were moved.
    planned : Analyzed
        The analysis before columns were moved.
    """

    matrix: Canonical | DeviceValues
    analysis: Analyzed
    singular: str = "raise"
    memory: Memory = "auto"
    mixed: bool = False
    renewed: bool = False
    matched: bool = False
    regular: bool = False
    delaying: bool = True
    plain: bool = False
    moves: int = 0

    def __post_init__(self) -> None:
        self.planned = self.analysis

    def restart(self, analysis: Analyzed) -> None:
        """Use another analysis, with all its fallbacks."""
        self.analysis = self.planned = analysis
        self.delaying, self.plain, self.moves = True, False, 0

    def move(self, symbolic: Symbolic, columns: int) -> None:
        """Use other fronts, to which a number of columns has moved."""
        log.info("%d columns without acceptable pivots are delayed", columns)
        self.moves += 1
        self.analysis = self.planned.with_fronts(symbolic)

    @property
    def regularizes(self) -> bool:
        """Whether pivots without their sign are replaced at once."""
        return self.analysis.symbolic.method.signed and self.analysis.choices.regularize

    def used_analysis(self, factor: NumericFactor) -> Analyzed:
        """Return the analysis that a factor belongs to, with the fronts that eliminated columns."""
        if factor.symbolic is self.planned.symbolic:
            return self.planned
        return self.planned.amended(factor.symbolic)

    def run_fast(
        self, previous: NumericFactor | None, before: Diagnosis | None
    ) -> FactorSolver | None:
        """Return the solver of a factor that needs no warning or fallback; else None."""
        matrix, analysis = self.matrix, self.analysis
        if previous is None and analysis.tiny > 0 and analysis.symbolic.method.one_triangle:
            return None  # columns are likely to be delayed
        if not isinstance(matrix, Canonical) or self.mixed or byte_limit(self.memory) is not None:
            return None
        matching = analysis.matching
        renew = None if previous is None else previous.refactorizer(analysis.symbolic, matching)
        if renew is not None:
            factor = renew(matrix)
        else:
            factor = analysis.engine.factorize_fast(matrix, matching, previous)
        if factor is None:
            return None
        solver = FactorSolver(Diagnosis(factor, self.singular))
        try:
            self._examine(solver, before)
        except ColumnPivotFailure:  # other pivots may show more
            return None
        return None if solver.verdict.is_doubtful() else solver

    def run(
        self, progress: Progress | None, previous: NumericFactor | None, before: Diagnosis | None
    ) -> FactorSolver:
        """Return the solver of an accepted factor; raise the outcome if there is none."""
        factor = self.factor(progress, previous)
        # created while a device may still compute
        solver = FactorSolver(Diagnosis(factor, self.singular, regular=self.regular))
        self._refuse_growth(factor)
        self._examine(solver, before)
        self._refuse_unproven(solver)
        self._refuse_inconsistent(solver)
        self._refuse_outdated(solver)
        return solver

    def _examine(self, solver: FactorSolver, before: Diagnosis | None) -> None:
        """Examine a factor; LU by columns leaves singular matrices to fronts, unless proved.

        Fronts replace null pivots, so that consistent systems have solutions.
        """
        if not self.analysis.by_columns:
            return solver.examine(before)
        solver.verdict.singular = "raise"
        try:
            solver.examine(before)
        except SingularMatrixError as error:
            if error.rank is not None and self.singular == "raise":
                raise
            raise ColumnPivotFailure("a matrix that seems to be singular") from None
        solver.verdict.singular = self.singular

    def factor(
        self, progress: Progress | None = None, previous: NumericFactor | None = None
    ) -> NumericFactor:
        """Return a factor by the method and the backend of the analysis."""
        matrix, scaling = self.matrix, wanted_scaling(self.analysis, self.plain)
        factorize = partial(
            self.analysis.engine.factorize,
            scaling=scaling,
            progress=progress,
            previous=previous,
            delaying=self.delaying and not self.regularizes,
            dtype=single(matrix.dtype) if self.mixed else None,
            memory=self.memory,
        )
        if isinstance(matrix, DeviceValues):
            factor = factorize(matrix.array, on_device=True)
            self._check_values(factor, matrix.check_finite)
            return factor
        if not matrix.suits(self.analysis.symbolic.method):
            raise SymmetryFailure
        if scaling is None and self.mixed:
            require_range(matrix.A.diagonal())
        return factorize(matrix.data, hermitian=matrix.hermitian)

    def _check_values(self, factor: NumericFactor, check_finite: bool) -> None:
        """Check the values of a factor on a device, known after its factorization."""
        health = factor.health()
        if check_finite and not health.finite:
            factor.matrix.refuse_non_finite()
        known = health.hermitian and not self.mixed  # up to the rounding of the factor
        one_triangle = self.analysis.symbolic.method.one_triangle
        if one_triangle and not (known or factor.is_symmetric()):
            raise SymmetryFailure

    def _refuse_growth(self, factor: NumericFactor) -> None:
        """Raise if growth is too large and unstable columns can still be moved."""
        limit = eps_of(factor.dtype) ** -0.5
        if self.moves < _MAX_MOVES and not factor.growth_acceptable(_MAX_UNSTABLE_PIVOTS, limit):
            raise LargeGrowth(factor)

    def _refuse_unproven(self, solver: FactorSolver) -> None:
        """Raise if null pivots lack evidence of singularity and another scaling is untried."""
        factor = solver.factor
        unsure = factor.nulls.size and solver.verdict.null_space is None
        if unsure and self.other_scaling() not in (None, factor.scaling):
            self.regular = solver.verdict.regular
            raise NullPivotsUnproven

    def _refuse_inconsistent(self, solver: FactorSolver) -> None:
        """Raise if the factor does not solve consistent singular systems and a fallback exists."""
        if solver.verdict.null_space is None:
            return
        if self.analysis.engine.fallback is not None and not solver.fixes():
            column = smallest_pivot_column(solver.factor)
            detail, dtype = "consistent systems are not solved", solver.factor.matrix_dtype
            raise SingularMatrixError.numerical(column, detail, dtype=dtype)

    def _refuse_outdated(self, solver: FactorSolver) -> None:
        """Raise if tiny pivots, with a matching of other values, leave singularity open."""
        diagnosis, matching = solver.verdict, self.analysis.matching
        if matching is None or not diagnosis.is_doubtful():
            return
        if self.renewed and not self.matched:
            raise OutdatedMatching
        diagnosis.matched = self.matched

    def other_scaling(self) -> Scaling | None:
        """Return the scaling by largest entries alone; None if it was tried."""
        if self.plain or not isinstance(self.matrix, Canonical):
            return None
        wanted, method = wanted_scaling(self.analysis, True), self.analysis.symbolic.method
        return None if wanted is None else scaling_of(self.matrix, wanted, method.one_triangle)

    def matrix_on_host(self) -> Canonical:
        """Return the matrix on the host, where it stays from now on."""
        source = self.matrix
        if not isinstance(source, Canonical):
            values = self.analysis.engine.values_on_host(source.array)
            matrix = self.analysis.symbolic.with_values(values)
            if source.check_finite:
                matrix.refuse_non_finite()
            self.matrix = source = matrix
        return source


def wanted_scaling(analysis: Analyzed, plain: bool = False) -> ScalingRequest | None:
    """Return the scaling for the method of an analysis; by largest entries alone if `plain`."""
    return ScalingRequest(analysis.matching, plain) if analysis.symbolic.method.scaling else None
