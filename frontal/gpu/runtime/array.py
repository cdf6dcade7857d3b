"""Arrays of a device and kernels over them, as host code sees them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Array(Protocol):
    """An array of a device: CuPy's, or NumPy's where kernels are emulated.

    What host code may ask of one; all else is done by kernels, or by functions of `Device.xp`.
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


Value = Array | np.ndarray | np.generic  # an array by its address; a struct or number as it is
NULL = np.uint64(0)  # in the place of an array


class DeviceMemory(Protocol):
    """Memory of a device that was taken without a type, or a place in it."""

    @property
    def ptr(self) -> int: ...
    def __add__(self, offset: int, /) -> DeviceMemory: ...
    def memset_async(self, value: int, size: int, /) -> None: ...


class Event(Protocol):
    """A place in the work on a stream."""

    def record(self) -> object:
        """Take that behind all which is enqueued on the current stream."""
        ...

    def synchronize(self) -> object:
        """Wait until the device has come there."""
        ...


class PinnedMirror(Protocol):
    """An array of a device, with memory on the host for what is in it.

    Attributes
    ----------
    host : array
        Of the same shape; to be read when the device was waited for.
    """

    host: np.ndarray

    def fetch(self) -> None:
        """Enqueue a copy to the host."""
        ...

    def send(self) -> None:
        """Enqueue a copy from the host, which may be written to when it was waited for."""
        ...


class CopyStream(Protocol):
    """Copies between host and device, one after another, beside the work on the current stream.

    Arrays of both kinds are contiguous, and those on the host are `Device.pinned`.
    """

    def behind(self) -> None:
        """Let what follows begin when all is done that is enqueued on the current stream."""
        ...

    def fetch(self, source: Array, target: np.ndarray) -> None:
        """Enqueue a copy to the host."""
        ...

    def send(self, source: np.ndarray, target: Array) -> None:
        """Enqueue a copy to the device."""
        ...

    def mark(self) -> Event:
        """The place behind all copies so far."""
        ...

    def join(self, mark: Event) -> None:
        """Let the current stream go on when copies have come to a place."""
        ...


class Kernel(Protocol):
    """An entry point of a kernel file."""

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Value], shared: int = 0
    ) -> None:
        """Enqueue it.

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
        """Return a function of a stream that enqueues it, for calls that should cost little.

        ``table`` is the address of the addresses of the arguments, which are read when that is
        called.
        """
        ...
