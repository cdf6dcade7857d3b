"""NVRTC of the PyPI wheels: compiles kernels with no GPU, and tells what ptxas says of them.

Run as ``python -m tests.nvrtc gemv.cu f8 90`` for registers, local memory and DMMA instructions.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from frontal.gpu.runtime import jit

_REGISTERS = re.compile(r"Compiling entry function '(\w+)'.*?Used (\d+) registers", re.S)
_LOCAL = re.compile(
    r"Function properties for (\w+)\s.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
    r"(\d+) bytes spill loads"
)
_OTHERS = re.compile(r'^(?:ENTRY\(|extern "C" .*?)\w+_(?:native|batched)[,(].*$', re.M)
_FUNCTION = re.compile(r"^\s*\.section\s+\.text\.(\w+)", re.M)


@dataclass
class Report:
    """What became of one kernel file for one scalar and architecture."""

    error: str = ""
    registers: dict[str, int] = field(default_factory=dict)
    local: dict[str, int] = field(default_factory=dict)  # bytes of stack and spills, where not 0
    tensor: dict[str, int] = field(default_factory=dict)  # DMMA instructions, where asked for


@cache
def folder(package: str = "nvidia.cu13") -> Path | None:
    """Return where the wheels of CUDA 13 lie, or NVRTC's of CUDA 12; None without them."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return None
    places = [Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    return next((p for p in places if list(p.glob("lib/libnvrtc.so.*"))), None)


def disassembler() -> Path | None:
    """Return nvdisasm, None without it."""
    found = folder() / "bin" / "nvdisasm" if folder() else None
    return found if found and found.exists() else None


@cache
def _nvrtc(where: Path | None = None) -> ctypes.CDLL:
    return ctypes.CDLL(str(next((where or folder()).glob("lib/libnvrtc.so.*"))))


def release() -> tuple[int, int]:
    """Return the release of NVRTC, on which registers depend."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def source(name: str, whole: bool) -> str:
    """Return a kernel file with its headers; of the three wrappers all, or vbatched alone."""
    text = jit.source(name)
    return text if whole else _OTHERS.sub("", text)


def compiled(
    name: str,
    dtype: str,
    architecture: int,
    constants: tuple = (),
    whole: bool = True,
    disassemble: bool = False,
) -> Report:
    """Compile a kernel file as the package does, for ``sm_<architecture>``."""
    options = [
        *jit.device_options(name, np.dtype(dtype), dict(constants)),
        f"-arch=sm_{architecture}",
        "--ptxas-options=-v",
    ]
    code, log, cubin = _compile(source(name, whole), name, options)
    if code:
        return Report(error=log or f"NVRTC's error {code}")
    return _report(log, cubin, disassemble)


def parsed(
    name: str,
    dtype: str,
    architecture: int,
    constants: tuple = (),
    where: Path | None = None,
    *,
    whole: bool = False,
) -> str:
    """Compile a kernel file to PTX, not optimized; what went wrong, "" for nothing."""
    chosen = jit.nvrtc_options(np.dtype(dtype), dict(constants))
    options = [*chosen, f"-arch=compute_{architecture}", "--device-debug"]
    code, log, _ = _compile(source(name, whole), name, options, where)
    return log if code else ""


def _report(log: str, cubin: bytes, disassemble: bool) -> Report:
    report = Report()
    report.registers.update((entry, int(number)) for entry, number in _REGISTERS.findall(log))
    for function, *numbers in _LOCAL.findall(log):  # entries, and what they call
        if total := sum(map(int, numbers)):
            report.local[function] = total
    if disassemble:
        report.tensor = _tensor_products(cubin)
    return report


def _compile(
    source: str, name: str, options: list[str], where: Path | None = None
) -> tuple[int, str, bytes]:
    nvrtc, program = _nvrtc(where), ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    code = nvrtc.nvrtcCompileProgram(program, len(options), array)
    log = _read(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
    cubin = b"" if code else _read(nvrtc, program, "CUBIN")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code, log, cubin


def _read(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw


def _tensor_products(cubin: bytes) -> dict[str, int]:
    """Return how many DMMA instructions each entry has."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            (disassembler(), "-c", "-ndf", file.name), capture_output=True, text=True, check=True
        ).stdout
    parts = _FUNCTION.split(text)
    return {entry: code.count("DMMA") for entry, code in zip(parts[1::2], parts[2::2], strict=True)}


if __name__ == "__main__":
    result = compiled(
        sys.argv[1], sys.argv[2], int(sys.argv[3]), disassemble=disassembler() is not None
    )
    for kernel, count in result.registers.items():
        local, tensor = result.local.get(kernel, 0), result.tensor.get(kernel, 0)
        sys.stdout.write(f"{kernel}: {count} registers, {local} bytes local, {tensor} DMMA\n")
    sys.exit(result.error or 0)
