"""Kernel sources: one string from the files of ``kernels/``, compiled by NVRTC at first use.

Compiled kernels are kept by the digest of one string (`cubins`): so headers are put into that, each
once, with ``#line`` marks for error messages.
Entry points are ``extern "C"``; the scalar and the few tile constants are ``-D`` options.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from importlib.abc import Traversable

SCALARS = {
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
    np.dtype(np.complex64): "complex<float>",
    np.dtype(np.complex128): "complex<double>",
}
KERNEL_FOLDERS = ("dense", "sparse")
_INCLUDE = re.compile(r'^#include "([^"]+)"$')
_ENTRY = re.compile(
    r'^extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(|^ENTRY\((\w+),', re.M
)


def folder() -> Traversable:
    """Return the folder of the kernel files, which are data of this package."""
    return files("frontal.gpu").joinpath("kernels")


def files_of_entries() -> list[str]:
    """Return the names of all kernel files that have entry points."""
    names = (path.name for room in KERNEL_FOLDERS for path in folder().joinpath(room).iterdir())
    return sorted(name for name in names if name.endswith(".cu"))


def text(name: str) -> str:
    """Text of a kernel file: headers have their folder in their name, entry points need not.

    An absolute path is a file outside the package.
    """
    if os.path.isabs(name):
        return Path(name).read_text("utf-8")
    folders = ("",) if "/" in name else KERNEL_FOLDERS
    for path in (folder().joinpath(room, name) for room in folders):
        if path.is_file():
            return path.read_text("utf-8")
    raise FileNotFoundError(f"there is no kernel file {name}")


def entries(name: str) -> list[str]:
    """Return the names of a kernel file's entry points, in its order."""
    return [a or b for a, b in _ENTRY.findall(text(name))]


@cache
def source(name: str) -> str:
    """Return a kernel file with all files of ``kernels/`` that it includes, each once.

    Parameters
    ----------
    name : str
        As `files_of_entries` returns it, or an absolute path of a file outside the package.
    """
    lines: list[str] = []
    _append(name, lines, set())
    plain = "\n".join(lines) + "\n"
    return plain.encode("ascii", "replace").decode()  # CuPy writes it in whatever the locale has


def _append(name: str, lines: list[str], included: set[str]) -> None:
    included.add(name)
    lines.append(f'#line 1 "{name}"')
    for number, line in enumerate(text(name).splitlines(), 1):
        match = _INCLUDE.match(line)
        if match is None:
            lines.append("" if line == "#pragma once" else line)
            continue
        if match[1] not in included:
            _append(match[1], lines, included)
        lines.append(f'#line {number + 1} "{name}"')


def options(dtype: np.dtype, constants: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Return any compiler's options for one instance of a kernel file."""
    defines = [f"-D{key}={value}" for key, value in sorted((constants or {}).items())]
    return ("-std=c++17", f"-DSCALAR={SCALARS[np.dtype(dtype)]}", *defines)


def nvrtc_options(dtype: np.dtype, constants: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Return NVRTC's options for one instance of a kernel file."""
    # before 13.2 it takes generic lambdas for host functions, unless all are the device's
    return (*options(dtype, constants), "-default-device")


# they scale what they read, or read A and b as they were given, so that subnormal numbers count
_WITH_SUBNORMALS = frozenset(
    {"qr.cu", "jacobi.cu", "bdsqr.cu"}
    | {"equilibrate.cu", "system.cu", "condition.cu", "batch_statistics.cu", "front_trees.cu"}
)


def device_options(
    name: str, dtype: np.dtype, constants: Mapping[str, int] | None = None
) -> tuple[str, ...]:
    """Return NVRTC's options for one instance of a kernel file that is to run.

    Most float32 kernels flush subnormal numbers to zero, float64 ones do not: divisions that keep
    them make Cholesky of order 256 take 1.4 times as long.
    """
    flush = str(os.path.basename(name) not in _WITH_SUBNORMALS).lower()
    return (*nvrtc_options(dtype, constants), f"-ftz={flush}")


def machine_code(name: str, dtype: np.dtype, constants: Mapping[str, int]) -> bytes:
    """Compile a kernel file for the current device; other threads may compile meanwhile."""
    from cupy.cuda import compiler

    chosen = device_options(name, dtype, constants)
    code, _ = compiler.compile_using_nvrtc(
        source(name), options=chosen, filename=os.path.basename(name)
    )
    return code
