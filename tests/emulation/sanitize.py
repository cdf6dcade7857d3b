"""Start pytest with kernels under the address and undefined-behaviour sanitizers.

Run as ``python -m tests.emulation.sanitize tests/gpu/test_emulation.py tests/gpu/dense``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from .compiling import COMPILER

_RUNTIMES = ("libasan.so", "libubsan.so")
_OPTIONS = {
    # Python itself keeps memory; the fibers' stacks must not move; numbers are no pointers.
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "FRONTAL_SANITIZE": "1",
}


def runtimes() -> list[str]:
    """Return the sanitizers' libraries, which must be loaded before Python; empty without them."""
    if COMPILER is None:
        return []
    found = [
        subprocess.run(
            (COMPILER, f"-print-file-name={name}"), capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in _RUNTIMES
    ]
    return [str(Path(path).resolve()) for path in found if Path(path).is_file()]


def environment() -> dict[str, str]:
    """Return the environment of a process whose kernels are checked."""
    return {**os.environ, **_OPTIONS, "LD_PRELOAD": " ".join(runtimes())}


def main(arguments: list[str]) -> int:
    """Run pytest; its exit status. Without sanitizers nothing is run, which is said."""
    if not runtimes():
        sys.stdout.write("skipped: no sanitizers here, g++ and its libasan are needed\n")
        return 0
    # what a sanitizer says goes to the process, not to a test that it ends
    options = ("-p", "no:cacheprovider", "--capture=sys")
    command = (sys.executable, "-m", "pytest", *options, *arguments)
    return subprocess.run(command, env=environment()).returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
