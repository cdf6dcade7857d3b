"""Calls that come again on other arrays: their launches, without all that led to them.

A function that takes memory and launches kernels by its device is called once with a
`LaunchRecorder` in the place of that. What it launched depends on sizes alone, but for addresses:
those of its inputs, of the memory it took, and of lists that stay on the device. `LaunchPlan`
takes memory anew, puts the new addresses in the places of the old ones and launches the same.
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

_ALIGNMENT = 512  # of the parts of memory that is taken at once, as CuPy's pool has it


class _MemoryRange(NamedTuple):
    """Memory that a call works on: that of an input, or what it took."""

    begin: int
    end: int
    zero: bool = False
    array: Array | None = None  # keeps it


class _ReadyLaunch(Protocol):
    """What enqueues work: see `Kernel.ready`."""

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
    """An address among the arguments: where it stands, and where it is."""

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
    """A device that notes the memory taken and the kernels launched by it.

    It is equal to the device itself, so that lists of work that were uploaded for one are found by
    the other. What it cannot note it does all the same, and makes no record.

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
        self._staying: list[tuple[int, int]] = []  # where structs may point, beside blocks
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
        """Make no record: something happens that is not noted."""
        self._complete = False

    def pointer(self, array: Array | None) -> int:
        """Address of an array's first element; 0 for none."""
        return self._device.pointer(array)

    def upload(self, array: np.ndarray) -> Array:
        """Copy a host array to the device, where it stays."""
        if array.dtype == np.uint64:  # addresses, which are others the next time
            self.give_up()
        return self._device.upload(array)

    def stays(self, array: Array) -> Array:
        """Note an array that is kept, and that structs may point into."""
        begin = self._device.pointer(array)
        self._staying.append((begin, begin + array.nbytes))
        self._keep.append(array)
        return array

    def kernel(self, file: str, entry: str, dtype: npt.DTypeLike, **constants: int) -> Kernel:
        """Return an entry of a kernel file, whose launches are noted."""
        return _RecordedKernel(self, self._device.kernel(file, entry, dtype, **constants))

    def call(self, function: Callable[..., object], addresses: Sequence[int]) -> None:
        """Call what enqueues work of a library at some addresses, and note that."""
        function(*addresses)
        kernel = _RecordedLibrary(function, len(addresses))
        self.launched(kernel, (), (), [np.uint64(x) for x in addresses], 0)

    def took(self, array: Array, zero: bool) -> Array:
        """Note memory that was taken."""
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
        """Note a launch, and which of its arguments are addresses of what."""
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
            self._keep.append(argument)  # a list of work, say
        return np.uint64(address).tobytes()

    def _address(self, argument: int, byte: int, address: int, must: bool) -> bool:
        """Note an address, if it is one of known memory; whether it is."""
        if not address:
            return True
        for k, block in enumerate(self._blocks):
            if block.begin <= address < block.end:
                hole = len(self._launches), argument, byte, k, address - block.begin
                self._holes.append(_Relocation(*hole))
                return True
        if must and not any(begin <= address < end for begin, end in self._staying):
            self.give_up()
        return False

    def recorded(self, results: Sequence[Array]) -> LaunchPlan | None:
        """Return what makes the same results of other inputs; None where not all was noted."""
        outputs = []
        for array in results:
            address = self._device.pointer(array)
            for k, block in enumerate(self._blocks):
                if k >= self._inputs and block.begin <= address < block.end:
                    about = array.shape, array.dtype, array.strides
                    outputs.append(Result(k, address - block.begin, *about))
        plan = None
        if self._complete and len(outputs) == len(results):
            record = self._blocks[self._inputs :], self._launches, self._holes, outputs, self._keep
            plan = LaunchPlan(self._device, self._inputs, *record)
        return plan

    def forget(self) -> None:
        """Keep no memory any more: lists of work that are kept know the recorder."""
        self._blocks, self._launches, self._holes, self._keep = [], [], [], []


class LaunchPlan:
    """Launches of a call, to be made again: see the module."""

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
        """Which memory is taken at once: each result by itself, all else together."""
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
        """Enqueue it all on the current stream; the results, in memory of their own.

        Parameters
        ----------
        inputs : sequence of int
            Their addresses.
        """
        device = self._device
        memories = [device.take(size) for size in self._sizes]
        addresses = [*inputs, *map(device.address, memories)]
        for memory, first, size in self._cleared:
            device.zero(memories[memory], first, size)
        stream, words = device.stream(), self._words
        with self._lock:  # other threads would put their addresses there
            for place, block, offset in self._holes:
                words[place] = addresses[block] + offset
            for launch in self._launches:
                launch(stream)
        view = device.view
        return tuple([view(memories[memory], *about) for memory, about in self._results])


class _RecordingMemory:
    """An array module that notes the memory taken by ``empty`` and ``zeros``."""

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
    """A kernel whose launches are noted."""

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
    """What enqueues work of a library, as a kernel whose arguments are addresses."""

    def __init__(self, function: Callable[..., object], count: int) -> None:
        self._function, self._count = function, count

    def ready(
        self, grid: Sequence[int], block: Sequence[int], table: int, shared: int = 0
    ) -> Callable[[int], object]:
        """See `Kernel`; the stream is the current one, where libraries work anyway."""
        places = (ctypes.c_uint64 * self._count).from_address(table)
        addresses = [ctypes.c_uint64.from_address(place) for place in places]
        function = self._function
        return lambda stream: function(*[x.value for x in addresses])


def disjoint(places: Sequence[int], arrays: Sequence[Array]) -> bool:
    """Whether of arrays at these places none begins before another ends."""
    ends = sorted(map(_extent, places, arrays))
    return all(x[1] <= y[0] for x, y in pairwise(ends))


def _array(argument: Value) -> Array:
    """An argument that is neither a number nor a struct."""
    return argument  # type: ignore[return-value]


def _extent(address: int, array: Array) -> tuple[int, int]:
    """First byte of an array, and the byte past its last."""
    steps = [(n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)]
    low, high = sum(min(s, 0) for s in steps), sum(max(s, 0) for s in steps)
    return address + low, address + high + array.itemsize


def _addresses(dtype: np.dtype, start: int = 0) -> list[int]:
    """Where the addresses of a struct or number begin: they alone are unsigned, of 8 bytes."""
    if dtype.fields is None:
        return [start] if dtype == np.uint64 else []
    fields = ((x[0], start + x[1]) for x in dtype.fields.values())
    return [place for part in fields for place in _addresses(*part)]


def _pack(launches: Sequence[tuple[bytes, ...]]) -> tuple[list[list[int]], np.ndarray, list]:
    """Arguments one after the other: where each begins, the memory, their addresses by launch."""
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
