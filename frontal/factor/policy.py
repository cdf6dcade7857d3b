"""Which method and which backend factorize, and what takes over where one cannot."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

import numpy as np

from ..backends import requested
from ..errors import (
    NotPositiveDefiniteError,
    PerformanceWarning,
    SingularMatrixError,
    warn,
)
from ..matrix import Canonical
from ..protocol import Backend, DelayFailure, NumericFactor, PivotFailure, Progress
from ..symbolic.scaling import Scaling, scaling_of
from ..symmetry import check_promise
from .analyzed import Analyzed
from .solve import Solver
from .verdict import Verdict

log = logging.getLogger("frontal")


class ValuesThere(NamedTuple):
    """New values of a pattern, where its factor is.

    Attributes
    ----------
    array : device array (nnz,)
        By columns.
    scaling : Scaling or None
        Of the last factorization whose values came from the host.
    check_finite : bool
        Refuse NaN and infinity.
    """

    array: Any
    scaling: Scaling | None
    check_finite: bool


class SymmetryFailure(Exception):  # noqa: N818 - not an error where LU can go on
    """A method that reads one triangle was given a matrix that has two."""


def factorize(
    given: Canonical | ValuesThere,
    analysis: Analyzed,
    progress: Progress | None = None,
    previous: NumericFactor | None = None,
    before: Verdict = Verdict(),  # noqa: B008 - only read
) -> tuple[Analyzed, Solver]:
    """Factorize, by the first of these that can:

    - the method and the backend of the analysis;
    - LDL^H in the same analysis, where Cholesky was a guess and A is not positive definite;
    - LU in the same order, where new values have not the symmetry that was a guess;
    - the CPU with an order of its own, where a GPU was not insisted on and has too little memory,
      or found no accurate pivots;
    - LU with rows moved, where pairs of columns give no accurate pivots.

    Parameters
    ----------
    given : Canonical or ValuesThere
        The canonical matrix is kept, not copied.
    analysis : Analyzed
    progress : callable, optional
    previous : NumericFactor, optional
        Its memory is used again; it is then no factor any more.
    before : Verdict
        On the values before, and what is done about a singular matrix.

    Returns
    -------
    analysis : Analyzed
        That of the method and the backend that could.
    solver : Solver
        With the factor, which is fit for use.
    """
    delaying = True
    while True:
        engine = analysis.engine
        try:
            factor = _attempt(given, analysis, engine, progress, previous, delaying)
            solver = Solver(factor, Verdict(before.singular))
            solver.examine(before)
            if factor.symbolic is not analysis.symbolic:
                analysis = analysis.amended(factor.symbolic)
            return analysis, solver
        except PivotFailure as failure:
            column = int(analysis.perm[failure.position])
            given = _on_host(given, analysis)
            if not analysis.fallback:
                check_promise(analysis.kind, given.indptr, given.indices, given.data)
                raise NotPositiveDefiniteError(column) from None
            log.info("not positive definite at column %d: going on with LDL^H", column)
            on_gpu = engine.fallback is not None
            analysis = analysis.as_general(given) if on_gpu else analysis.as_indefinite()
        except SymmetryFailure:
            given = _on_host(given, analysis)
            if not analysis.fallback:
                check_promise(analysis.kind, given.indptr, given.indices, given.data)
            log.info("not symmetric: going on with LU")
            analysis = analysis.as_general(given)
        except DelayFailure:
            log.info("columns without sound pivots pile up: replacing these pivots")
            delaying = False
        except MemoryError as error:
            if engine.fallback is None or requested(analysis.backend) != "auto":
                raise
            warn(f"the GPU is too small, the CPU takes over: {error}", PerformanceWarning)
            given = _on_host(given, analysis)
            analysis = analysis.analyzed_for(engine.fallback, given)
        except SingularMatrixError as error:
            if error.rank is not None:  # proved, whatever the factor is
                raise
            given = _on_host(given, analysis)
            if engine.fallback is not None:  # it looks for pivots in tiles, not in whole fronts
                warn(
                    "no accurate factor by the pivots that the GPU chose, the CPU takes over",
                    PerformanceWarning,
                )
                analysis = analysis.analyzed_for(engine.fallback, given)
            elif analysis.paired:
                analysis = analysis.unpaired(given)
            else:
                raise
        previous = None


def _attempt(
    given: Canonical | ValuesThere,
    analysis: Analyzed,
    engine: Backend,
    progress: Progress | None,
    previous: NumericFactor | None,
    delaying: bool,
) -> NumericFactor:
    """A factor by the method of the analysis and its backend, `engine`."""
    method = analysis.symbolic.method
    if isinstance(given, Canonical):
        if not given.suits(method):
            raise SymmetryFailure
        scaling = scaling_of(given, analysis.matching) if method.scaling else None
        if scaling is not None and method.indefinite:
            both = np.exp2(np.round((np.log2(scaling.row) + np.log2(scaling.column)) / 2))
            scaling = Scaling(both, both)
        more = {"hermitian": given.hermitian, "progress": progress, "previous": previous}
        return engine.factorize(given.data, scaling, delaying=delaying, **more)
    factor = engine.factorize(given.array, given.scaling, there=True, previous=previous)
    health = factor.health()
    if given.check_finite and not health.finite:
        factor.matrix.refuse_non_finite()
    if method.one_triangle and not (health.hermitian or factor.matrix.suits(method)):
        raise SymmetryFailure
    return factor


def _on_host(given: Canonical | ValuesThere, analysis: Analyzed) -> Canonical:
    """What is given, on the host."""
    if isinstance(given, Canonical):
        return given
    matrix = analysis.symbolic.with_values(analysis.engine.values_on_host(given.array))
    if given.check_finite:
        matrix.refuse_non_finite()
    return matrix
