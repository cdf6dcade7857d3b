"""Fallbacks of a factorization: the table `FALLBACKS` maps a failed attempt to the next one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..backend.choose import requested
from ..backend.protocol import (
    ColumnPivotFailure,
    DelayFailure,
    NumericFactor,
    PivotFailure,
    Progress,
    SchurPivotFailure,
)
from ..errors import (
    FactorMemoryError,
    NotPositiveDefiniteError,
    PerformanceWarning,
    SingularMatrixError,
    warn,
)
from ..matrix.canonical import Canonical
from ..matrix.symmetry import check_promise
from ..numeric.method import LU
from ..symbolic.delayed_plan import delay_to_parent, place_delayed_last
from ..symbolic.schur import singular_block
from .analyzed import Analyzed
from .attempt import Attempt, LargeGrowth, NullPivotsUnproven, OutdatedMatching, SymmetryFailure
from .diagnosis import Diagnosis
from .mixed import ImpreciseError
from .quasidefinite import NotQuasidefiniteError
from .solve import FactorSolver

log = logging.getLogger("frontal")

_CPU_MOVE = 3  # move for which the CPU chooses the fronts of the columns


# --- conditions of a line of the table ---------------------------------------------------------


def _always(attempt: Attempt, failure: Exception) -> bool:
    return True


def _is_mixed(attempt: Attempt, failure: Exception) -> bool:
    return attempt.mixed


def _method_was_guess(attempt: Attempt, failure: Exception) -> bool:
    return attempt.analysis.fallback


def _may_regularize(attempt: Attempt, failure: Exception) -> bool:
    return attempt.regularizes and _is_on_gpu(attempt, failure)


def _has_schur(attempt: Attempt, failure: Exception) -> bool:
    return attempt.analysis.symbolic.schur is not None


def _moved_often(attempt: Attempt, failure: Exception) -> bool:
    return attempt.moves + 1 == _CPU_MOVE


def _may_pair(attempt: Attempt, failure: Exception) -> bool:
    return attempt.analysis.tiny > 0 and attempt.analysis.choices.pairs == "auto"


def _is_on_cpu(attempt: Attempt, failure: Exception) -> bool:
    return attempt.analysis.engine.fallback is None


def _is_on_gpu(attempt: Attempt, failure: Exception) -> bool:
    return attempt.analysis.engine.fallback is not None


def _gpu_is_optional(attempt: Attempt, failure: Exception) -> bool:
    return requested(attempt.analysis.backend) == "auto" and attempt.memory == "auto"


def _is_proved(attempt: Attempt, failure: SingularMatrixError) -> bool:
    return failure.rank is not None  # independent of the factor


def _has_other_scaling(attempt: Attempt, failure: Exception) -> bool:
    return attempt.other_scaling() is not None


def _pairs_did_not_help(attempt: Attempt, failure: Exception) -> bool:
    return attempt.analysis.paired and not attempt.delaying


# --- steps to the next attempt, or to an error -------------------------------------------------


def _raise(attempt: Attempt, failure: Exception) -> None:
    raise failure


def _refactorize_in_double(attempt: Attempt, failure: Exception) -> None:
    if isinstance(failure, PivotFailure):
        raise ImpreciseError("a pivot of Cholesky is not positive") from None
    raise ImpreciseError("the matrix seems to be singular") from None


def _continue_with_ldl(attempt: Attempt, failure: PivotFailure) -> None:
    attempt.matrix_on_host()  # the host checks its symmetry and scales it
    column = int(attempt.analysis.perm[failure.position])
    log.info("not positive definite at column %d: continuing with LDL^H", column)
    attempt.restart(attempt.analysis.as_indefinite())


def _refuse_indefinite(attempt: Attempt, failure: PivotFailure) -> None:
    _check_promise(attempt.matrix_on_host(), attempt.analysis)
    signed = attempt.analysis.symbolic.method.signed
    error = NotQuasidefiniteError if signed else NotPositiveDefiniteError
    raise error(int(attempt.analysis.perm[failure.position])) from None


def _regularize_on_cpu(attempt: Attempt, failure: PivotFailure) -> None:
    warn("a pivot lacks its sign: replacing such pivots on the CPU", PerformanceWarning)
    _analyze_for(attempt, attempt.analysis.engine.fallback)


def _continue_with_lu(attempt: Attempt, failure: SymmetryFailure) -> None:
    matrix = attempt.matrix_on_host()
    if not attempt.analysis.fallback:
        _check_promise(matrix, attempt.analysis)
    log.info("not symmetric: continuing with LU")
    attempt.restart(attempt.analysis.as_general(matrix))


def _move_to_parents(attempt: Attempt, failure: LargeGrowth) -> None:
    symbolic = delay_to_parent(attempt.analysis.symbolic, failure.columns, failure.rows)
    attempt.move(symbolic, failure.columns.size)


def _move_as_the_cpu(attempt: Attempt, failure: LargeGrowth) -> None:
    """Move unstable columns to the fronts where the CPU eliminates them."""
    planned = attempt.planned
    on_cpu = replace(attempt, matrix=attempt.matrix_on_host(), analysis=planned.on("cpu"))
    try:
        symbolic = on_cpu.factor().symbolic
    except DelayFailure as delayed:
        attempt.moves += 1
        return follow(attempt, delayed)
    if symbolic.method == LU:
        symbolic = place_delayed_last(symbolic, planned.symbolic)
    attempt.move(symbolic, failure.columns.size)


def _pair_all(attempt: Attempt, failure: DelayFailure) -> None:
    attempt.restart(attempt.analysis.all_paired(attempt.matrix_on_host()))


def _replace_pivots(attempt: Attempt, failure: DelayFailure) -> None:
    log.info("too many columns without acceptable pivots: replacing these pivots")
    attempt.delaying = False


def _refuse_block(attempt: Attempt, failure: DelayFailure) -> None:
    none = np.empty(0, np.int32)
    columns = failure.columns if isinstance(failure, SchurPivotFailure) else none
    lack = "has" if columns.size == 1 else "have"
    what = f"{lack} no acceptable pivot" if columns.size else "too many columns lack pivots"
    raise singular_block(columns, what) from None


def _continue_with_fronts(attempt: Attempt, failure: ColumnPivotFailure) -> None:
    log.info("%s by columns: continuing with fronts", failure)
    attempt.restart(attempt.analysis.frontal)


def _match_anew(attempt: Attempt, failure: OutdatedMatching) -> None:
    log.info("tiny pivots with a matching of other values: analyzing the new values")
    attempt.matched = True
    _analyze_for(attempt, attempt.analysis.backend)


def _scale_by_largest(attempt: Attempt, failure: Exception) -> None:
    attempt.plain = True


def _permute_rows(attempt: Attempt, failure: SingularMatrixError) -> None:
    attempt.restart(attempt.analysis.unpaired(attempt.matrix_on_host()))


def _refuse_memory(attempt: Attempt, failure: MemoryError) -> None:
    raise FactorMemoryError.from_error(failure) from None


def _leave_small_gpu(attempt: Attempt, failure: MemoryError) -> None:
    warn(f"the GPU is too small; falling back to the CPU: {failure}", PerformanceWarning)
    _analyze_for(attempt, attempt.analysis.engine.fallback)


def _leave_unstable_gpu(attempt: Attempt, failure: SingularMatrixError) -> None:
    # a GPU seeks pivots in tiles, the CPU in whole fronts
    warn(
        "GPU pivoting was not stable for this matrix; refactorizing on the CPU",
        PerformanceWarning,
    )
    _analyze_for(attempt, attempt.analysis.engine.fallback)


def _analyze_for(attempt: Attempt, backend: str | None) -> None:
    assert backend is not None
    attempt.restart(attempt.analysis.analyzed_for(backend, attempt.matrix_on_host()))


def _check_promise(matrix: Canonical, analysis: Analyzed) -> None:
    check_promise(analysis.kind, matrix.indptr, matrix.indices, matrix.data)


# The first line that fits decides: outcome of an attempt, condition, step to the next attempt.
FALLBACKS: tuple[tuple[type[Exception], Callable[..., bool], Callable[..., None]], ...] = (
    (PivotFailure, _is_mixed, _refactorize_in_double),
    (PivotFailure, _method_was_guess, _continue_with_ldl),
    (PivotFailure, _may_regularize, _regularize_on_cpu),
    (PivotFailure, _always, _refuse_indefinite),
    (SymmetryFailure, _always, _continue_with_lu),
    (LargeGrowth, _moved_often, _move_as_the_cpu),
    (LargeGrowth, _always, _move_to_parents),
    (ColumnPivotFailure, _always, _continue_with_fronts),
    (SchurPivotFailure, _is_mixed, _refactorize_in_double),
    (SchurPivotFailure, _may_pair, _pair_all),
    (SchurPivotFailure, _always, _refuse_block),
    (DelayFailure, _may_pair, _pair_all),
    (DelayFailure, _has_schur, _refuse_block),
    (DelayFailure, _always, _replace_pivots),
    (OutdatedMatching, _always, _match_anew),
    (NullPivotsUnproven, _always, _scale_by_largest),
    (MemoryError, _is_on_cpu, _refuse_memory),
    (MemoryError, _gpu_is_optional, _leave_small_gpu),
    (MemoryError, _always, _raise),
    (SingularMatrixError, _is_mixed, _refactorize_in_double),
    (SingularMatrixError, _is_proved, _raise),
    (SingularMatrixError, _is_on_gpu, _leave_unstable_gpu),
    (SingularMatrixError, _has_other_scaling, _scale_by_largest),
    (SingularMatrixError, _pairs_did_not_help, _permute_rows),
    (SingularMatrixError, _always, _raise),
)
OUTCOMES = tuple({outcome for outcome, _, _ in FALLBACKS})


def follow(attempt: Attempt, failure: Exception) -> None:
    """Change a failed attempt to the next one by `FALLBACKS`, or raise the error for the user."""
    for outcome, condition, step in FALLBACKS:
        if isinstance(failure, outcome) and condition(attempt, failure):
            return step(attempt, failure)


def factorize(
    attempt: Attempt,
    *,
    before: Diagnosis | None = None,
    progress: Progress | None = None,
    previous: NumericFactor | None = None,
    looked_at: bool = True,
) -> tuple[Analyzed, FactorSolver]:
    """Factorize by the first attempt that succeeds, beginning with `attempt`.

    Parameters
    ----------
    attempt : Attempt
        Changed by each fallback.
    before : Diagnosis, optional
        Diagnosis of the previous values.
    progress : callable, optional
    previous : NumericFactor, optional
        Its memory is reused, and the factor becomes invalid.
    looked_at : bool
        Skip the check for non-finite values.

    Returns
    -------
    analysis, solver
        Results of the attempt that succeeded.

    Raises
    ------
    ImpreciseError
        If the matrix needs a factor in double precision.
    """
    solver = attempt.run_fast(previous, before)
    if solver is not None:
        return attempt.analysis, solver
    if not looked_at and isinstance(attempt.matrix, Canonical):
        attempt.matrix.refuse_non_finite()
    attempt.matched = before is not None and before.matched
    while True:
        try:
            solver = attempt.run(progress, previous, before)  # a refused factor is released
            return attempt.used_analysis(solver.factor), solver
        except OUTCOMES as failure:
            follow(attempt, failure)
        previous = None
