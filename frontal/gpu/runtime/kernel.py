"""Launches of a function of a CUDA module through CuPy, immediate or prepared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .array import Value

_STATIC_SHARED, _DYNAMIC_SHARED = 1, 8  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, _MAX_DYNAMIC_
# Bytes of dynamic shared memory that need no opt-in: with static memory, 48 KB in all.
_DEFAULT_SHARED = 8 << 10


class CudaKernel:
    """A function of a module; its limit of dynamic shared memory is raised at the first need."""

    def __init__(self, function: Any, shared_limit: int) -> None:
        self.function = function
        self._limit = shared_limit
        self._raised = False

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Value], shared: int = 0
    ) -> None:
        self._raise_limit(shared)
        self.function(tuple(grid), tuple(block), tuple(arguments), shared_mem=shared)

    def ready(
        self, grid: Sequence[int], block: Sequence[int], table: int, shared: int = 0
    ) -> Callable[[int], object]:
        from cupy.cuda import driver

        self._raise_limit(shared)
        launch, pointer = driver.launchKernel, self.function.ptr
        sizes = (*[*grid, 1, 1][:3], *[*block, 1, 1][:3])
        return lambda stream: launch(pointer, *sizes, shared, stream, table, 0)

    def _raise_limit(self, shared: int) -> None:
        if shared > _DEFAULT_SHARED and not self._raised:
            from cupy.cuda import driver

            static = driver.funcGetAttribute(_STATIC_SHARED, self.function.ptr)
            driver.funcSetAttribute(self.function.ptr, _DYNAMIC_SHARED, self._limit - static)
            self._raised = True
