"""Choice of the method and the backend of a factorization, and the fallbacks if one fails."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np

from .._typing import Untyped
from ..backend.choose import requested
from ..backend.memory_limit import Memory, byte_limit
from ..backend.protocol import DelayFailure, NumericFactor, PivotFailure, Progress
from ..errors import (
    FactorMemoryError,
    NotPositiveDefiniteError,
    PerformanceWarning,
    SingularMatrixError,
    warn,
)
from ..matrix.canonical import Canonical
from ..matrix.symmetry import check_promise
from ..matrix.value_map import ValueMap
from ..numeric.linear_system import eps_of
from ..numeric.method import LU
from ..symbolic.delayed_plan import delay_to_parent, place_delayed_last
from ..symbolic.scaling import Scaling, ScalingRequest, scaling_of
from .analyzed import Analyzed
from .diagnosis import Diagnosis, smallest_pivot_column
from .extract import row_at
from .mixed import ImpreciseError, require_range, single
from .solve import FactorSolver

log = logging.getLogger("frontal")

_MAX_RESTARTS = 5  # GPU attempts with moved columns
_CPU_ROUND = 3  # attempt in which the CPU chooses the fronts of the moved columns
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


def factorize(
    matrix: Canonical | DeviceValues,
    analysis: Analyzed,
    progress: Progress | None = None,
    previous: NumericFactor | None = None,
    before: Diagnosis = Diagnosis(),  # noqa: B008 - only read
    *,
    memory: Memory = "auto",
    mixed: bool = False,
    looked_at: bool = True,
    renewed: bool = False,
) -> tuple[Analyzed, FactorSolver]:
    """Factorize by the first of these attempts that succeeds:

    - the method and the backend of the analysis;
    - LDL^T or LDL^H in the same analysis, if ``kind="auto"`` chose Cholesky and it fails;
    - LU in the same order, if ``kind="auto"`` chose a symmetry that new values lack;
    - a GPU with unstable columns moved, in the end to the fronts where the CPU eliminates them;
    - columns with tiny diagonal entries paired, if too many columns are delayed;
    - pivots replaced, if too many still are; LU with a matching, if that is inaccurate;
    - a matching of these values, if the cached one leaves open whether A is singular;
    - the CPU, if an optional GPU has too little memory or finds no stable pivots.

    Parameters
    ----------
    matrix : Canonical or DeviceValues
        A canonical matrix is stored without a copy.
    analysis : Analyzed
    progress : callable, optional
    previous : NumericFactor, optional
        Its memory is reused, and the factor becomes invalid.
    before : Diagnosis
        Diagnosis of the previous values, and the user's option `singular`.
    memory : str or int
        See `frontal.factorize`.
    mixed : bool
        Factorize values in double precision in single precision.
    looked_at : bool
        Skip the check for non-finite values.
    renewed : bool
        The analysis may be of other values.

    Returns
    -------
    analysis, solver
        Results of the attempt that succeeded.

    Raises
    ------
    ImpreciseError
        If the matrix needs a factor in double precision.
    """
    if isinstance(matrix, Canonical) and not mixed and byte_limit(memory) is None:
        matching = analysis.matching
        renew = None if previous is None else previous.refactorizer(analysis.symbolic, matching)
        if renew is not None:
            factor = renew(matrix)
        else:
            factor = analysis.engine.factorize_fast(matrix, matching, previous)
        if factor is not None:
            solver = FactorSolver(factor, Diagnosis(before.singular))
            solver.examine(before)
            return analysis, solver
    if not looked_at and isinstance(matrix, Canonical):
        matrix.refuse_non_finite()
    course = _FallbackPlan(matrix, analysis, memory, mixed)
    course.renewed, course.matched = renewed, before.matched
    while True:
        try:
            return _tried(course, progress, previous, before)
        except PivotFailure as failure:
            if mixed:
                raise ImpreciseError("a pivot of Cholesky is not positive") from None
            course.not_definite(failure.position)
        except SymmetryFailure:
            course.not_symmetric()
        except LargeGrowth as failure:
            course.move(failure)
        except NullPivotsUnproven:
            course.plain = True
        except OutdatedMatching:
            course.match_anew()
        except DelayFailure:
            course.pair_or_replace()
        except MemoryError as error:
            course.too_large(error)
        except SingularMatrixError as error:
            if mixed:
                raise ImpreciseError("the matrix seems to be singular") from None
            course.no_pivots(error)
        previous = None


def _tried(
    course: _FallbackPlan,
    progress: Progress | None,
    previous: NumericFactor | None,
    before: Diagnosis,
) -> tuple[Analyzed, FactorSolver]:
    """Return the result of one attempt; a refused factor is released before the next attempt."""
    verdict = Diagnosis(before.singular, regular=course.regular)  # while a device may still compute
    options = course.options(progress, previous)
    factor = _attempt(course.matrix, course.analysis, course.plain, options)
    course.refuse_weak(factor)
    solver = FactorSolver(factor, verdict)
    solver.examine(before)
    course.refuse_vanished(solver)
    course.refuse_unfixed(solver)
    course.refuse_unmatched(solver)
    return course.settled(factor), solver


class _FallbackPlan:
    """The current attempt to factorize a matrix, and the remaining fallbacks.

    Attributes
    ----------
    matrix, analysis
        As for `factorize`; the analysis of the next attempt.
    delaying : bool
        As for `Backend.factorize`.
    plain : bool
        Scale by the largest entries alone, not by a matching, whose scaling can make a regular
        matrix with few large entries singular to working precision.
    regular : bool
        See `Diagnosis`.
    renewed : bool
        The analysis may be of other values.
    matched : bool
        See `Diagnosis`.
    """

    def __init__(
        self, matrix: Canonical | DeviceValues, analysis: Analyzed, memory: Memory, mixed: bool
    ) -> None:
        self.matrix, self.analysis, self._memory = matrix, analysis, memory
        self._precision: dict[str, Any] = {"dtype": single(matrix.dtype)} if mixed else {}
        self._planned = analysis  # before columns were delayed
        self.delaying, self.plain, self._rounds = True, False, 0
        self.regular = self.renewed = self.matched = False

    def options(self, progress: Progress | None, previous: NumericFactor | None) -> dict[str, Any]:
        """Return the options of `Backend.factorize`."""
        more = {"progress": progress, "previous": previous, "delaying": self.delaying}
        return self._precision | more | {"memory": self._memory}

    def refuse_weak(self, factor: NumericFactor) -> None:
        """Raise if growth is too large and unstable columns can still be moved."""
        enough = eps_of(factor.dtype) ** -0.5
        if self._rounds < _MAX_RESTARTS and not factor.growth_acceptable(
            _MAX_UNSTABLE_PIVOTS, enough
        ):
            raise LargeGrowth(factor)

    def refuse_vanished(self, solver: FactorSolver) -> None:
        """Raise if null pivots lack evidence of singularity and another scaling is untried."""
        factor = solver.factor
        unsure = factor.nulls.size and solver.verdict.null_space is None
        if unsure and self._other_scaling() not in (None, factor.scaling):
            self.regular = solver.verdict.regular
            raise NullPivotsUnproven

    def refuse_unfixed(self, solver: FactorSolver) -> None:
        """Raise if the factor does not solve consistent singular systems and a fallback exists."""
        if solver.verdict.null_space is None:
            return
        if self.analysis.engine.fallback is not None and not solver.fixes():
            column = smallest_pivot_column(solver.factor)
            detail, dtype = "consistent systems are not solved", solver.factor.matrix_dtype
            raise SingularMatrixError.numerical(column, detail, dtype=dtype)

    def refuse_unmatched(self, solver: FactorSolver) -> None:
        """Raise if tiny pivots, with a matching of other values, leave singularity open."""
        verdict, matching = solver.verdict, self.analysis.matching
        if matching is None or not verdict.is_doubtful(solver.factor):
            return
        if self.renewed and not self.matched:
            raise OutdatedMatching
        verdict.matched = self.matched

    def _other_scaling(self) -> Scaling | None:
        """Return the scaling by largest entries alone; None if it was tried."""
        if self.plain or not isinstance(self.matrix, Canonical):
            return None
        wanted, method = wanted_scaling(self.analysis, True), self.analysis.symbolic.method
        return None if wanted is None else scaling_of(self.matrix, wanted, method.one_triangle)

    def settled(self, factor: NumericFactor) -> Analyzed:
        """Return the analysis that a factor belongs to."""
        if factor.symbolic is self._planned.symbolic:
            return self._planned
        return self._planned.amended(factor.symbolic)

    def not_definite(self, position: int) -> None:
        """Continue with LDL^T or LDL^H after Cholesky, unless the user stated ``kind="spd"``."""
        column = int(self.analysis.perm[position])
        matrix = self._on_host()  # the host checks its symmetry and scales it
        if not self.analysis.fallback:
            _check_promise(matrix, self.analysis)
            raise NotPositiveDefiniteError(column) from None
        log.info("not positive definite at column %d: continuing with LDL^H", column)
        self._begin(self.analysis.as_indefinite())

    def not_symmetric(self) -> None:
        """Continue with LU, unless the user stated a symmetry."""
        matrix = self._on_host()
        if not self.analysis.fallback:
            _check_promise(matrix, self.analysis)
        log.info("not symmetric: continuing with LU")
        self._begin(self.analysis.as_general(matrix))

    def move(self, failed: LargeGrowth) -> None:
        """Move columns without acceptable pivots to other fronts."""
        self._rounds += 1
        symbolic = self.analysis.symbolic
        if self._rounds != _CPU_ROUND:
            symbolic = delay_to_parent(symbolic, failed.columns, failed.rows)
        else:
            matrix, analysis = self._on_host(), self._planned.on("cpu")
            try:
                symbolic = _attempt(matrix, analysis, self.plain, self.options(None, None)).symbolic
            except DelayFailure:
                return self.pair_or_replace()
            if symbolic.method == LU:
                symbolic = place_delayed_last(symbolic, self._planned.symbolic)
        log.info("%d columns without acceptable pivots are delayed", failed.columns.size)
        self.analysis = self._planned.with_fronts(symbolic)

    def pair_or_replace(self) -> None:
        """Handle too many delayed columns: pair all tiny diagonal entries, or replace pivots."""
        if self.analysis.tiny and self.analysis.choices.pairs == "auto":
            self._begin(self.analysis.all_paired(self._on_host()))
        else:
            log.info("too many columns without acceptable pivots: replacing these pivots")
            self.delaying = False

    def too_large(self, error: MemoryError) -> None:
        """Fall back to the CPU, unless the user requested a GPU or a memory."""
        fallback = self.analysis.engine.fallback
        if fallback is None:
            raise FactorMemoryError.from_error(error) from None
        if requested(self.analysis.backend) != "auto" or self._memory != "auto":
            raise error
        warn(f"the GPU is too small; falling back to the CPU: {error}", PerformanceWarning)
        self._begin(self.analysis.analyzed_for(fallback, self._on_host()))

    def match_anew(self) -> None:
        """Analyze the pattern with a matching of the current values."""
        log.info("tiny pivots with a matching of other values: analyzing the new values")
        self.matched = True
        self._begin(self.analysis.analyzed_for(self.analysis.backend, self._on_host()))

    def no_pivots(self, error: SingularMatrixError) -> None:
        """Try the next fallback that may find pivots, unless A is proved singular."""
        fallback = self.analysis.engine.fallback
        if error.rank is not None:  # a proof, independent of the factor
            raise error
        if fallback is not None:  # a GPU seeks pivots in tiles, the CPU in whole fronts
            warn(
                "GPU pivoting was not stable for this matrix; refactorizing on the CPU",
                PerformanceWarning,
            )
            self._begin(self.analysis.analyzed_for(fallback, self._on_host()))
        elif self._other_scaling() is not None:
            self.plain = True
        elif self.analysis.paired and not self.delaying:
            self._begin(self.analysis.unpaired(self._on_host()))
        else:
            raise error

    def _begin(self, analysis: Analyzed) -> None:
        """Restart with another analysis and all its fallbacks."""
        self.analysis = self._planned = analysis
        self.delaying, self.plain, self._rounds = True, False, 0

    def _on_host(self) -> Canonical:
        """Return the matrix on the host, where it stays from now on."""
        source = self.matrix
        if not isinstance(source, Canonical):
            values = self.analysis.engine.values_on_host(source.array)
            matrix = self.analysis.symbolic.with_values(values)
            if source.check_finite:
                matrix.refuse_non_finite()
            self.matrix = source = matrix
        return source


def _attempt(
    matrix: Canonical | DeviceValues, analysis: Analyzed, plain: bool, options: dict[str, Any]
) -> NumericFactor:
    """Return a factor by the method and the backend of an analysis."""
    method, engine = analysis.symbolic.method, analysis.engine
    mixed, scaling = "dtype" in options, wanted_scaling(analysis, plain)
    if isinstance(matrix, Canonical):
        if not matrix.suits(method):
            raise SymmetryFailure
        if scaling is None and mixed:
            require_range(matrix.A.diagonal())
        return engine.factorize(matrix.data, scaling, hermitian=matrix.hermitian, **options)
    factor = engine.factorize(matrix.array, scaling, on_device=True, **options)
    health = factor.health()
    if matrix.check_finite and not health.finite:
        factor.matrix.refuse_non_finite()
    known = health.hermitian and not mixed  # up to the rounding of the factor
    if method.one_triangle and not (known or factor.is_symmetric()):
        raise SymmetryFailure
    return factor


def wanted_scaling(analysis: Analyzed, plain: bool = False) -> ScalingRequest | None:
    """Return the scaling for the method of an analysis; by largest entries alone if `plain`."""
    return ScalingRequest(analysis.matching, plain) if analysis.symbolic.method.scaling else None


def _check_promise(matrix: Canonical, analysis: Analyzed) -> None:
    check_promise(analysis.kind, matrix.indptr, matrix.indices, matrix.data)
