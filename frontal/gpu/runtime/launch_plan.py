"""Replay of the launches of a call on other arrays, without the host code that led to them.

A function that allocates memory and launches kernels through its device is called once with a
`LaunchRecorder` instead of the device. Its launches depend only on sizes, except for addresses: of
its inputs, of the memory it allocated, and of persistent lists on the device. `LaunchPlan`
allocates memory, replaces the old addresses by the new ones and repeats the launches.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import pairwise
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .array import Array, Kernel, Value
from .device import Device

_ALIGNMENT = 512  # bytes, of blocks in one allocation; that of CuPy's pool


class _MemoryRange(NamedTuple):
    """Memory that a call uses: an input, or an allocation."""

    begin: int
    end: int
    zero: bool = False
    array: Array | None = None  # keeps the memory alive


class _ReadyLaunch(Protocol):
    """A launch that can be prepared: see `Kernel.ready`."""

    def ready(
        self, grid: Sequence[int], block: Sequence[int], table: int, shared: int = 0
    ) -> Callable[[int], object]: ...


class _RecordedLaunch(NamedTuple):
    kernel: _ReadyLaunch
    grid: Sequence[int]
    block: Sequence[int]
    arguments: tuple[bytes, ...]
    shared: int


class _Relocation(NamedTuple):
    """An address among the arguments: its position, and its block and offset."""

    launch: int
    argument: int
    byte: int
    block: int
    offset: int


class Result(NamedTuple):
    """An array that a call returns."""

    block: int
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]


class LaunchRecorder:
    """A device that records allocations and kernel launches.

    It is equal to the device itself, so that caches of uploaded work lists hit for both. Calls that
    it cannot record are executed, and make the recording incomplete.

    Parameters
    ----------
    device : Device
    inputs : sequence of arrays
    """

    def __init__(self, device: Device, inputs: Sequence[Array]) -> None:
        self._device = device
        self.name, self.limits, self.cuda, self.index = (
            device.name,
            device.limits,
            device.cuda,
            device.index,
        )
        self.xp = _RecordingMemory(self, device)
        self._blocks = [_MemoryRange(*_extent(device.pointer(x), x)) for x in inputs]
        self._launches: list[_RecordedLaunch] = []
        self._holes: list[_Relocation] = []
        self._keep: list[Value] = []
        self._staying: list[tuple[int, int]] = []  # where structs may point besides blocks
        self._inputs = len(inputs)
        self._complete = disjoint(device.pointers(inputs), inputs) and all(x.size for x in inputs)

    def __hash__(self) -> int:
        return hash(self._device)

    def __eq__(self, other: object) -> bool:
        return self._device == (other._device if isinstance(other, LaunchRecorder) else other)

    def __getattr__(self, name: str) -> object:
        self.give_up()
        return getattr(self._device, name)

    def give_up(self) -> None:
        """Mark the recording as incomplete."""
        self._complete = False

    def pointer(self, array: Array | None) -> int:
        """Return the address of an array's first element; 0 for None."""
        return self._device.pointer(array)

    def upload(self, array: np.ndarray) -> Array:
        """Copy a host array to the device, where it persists."""
        if array.dtype == np.uint64:  # addresses, which differ in the next call
            self.give_up()
        return self._device.upload(array)

    def stays(self, array: Array) -> Array:
        """Record a persistent array, which structs may point into."""
        begin = self._device.pointer(array)
        self._staying.append((begin, begin + array.nbytes))
        self._keep.append(array)
        return array

    def kernel(self, file: str, entry: str, dtype: npt.DTypeLike, **constants: int) -> Kernel:
        """Return an entry of a kernel file whose launches are recorded."""
        return _RecordedKernel(self, self._device.kernel(file, entry, dtype, **constants))

    def call(self, function: Callable[..., object], addresses: Sequence[int]) -> None:
        """Call a function that enqueues work of a library with addresses, and record it."""
        function(*addresses)
        kernel = _RecordedLibrary(function, len(addresses))
        self.launched(kernel, (), (), [np.uint64(x) for x in addresses], 0)

    def took(self, array: Array, zero: bool) -> Array:
        """Record allocated memory."""
        begin = self._device.pointer(array)
        if array.size:
            self._blocks.append(_MemoryRange(begin, begin + array.nbytes, zero, array))
        return array

    def launched(
        self,
        kernel: _ReadyLaunch,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[Value],
        shared: int,
    ) -> None:
        """Record a launch, and the addresses among its arguments."""
        values = tuple(self._noted(i, x) for i, x in enumerate(arguments))
        self._launches.append(_RecordedLaunch(kernel, tuple(grid), tuple(block), values, shared))

    def _noted(self, i: int, argument: Value) -> bytes:
        if isinstance(argument, np.generic) or argument.dtype.kind == "V":
            value = np.asarray(argument)
            for byte in _addresses(value.dtype):
                self._address(i, byte, int(np.frombuffer(value.tobytes(), "u8", 1, byte)[0]), True)
            return value.tobytes()
        address = self._device.pointer(_array(argument))
        if not self._address(i, 0, address, False):
            self._keep.append(argument)  # such as a work list
        return np.uint64(address).tobytes()

    def _address(self, argument: int, byte: int, address: int, must: bool) -> bool:
        """Record an address in known memory; return whether it is one."""
        if not address:
            return True
        for k, block in enumerate(self._blocks):
            if block.begin <= address < block.end:
                self._holes.append(
                    _Relocation(len(self._launches), argument, byte, k, address - block.begin)
                )
                return True
        if must and not any(begin <= address < end for begin, end in self._staying):
            self.give_up()
        return False

    def recorded(self, results: Sequence[Array]) -> LaunchPlan | None:
        """Return a plan that computes the results from other inputs; None if incomplete."""
        outputs = []
        for array in results:
            address = self._device.pointer(array)
            for k, block in enumerate(self._blocks):
                if k >= self._inputs and block.begin <= address < block.end:
                    outputs.append(
                        Result(k, address - block.begin, array.shape, array.dtype, array.strides)
                    )
        plan = None
        if self._complete and len(outputs) == len(results):
            plan = LaunchPlan(
                self._device,
                self._inputs,
                self._blocks[self._inputs :],
                self._launches,
                self._holes,
                outputs,
                self._keep,
            )
        return plan

    def forget(self) -> None:
        """Release the memory: cached work lists refer to the recorder."""
        self._blocks, self._launches, self._holes, self._keep = [], [], [], []


