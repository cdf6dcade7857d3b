"""An emulated device on which several blocks take turns, and memory begins as garbage.

For kernels whose blocks wait for each other: a wait that is missing, a flag that is not reset or
told too early ends a launch with an error or leaves wrong numbers (interleave.hpp, races.cpp).
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .compiling import COMPILER, SANITIZE, build
from .device import LIMITS, EmulatedDevice

POLICIES = ("random", "youngest", "lazy")  # of interleave.hpp
_MOST = 8  # blocks together, in races.cpp
# Not a number, both as float and double, and not what a message is before it is sent.
GARBAGE = 0xFFF5A5A5
_SHARED = re.compile(r"(?<!extern )__shared__ ((?:__align__\(\d+\) |unsigned )*[\w:<>]+) ([^;]*);")
_NAMES = re.compile(r"(?:^|,)\s*(\w+)")


class InterleavedDevice(EmulatedDevice):
    """See the module; for tests that factorize and solve again with what they did before.

    Parameters
    ----------
    policy : {"random", "youngest", "lazy"}
        Which block runs next; see interleave.hpp.
    seed : int
    residents : int
        Blocks that are under way together, if their shared memory and threads fit.
    """

    def __init__(
        self,
        policy: str = "random",
        seed: int = 1,
        residents: int = _MOST,
        sources: dict[str, str] | None = None,
    ) -> None:
        super().__init__(LIMITS, sources)
        self.xp = SimpleNamespace(**{name: getattr(np, name) for name in np.__all__})
        self.xp.empty = garbage
        self.use(policy, seed, residents)

    def use(self, policy: str, seed: int, residents: int) -> None:
        """Choose how the blocks of the launches that follow take turns."""
        self.schedule = POLICIES.index(policy), seed, residents

    def _build(self, text: str, options: tuple[str, ...]) -> ctypes.CDLL:
        more = (f"-DEMULATION_RESIDENTS={_MOST}", "-fvisibility-inlines-hidden")
        if not SANITIZE:
            more += ("-DEMULATION_RACES=1", *_instrumented())
        return build(own_variables(text), options, more)

    def _entry(self, library: ctypes.CDLL, entry: str) -> Any:
        kernel = super()._entry(library, entry)

        def launch(grid: Any, block: Any, arguments: Any, shared: int = 0) -> None:
            most = self._residents(int(np.prod(block)), shared)

            def schedule() -> None:
                policy, seed, residents = self.schedule
                library.emulation_schedule(policy, ctypes.c_uint(seed), min(most, residents))

            self._enqueue(schedule)
            kernel(grid, block, arguments, shared)

        return launch

    def _residents(self, threads: int, shared: int) -> int:
        """How many blocks of a kernel the device holds."""
        limits = self.limits
        each = min(limits.threads // threads, limits.shared_multiprocessor // (shared + 1024))
        return each * limits.multiprocessors


def garbage(shape: Any, dtype: Any = np.float64) -> np.ndarray:
    """Return an array of what memory may hold that nobody has written."""
    out = np.empty(shape, dtype)
    if out.dtype.kind in "iu":
        out[...] = 5  # an index that is there, mostly
        return out
    fill = np.full(-(-out.nbytes // 4), GARBAGE, np.uint32).view(np.uint8)
    out.reshape(-1).view(np.uint8)[:] = fill[: out.nbytes]
    return out


def own_variables(text: str) -> str:
    """Give each block its own variables in shared memory, which are static ones otherwise."""
    count = 0

    def declare(match: re.Match) -> str:
        nonlocal count
        count += 1
        kind, names = match.groups()
        name, offset = f"variables_{count}", f"offset_{count}"
        parts = [
            f"struct Variables_{count} {{ {kind} {names}; }};",
            f"static long long {offset} = -1;",
            f"auto &{name} = emulation::own_variables<Variables_{count}>({offset});",
        ]
        parts += [f"auto &{own} = {name}.{own};" for own in _NAMES.findall(names)]
        return " ".join(parts)

    return _SHARED.sub(declare, text)


def available() -> bool:
    """Whether the compiler can do what is needed; g++ can since version 11."""
    if COMPILER is None or sys.platform != "linux":
        return False
    command = (COMPILER, *_instrumented(), "-x", "c++", "-c", "-o", os.devnull, "-")
    return subprocess.run(command, input="", capture_output=True, text=True).returncode == 0


def _instrumented() -> tuple[str, ...]:
    """Options for a call at each access to memory, which tell volatile accesses from others."""
    if "clang" in Path(str(COMPILER)).name:
        return ("-fsanitize=thread", "-mllvm", "-tsan-distinguish-volatile=1")
    return ("-fsanitize=thread", "--param=tsan-distinguish-volatile=1")
