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
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .array import Array, Value
from .device import Device

_ALIGNMENT = 512  # bytes, of blocks in one allocation; that of CuPy's pool
_ARGUMENT_ALIGNMENT = 16  # bytes


class _Block(NamedTuple):
    """Memory that a call uses: an input, or an allocation."""

    begin: int
    end: int
    zero: bool = False
    array: Array | None = None  # keeps the memory alive


class _Launch(NamedTuple):
    """A launch: its arguments by their offsets, and `Kernel.ready` as a function of their table."""

    ready: Callable[[int], Callable[[int], object]]
    arguments: Sequence[int]


class _Relocation(NamedTuple):
    """An address among the arguments: its offset, its block, and its offset in the block."""

    place: int
    block: int
    offset: int


class _Result(NamedTuple):
    """An array that a call returns."""

    block: int
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]


class _Recording:
    """Launches of a call, with their packed arguments."""

    def __init__(self, inputs: Sequence[_Block]) -> None:
        self.inputs = len(inputs)
        self.blocks = list(inputs)  # the inputs, then the allocations
        self.launches: list[_Launch] = []
        self.arguments = bytearray()
        self.relocations: list[_Relocation] = []
        self.persistent: list[Value] = []  # arrays such as work lists, kept alive

    def find(self, address: int) -> tuple[int, int] | None:
        """Return the block and the offset of an address; None if it is in no block."""
        for k, block in enumerate(self.blocks):
            if block.begin <= address < block.end:
                return k, address - block.begin
        return None

    def add_argument(self, value: bytes) -> int:
        """Append an argument; return its offset."""
        start = len(self.arguments)
        self.arguments += value + bytes(-len(value) % _ARGUMENT_ALIGNMENT)
        return start


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
        self.name, self.limits = device.name, device.limits
        self.cuda, self.index = device.cuda, device.index
        self.xp = _RecordingMemory(self, device)
        self._recording = _Recording([_Block(*_extent(device.pointer(x), x)) for x in inputs])
        self._staying: list[tuple[int, int]] = []  # where structs may point besides blocks
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
        self._recording.persistent.append(array)
        return array

    def kernel(
        self, file: str, entry: str, dtype: npt.DTypeLike, **constants: int
    ) -> Callable[..., None]:
        """Return an entry of a kernel file whose launches are recorded."""
        kernel = self._device.kernel(file, entry, dtype, **constants)

        def launch(
            grid: Sequence[int], block: Sequence[int], arguments: Sequence[Value], shared: int = 0
        ) -> None:
            kernel(grid, block, arguments, shared)
            self._add_launch(lambda table: kernel.ready(grid, block, table, shared), arguments)

        return launch

    def call(self, function: Callable[..., object], addresses: Sequence[int]) -> None:
        """Call a function that enqueues work of a library with addresses, and record it."""
        function(*addresses)

        def ready(table: int) -> Callable[[int], object]:
            places = (ctypes.c_uint64 * len(addresses)).from_address(table)
            values = [ctypes.c_uint64.from_address(place) for place in places]
            return lambda stream: function(*[x.value for x in values])  # uses the current stream

        self._add_launch(ready, [np.uint64(x) for x in addresses])

    def took(self, array: Array, zero: bool) -> Array:
        """Record allocated memory."""
        begin = self._device.pointer(array)
        if array.size:
            self._recording.blocks.append(_Block(begin, begin + array.nbytes, zero, array))
        return array

    def _add_launch(
        self, ready: Callable[[int], Callable[[int], object]], arguments: Sequence[Value]
    ) -> None:
        offsets = [self._add_argument(x) for x in arguments]
        self._recording.launches.append(_Launch(ready, offsets))

    def _add_argument(self, argument: Value) -> int:
        """Record an argument and the addresses in it; return its offset."""
        if isinstance(argument, np.generic) or argument.dtype.kind == "V":
            value = np.asarray(argument)
            start = self._recording.add_argument(value.tobytes())
            for byte in _addresses(value.dtype):
                address = int(np.frombuffer(value.tobytes(), "u8", 1, byte)[0])
                if not (self._relocate(start + byte, address) or self._stays_at(address)):
                    self.give_up()
            return start
        address = self._device.pointer(_array(argument))
        start = self._recording.add_argument(np.uint64(address).tobytes())
        if not self._relocate(start, address):
            self._recording.persistent.append(argument)
        return start

    def _relocate(self, place: int, address: int) -> bool:
        """Record an address in a block; return whether it is in one, or null."""
        position = self._recording.find(address) if address else None
        if position:
            self._recording.relocations.append(_Relocation(place, *position))
        return not address or position is not None

    def _stays_at(self, address: int) -> bool:
        return any(begin <= address < end for begin, end in self._staying)

    def recorded(self, results: Sequence[Array]) -> LaunchPlan | None:
        """Return a plan that computes the results from other inputs; None if incomplete."""
        outputs = []
        for array in results:
            position = self._recording.find(self._device.pointer(array))
            if position and position[0] >= self._recording.inputs:
                outputs.append(_Result(*position, array.shape, array.dtype, array.strides))
        if not self._complete or len(outputs) < len(results):
            return None
        return LaunchPlan(self._device, self._recording, outputs)

    def forget(self) -> None:
        """Release the memory: cached work lists refer to the recorder."""
        self._recording = _Recording([])


