"""Kernel sources: one string from the files of ``kernels/``, compiled by NVRTC at first use.

Compiled kernels are cached by the digest of this string (`cubins`), so headers are inserted into
it, each once, with ``#line`` marks for error messages.
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
    """Return the names of all kernel files with entry points."""
    names = (path.name for room in KERNEL_FOLDERS for path in folder().joinpath(room).iterdir())
    return sorted(name for name in names if name.endswith(".cu"))


def text(name: str) -> str:
    """Return the text of a kernel file; a header's name includes its folder, another name need not.

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
    """Return the names of the entry points of a kernel file, in order."""
    return [a or b for a, b in _ENTRY.findall(text(name))]


@cache
def source(name: str) -> str:
    """Return a kernel file with all files of ``kernels/`` that it includes, each once.

    Parameters
    ----------
    name : str
        A name from `files_of_entries`, or the absolute path of a file outside the package.
    """
    lines: list[str] = []
    _append(name, lines, set())
    plain = "\n".join(lines) + "\n"
    return plain.encode("ascii", "replace").decode()  # CuPy writes it in the locale's encoding


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
    """Return the options of any compiler for one instance of a kernel file."""
    defines = [f"-D{key}={value}" for key, value in sorted((constants or {}).items())]
    return ("-std=c++17", f"-DSCALAR={SCALARS[np.dtype(dtype)]}", *defines)


def nvrtc_options(dtype: np.dtype, constants: Mapping[str, int] | None = None) -> tuple[str, ...]:
    """Return the options of NVRTC for one instance of a kernel file."""
    # before 13.2, NVRTC treats generic lambdas as host functions without this option
    return (*options(dtype, constants), "-default-device")


# they scale their input, or read the unscaled A and b, so subnormal numbers matter
_WITH_SUBNORMALS = frozenset(
    {"qr.cu", "jacobi.cu", "bdsqr.cu"}
    | {"equilibrate.cu", "system.cu", "condition.cu", "batch_statistics.cu", "front_trees.cu"}
    | {"entry_products.cu"}
)


def device_options(
    name: str, dtype: np.dtype, constants: Mapping[str, int] | None = None
) -> tuple[str, ...]:
    """Return the options of NVRTC for one instance of a kernel file that will run.

    Most float32 kernels flush subnormal numbers to zero, float64 kernels do not: divisions that
    preserve them make Cholesky of order 256 take 1.4 times as long.
    """
    flush = str(os.path.basename(name) not in _WITH_SUBNORMALS).lower()
    return (*nvrtc_options(dtype, constants), f"-ftz={flush}")


def machine_code(name: str, dtype: np.dtype, constants: Mapping[str, int]) -> bytes:
    """Compile a kernel file for the current device; other threads may compile at the same time."""
    from cupy.cuda import compiler

    chosen = device_options(name, dtype, constants)
    code, _ = compiler.compile_using_nvrtc(
        source(name), options=chosen, filename=os.path.basename(name)
    )
    return code
