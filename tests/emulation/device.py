"""A device whose kernels are compiled as C++ and run on the CPU, one fiber for a CUDA thread.

The interface is that of ``frontal.gpu.runtime.device.Device``, and the arrays are NumPy's; so host
code of the package runs over it unchanged. With FRONTAL_SANITIZE=1 in the environment the kernels
are compiled with the address and undefined-behaviour sanitizers: ``sanitize.py`` starts such a
process.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from frontal.gpu.runtime import jit
from frontal.gpu.runtime.limits import H200, Limits
from frontal.gpu.runtime.slab import Kind, Slab, kinds_of, starts_of
from frontal.machine.threads import BackgroundTask

from .compiling import EmulationError, build

LIMITS = Limits(4, H200.shared_block, H200.shared_multiprocessor, H200.capability)
_MAX_THREADS = 1024


def arrays_in(memory: np.ndarray, kinds: Sequence[Kind]) -> list[np.ndarray]:
    """Return arrays of these kinds at places of `starts_of` in memory, an array of bytes."""
    places = zip(kinds, starts_of(kinds), strict=False)
    return [np.ndarray(shape, dtype, memory, start) for (shape, dtype), start in places]


class EmulatedDevice:
    """What ``frontal.gpu.runtime.device.Device`` offers, on the CPU.

    ``sources`` maps names of further kernel files to their text, for tests of the emulation itself.
    """

    cuda = False

    def __init__(self, limits: Limits = LIMITS, sources: dict[str, str] | None = None) -> None:
        self.xp: Any = np
        self.index = 0
        self.name = "emulated"
        self.limits = limits
        self.memory = 1 << 40
        self.is_capturing = False
        self._graph: list[Callable[[], None]] | None = None  # while one is recorded
        self._sources = sources or {}
        self._kernels: dict[tuple, _Kernel] = {}

    def kernel(self, file: str, entry: str, dtype: Any, **constants: int) -> _Kernel:
        """Return ``entry`` of a kernel file, callable as ``kernel(grid, block, args, shared)``."""
        constants |= self.limits.constants
        key = (file, entry, np.dtype(dtype), tuple(sorted(constants.items())))
        if key not in self._kernels:
            text = self._sources.get(file) or jit.source(file)
            library = self._build(text, jit.options(key[2], constants))
            self._kernels[key] = self._entry(library, entry)
        return self._kernels[key]

    def begin(self, files: Any, dtype: Any) -> None:
        """Begin to compile kernel files: which they are is all that happens."""
        self.begun = [
            (file, np.dtype(dtype), tuple(sorted(({**given, **self.limits.constants}).items())))
            for file, given in files
        ]

    def _build(self, text: str, options: tuple[str, ...]) -> ctypes.CDLL:
        return build(text, options)

    def _entry(self, library: ctypes.CDLL, entry: str) -> _Kernel:
        return _Kernel(library, entry, self.limits.shared_block, self._enqueue)

    def free_memory(self) -> int:
        return self.memory

    def give_back(self) -> None:
        """Nothing is kept at hand."""

    def pointer(self, array: Any) -> int:
        """Address of an array's first element; 0 for none."""
        return 0 if array is None else int(array.ctypes.data)

    def pointers(self, arrays: Sequence[np.ndarray]) -> list[int]:
        return [self.pointer(a) for a in arrays]

    def device_array(self, array: np.ndarray) -> np.ndarray:
        return np.array(array, order="C")

    def upload(self, array: np.ndarray) -> np.ndarray:
        return self.uploads([array])[0]

    def uploads(self, arrays: Sequence[np.ndarray], piece: Slab | None = None) -> list[np.ndarray]:
        return self.later(arrays, piece)()

    def later(
        self, arrays: Sequence[np.ndarray], piece: Slab | None = None
    ) -> Callable[[], list[np.ndarray]]:
        kinds = kinds_of(arrays)
        memory: Any = piece and piece.take(starts_of(kinds)[-1])
        if memory is None:
            return lambda: [self.device_array(array) for array in arrays]
        there = arrays_in(memory, kinds)
        for array, copy in zip(arrays, there, strict=True):
            copy[...] = array
        return lambda: there

    def empties(self, kinds: Sequence[Kind]) -> list[np.ndarray]:
        """Take memory for some arrays, each for itself: a sanitizer sees where one ends."""
        return [self.xp.empty(*kind) for kind in kinds]

    def call(self, function: Any, addresses: Sequence[int]) -> None:
        function(*addresses)

    def stays(self, array: np.ndarray) -> np.ndarray:
        return array

    def memory_of(self, array: np.ndarray) -> np.ndarray:
        return array.view(np.uint8)

    def ahead(self, work: Any) -> BackgroundTask[Any]:
        return BackgroundTask(work)

    def holds(self, array: Any) -> bool:
        """Whether a test says that an array is on a device."""
        return hasattr(type(array), "__cuda_array_interface__")

    def staged(self, array: Any) -> _Staged:
        return _Staged(array, self._enqueue)

    def fence(self) -> _Fence:
        """Nothing is ever waited for."""
        return _Fence()

    def pinned(self, size: int, dtype: Any) -> np.ndarray:
        """Take memory of the host, full of garbage."""
        return np.full(size * np.dtype(dtype).itemsize, 0xA5, np.uint8).view(dtype)

    def lane(self) -> Any:
        """Copy at once."""
        return _Lane()

    def wait(self) -> None:
        """Nothing is ever enqueued."""

    def copy(self, source: Any, target: Any) -> None:
        self._enqueue(lambda: target.__setitem__(..., source))

    def clear(self, array: Any, byte: int = 0) -> None:
        self._enqueue(lambda: array.view(np.uint8).__setitem__(..., byte))

    def record(self, run: Callable[[], None]) -> Callable[[], bool]:
        """Return a function that launches what `run` enqueues, which is not done now."""
        graph = self._graph = []
        try:
            run()
        finally:
            self._graph = None

        def replay() -> bool:
            if not self.is_capturing:
                for launch in graph:
                    launch()
            return not self.is_capturing

        return replay

    def _enqueue(self, launch: Callable[[], None]) -> None:
        """Do it, or let it become a part of a graph."""
        if self._graph is None:
            launch()
        else:
            self._graph.append(launch)

    def take(self, size: int) -> np.ndarray:
        """Take memory of so many bytes, full of garbage."""
        return np.full(size, 0xA5, np.uint8)

    def address(self, memory: np.ndarray) -> int:
        return self.pointer(memory)

    def zero(self, memory: np.ndarray, size: int) -> None:
        memory[:size] = 0

    def view(self, memory: Any, first: int, shape: Any, dtype: Any, strides: Any) -> np.ndarray:
        return np.ndarray(shape, dtype, memory, first, strides)

    def views(
        self, memory: Any, firsts: Any, shapes: Any, dtype: Any, order: Any
    ) -> list[np.ndarray]:
        places = zip(shapes, firsts, strict=True)
        return [np.ndarray(shape, dtype, memory, first, None, order) for shape, first in places]

    def stream(self) -> int:
        """There is one stream."""
        return 0

    def capturing(self) -> bool:
        """Whether a graph is recorded, or a test says that the current stream is captured."""
        return self.is_capturing or self._graph is not None

    def milliseconds(self, run: Any) -> float:
        began = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - began)

    def download(self, array: np.ndarray) -> np.ndarray:
        return np.array(array)


