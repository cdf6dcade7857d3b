"""Which backend is taken: what is asked for, what is there, and for how much work.

What computes on a GPU is imported when one is taken: that is a tenth of a first call on the CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from .. import gpu
from ..cpu.backend import CpuBackend
from ..machine.resources import MACHINES, thread_count, variable
from ..machine.threads import BackgroundTask
from ..numeric.method import Method
from ..symbolic.phase import Symbolic
from .memory_limit import Memory
from .protocol import Backend

if TYPE_CHECKING:
    from ..gpu.sparse.backend import GpuBackend
    from ..gpu.sparse.early_setup import EarlySetup

_DOUBLE = np.dtype(np.float64)
_MAX_SPEED_RATIO = 4  # single over double precision, at most, of GPUs that are made for both
GPU_FLOPS = MACHINES["gpu"].least_flops  # of a factorization that "auto" gives to the GPU

_engines: WeakKeyDictionary[object, dict[str, Backend]] = WeakKeyDictionary()
_expected: WeakKeyDictionary[object, GpuBackend] = WeakKeyDictionary()


def requested(name: str) -> str:
    """What ``backend=name`` asks for, after ``FRONTAL_BACKEND`` has said what "auto" is.

    Raises
    ------
    ValueError
        If it is none of ``"auto"``, ``"cpu"`` and ``"gpu"``.

    Examples
    --------
    >>> requested("cpu")
    'cpu'
    """
    said = variable("FRONTAL_BACKEND") if name == "auto" else None
    asked = name if said is None else said
    if asked not in ("auto", "cpu", "gpu"):
        where = "backend" if asked is name else "FRONTAL_BACKEND"
        raise ValueError(f"{where} is {asked!r}; choose 'auto', 'cpu' or 'gpu'")
    return asked


@cache
def _has_gpu() -> bool:
    """Whether there is a GPU; asked once a process, and that takes no context on it."""
    return gpu.available()


@cache
def _speed() -> gpu.Speed | None:
    return gpu.speed()


def slow_gpu(dtype: np.dtype, speed: gpu.Speed | None) -> bool:
    """Whether all cores of this machine are faster than a GPU made for single precision.

    Examples
    --------
    >>> import numpy as np
    >>> from frontal.gpu import Speed
    >>> small = Speed(1e13, 1e9)
    >>> slow_gpu(np.dtype("f8"), small), slow_gpu(np.dtype("c8"), small)
    (True, False)
    """
    if speed is None or speed.ratio <= _MAX_SPEED_RATIO or np.finfo(dtype).bits < 64:
        return False
    return speed.double < MACHINES["cpu"].rate * thread_count()


def resolved(name: str, flops: float, dtype: np.dtype = _DOUBLE) -> str:
    """Return ``"cpu"`` or ``"gpu"`` for what a user asks for and so many operations.

    ``FRONTAL_BACKEND`` decides what "auto" is; without it, that is the GPU where there is one, a
    factorization takes long enough for it, and it is no `slow_gpu`, else the CPU.

    Examples
    --------
    >>> resolved("gpu", 1e3)
    'gpu'
    """
    asked = requested(name)
    return asked if asked != "auto" else _faster(dtype, flops)


def chooser(name: str, dtype: np.dtype = _DOUBLE) -> Callable[[float], str]:
    """As `resolved`, for any number of operations."""
    asked = requested(name)
    return (lambda _: asked) if asked != "auto" else partial(_faster, dtype)


def _faster(dtype: np.dtype, flops: float) -> str:
    gpu_is = flops >= GPU_FLOPS and _has_gpu() and not slow_gpu(dtype, _speed())
    return "gpu" if gpu_is else "cpu"


def _load() -> None:
    """Import what computes on a GPU.

    All threads begin with the same module: two that come from both ends of a chain of imports would
    find each other's modules half made.
    """
    from ..gpu.sparse import backend, early_setup, footprint, memory_choice, workspace  # noqa: F401


def _gpu_in_use() -> bool:
    """Whether this process has a GPU at work: not before it has loaded what finds one."""
    devices = sys.modules.get(f"{gpu.__name__}.runtime.device")
    # another thread may be importing it just now, so that it has no names yet
    asked = getattr(devices, "at_work", None)
    return asked is not None and asked()


def lookahead(name: str, dtype: np.dtype) -> EarlySetup | None:
    """What begins a first factorization of a pattern while that is analyzed, see
    `attach_early_setup`.

    There is none but on a GPU that this process has at work: no analysis looks for one by itself.
    """
    if requested(name) == "cpu" or not _gpu_in_use():
        return None
    _load()
    from ..gpu.runtime import device as devices
    from ..gpu.sparse.early_setup import EarlySetup

    chosen = chooser(name, dtype)
    try:
        device = devices.device_of()
    except Exception:  # in a process that was forked, say: the factorization will tell
        return None
    return EarlySetup(device, lambda flops: chosen(flops) == "gpu", dtype)


def least_flops(n: int) -> float:
    """Operations of a factorization of this order at least, as for a grid in the plane."""
    return 10.0 * n**1.5


def prewarm(name: str, method: Method, dtype: np.dtype, n: int) -> BackgroundTask[None] | None:
    """Begin with the GPU and its kernels on a thread, where it is taken and was not used before.

    For who factorizes as soon as a matrix of order n is analyzed. What fails is told there.
    """
    if _gpu_in_use() or chooser(name, dtype)(least_flops(n)) == "cpu":
        return None
    _load()
    return BackgroundTask(partial(_wakened, method, dtype))


def _wakened(method: Method, dtype: np.dtype) -> None:
    from ..gpu.runtime.device import device_of
    from ..gpu.sparse.workspace import begin_kernels

    device = device_of()
    begin_kernels(device, method, dtype)
    device.free_memory()  # which makes the context, and takes as long as a kernel


def attach_early_setup(owner: object, symbolic: Symbolic, begun: EarlySetup) -> None:
    """Make what has begun the GPU's backend for an owner; see `backend_for`."""
    _expected[owner] = begun.backend(symbolic)


