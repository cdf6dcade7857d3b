"""Choice of the backend: by the user's request, the available GPU and the operation count.

GPU modules are imported only when a GPU is used: the import takes a tenth of a first CPU call.
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
from ..cpu.columns.backend import ColumnBackend
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
_MAX_SPEED_RATIO = 4  # peak flops, single over double, of GPUs built for double
GPU_FLOPS = MACHINES["gpu"].least_flops  # operations from which "auto" factorizes on a GPU

_engines: WeakKeyDictionary[object, dict[str, Backend]] = WeakKeyDictionary()
_expected: WeakKeyDictionary[object, GpuBackend] = WeakKeyDictionary()


def requested(name: str) -> str:
    """Return the backend requested by ``backend=name``; ``FRONTAL_BACKEND`` replaces "auto".

    Raises
    ------
    ValueError
        If the request is none of ``"auto"``, ``"cpu"`` and ``"gpu"``.

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
    """Return whether a GPU is available; checked once per process, without a CUDA context."""
    return gpu.available()


@cache
def _speed() -> gpu.Speed | None:
    return gpu.speed()


def slow_gpu(dtype: np.dtype, speed: gpu.Speed | None) -> bool:
    """Return whether the CPU, with all threads, outruns a GPU built for single precision.

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
    """Return ``"cpu"`` or ``"gpu"`` for a user's request and an operation count.

    ``FRONTAL_BACKEND`` replaces "auto". Otherwise "auto" is the GPU if one is available, the
    factorization has at least `GPU_FLOPS` operations and the GPU is no `slow_gpu`; else the CPU.

    Examples
    --------
    >>> resolved("gpu", 1e3)
    'gpu'
    """
    asked = requested(name)
    return asked if asked != "auto" else _faster(dtype, flops)


def chooser(name: str, dtype: np.dtype = _DOUBLE) -> Callable[[float], str]:
    """Return `resolved` as a function of the operation count."""
    asked = requested(name)
    return (lambda _: asked) if asked != "auto" else partial(_faster, dtype)


def _faster(dtype: np.dtype, flops: float) -> str:
    gpu_is = flops >= GPU_FLOPS and _has_gpu() and not slow_gpu(dtype, _speed())
    return "gpu" if gpu_is else "cpu"


def _load() -> None:
    """Import the GPU modules.

    All threads import the same module first: two threads that enter a chain of imports at opposite
    ends would each see the other's modules half initialized.
    """
    from ..gpu.sparse import backend, early_setup, first_kernels, footprint, memory_choice  # noqa: F401


def _gpu_in_use() -> bool:
    """Return whether this process uses a GPU; False before the GPU modules are loaded."""
    devices = sys.modules.get(f"{gpu.__name__}.runtime.device")
    # while another thread imports the module, it may have no names yet
    asked = getattr(devices, "at_work", None)
    return asked is not None and asked()


def lookahead(name: str, dtype: np.dtype) -> EarlySetup | None:
    """Return the setup of a first GPU factorization that runs during the analysis, or None.

    None unless this process already uses a GPU: an analysis alone never initializes one. See
    `attach_early_setup`.
    """
    if requested(name) == "cpu" or not _gpu_in_use():
        return None
    _load()
    from ..gpu.runtime import device as devices
    from ..gpu.sparse.early_setup import EarlySetup

    chosen = chooser(name, dtype)
    try:
        device = devices.device_of()
    except Exception:  # in a forked process, for example: the factorization reports the error
        return None
    return EarlySetup(device, lambda flops: chosen(flops) == "gpu", dtype)


def least_flops(n: int) -> float:
    """Return a lower estimate of the operations for order n: those of a planar grid."""
    return 10.0 * n**1.5


def prewarm(name: str, method: Method, dtype: np.dtype, n: int) -> BackgroundTask[None] | None:
    """Start the GPU and load its kernels on a thread, if the GPU is chosen and not yet in use.

    For callers that factorize right after analyzing a matrix of order n. The factorization reports
    errors. Return None if nothing is started.
    """
    if _gpu_in_use() or chooser(name, dtype)(least_flops(n)) == "cpu":
        return None
    _load()
    return BackgroundTask(partial(_wakened, method, dtype))


def _wakened(method: Method, dtype: np.dtype) -> None:
    from ..gpu.runtime.device import device_of
    from ..gpu.sparse.first_kernels import begin_kernels

    device = device_of()
    begin_kernels(device, method, dtype)
    device.free_memory()  # creates the CUDA context, which takes as long as loading a kernel


def attach_early_setup(owner: object, symbolic: Symbolic, begun: EarlySetup) -> None:
    """Register the backend of a started setup as the GPU backend of an owner; see `backend_for`."""
    _expected[owner] = begun.backend(symbolic)


def memory_on_device(
    owner: object,
    symbolic: Symbolic,
    dtype: np.dtype,
    values: np.dtype,
    rhs: int,
    memory: Memory,
) -> dict[str, int]:
    """Return the bytes of a factor on the available GPU, or on an H200 if there is none.

    Parameters
    ----------
    owner : object
        See `backend_for`.
    dtype, values : numpy.dtype
        Scalar types of the factor and of the matrix.
    rhs : int
        Right-hand sides of one solve.
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
    return memory_report(symbolic, on_device_like(H200, symbolic), dtype, values, rhs, memory)


def backend_for(owner: object, symbolic: Symbolic, name: str) -> Backend:
    """Return the ``"cpu"`` or ``"gpu"`` backend of a pattern; created once per owner.

    Parameters
    ----------
    owner : object
        Object that holds the symbolic phase, hashed by identity; the backend lives as long.

    Raises
    ------
    frontal.gpu.DeviceNotFoundError
        If `name` is ``"gpu"`` and no GPU is available.
    """
    backends = _engines.get(owner)
    if backends is None:
        backends = _engines.setdefault(owner, {})
    backend = backends.get(name)
    if backend is None:  # no lock: a process forked meanwhile would wait for it forever
        created: Backend = _on_gpu(owner, symbolic) if name == "gpu" else _on_cpu(symbolic)
        backend = backends.setdefault(name, created)
    return backend


def _on_cpu(symbolic: Symbolic) -> Backend:
    if symbolic.columns is not None:
        return ColumnBackend(symbolic, symbolic.columns)
    return CpuBackend(symbolic)


def _on_gpu(owner: object, symbolic: Symbolic) -> GpuBackend:
    """Return the backend registered by `attach_early_setup` if it is of the current device."""
    _load()
    from ..gpu.sparse.backend import GpuBackend

    begun = _expected.pop(owner, None)
    return begun if begun is not None and begun.is_current else GpuBackend(symbolic)
