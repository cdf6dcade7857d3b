"""An emulated device with two streams, of which one is as late as its waits allow.

Otherwise all is done when it is enqueued, and no wait between streams is ever needed. What is late
of the current stream are kernels that work with fronts, and what goes with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .counting import arrays
from .device import EmulatedDevice

_LATE = ("front_", "system_health", "system_largest")  # kernels, by the beginnings of their names


class LaneDevice(EmulatedDevice):
    """A device whose copies by a lane are late, or all else is.

    Parameters
    ----------
    late : {"copies", "kernels"}
        What is done when somebody waits for it, and not before.

    Attributes
    ----------
    copied : int
        Bytes that lanes have copied.
    """

    def __init__(self, late: str) -> None:
        super().__init__()
        self.late, self.copied = late, 0
        self.enqueued: list[Callable[[], object]] = []  # on the current stream
        run = self.run

        class There(np.ndarray):
            """An array on the device; what writes to it is on the current stream."""

            __cuda_array_interface__ = property(lambda self: self.__array_interface__)

            def __setitem__(self, index: Any, value: Any) -> None:
                run()
                super().__setitem__(index, value)

        self._there, self.xp = There, arrays(There)

    def enqueue(self, work: Callable[[], object]) -> None:
        """Do something on the current stream: at once, if that is not late."""
        if self.late == "kernels":
            self.enqueued.append(work)
        else:
            work()

    def run(self) -> None:
        now, self.enqueued = self.enqueued, []
        for work in now:
            work()

    def lane(self) -> Any:
        return _Lane(self)

    def _entry(self, library: Any, entry: str) -> Any:
        kernel = super()._entry(library, entry)

        def launch(grid: Any, block: Any, arguments: Any, shared: int = 0) -> None:
            self.enqueue(lambda: kernel(grid, block, arguments, shared))
            if not entry.startswith(_LATE):
                self.run()

        return launch

    def clear(self, array: Any, byte: int = 0) -> None:
        clear = super().clear
        self.enqueue(lambda: clear(array, byte))

    def record(self, run: Callable[[], None]) -> Callable[[], bool]:
        """Return a function that launches what `run` enqueues on the current stream."""

        def whole() -> None:
            run()
            self.run()

        self.run()
        launch = super().record(whole)

        def replay() -> bool:
            if not self.is_capturing:
                self.enqueue(launch)
            return not self.is_capturing

        return replay

    def staged(self, array: Any) -> Any:
        """Take memory for a copy, which is made on the current stream."""
        return _Staged(self, super().staged(array))

    def fence(self) -> Any:
        return _Fence(self)

    def wait(self) -> None:
        self.run()

    def device_array(self, array: np.ndarray) -> np.ndarray:
        return super().device_array(array).view(self._there)

    def download(self, array: np.ndarray) -> np.ndarray:
        self.run()
        return np.array(array, subok=False)

    def copy(self, source: Any, target: Any) -> None:
        self.run()
        super().copy(source, target)


class _Fence:
    def __init__(self, device: LaneDevice) -> None:
        self.synchronize = device.run

    def record(self) -> None:
        pass


class _Staged:
    def __init__(self, device: LaneDevice, of: Any) -> None:
        self._device, self._of, self.host = device, of, of.host

    def fetch(self) -> None:
        self._device.enqueue(self._of.fetch)

    def send(self) -> None:
        self._device.enqueue(self._of.send)


class _Lane:
    """Copies when somebody joins them; or as soon as what they are behind is done."""

    def __init__(self, device: LaneDevice) -> None:
        self._device, self._copies, self._done = device, [], 0

    def behind(self) -> None:
        self._device.run()

    def fetch(self, source: Any, target: Any) -> None:
        self._device.copied += target.nbytes

        def copy() -> None:
            np.copyto(target, source)

        if self._device.late == "copies":
            self._copies.append(copy)
        else:
            copy()

    send = fetch

    def mark(self) -> int:
        return len(self._copies)

    def join(self, mark: int) -> None:
        for copy in self._copies[self._done : mark]:
            copy()
        self._done = max(self._done, mark)
