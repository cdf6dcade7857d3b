"""The numeric factorization of a small system in one compiled call.

For small systems overhead dominates; this path has almost none. A system that needs a warning, a
fallback or delayed pivots is left to `CpuBackend.factorize` and its callers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...backend.protocol import Health, HostFactor
from ...compile.atomics import array_of
from ...compile.jit import inlined, jit, view
from ...matrix.canonical import Canonical
from ...numeric.backoff import Backoff
from ...numeric.method import CHOLESKY, LDLH, LDLT, LU, SIGNED_LDLH, Method
from ...symbolic.matching import Matching
from ...symbolic.phase import Symbolic
from ...symbolic.plan import Plan
from ...symbolic.scaling import Scaling
from ..blas import Routines, routines
from ..blas_limit import single_threaded_blas
from ..by_reference import keep_alive, reference
from ..cholesky import front as cholesky
from ..factor import CpuFactor
from ..finalize import FactorPlan
from ..layout import HostLayout
from ..lu import front as lu
from .gil_handoff import TURN, enter_python, leave_python
from .one_system import (
    ACCEPTED,
    EntryPattern,
    SystemArrays,
    factorize_system,
    for_system,
    one_thread_workspace,
    pattern_of,
)
from .solve import SmallSolver, describe_factor

MAX_SMALL_COLUMNS = 1 << 14  # largest n: above it the saving is below 5 %
MAX_SMALL_LU_COLUMNS = 4096  # the same for LU, which more often has small or delayed pivots
_NUMBERS = 18  # position of the numbers in the index, after addresses and sizes of 9 arrays
_NO_TABLE = np.empty(0, np.int64)


class SmallFactorizer:
    """Factorizer of matrices of one pattern, by the same arithmetic as `CpuBackend.factorize`.

    An array argument costs a compiled call as much as dozens of operations: the arrays of all
    factors are passed as one array of addresses, and the call allocates its own scratch.

    Parameters
    ----------
    place : FactorPlan
        The plan of the analysis.
    layout : HostLayout
        For one thread.
    matching : Matching or None
        Gives the initial scaling.
    dtype : numpy.dtype

    Attributes
    ----------
    matching
    first : SmallSolver or None
        Solver that describes those of later factors; made by the first factor that solves.
    backoff : Backoff
        Selects the factors that try `SmallSolver`.
    """

    def __init__(
        self, place: FactorPlan, layout: HostLayout, matching: Matching | None, dtype: np.dtype
    ) -> None:
        self.matching, self._dtype = matching, dtype
        self.first: SmallSolver | None = None
        self.backoff = Backoff()
        method, n = place.symbolic.method, place.symbolic.n
        self._place, self._method, self._run = place, method, _RUN[method]
        by_rows = place.symbolic.by_rows[2]
        self._size, self._half = max(1, int(layout.panel[-1])), n * method.scaling
        # residuals sum over rows, which are the columns of a real symmetric matrix
        turned = by_rows.size * (method.panels == 2 or dtype.kind == "c")
        self._storage_size = self._size + turned
        self._pivots, self._coupling = n * method.pivots, n * method.indefinite
        self._none = np.empty(0), np.empty(0, np.int32), np.empty(0, dtype)
        plan, pattern = place.symbolic.plan, pattern_of(place.symbolic, matching, layout.panel)
        self._calls_blas = _calls_blas(method, plan)
        narrow = (
            *(plan.start, plan.parent, plan.rows, plan.relative, plan.children, plan.row),
            *(plan.column, pattern.indices, layout.top, pattern.signs),
        )
        wide = (
            *(plan.pointer, plan.child_pointer, plan.entry_pointer, plan.source),
            *(layout.panel, layout.block, pattern.indptr, pattern.diagonal, by_rows, pattern.place),
        )
        ends = [np.cumsum([0, *(a.size for a in arrays)]) for arrays in (narrow, wide)]
        begin = np.concatenate([pattern.row, pattern.column][: 2 * method.scaling] or [np.empty(0)])
        calls = routines(dtype)
        self._arrays = (
            *(np.concatenate(narrow, dtype=np.int32), np.concatenate(wide, dtype=np.int64)),
            *(*ends, begin, *calls[:3], TURN),
        )
        places = [(a.ctypes.data, a.size) for a in self._arrays]
        blocks = max(1, layout.shared + layout.per_thread)
        numbers = blocks, self._size, calls.adjoint, matching is not None, turned > 0
        self._index = np.array([*sum(places, ()), *numbers], np.int64)

    def __call__(self, matrix: Canonical, storage: np.ndarray | None) -> CpuFactor | None:
        """Return the factor of a matrix; None if it needs a warning, a fallback or delayed pivots.

        Parameters
        ----------
        matrix : Canonical
            Of the pattern. The factor references its values, without a copy.
        storage : array or None
            Memory for the panels, overwritten if it is large enough.
        """
        values, dtype, half, first = matrix.data, self._dtype, self._half, self.first
        if values.dtype != dtype or not values.flags.carray:
            return None
        if storage is None or storage.dtype != dtype or storage.size < self._storage_size:
            storage = np.empty(self._storage_size, dtype)
        scales, pivots, coupling = self._none
        if self._pivots:
            scales, pivots = np.empty(2 * half), np.empty(self._pivots, np.int32)
        if self._coupling:
            coupling = np.empty(self._coupling, dtype)
        table = _NO_TABLE
        if first is not None and (matrix.hermitian or self._method.panels == 2):
            table = first.table.copy()
        arguments = self._index, values, storage, pivots, coupling, scales, table
        if self._calls_blas:
            with single_threaded_blas():
                numbers = self._run(*arguments)
        else:
            numbers = self._run(*arguments)
        outcome, ratio, infinity_norm, one_norm = numbers
        if outcome != ACCEPTED:
            return None
        matrix = matrix.known(self._method, (infinity_norm, one_norm))
        scaling = Scaling(scales[:half], scales[half:]) if half else None
        host = HostFactor(storage[: self._size], pivots, 0, coupling)
        factor = CpuFactor(matrix, host, scaling, self._place)
        factor.storage, factor.known, factor.maker = storage, Health(ratio), self
        factor.table = table if table.size else None
        return factor

    def is_for(self, symbolic: Symbolic, matching: Matching | None) -> bool:
        """Return whether the factors have this symbolic phase and matching."""
        return symbolic is self._place.symbolic and matching is self.matching


def _calls_blas(method: Method, plan: Plan) -> bool:
    """Return whether a factorization calls BLAS."""
    if method.indefinite:
        return True
    front = cholesky if method.one_triangle else lu
    return bool(front.calls_blas(np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)).any())


@view
def _segment(arrays, ends, i):
    return arrays[ends[i] : ends[i + 1]]


@inlined
def _factorize(method, index, values, storage, pivots, coupling, scales, table):
    """Return outcome, pivot ratio, infinity norm and 1-norm; see `SmallFactorizer`."""
    dtype = values.dtype
    turn = array_of(index, 8, np.int64)
    leave_python(turn)
    narrow, ends = array_of(index, 0, np.int32), array_of(index, 2, np.int64)
    wide, limits = array_of(index, 1, np.int64), array_of(index, 3, np.int64)
    begin, calls = array_of(index, 4, np.float64), array_of(index, 5, np.int64)
    scalars, reals = array_of(index, 6, dtype), array_of(index, 7, values.real.dtype)
    numbers = index[_NUMBERS:]
    blocks, size, adjoint = numbers[0], numbers[1], np.uint8(numbers[2])
    matched, turned = numbers[3] != 0, numbers[4] != 0
    blas, panels = Routines(calls, scalars, reals, adjoint), storage[:size]
    plan = Plan(
        _segment(narrow, ends, 0), _segment(narrow, ends, 1), _segment(wide, limits, 0),
        _segment(narrow, ends, 2), _segment(narrow, ends, 3), _segment(wide, limits, 1),
        _segment(narrow, ends, 4), _segment(wide, limits, 2), _segment(wide, limits, 3),
        _segment(narrow, ends, 5), _segment(narrow, ends, 6),
    )  # fmt: skip
    half = scales.size // 2
    scaled = np.empty(values.size, dtype) if method.pivots else values
    layout = _segment(wide, limits, 4), _segment(wide, limits, 5), blocks
    empty = one_thread_workspace(method, plan, blas, layout, dtype)
    work = for_system(empty, scaled, panels, pivots)
    pattern = EntryPattern(
        _segment(wide, limits, 6), _segment(narrow, ends, 7), begin[:half], begin[half:],
        _segment(wide, limits, 7), _segment(wide, limits, 8), _segment(wide, limits, 9),
        _segment(narrow, ends, 9),
    )  # fmt: skip
    null, info = np.empty(plan.start[-1], np.bool_), np.zeros(1, np.int32)
    statistics = np.empty(3)
    system = SystemArrays(values, coupling, scales[:half], scales[half:], statistics)
    outcome = factorize_system(
        reference(work), reference(pattern), reference(system), _segment(narrow, ends, 8), matched,
        null, info,
    )  # fmt: skip
    keep_alive((work, pattern, system))
    if outcome == ACCEPTED and table.size > 0:
        _describe(table, work, system, storage[size:], pattern.mirror, turned)
    enter_python(turn, blas.table[8])
    return outcome, statistics[0], statistics[1], statistics[2]


@inlined
def _describe(table, work, system, by_rows, mirror, turned):
    """Write the table of a solver with the factor; see `describe_factor`."""
    values = data = system.values
    if turned:
        data = by_rows[: values.size]
        for p in range(values.size):
            data[p] = values[mirror[p]]
    norm = system.statistics[1]
    describe_factor(table, work.panels, work.pivots, system.row, system.column, data, norm)


@jit
def _cholesky(index, values, storage, pivots, coupling, scales, table):
    return _factorize(CHOLESKY, index, values, storage, pivots, coupling, scales, table)


@jit
def _lu(index, values, storage, pivots, coupling, scales, table):
    return _factorize(LU, index, values, storage, pivots, coupling, scales, table)


@jit
def _ldlt(index, values, storage, pivots, coupling, scales, table):
    return _factorize(LDLT, index, values, storage, pivots, coupling, scales, table)


@jit
def _ldlh(index, values, storage, pivots, coupling, scales, table):
    return _factorize(LDLH, index, values, storage, pivots, coupling, scales, table)


@jit
def _signed(index, values, storage, pivots, coupling, scales, table):
    return _factorize(SIGNED_LDLH, index, values, storage, pivots, coupling, scales, table)


_RUN: dict[Method, Callable[..., tuple[object, float, float, float]]] = {
    CHOLESKY: _cholesky,
    LU: _lu,
    LDLT: _ldlt,
    LDLH: _ldlh,
    SIGNED_LDLH: _signed,
}
