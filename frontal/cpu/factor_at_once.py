"""The numeric factorization of a small system in one compiled call: values in, a sound factor out.

What it costs is what is done around its arithmetic. Here is next to nothing around it: whatever is
unusual is left to `CpuBackend.factorize` and to those who ask it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import phases
from .._jit import inlined, jit, view
from ..matrix import Canonical
from ..method import CHOLESKY, LDLH, LDLT, LU, Method
from ..protocol import Health, HostFactor
from ..symbolic.matching import Matching
from ..symbolic.plan import Plan
from ..symbolic.scaling import Scaling
from . import ldl
from .assembly import Delays, Work
from .blas import Routines, routines
from .blas_limit import single_threaded_blas
from .borrowed import borrow, hold
from .factor import CpuFactor
from .layout import Layout
from .settle import Place
from .single import SOUND, Pattern, System, factorize_one, pattern_of
from .turns import TURN, enter_python, leave_python

MOST = 4096  # columns; of more the little that is saved is no matter
_ROOM, _TURN = ldl.ROOM, 2 * ldl.BLOCK
_STATE = phases.STATE_SIZE


class FactorAtOnce:
    """Factors of matrices of one pattern, by the same arithmetic as `CpuBackend.factorize`.

    An array costs a compiled call as much as dozens of operations: index arrays are handed over as
    parts of two, and what the call works in it makes itself.

    Parameters
    ----------
    place : Place
        Of the analyzed plan.
    layout : Layout
        For one thread.
    matching : Matching or None
        Whose scaling is begun with.
    dtype : numpy.dtype
    """

    def __init__(
        self, place: Place, layout: Layout, matching: Matching | None, dtype: np.dtype
    ) -> None:
        self.matching, self._dtype = matching, dtype
        method, n = place.symbolic.method, place.symbolic.n
        self._place, self._method, self._run = place, method, _RUN[method]
        self._size, self._half = max(1, int(layout.panel[-1])), n * method.scaling
        self._pivots, self._coupling = n * method.pivots, n * method.indefinite
        plan, of = place.symbolic.plan, pattern_of(place.symbolic, matching, layout.panel)
        narrow = (
            *(plan.start, plan.parent, plan.rows, plan.relative, plan.children, plan.row),
            *(plan.column, of.indices, layout.top),
        )
        wide = (
            *(plan.pointer, plan.child_pointer, plan.entry_pointer, plan.source),
            *(layout.panel, layout.block, of.indptr, of.own, of.mirror, of.place),
        )
        ends = [np.cumsum([0, *(a.size for a in arrays)]) for arrays in (narrow, wide)]
        begin = np.concatenate([of.row, of.column][: 2 * method.scaling] or [np.empty(0)])
        self._of = (
            *(np.concatenate(narrow, dtype=np.int32), np.concatenate(wide, dtype=np.int64)),
            *(*ends, begin, max(1, layout.shared + layout.own), matching is not None),
            *routines(dtype),
            TURN,
        )

    def __call__(self, matrix: Canonical, storage: np.ndarray | None) -> CpuFactor | None:
        """The factor of a matrix of the pattern; None if there is anything to be said of it.

        Parameters
        ----------
        matrix : Canonical
            Its values are kept, not copied.
        storage : array or None
            Memory for the panels, overwritten, if it is large enough.
        """
        values, dtype, half, size = matrix.data, self._dtype, self._half, self._size
        if not values.flags.carray:
            return None
        if storage is None or storage.dtype != dtype or storage.size < size:
            storage = np.empty(size, dtype)
        panels, scales = storage[:size], np.empty(2 * half)
        pivots, coupling = np.empty(self._pivots, np.int32), np.empty(self._coupling, dtype)
        with single_threaded_blas():
            outcome, ratio, infinity, one = self._run(
                *self._of, values, panels, pivots, coupling, scales
            )
        if outcome != SOUND:
            return None
        of = matrix.known(self._method, (infinity, one))
        scaling = Scaling(scales[:half], scales[half:]) if half else None
        factor = CpuFactor(of, HostFactor(panels, pivots, 0, coupling), scaling, self._place)
        factor.storage, factor.known = storage, Health(ratio)
        return factor


@view
def _part(parts, ends, i):
    return parts[ends[i] : ends[i + 1]]


@inlined
def _factorize(method, turn, index, blas, numbers):
    """Outcome, ratio of pivots and norms; see `factorize_one`."""
    leave_python(turn)
    narrow, wide, ends, far, begin, blocks, matched = index
    values, panels, pivots, coupling, scales = numbers
    dtype, nobody = values.dtype, np.empty(0, np.int32)
    plan = Plan(
        _part(narrow, ends, 0), _part(narrow, ends, 1), _part(wide, far, 0),
        _part(narrow, ends, 2), _part(narrow, ends, 3), _part(wide, far, 1),
        _part(narrow, ends, 4), _part(wide, far, 2), _part(wide, far, 3),
        _part(narrow, ends, 5), _part(narrow, ends, 6),
    )  # fmt: skip
    n, fronts, half = plan.start[-1], plan.parent.size, scales.size // 2
    some, room = fronts * method.pivots, _ROOM * method.indefinite
    delays = Delays(
        np.empty(some, np.int32), np.empty(some, np.int32), np.empty(some, np.int64), nobody, True
    )
    given = np.empty(values.size, dtype) if method.pivots else values
    work = Work(
        method, plan, blas, given, panels, pivots, np.empty(blocks, dtype), _part(wide, far, 4),
        _part(wide, far, 5), np.zeros(fronts, np.bool_), 0, 0,
        np.empty(room, dtype), np.empty(_TURN * method.indefinite, np.int32), room, delays,
        np.empty(_STATE, np.int64),
    )  # fmt: skip
    pattern = Pattern(
        _part(wide, far, 6), _part(narrow, ends, 7), begin[:half], begin[half:],
        _part(wide, far, 7), _part(wide, far, 8), _part(wide, far, 9),
    )  # fmt: skip
    told, null, info = np.empty(3), np.empty(n, np.bool_), np.zeros(1, np.int32)
    system = System(values, coupling, scales[:half], scales[half:], told)
    of = borrow(work), borrow(pattern), borrow(system), _part(narrow, ends, 8), matched, null, info
    outcome = factorize_one(*of)
    hold((work, pattern, system))
    enter_python(turn, blas.table[8])
    return outcome, told[0], told[1], told[2]


@jit
def _cholesky(
    narrow, wide, ends, far, begin, blocks, matched,
    table, scalars, reals, adjoint, turn, values, panels, pivots, coupling, scales,
):  # fmt: skip
    index = narrow, wide, ends, far, begin, blocks, matched
    numbers = values, panels, pivots, coupling, scales
    return _factorize(CHOLESKY, turn, index, Routines(table, scalars, reals, adjoint), numbers)


@jit
def _lu(
    narrow, wide, ends, far, begin, blocks, matched,
    table, scalars, reals, adjoint, turn, values, panels, pivots, coupling, scales,
):  # fmt: skip
    index = narrow, wide, ends, far, begin, blocks, matched
    numbers = values, panels, pivots, coupling, scales
    return _factorize(LU, turn, index, Routines(table, scalars, reals, adjoint), numbers)


@jit
def _ldlt(
    narrow, wide, ends, far, begin, blocks, matched,
    table, scalars, reals, adjoint, turn, values, panels, pivots, coupling, scales,
):  # fmt: skip
    index = narrow, wide, ends, far, begin, blocks, matched
    numbers = values, panels, pivots, coupling, scales
    return _factorize(LDLT, turn, index, Routines(table, scalars, reals, adjoint), numbers)


@jit
def _ldlh(
    narrow, wide, ends, far, begin, blocks, matched,
    table, scalars, reals, adjoint, turn, values, panels, pivots, coupling, scales,
):  # fmt: skip
    index = narrow, wide, ends, far, begin, blocks, matched
    numbers = values, panels, pivots, coupling, scales
    return _factorize(LDLH, turn, index, Routines(table, scalars, reals, adjoint), numbers)


_RUN: dict[Method, Callable[..., tuple[np.int64, float, float, float]]] = {
    CHOLESKY: _cholesky,
    LU: _lu,
    LDLT: _ldlt,
    LDLH: _ldlh,
}