class LaunchPlan:
    """Launches of a call, to be repeated: see the module docstring."""

    def __init__(
        self,
        device: Device,
        inputs: int,
        blocks: Sequence[_MemoryRange],
        launches: Sequence[_RecordedLaunch],
        holes: Sequence[_Relocation],
        results: Sequence[Result],
        keep: Sequence[Value],
    ) -> None:
        self._device, self._keep, self._lock = device, keep, Lock()
        results = [r._replace(block=r.block - inputs) for r in results]
        self._take(blocks, [r.block for r in results])
        self._results = [(self._places[r.block][0], r[1:]) for r in results]
        starts, self._packed, self._tables = _pack([x.arguments for x in launches])
        self._words = memoryview(self._packed).cast("B").cast("Q")
        self._holes = []
        for hole in holes:
            place = (starts[hole.launch][hole.argument] + hole.byte) // 8
            if hole.block < inputs:
                self._holes.append((place, hole.block, hole.offset))
            else:
                memory, offset = self._places[hole.block - inputs]
                self._holes.append((place, inputs + memory, offset + hole.offset))
        self._launches: list[Callable[[int], object]] = [
            x.kernel.ready(x.grid, x.block, table.ctypes.data, x.shared)
            for x, table in zip(launches, self._tables, strict=True)
        ]

    def _take(self, blocks: Sequence[_MemoryRange], results: Sequence[int]) -> None:
        """Choose the allocations: one for each result, one for all other blocks."""
        result_blocks = sorted(set(results))
        self._sizes = [blocks[k].end - blocks[k].begin for k in result_blocks]
        self._places = {k: (i, 0) for i, k in enumerate(result_blocks)}
        self._cleared = [
            (i, 0, size) for i, size in enumerate(self._sizes) if blocks[result_blocks[i]].zero
        ]
        others = [k for k in range(len(blocks)) if k not in self._places]
        end, zeros = 0, 0
        for k in sorted(others, key=lambda k: not blocks[k].zero):
            self._places[k] = len(result_blocks), end
            end += -(-(blocks[k].end - blocks[k].begin) // _ALIGNMENT) * _ALIGNMENT
            zeros = end if blocks[k].zero else zeros
        if end:
            self._sizes.append(end)
        if zeros:
            self._cleared.append((len(result_blocks), 0, zeros))

    def __call__(self, inputs: Sequence[int]) -> tuple[Array, ...]:
        """Enqueue all launches on the current stream; return the results, in new memory.

        Parameters
        ----------
        inputs : sequence of int
            Addresses of the inputs.
        """
        device = self._device
        memories = [device.take(size) for size in self._sizes]
        addresses = [*inputs, *map(device.address, memories)]
        for memory, first, size in self._cleared:
            device.zero(memories[memory], first, size)
        stream, words = device.stream(), self._words
        with self._lock:  # the argument memory is shared by all threads
            for place, block, offset in self._holes:
                words[place] = addresses[block] + offset
            for launch in self._launches:
                launch(stream)
        view = device.view
        return tuple([view(memories[memory], *about) for memory, about in self._results])


class _RecordingMemory:
    """An array module that records allocations by ``empty`` and ``zeros``."""

    def __init__(self, recorder: LaunchRecorder, device: Device) -> None:
        self._recorder, self._xp = recorder, device.xp
        self.ndarray = self._xp.ndarray

    def __getattr__(self, name: str) -> object:
        self._recorder.give_up()
        return getattr(self._xp, name)

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike, order: str = "C") -> Array:
        return self._recorder.took(self._xp.empty(shape, dtype, order), False)

    def zeros(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike, order: str = "C") -> Array:
        return self._recorder.took(self._xp.zeros(shape, dtype, order), True)


