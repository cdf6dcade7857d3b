"""A device that launches kernels: CUDA through CuPy.

Host code of this package gets arrays, kernels and limits from a ``Device`` and uses nothing else of
CuPy, so the tests run the same host code with kernels emulated on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import repeat
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..._typing import Untyped
from ...machine.threads import BackgroundTask
from .. import require
from .array import Array, CopyStream, DeviceMemory, Event, Kernel, PinnedMirror
from .kernel import CudaKernel
from .limits import Limits
from .modules import Modules, Source
from .slab import Kind, Slab, joined, kinds_of, starts_of
from .staging import MIN_STAGED_BYTES, Staging

Result = TypeVar("Result")
_ADDRESS = attrgetter("data.ptr")

_PER_THREAD = 2  # handle of the default stream of each thread, different in other threads
_TO_DEVICE, _TO_HOST = 1, 2  # values of cudaMemcpyKind


class Device:
    """The CUDA device ``index``, through CuPy.

    Attributes
    ----------
    xp : module
        The array module: CuPy here, NumPy if kernels are emulated.
    name : str
    limits : Limits
    cuda : bool
        Whether CUDA's libraries accept its arrays; False if kernels are emulated.
    """

    cuda = True

    def __init__(self, index: int) -> None:
        require()
        import cupy

        self.xp: Any = cupy
        self.index = index
        properties = cupy.cuda.runtime.getDeviceProperties(index)
        self.name = properties["name"].decode()
        self.limits = Limits.from_properties(properties)
        self._kernels: dict[tuple, Kernel] = {}
        self._modules = Modules(index, properties["major"], properties["minor"])
        self._staging = Staging(cupy.cuda, index)

    def kernel(self, file: str, entry: str, dtype: npt.DTypeLike, **constants: int) -> Kernel:
        """Return ``entry`` of a kernel file, callable as ``kernel(grid, block, args, shared)``."""
        constants |= self.limits.constants
        key = (file, entry, np.dtype(dtype), tuple(sorted(constants.items())))
        if key not in self._kernels:
            function = self._modules.loaded(Source(file, key[2], key[3])).get_function(entry)
            self._kernels[key] = CudaKernel(function, self.limits.shared_block)
        return self._kernels[key]

    def begin(self, files: Iterable[tuple[str, Mapping[str, int]]], dtype: npt.DTypeLike) -> None:
        """Start compiling kernel files with their constants on threads, unless compiled already."""
        for file, constants in files:
            defines = dict(constants) | self.limits.constants
            self._modules.begin(Source(file, np.dtype(dtype), tuple(sorted(defines.items()))))

    def free_memory(self) -> int:
        """Return the bytes that can be allocated, including the free blocks of the pool."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        return int(free + self.xp.get_default_memory_pool().free_bytes())

    def give_back(self) -> None:
        """Release the free blocks of the pool to other users of the device."""
        self.xp.get_default_memory_pool().free_all_blocks()

    def pointer(self, array: Array | None) -> int:
        """Return the address of an array's first element; 0 for None."""
        return 0 if array is None else int(_cupy(array).data.ptr)

    def pointers(self, arrays: Sequence[Array]) -> list[int]:
        """Return the addresses of the first elements of arrays."""
        return list(map(_ADDRESS, arrays))

    def upload(self, array: np.ndarray) -> Array:
        """Copy a host array to the device."""
        return self.uploads([array])[0]

    def uploads(self, arrays: Sequence[np.ndarray], piece: Slab | None = None) -> list[Array]:
        """Copy host arrays to the device, all at once; to a piece of memory if they fit."""
        return self.later(arrays, piece)()

    def later(
        self, arrays: Sequence[np.ndarray], piece: Slab | None = None
    ) -> Callable[[], list[Array]]:
        """Allocate memory for host arrays, and return a function that copies them there.

        Copies of large arrays run concurrently with work enqueued in between.
        """
        arrays = [np.ascontiguousarray(array) for array in arrays]
        kinds = kinds_of(arrays)
        starts = starts_of(kinds)
        taken = None if piece is None else piece.take(starts[-1])
        memory = self.xp.empty(starts[-1], np.uint8) if taken is None else taken
        on_device = self._arrays_at(memory, starts, kinds)
        is_staged = sum(array.nbytes for array in arrays) >= MIN_STAGED_BYTES
        free = self._now() if is_staged else None

        def send() -> list[Array]:
            if free is not None and self._staging.send(arrays, self.pointers(on_device), free):
                return on_device
            if free is None and len(arrays) > 1:  # one copy, since each takes 10 us
                _cupy(memory).set(joined(arrays, starts))
                return on_device
            for array, copy in zip(arrays, on_device, strict=True):
                if array.size:
                    _cupy(copy).set(array)  # `asarray` would copy on the host first
            return on_device

        return send

    def empties(self, kinds: Sequence[Kind]) -> list[Array]:
        """Allocate memory for several arrays, in one piece."""
        if len(kinds) == 1:
            return [self.xp.empty(*kinds[0])]
        starts = starts_of(kinds)
        return self._arrays_at(self.xp.empty(starts[-1], np.uint8), starts, [*kinds])

    def _arrays_at(self, memory: Array, starts: list[int], kinds: list[Kind]) -> list[Array]:
        """Return arrays at places of `starts_of` in memory; a slice of it would double the time."""
        data, make = self.memory_of(memory), self.xp.ndarray
        return [make(k[0], k[1].char, data + at) for k, at in zip(kinds, starts[:-1], strict=True)]

    def _now(self) -> Untyped:
        """Return an event after all work so far on the current stream."""
        event = self.fence()
        event.record()
        return event

    def stays(self, array: Array) -> Array:
        """Declare that an array keeps its address and its contents; a no-op here."""
        return array

    def call(self, function: Callable[..., object], addresses: Sequence[int]) -> None:
        """Call a function that enqueues work of a library on the current stream, with addresses."""
        function(*addresses)

    def memory_of(self, array: Array) -> DeviceMemory:
        """Return the memory of an array, for `view`."""
        return _cupy(array).data

    def ahead(self, work: Callable[[], Result]) -> BackgroundTask[Result]:
        """Start work on a thread, on the current stream; the task includes the work it enqueues."""
        stream = self.xp.cuda.get_current_stream()

        def on_device() -> Result:
            with self.xp.cuda.Device(self.index), stream:
                outcome = work()
                stream.synchronize()
                return outcome

        return BackgroundTask(on_device, now=stream.ptr == _PER_THREAD)

    def holds(self, array: object) -> bool:
        """Return whether an array is of the type that this device computes with."""
        return type(array) is self.xp.ndarray

    def staged(self, array: Array) -> PinnedMirror:
        """Allocate pinned host memory that mirrors an array."""
        return _Pinned(_cupy(array).data, array, self.xp.cuda.alloc_pinned_memory(array.nbytes))

    def fence(self) -> Event:
        """Return an event for part of the work on a stream."""
        return self.xp.cuda.Event(disable_timing=True)

    def pinned(self, size: int, dtype: np.dtype) -> np.ndarray:
        """Allocate pinned host memory for the copies of a `lane`.

        Raises
        ------
        MemoryError
            If the system cannot pin more pages.
        """
        from cupy.cuda import PinnedMemory, PinnedMemoryPointer, runtime

        try:  # a pool would round up to powers of two
            memory = PinnedMemory(max(size * dtype.itemsize, 1))
        except runtime.CUDARuntimeError as error:
            raise MemoryError(
                f"cannot pin {size * dtype.itemsize} bytes of host memory for copies: {error}"
            ) from error
        return np.ndarray(size, dtype, PinnedMemoryPointer(memory, 0))

    def lane(self) -> CopyStream:
        """Return a stream for copies concurrent with the current stream."""
        return _Copies(self.xp)

    def wait(self) -> None:
        """Wait for all work on the current stream."""
        self.xp.cuda.get_current_stream().synchronize()

    def download(self, array: Array) -> np.ndarray:
        """Copy a device array to the host, after all work on the current stream."""
        if array.nbytes >= MIN_STAGED_BYTES and _cupy(array).flags.c_contiguous:
            host = np.empty(array.shape, array.dtype)
            if self._staging.fetch(self.pointer(array), host, self._now()):
                return host
        return self.xp.asnumpy(array)

    def copy(self, source: Array | np.ndarray, target: Array) -> None:
        """Copy an array of the host or the device to a device array."""
        if isinstance(source, np.ndarray):
            _cupy(target).set(np.ascontiguousarray(source))
        elif _same_bytes(source, target):
            _cupy(target).data.copy_from_device_async(_cupy(source).data, source.nbytes)
        else:
            self.xp.copyto(target, source)

    def clear(self, array: Array, byte: int = 0) -> None:
        """Set all bytes of an array to one value."""
        _cupy(array).data.memset_async(byte, array.nbytes)

    def record(self, run: Callable[[], None]) -> Callable[[], bool]:
        """Record the launches of a function; return a function that launches all of them at once.

        The recorded function must not allocate memory or wait for the device. The returned function
        launches nothing and returns False while the caller captures a graph.
        """
        stream = self.xp.cuda.Stream(non_blocking=True)
        with stream:
            stream.begin_capture()
            try:
                run()
            finally:
                graph = stream.end_capture()

        def replay() -> bool:
            current = self.xp.cuda.get_current_stream()
            if current.is_capturing():
                return False
            graph.launch(current)
            return True

        return replay

    def take(self, size: int) -> DeviceMemory:
        """Allocate ``size`` bytes, for `address`, `zero` and `view`."""
        return self.xp.cuda.alloc(size)

    def address(self, memory: DeviceMemory) -> int:
        """Return the address of allocated memory."""
        return int(memory.ptr)

    def zero(self, memory: DeviceMemory, size: int) -> None:
        """Clear the first bytes of allocated memory."""
        memory.memset_async(0, size)

    def view(
        self,
        memory: DeviceMemory,
        first: int,
        shape: Sequence[int],
        dtype: np.dtype,
        strides: Sequence[int],
    ) -> Array:
        """Return an array that starts at byte ``first`` of allocated memory."""
        return self.xp.ndarray(shape, dtype.char, memory + first if first else memory, strides)

    def views(
        self,
        memory: DeviceMemory,
        firsts: Sequence[int],
        shapes: Sequence[tuple[int, ...]],
        dtype: np.dtype,
        order: str,
    ) -> list[Array]:
        """Return contiguous arrays that start at given bytes of memory: a microsecond each."""
        places = map(memory.__add__, firsts)
        # CuPy takes a quarter longer with explicit strides, and with a dtype that is not a letter
        dtypes, no_strides, orders = repeat(dtype.char), repeat(None), repeat(order)
        return list(map(self.xp.ndarray, shapes, dtypes, places, no_strides, orders))

    def stream(self) -> int:
        """Return the handle of the current stream; the thread gets a context if it has none."""
        if not self.xp.cuda.driver.ctxGetCurrent():
            self.xp.cuda.runtime.setDevice(self.index)
        return int(self.xp.cuda.get_current_stream(self.index).ptr)

    def capturing(self) -> bool:
        """Return whether the caller captures launches on the current stream into a graph."""
        return bool(self.xp.cuda.get_current_stream().is_capturing())

    def milliseconds(self, run: Callable[[], object]) -> float:
        """Return the device time of the launches of a function."""
        start, stop = self.xp.cuda.Event(), self.xp.cuda.Event()
        start.record()
        run()
        stop.record()
        stop.synchronize()
        return float(self.xp.cuda.get_elapsed_time(start, stop))


