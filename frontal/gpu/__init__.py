"""The GPU: whether there is one to compute on. Importing this takes no device and loads no CuPy."""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

from ..errors import FrontalError

_INSTALL = (
    "pip install 'cupy-cuda13x[ctk]' (for a driver of CUDA 12: 'cupy-cuda12x[ctk]'), "
    "or use backend='cpu'"
)


class DeviceNotFoundError(FrontalError, RuntimeError):
    """A GPU was asked for, and there is none to compute on."""


def _cupy() -> Any:
    """CuPy, with a device to use; counting devices makes no context on any of them."""
    try:
        cupy = importlib.import_module("cupy")
        count = cupy.cuda.runtime.getDeviceCount()
    except ModuleNotFoundError as error:
        raise DeviceNotFoundError(f"CuPy is not installed ({error}). Try: {_INSTALL}") from error
    except Exception as error:  # CuPy's errors cannot be named before it is imported
        raise DeviceNotFoundError(
            f"CuPy finds no device ({type(error).__name__}: {error}). Likely causes: (a) no NVIDIA "
            "GPU, or it is hidden by CUDA_VISIBLE_DEVICES, (b) no driver, or one older than CuPy's "
            f"CUDA. Try: {_INSTALL}"
        ) from error
    if count == 0:
        raise DeviceNotFoundError(f"CuPy finds no device. Try: {_INSTALL}")
    return cupy


def devices() -> list[str]:
    """Names of the GPUs that can be computed on; empty without CuPy, driver or device."""
    try:
        runtime = _cupy().cuda.runtime
    except DeviceNotFoundError:
        return []
    names = (runtime.getDeviceProperties(i)["name"] for i in range(runtime.getDeviceCount()))
    return [name.decode() if isinstance(name, bytes) else str(name) for name in names]


class Speed(NamedTuple):
    """Flops a second that a GPU can do at most, by its own account, without tensor cores."""

    single: float
    double: float

    @property
    def ratio(self) -> float:
        """How much faster single precision is: 2 in data centres, 32 or 64 elsewhere."""
        return self.single / self.double


# Attributes of a device: clock in kHz, multiprocessors, compute capability, single over double.
_CLOCK, _MULTIPROCESSORS, _MAJOR, _MINOR, _RATIO = 13, 16, 75, 76, 87
_CAPABILITIES_WITH_64_UNITS = (
    (7, 0),
    (7, 2),
    (7, 5),
    (8, 0),
)  # 64 of single precision a multiprocessor, not 128


def speed(index: int | None = None) -> Speed | None:
    """What a GPU, or the current one, can do; None if it does not tell. Makes no context on it."""
    try:
        runtime = _cupy().cuda.runtime
        device_index = runtime.getDevice() if index is None else index
        clock, count, major, minor, ratio = (
            runtime.deviceGetAttribute(attribute, device_index)
            for attribute in (_CLOCK, _MULTIPROCESSORS, _MAJOR, _MINOR, _RATIO)
        )
    except Exception:  # CuPy's errors cannot be named before it is imported
        return None
    units = 64 if (major, minor) in _CAPABILITIES_WITH_64_UNITS else 128
    single = 2e3 * clock * count * units
    return Speed(single, single / ratio) if ratio > 0 and single > 0 else None


def device_count() -> int:
    """Number of GPUs that can be computed on.

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
    """Whether there is a GPU to compute on."""
    return device_count() > 0


def require() -> None:
    """Raise unless there is a GPU to compute on.

    Raises
    ------
    DeviceNotFoundError
        With the reason and the line that installs what is missing.
    """
    _cupy()
