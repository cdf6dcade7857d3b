"""An emulated device that counts the bytes of its arrays, as a pool of CuPy does."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from frontal.gpu.runtime.limits import Limits

from .device import LIMITS, EmulatedDevice


class Count:
    """Bytes that are taken, and the most that were."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def add(self, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now)


class CountingDevice(EmulatedDevice):
    """A device that knows what lies on it.

    Attributes
    ----------
    count : Count
    """

    def __init__(self, limits: Limits = LIMITS) -> None:
        super().__init__(limits)
        self.count = count = Count()

        class There(np.ndarray):
            """An array on the device; views of it take nothing."""

            __cuda_array_interface__ = property(lambda self: self.__array_interface__)

            def __array_finalize__(self, of: Any) -> None:
                if self.flags.owndata:
                    count.add(self.nbytes)
                    weakref.finalize(self, count.add, -self.nbytes)

        self._there, self.xp = There, arrays(There)

    def device_array(self, array: np.ndarray) -> np.ndarray:
        there = self._there(array.shape, array.dtype)
        there[...] = array
        return there

    def download(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, subok=False)

    def take(self, size: int) -> np.ndarray:
        there = self._there(size, np.uint8)
        there[...] = 0xA5
        return there


class arrays:  # noqa: N801 - stands for a module
    """NumPy, of which new arrays lie on the device."""

    def __init__(self, there: type[np.ndarray]) -> None:
        self._there, self.ndarray = there, there

    def empty(self, shape: Any, dtype: Any = float, order: Any = "C") -> np.ndarray:
        return self._there(shape, dtype, order=order)

    def zeros(self, shape: Any, dtype: Any = float, order: Any = "C") -> np.ndarray:
        found = self.empty(shape, dtype, order)
        found[...] = 0
        return found

    def full(self, shape: Any, value: Any, dtype: Any = None) -> np.ndarray:
        found = self.empty(shape, np.asarray(value).dtype if dtype is None else dtype)
        found[...] = value
        return found

    def __getattr__(self, name: str) -> Any:
        of = getattr(np, name)
        if not callable(of) or isinstance(of, type):
            return of

        def moved(*given: Any, **options: Any) -> Any:
            found = of(*given, **options)
            if type(found) is not np.ndarray:
                return found
            if not found.flags.owndata:
                return found.view(self._there)
            there = self._there(found.shape, found.dtype)
            there[...] = found
            return there

        return moved
