"""Hardware limits of a device for one kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Hardware limits of a device for one kernel."""

    multiprocessors: int
    shared_block: int  # bytes of shared memory that a block can opt in to
    shared_multiprocessor: int  # bytes of shared memory of one multiprocessor
    capability: tuple[int, int]
    registers: int = 65536  # a multiprocessor
    threads: int = 2048  # a multiprocessor

    @property
    def constants(self) -> dict[str, int]:
        """Constants of all kernels; before sm_80 copies to shared memory are not asynchronous."""
        return {"PLAIN": 1} if self.capability < (8, 0) else {}

    @classmethod
    def from_properties(cls, properties: Mapping[str, int]) -> Limits:
        """Read the limits from ``cudaDeviceProp`` as CuPy returns it."""
        return cls(
            multiprocessors=properties["multiProcessorCount"],
            shared_block=properties["sharedMemPerBlockOptin"],
            shared_multiprocessor=properties["sharedMemPerMultiprocessor"],
            capability=(properties["major"], properties["minor"]),
            registers=properties["regsPerMultiprocessor"],
            threads=properties["maxThreadsPerMultiProcessor"],
        )


H200 = Limits(132, 232448, 233472, (9, 0))


def power_of_two(n: int) -> int:
    """Return the least power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()