class _RecordedKernel:
    """A kernel whose launches are recorded."""

    def __init__(self, recorder: LaunchRecorder, kernel: Kernel) -> None:
        self._recorder, self._kernel = recorder, kernel

    def __call__(
        self, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Value], shared: int = 0
    ) -> None:
        self._kernel(grid, block, arguments, shared)
        self._recorder.launched(self._kernel, grid, block, arguments, shared)

    def ready(
        self, grid: Sequence[int], block: Sequence[int], table: int, shared: int = 0
    ) -> Callable[[int], object]:
        self._recorder.give_up()
        return self._kernel.ready(grid, block, table, shared)


class _RecordedLibrary:
    """A library call that enqueues work, as a kernel whose arguments are addresses."""

    def __init__(self, function: Callable[..., object], count: int) -> None:
        self._function, self._count = function, count

    def ready(
        self, grid: Sequence[int], block: Sequence[int], table: int, shared: int = 0
    ) -> Callable[[int], object]:
        """See `Kernel`; the stream is ignored, since libraries use the current one."""
        places = (ctypes.c_uint64 * self._count).from_address(table)
        addresses = [ctypes.c_uint64.from_address(place) for place in places]
        function = self._function
        return lambda stream: function(*[x.value for x in addresses])


def disjoint(places: Sequence[int], arrays: Sequence[Array]) -> bool:
    """Return whether arrays at these addresses are disjoint."""
    ends = sorted(map(_extent, places, arrays))
    return all(x[1] <= y[0] for x, y in pairwise(ends))


def _array(argument: Value) -> Array:
    """Return an argument that is neither a number nor a struct."""
    return argument  # type: ignore[return-value]


def _extent(address: int, array: Array) -> tuple[int, int]:
    """Return the first byte of an array, and the byte past its last."""
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low, high = sum(min(s, 0) for s in steps), sum(max(s, 0) for s in steps)
    return address + low, address + high + array.itemsize


def _addresses(dtype: np.dtype, start: int = 0) -> list[int]:
    """Return the offsets of addresses in a struct or number: all its unsigned 8-byte fields."""
    if dtype.fields is None:
        return [start] if dtype == np.uint64 else []
    fields = ((x[0], start + x[1]) for x in dtype.fields.values())
    return [place for part in fields for place in _addresses(*part)]


def _pack(launches: Sequence[tuple[bytes, ...]]) -> tuple[list[list[int]], np.ndarray, list]:
    """Pack arguments: return their offsets, the memory, and their addresses by launch."""
    starts: list[list[int]] = []
    end = 0
    for arguments in launches:
        starts.append([])
        for value in arguments:
            starts[-1].append(end)
            end += -(-len(value) // 16) * 16
    packed = np.zeros(max(end, 8) // 8, np.uint64)
    view = packed.view(np.uint8)
    for arguments, places in zip(launches, starts, strict=True):
        for value, place in zip(arguments, places, strict=True):
            view[place : place + len(value)] = np.frombuffer(value, np.uint8)
    tables = [np.array(places, np.uint64) + np.uint64(packed.ctypes.data) for places in starts]
    return starts, packed, tables