def _cupy(array: Array) -> Any:
    """Return the same array as `Any`, for members of CuPy arrays alone; type checkers lack CuPy."""
    return array


def _same_bytes(source: Array, target: Array) -> bool:
    """Return whether copying an array to another one is a copy of contiguous bytes."""
    plain = _cupy(source).flags.c_contiguous and _cupy(target).flags.c_contiguous
    return plain and source.dtype == target.dtype and source.size == target.size > 0


class _Pinned:
    """`PinnedMirror` in pinned memory, so that a graph can copy to it."""

    def __init__(self, device_memory: Untyped, array: Array, memory: Untyped) -> None:
        self.host = np.ndarray(array.shape, array.dtype, memory)
        from cupy.cuda import get_current_stream, runtime

        self._device_memory, self._stream, self._copy = (
            device_memory,
            get_current_stream,
            runtime.memcpyAsync,
        )
        self._down = memory.ptr, device_memory.ptr, array.nbytes, _TO_HOST
        self._up = device_memory.ptr, memory.ptr, array.nbytes, _TO_DEVICE

    def fetch(self) -> None:
        self._copy(*self._down, self._stream().ptr)  # CuPy's own copies raise during a capture

    def send(self) -> None:
        self._copy(*self._up, self._stream().ptr)


class _Copies:
    """`CopyStream` as a separate stream."""

    def __init__(self, cupy: Untyped) -> None:
        self._cuda, self._stream = cupy.cuda, cupy.cuda.Stream(non_blocking=True)
        self._copy = cupy.cuda.runtime.memcpyAsync

    def behind(self) -> None:
        event = self._cuda.Event(disable_timing=True)
        event.record()
        self._stream.wait_event(event)

    def fetch(self, source: Array, target: np.ndarray) -> None:
        to, size = target.ctypes.data, target.nbytes
        self._copy(to, _cupy(source).data.ptr, size, _TO_HOST, self._stream.ptr)

    def send(self, source: np.ndarray, target: Array) -> None:
        to, size = _cupy(target).data.ptr, source.nbytes
        self._copy(to, source.ctypes.data, size, _TO_DEVICE, self._stream.ptr)

    def mark(self) -> Untyped:
        event = self._cuda.Event(disable_timing=True)
        event.record(self._stream)
        return event

    def join(self, mark: Untyped) -> None:
        self._cuda.get_current_stream().wait_event(mark)


_devices: dict[int, Device] = {}


def at_work() -> bool:
    """Return whether this process has used a device, so that querying it costs nothing."""
    return bool(_devices)


@cache
def _runtime() -> Untyped:
    """Return CuPy's runtime, imported once: an import statement doubles the time of `device_of`."""
    from cupy.cuda import runtime

    return runtime


def device_of(array: Array | None = None) -> Device:
    """Return the device that holds an array, or the current one."""
    try:
        index = _runtime().getDevice() if array is None else _cupy(array).data.device_id
    except Exception:
        require()  # names the missing package or device
        raise
    device = _devices.get(index)
    return _devices.setdefault(index, Device(index)) if device is None else device  # one for all