def memory_on_device(
    owner: object,
    symbolic: Symbolic,
    dtype: np.dtype,
    values: np.dtype,
    rhs: int,
    memory: Memory,
) -> dict[str, int]:
    """Bytes of a factor on the GPU that is there, or else on one like an H200.

    Parameters
    ----------
    owner : object
        See `backend_for`.
    dtype, values : numpy.dtype
        Scalar types of the factor and of the matrix.
    rhs : int
        Right-hand sides that are solved for at once.
    memory : str or int
        See `Analyzed.memory_for`.
    """
    _load()
    from ..gpu.runtime.limits import H200
    from ..gpu.sparse.backend import GpuBackend
    from ..gpu.sparse.footprint import on_device_like
    from ..gpu.sparse.memory_choice import memory_report

    if gpu.available():
        backend = backend_for(owner, symbolic, "gpu")
        if isinstance(backend, GpuBackend):
            return backend.memory(dtype, values, rhs, memory)
    return memory_report(symbolic, on_device_like(H200, symbolic), dtype, values, rhs, memory, None)


def backend_for(owner: object, symbolic: Symbolic, name: str) -> Backend:
    """The backend ``"cpu"`` or ``"gpu"`` with the indices of a pattern; made once for an owner.

    Parameters
    ----------
    owner : object
        What is kept for as long as the backend, hashed by identity; the symbolic phase it holds.

    Raises
    ------
    frontal.gpu.DeviceNotFoundError
        If a GPU is asked for and there is none.
    """
    backends = _engines.get(owner)
    if backends is None:
        backends = _engines.setdefault(owner, {})
    backend = backends.get(name)
    if backend is None:  # no lock: a process forked meanwhile would wait for it for ever
        created: Backend = _on_gpu(owner, symbolic) if name == "gpu" else CpuBackend(symbolic)
        backend = backends.setdefault(name, created)
    return backend


def _on_gpu(owner: object, symbolic: Symbolic) -> GpuBackend:
    """One that was expected, if it is of the current device."""
    _load()
    from ..gpu.sparse.backend import GpuBackend

    begun = _expected.pop(owner, None)
    return begun if begun is not None and begun.is_current else GpuBackend(symbolic)