class _Fence:
    """A place in what is over already."""

    def record(self) -> None:
        pass

    synchronize = record


class _Lane:
    """Copies that are made when they are enqueued."""

    def behind(self) -> None:
        pass

    def fetch(self, source: Any, target: Any) -> None:
        target[...] = source

    send = fetch

    def mark(self) -> _Fence:
        return _Fence()

    def join(self, mark: Any) -> None:
        pass


class _Staged:
    """An array, and another one of its shape."""

    def __init__(self, array: Any, enqueue: Callable[[Callable[[], None]], None]) -> None:
        self._array, self.host = array, np.full_like(array, -1, subok=False)
        self._enqueue = enqueue

    def fetch(self) -> None:
        self._enqueue(lambda: self.host.__setitem__(..., self._array))

    def send(self) -> None:
        self._enqueue(lambda: self._array.__setitem__(..., self.host))


class _Kernel:
    """An entry point of a compiled kernel file."""

    def __init__(
        self,
        library: ctypes.CDLL,
        entry: str,
        shared_limit: int,
        enqueue: Callable[[Callable[[], None]], None],
    ) -> None:
        self._entry, self._limit, self._enqueue = entry, shared_limit, enqueue
        self._launch = getattr(library, f"emulation_launch_{entry}")
        self._launch.restype = ctypes.c_char_p
        sizes = (ctypes.c_size_t * 64)()
        count = getattr(library, f"emulation_arguments_{entry}")(sizes)
        self._sizes = sizes[:count]

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any], shared: int = 0
    ) -> None:
        values = [_by_value(argument) for argument in arguments]
        given = [len(value) for value in values]
        if given != self._sizes:
            raise EmulationError(
                f"kernel {self._entry} takes arguments of {self._sizes} bytes, not of {given}"
            )
        buffers = [np.frombuffer(value, np.uint8).copy() for value in values]
        pointers = (ctypes.c_void_p * len(buffers))(*(b.ctypes.data for b in buffers))

        def launch(kept: object = buffers) -> None:
            self._run(grid, block, pointers, shared)

        self._enqueue(launch)

    def ready(self, grid: Sequence[int], block: Sequence[int], table: int, shared: int = 0) -> Any:
        pointers = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))
        return lambda stream: self._enqueue(lambda: self._run(grid, block, pointers, shared))

    def _run(self, grid: Sequence[int], block: Sequence[int], pointers: Any, shared: int) -> None:
        sizes = [*grid, 1, 1][:3] + [*block, 1, 1][:3]
        threads = sizes[3] * sizes[4] * sizes[5]
        if min(sizes) < 1 or threads > _MAX_THREADS or shared > self._limit:
            raise EmulationError(
                f"kernel {self._entry} cannot be launched with grid {tuple(grid)}, block "
                f"{tuple(block)} and {shared} bytes of shared memory"
            )
        error = self._launch(
            (ctypes.c_uint * 6)(*sizes), ctypes.c_size_t(shared), pointers, _stacks()
        )
        if error:
            raise EmulationError(error.decode())


def _by_value(argument: Any) -> bytes:
    """Bytes of an argument: an array's address, a structure or a NumPy scalar itself."""
    if isinstance(argument, np.ndarray) and argument.dtype.kind != "V":
        return np.uint64(argument.ctypes.data).tobytes()
    if isinstance(argument, np.ndarray | np.generic):
        return argument.tobytes()
    raise EmulationError(f"an argument of type {type(argument).__name__}: make it a NumPy scalar")


@cache
def _stacks() -> Any:
    """Where the libraries keep the memory of the fibers' stacks; all of them share it."""
    return ctypes.byref(ctypes.c_void_p())
