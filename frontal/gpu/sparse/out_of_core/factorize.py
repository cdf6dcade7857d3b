"""Numeric factorization by segments: panels are copied to the host during the next segment."""

from __future__ import annotations

from collections.abc import Callable

from ...runtime.array import Array
from ...runtime.graph import Launch
from ..factorize import small_fronts
from ..factorize.launches import TiledFronts, clear, tile_launches, workspace
from ..layout.schedule import message_entries
from ..storage import ComputedFactor, Examination, State, Storage
from .pattern import StreamedPattern
from .windows import Windows


class StreamedFactorization:
    """See `Factorization`; there is no graph, and at the end the host has all panels.

    Parameters
    ----------
    windows : Windows
        Receives the panels.
    """

    def __init__(
        self,
        pattern: StreamedPattern,
        storage: Storage,
        windows: Windows,
        values: Array,
        tiny: float,
    ) -> None:
        self.pattern, self.values, self.tiny, self._windows = pattern, values, tiny, windows
        self._numbers = storage.panels, storage.blocks, storage.largest
        state = self._state = State(pattern, storage)
        levels = small_fronts.launches(pattern, storage, values, tiny, state)
        room = workspace(pattern, storage.panels.dtype)
        self._small = [[x for one in levels[of.levels] for x in one] for of in pattern.segments]
        self._tiles: list[list[Launch]] = []
        for segment, sent in zip(pattern.segments, pattern.places.sent.tolist(), strict=True):
            first = sent - self._messages(0, segment.fronts.start)
            address = pattern.device.pointer(storage.panels) + first * storage.panels.itemsize
            tiled_fronts = TiledFronts(segment.tasks, segment.pieces, address, room)
            self._tiles.append(tile_launches(pattern, storage, values, tiny, state, tiled_fronts))
        self._looks: list[Callable[[], object]] | None = None
        self._repeated = False

    def _messages(self, first: int, last: int) -> int:
        """Return the entries of the messages of fronts from `first` on, before `last`."""
        count = self.pattern.followed[first:last].sum()
        return int(message_entries(count, self.pattern.method))

    def __call__(self, examination: Examination | None = None) -> State:
        """See `Factorization`."""
        pattern, state, lane = self.pattern, self._state, self._windows.lane
        lane.join(lane.mark())  # copies of an interrupted solve
        clear(pattern.device, state, self._numbers[-1])
        self._windows.forget()
        looks, marks = self._examinations(examination), []
        for g in range(pattern.count):
            if g > 1:  # the memory of these panels is reused after their copy
                lane.join(marks[g - 2])
            self._factorize(g)
            if looks:
                looks[g]()
            lane.behind()
            lane.fetch(self._piece(g), self._windows.on_host(g))
            marks.append(lane.mark())
        state.fetch()
        lane.join(marks[-1])
        state.ended()
        self._repeated = True
        return state

    def _factorize(self, g: int) -> None:
        """Enqueue the fronts of a segment."""
        device, state, segment = self.pattern.device, self._state, self.pattern.segments[g]
        for launch in self._small[g]:
            launch()
        if not self._tiles[g]:
            return
        first = int(self.pattern.places.sent[g])
        sent = self._messages(segment.fronts.start, segment.fronts.stop)
        device.clear(state.ticket)
        if sent:
            device.clear(self._numbers[0][first : first + sent], 0xFF)
        for launch in self._tiles[g]:
            launch()

    def _piece(self, g: int) -> Array:
        """Return the panels of a segment during its factorization."""
        first, places = int(self.pattern.places.piece[g]), self.pattern.places
        return self._numbers[0][first : first + int(places.length[g])]

    def _examinations(self, examination: Examination | None) -> list[Callable[[], object]]:
        """Return the examination of each segment; cached from the second factorization on."""
        if examination is None or not self.values.size:
            return []
        if self._looks is not None:
            return self._looks
        inputs = *self._numbers, self.values, self._state.examined, self._repeated
        looks = [
            examination(ComputedFactor(self.pattern, *inputs, segment.columns))
            for segment in self.pattern.segments
        ]
        self._looks = looks if self._repeated else None
        return looks
