"""Detection of GPUs. Importing this module makes no context on a device and does not load CuPy."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from ..errors import FrontalError

_INSTALL = (
    "pip install 'cupy-cuda13x[ctk]' (for a driver of CUDA 12: 'cupy-cuda12x[ctk]'), "
    "or use backend='cpu'"
)


class DeviceNotFoundError(FrontalError, RuntimeError):
    """A GPU was requested, and none is usable."""


def _cupy() -> Any:
    """Return CuPy if it has a device; counting devices makes no context on any of them."""
    try:
        cupy = importlib.import_module("cupy")
        count = cupy.cuda.runtime.getDeviceCount()
    except ModuleNotFoundError as error:
        raise DeviceNotFoundError(f"CuPy is not installed ({error}). Try: {_INSTALL}") from error
    except Exception as error:  # CuPy's errors cannot be named before its import
        raise DeviceNotFoundError(
            f"CuPy finds no device ({type(error).__name__}: {error}). Likely causes: (a) no NVIDIA "
            "GPU, or it is hidden by CUDA_VISIBLE_DEVICES, (b) no driver, or one older than CuPy's "
            f"CUDA. Try: {_INSTALL}"
        ) from error
    if count == 0:
        raise DeviceNotFoundError(f"CuPy finds no device. Try: {_INSTALL}")
    return cupy


def devices() -> list[str]:
    """Return the names of the usable GPUs; empty without CuPy, driver or device."""
    try:
        runtime = _cupy().cuda.runtime
    except DeviceNotFoundError:
        return []
    names = (runtime.getDeviceProperties(i)["name"] for i in range(runtime.getDeviceCount()))
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


class Speed(NamedTuple):
    """Peak flops a second of a GPU without tensor cores, from its attributes."""

    single: float
    double: float

    @property
    def ratio(self) -> float:
        """Speed of single precision over double: 2 in data centres, 32 or 64 elsewhere."""
        return self.single / self.double


# Attributes of a device: clock in kHz, multiprocessors, compute capability, single over double.
_CLOCK, _MULTIPROCESSORS, _MAJOR, _MINOR, _RATIO = 13, 16, 75, 76, 87
_CAPABILITIES_WITH_64_UNITS = (
    (7, 0),
    (7, 2),
    (7, 5),
    (8, 0),
)  # 64 single-precision units a multiprocessor, not 128


def speed(index: int | None = None) -> Speed | None:
    """Return the peak of a GPU, default: the current one; None if unknown. Makes no context."""
    try:
        runtime = _cupy().cuda.runtime
        device_index = runtime.getDevice() if index is None else index
        clock, count, major, minor, ratio = (
            runtime.deviceGetAttribute(attribute, device_index)
            for attribute in (_CLOCK, _MULTIPROCESSORS, _MAJOR, _MINOR, _RATIO)
        )
    except Exception:  # CuPy's errors cannot be named before its import
        return None
    units = 64 if (major, minor) in _CAPABILITIES_WITH_64_UNITS else 128
    single = 2e3 * clock * count * units
    return Speed(single, single / ratio) if ratio > 0 and single > 0 else None


def device_count() -> int:
    """Return the number of usable GPUs.

    Examples
    --------
    >>> from frontal import gpu
    >>> gpu.device_count() == len(gpu.devices())
    True
    """
    try:
        return int(_cupy().cuda.runtime.getDeviceCount())
    except DeviceNotFoundError:
        return 0


def available() -> bool:
    """Return whether a GPU is usable."""
    return device_count() > 0


def require() -> None:
    """Raise unless a GPU is usable.

    Raises
    ------
    DeviceNotFoundError
        With the reason and the command that installs the missing package.
    """
    _cupy()
