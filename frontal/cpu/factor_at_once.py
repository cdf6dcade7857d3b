"""The numeric factorization of a small system in one compiled call: values in, a sound factor out.

What it costs is what is done around its arithmetic. Here is next to nothing around it: whatever is
unusual is left to `CpuBackend.factorize` and to those who ask it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._jit import allocating, jit
from ..matrix import Canonical
from ..method import CHOLESKY, LDLH, LDLT, LU, Method
from ..protocol import Health, HostFactor
from ..symbolic.matching import Matching
from ..symbolic.scaling import Scaling
from .assembly import Work
from .blas_limit import single_threaded_blas
from .factor import CpuFactor
from .layout import Layout
from .settle import Place
from .single import SOUND, Numbers, factorize_one, pattern_of, room_for

MOST = 4096  # columns; of more the little that is saved is no matter
_KEPT = 2  # rooms, for threads that factorize at the same time


class FactorAtOnce:
    """Factors of matrices of one pattern, by the same arithmetic as `CpuBackend.factorize`.

    Parameters
    ----------
    place : Place
        Of the analyzed plan.
    layout : Layout
        For one thread.
    matching : Matching or None
        Whose scaling is begun with.
    """

    def __init__(self, place: Place, layout: Layout, matching: Matching | None) -> None:
        self.matching = matching
        self._place, self._layout = place, layout
        self._method, self._size = place.symbolic.method, max(1, int(layout.panel[-1]))
        self._pattern = pattern_of(place.symbolic, matching, layout.panel)
        self._rooms: dict[np.dtype, list[Work]] = {}

    def __call__(self, matrix: Canonical, storage: np.ndarray | None) -> CpuFactor | None:
        """The factor of a matrix of the pattern; None if there is anything to be said of it.

        Parameters
        ----------
        matrix : Canonical
            Its values are kept, not copied.
        storage : array or None
            Memory for the panels, overwritten, if it is large enough.
        """
        method, values, dtype, n = self._method, matrix.data, matrix.dtype, matrix.n
        if not values.flags.carray:
            return None
        if storage is None or storage.dtype != dtype or storage.size < self._size:
            storage = np.empty(self._size, dtype)
        panels = storage[: self._size]
        pivots = np.empty(n * method.pivots, np.int32)
        coupling = np.empty(n * method.indefinite, dtype)
        row, column = np.empty((2, n * method.scaling))
        outcome, found = np.empty(1, np.int64), np.empty((1, 3))
        numbers = Numbers(
            *(values[None], panels[None], pivots[None], coupling[None], row[None], column[None]),
            *(outcome, found[:, 0], found[:, 1:]),
        )
        self._run(numbers)
        if outcome[0] != SOUND:
            return None
        ratio, *norms = found[0].tolist()
        of = self._place.symbolic.with_values(values, matrix.hermitian, (norms[0], norms[1]))
        scaling = Scaling(row, column) if method.scaling else None
        factor = CpuFactor(of, HostFactor(panels, pivots, 0, coupling), scaling, self._place)
        factor.storage, factor.known = storage, Health(ratio)
        return factor

    def _run(self, numbers: Numbers) -> None:
        """Factorize in a room that no other thread is in."""
        rooms = self._rooms.setdefault(numbers.values.dtype, [])
        try:
            room = rooms.pop()
        except IndexError:
            room = room_for(self._place.symbolic, self._layout, numbers.values.dtype)
        with single_threaded_blas():
            given = room[1:], self._layout.top, self._pattern, numbers
            _RUN[self._method](*given, self.matching is not None)
        if len(rooms) < _KEPT:
            rooms.append(room)


@allocating
def _factorize(method, rest, top, pattern, numbers, matched):
    """See `factorize_one`, for the only system."""
    scaled = np.empty(pattern.indices.size * method.pivots, numbers.values.dtype)
    null, info = np.empty(pattern.place.size, np.bool_), np.zeros(1, np.int32)
    of = method, rest, top, pattern, numbers, np.int64(0), matched, scaled, null, info
    numbers.outcome[0] = factorize_one(*of)


@jit
def _cholesky(rest, top, pattern, numbers, matched):
    _factorize(CHOLESKY, rest, top, pattern, numbers, matched)


@jit
def _lu(rest, top, pattern, numbers, matched):
    _factorize(LU, rest, top, pattern, numbers, matched)


@jit
def _ldlt(rest, top, pattern, numbers, matched):
    _factorize(LDLT, rest, top, pattern, numbers, matched)


@jit
def _ldlh(rest, top, pattern, numbers, matched):
    _factorize(LDLH, rest, top, pattern, numbers, matched)


_RUN: dict[Method, Callable[..., None]] = {
    CHOLESKY: _cholesky,
    LU: _lu,
    LDLT: _ldlt,
    LDLH: _ldlh,
}
