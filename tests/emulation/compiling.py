"""Kernels compiled for the CPU, and what was compiled before."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from frontal.gpu.runtime import jit

HEADERS = Path(__file__).parent
RACES = HEADERS / "races.cpp"
COMPILER = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
SANITIZE = os.environ.get("FRONTAL_SANITIZE") == "1"
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1")


class EmulationError(RuntimeError):
    """A launch failed: a deadlock, a wrong argument, a wrong use of a warp function."""


def _flags() -> tuple[str, ...]:
    cpu = Path("/proc/cpuinfo")
    fused = cpu.exists() and " fma " in cpu.read_text()
    return (
        *("-w", "-fPIC", "-fno-strict-aliasing", "-ffp-contract=off"),
        *("-fno-gnu-unique",) * ("g++" in Path(str(COMPILER)).name),
        "-O0" if SANITIZE else "-Og",  # compiling is most of the time
        *(("-mfma",) if fused else ()),
        *(_SANITIZERS if SANITIZE else ()),
        *("-DFRONTAL_EMULATION", f"-I{HEADERS}"),
    )


@cache
def _headers() -> str:
    return "".join(path.read_text() for path in sorted(HEADERS.glob("*.[hc]pp")))


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"frontal-emulation-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@cache
def build(text: str, options: tuple[str, ...], more: tuple[str, ...] = ()) -> ctypes.CDLL:
    """Compile a kernel source and load it; what was compiled before is taken from a cache.

    With ``-fsanitize=thread`` among the further options, the library of races.cpp goes with it, and
    not the compiler's.
    """
    entries = [a or b for a, b in jit._ENTRY.findall(text)]
    unit = "\n".join(
        ['#include "cuda.hpp"', text, *(f"EMULATION_ENTRY({entry})" for entry in entries), ""]
    )
    options = (*_precompiled(more), *options, *more)
    if "-fsanitize=thread" not in more:
        return ctypes.CDLL(str(_compiled(unit, ("-shared", *options))))
    kernel = _compiled(unit, ("-c", *options), ".o")
    races = _compiled(RACES.read_text(), ("-c", "-O2"), ".o")
    linked = (str(kernel), str(races), "-shared", "-lstdc++")
    return ctypes.CDLL(str(_compiled("", linked)))


@cache
def _precompiled(more: tuple[str, ...]) -> tuple[str, ...]:
    """Where g++ finds the headers compiled, which is half of its time for most kernels."""
    if "g++" not in Path(str(COMPILER)).name:
        return ()
    header = ("-std=c++17", *more, "-x", "c++-header", str(HEADERS / "cuda.hpp"))
    return ("-iquote", str(_compiled("", header, "/cuda.hpp.gch").parent))


def _compiled(unit: str, options: tuple[str, ...], ending: str = ".so") -> Path:
    """Compile a source, if that was not done before; the file that comes of it."""
    if COMPILER is None:
        raise EmulationError("no C++ compiler: install g++ or clang++, or set CXX")
    command = (COMPILER, *_flags(), *options)
    key = hashlib.sha256("\0".join((*command, _headers(), unit)).encode()).hexdigest()[:24]
    path = Path(f"{_folder() / key}{ending}")
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        last = ("-x", "c++", "-") if unit else ()
        done = subprocess.run(
            (*command, "-o", str(part), *last),
            input=unit,
            capture_output=True,
            text=True,
            # a compiler with the sanitizers' libraries takes twice as long
            env={key: value for key, value in os.environ.items() if key != "LD_PRELOAD"},
        )
        if done.returncode:
            part.unlink(missing_ok=True)
            raise EmulationError(f"{' '.join(command)} failed:\n{done.stderr[:5000]}")
        part.replace(path)
    return path
