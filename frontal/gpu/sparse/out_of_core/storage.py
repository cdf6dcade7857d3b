"""The memory of a factor on the device and on the host, with its factorization and solver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....backend.host_memory import require_available
from ....errors import FactorMemoryError
from ....machine.threads import parallel_for
from ...runtime.array import Array
from .. import storage as memory
from ..pattern import DevicePattern
from ..workspace import Computes, FactorWorkspace
from .factorize import StreamedFactorization
from .pattern import StreamedPattern
from .solve import StreamedSolver
from .windows import Windows


@dataclass
class StreamedWorkspace(FactorWorkspace):
    """See `FactorWorkspace`; by segments, whatever pattern a method is called with."""

    pattern: StreamedPattern = field(kw_only=True)
    windows: Windows = field(kw_only=True)  # holds the panels

    @property
    def nbytes(self) -> int:
        """Bytes on the device and on the host."""
        return super().nbytes + self.windows.host.nbytes

    def _new_solver(self, pattern: DevicePattern) -> StreamedSolver:
        return StreamedSolver(self.pattern, self, self.windows)

    def _new_factorization(self, pattern: DevicePattern, values: Array, tiny: float) -> Computes:
        return StreamedFactorization(self.pattern, self, self.windows, values, tiny)

    def copy(self, pattern: DevicePattern) -> StreamedWorkspace:
        """See `FactorWorkspace`."""
        device = self.pattern.device
        twin = allocate(
            self.pattern, self.panels.dtype, self.spare.values.size if self.spare else 0
        )
        device.wait()  # until all copies to the host are done
        source, target = self.windows.host, twin.windows.host

        def copy(first: int, last: int) -> None:
            target[first:last] = source[first:last]

        parallel_for(copy, source.size)
        self.copy_vectors(device, twin)
        return twin


def allocate(
    pattern: StreamedPattern, dtype: np.dtype, separate_count: int = 0
) -> StreamedWorkspace:
    """Allocate the memory of a factor, also on the host; raise before that if it does not fit."""
    require_host(pattern, dtype)

    def with_windows(panels: Array, *others: Any) -> StreamedWorkspace:
        size = host_bytes(pattern, dtype)
        try:
            host = pattern.device.pinned(size // dtype.itemsize, dtype)
        except MemoryError as error:
            raise FactorMemoryError.from_error(error, size) from error
        windows = Windows(pattern.device, pattern.places, panels, host)
        return StreamedWorkspace(panels, *others, pattern=pattern, windows=windows)

    return memory.allocate(pattern, dtype, with_windows, separate_count)


def require_host(pattern: StreamedPattern, dtype: np.dtype) -> None:
    """Raise a FactorMemoryError if the host has too little memory for the panels of a factor."""
    require_available(host_bytes(pattern, dtype))


def host_bytes(pattern: StreamedPattern, dtype: np.dtype) -> int:
    """Return the bytes of a factor on the host."""
    return int(pattern.places.length.sum()) * dtype.itemsize
