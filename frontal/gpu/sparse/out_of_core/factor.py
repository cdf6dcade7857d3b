"""A factor whose panels are on the host, and operations that read all of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ....backend.protocol import HostFactor
from ....numeric.linear_system import FastSolution, Vectors
from ...runtime.array import Array
from ..device_matrix import DeviceMatrix
from ..factor import GpuFactor
from ..factorize import pivot_statistics
from ..factorize.profile import FactorProfile
from ..layout.schedule import TILE
from .pattern import StreamedPattern
from .storage import StreamedWorkspace


class StreamedFactor(GpuFactor):
    """See `GpuFactor`, and `protocol.NumericFactor`."""

    storage: StreamedWorkspace
    pattern: StreamedPattern

    def __init__(self, matrix: DeviceMatrix, storage: StreamedWorkspace) -> None:
        super().__init__(matrix, storage)
        self.pattern, self.device = storage.pattern, f"{self.device}, panels on the host"

    def to_host(self) -> HostFactor:
        """See `NumericFactor`."""
        panels = self.pattern.to_host(self.storage.windows.host, self._held)
        return HostFactor(panels, self.pivots, self.perturbed, self.subdiagonal(), self.nulls)

    @property
    def _held(self) -> np.ndarray:
        """Offsets of the panels of each front on the host."""
        pattern = self.pattern
        return pattern.places.held[pattern.segment] + pattern.places.inside

    def diagonal(self) -> np.ndarray:
        """See `NumericFactor`."""
        pattern, layout = self.pattern, self.pattern.places
        s = np.repeat(np.arange(pattern.k.size), pattern.k)
        j = np.arange(s.size) - pattern.plan.start[s]
        at, tile = self._held[s], j // TILE
        if pattern.method.one_triangle:
            ld = np.where(tile + 1 < pattern.pivot_tiles[s], TILE, layout.last_ld[s])
            at += layout.l11_offset[s] + TILE * TILE * (tile * (tile + 1) // 2) + TILE * tile
            packed = layout.last_ld[s] == 0
            at = np.where(packed, at + j * pattern.k[s] - j * (j - 1) // 2, at + j * ld + j % TILE)
            entries = self.storage.windows.host[at]
            entries[packed] = 1 / entries[packed]
            return entries
        w = np.minimum(TILE, pattern.k[s] - TILE * tile)  # inverse of U, see sparse/front.cuh
        at += TILE * tile + (TILE * tile + w - 1 - j % TILE) * layout.ld[s]
        with np.errstate(all="ignore"):
            return 1 / self.storage.windows.host[at]

    def _update_growth(self, values: Array, maxima: Array) -> None:
        pattern, windows, blocks = self.pattern, self.storage.windows, self.storage.blocks

        def update(g: int) -> None:
            first = int(pattern.places.piece[g]) * self.dtype.itemsize
            panels = np.uint64(pattern.device.pointer(windows.on_device(g)) - first)
            columns = pattern.segments[g].columns
            pivot_statistics.update_growth(
                pattern, panels, columns, self.entries, values, blocks, maxima
            )

        windows.through((g, partial(update, g)) for g in range(pattern.count))

    def free(self) -> None:
        """See `NumericFactor`; waits."""
        self.pattern.device.wait()  # until all copies are done
        super().free()

    def solve_fast(
        self, b: object, trans: str, how: int, references: Sequence[Vectors | None] = ()
    ) -> FastSolution | None:
        """See `NumericFactor`: a solve that copies panels is no graph."""
        return None

    def profile(self) -> FactorProfile:
        """See `NumericFactor`."""
        raise ValueError(
            "a factor with panels on the host has no profile by levels. Try: memory='device', "
            "or a smaller problem of this type"
        )
