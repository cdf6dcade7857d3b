"""Interfaces of device arrays and kernels for host code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Array(Protocol):
    """An array of a device: CuPy's, or NumPy's if kernels are emulated.

    Host code uses only these members; all other operations are kernels or functions of `Device.xp`.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype: ...
    @property
    def ndim(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def T(self) -> Array: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: object, /) -> Array: ...
    def __setitem__(self, index: object, value: object, /) -> None: ...
    def __add__(self, other: object, /) -> Array: ...
    def __sub__(self, other: object, /) -> Array: ...
    def __iadd__(self, other: object, /) -> Array: ...
    def __isub__(self, other: object, /) -> Array: ...
    def astype(self, dtype: npt.DTypeLike) -> Array: ...
    def conj(self) -> Array: ...
    def copy(self) -> Array: ...
    def ravel(self) -> Array: ...
    def reshape(self, *shape: int) -> Array: ...
    def swapaxes(self, first: int, second: int, /) -> Array: ...
    def transpose(self, *axes: int) -> Array: ...
    def view(self, dtype: npt.DTypeLike) -> Array: ...


Value = Array | np.ndarray | np.generic  # arrays by address; structs, numbers by value
NULL = np.uint64(0)  # null pointer, instead of an array


class DeviceMemory(Protocol):
    """Untyped memory of a device, or an offset into it."""

    @property
    def ptr(self) -> int: ...
    def __add__(self, offset: int, /) -> DeviceMemory: ...
    def memset_async(self, value: int, size: int, /) -> None: ...


class Event(Protocol):
    """A position in the work on a stream."""

    def record(self) -> object:
        """Set the position after all work enqueued on the current stream."""
        ...

    def synchronize(self) -> object:
        """Wait until the device has reached the position."""
        ...


class PinnedMirror(Protocol):
    """An array of a device with a copy in pinned host memory.

    Attributes
    ----------
    host : array
        Of the same shape; valid after a `fetch` that the host has waited for.
    """

    host: np.ndarray

    def fetch(self) -> None:
        """Enqueue a copy to the host."""
        ...

    def send(self) -> None:
        """Enqueue a copy from the host, which must not change until the copy is waited for."""
        ...


class CopyStream(Protocol):
    """Consecutive copies between host and device, concurrent with the current stream.

    Arrays on both sides are contiguous, and host arrays are allocated by `Device.pinned`.
    """

    def behind(self) -> None:
        """Start later copies after all work enqueued on the current stream."""
        ...

    def fetch(self, source: Array, target: np.ndarray) -> None:
        """Enqueue a copy to the host."""
        ...

    def send(self, source: np.ndarray, target: Array) -> None:
        """Enqueue a copy to the device."""
        ...

    def mark(self) -> Event:
        """Return the position after all copies so far."""
        ...

    def join(self, mark: Event) -> None:
        """Let the current stream wait until the copies reach a position."""
        ...


class Kernel(Protocol):
    """An entry point of a kernel file."""

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Value], shared: int = 0
    ) -> None:
        """Enqueue the kernel.

        Parameters
        ----------
        grid, block : sequence of int
            Blocks, and threads of a block, along up to three axes.
        arguments : sequence of arrays, structs and NumPy scalars
        shared : int
            Bytes of dynamic shared memory of a block.
        """
        ...

    def ready(
        self, grid: Sequence[int], block: Sequence[int], table: int, shared: int = 0
    ) -> Callable[[int], object]:
        """Return a function of a stream that enqueues the kernel with little overhead.

        ``table`` is the address of the argument addresses, which are read when the function is
        called.
        """
        ...