class LaunchPlan:
    """Launches of a call, to be repeated: see the module docstring."""

    def __init__(self, device: Device, recording: _Recording, results: Sequence[_Result]) -> None:
        self._device, self._keep, self._lock = device, recording.persistent, Lock()
        places = self._place(recording, [r.block for r in results])
        self._results = [
            (places[r.block][0] - recording.inputs, (r.offset, r.shape, r.dtype, r.strides))
            for r in results
        ]
        self._packed = np.frombuffer(recording.arguments or bytes(8), np.uint64).copy()
        self._words = memoryview(self._packed).cast("B").cast("Q")
        self._relocations = []
        for place, block, offset in recording.relocations:
            memory, first = places[block]
            self._relocations.append((place // 8, memory, first + offset))
        self._tables = [
            np.array(x.arguments, np.uint64) + np.uint64(self._packed.ctypes.data)
            for x in recording.launches
        ]
        self._launches = [
            x.ready(table.ctypes.data)
            for x, table in zip(recording.launches, self._tables, strict=True)
        ]

    def _place(self, recording: _Recording, results: Sequence[int]) -> list[tuple[int, int]]:
        """Choose the allocations: one for each result, one for all other blocks.

        Return the memory and the offset of each block; the first memories are the inputs.
        """
        blocks, inputs = recording.blocks, recording.inputs
        places = [(k, 0) for k in range(len(blocks))]
        others = set(range(inputs, len(blocks))).difference(results)
        groups = [[k] for k in sorted(set(results))]
        groups.append(sorted(others, key=lambda k: (not blocks[k].zero, k)))
        self._sizes: list[int] = []
        self._cleared: list[tuple[int, int]] = []  # memory, bytes
        for group in filter(None, groups):
            end, zeros = 0, 0
            for k in group:
                start = -(-end // _ALIGNMENT) * _ALIGNMENT
                places[k] = inputs + len(self._sizes), start
                end = start + blocks[k].end - blocks[k].begin
                zeros = end if blocks[k].zero else zeros
            if zeros:
                self._cleared.append((len(self._sizes), zeros))
            self._sizes.append(end)
        return places

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
        for memory, size in self._cleared:
            device.zero(memories[memory], size)
        stream, words = device.stream(), self._words
        with self._lock:  # the argument memory is shared by all threads
            for place, memory, offset in self._relocations:
                words[place] = addresses[memory] + offset
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
