"""What a backend must do, and the choice of one."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from .machine import MACHINES

if TYPE_CHECKING:
    from .method import Method
    from .symbolic.plan import Plan

Progress = Callable[[str, float, float], None]

GPU_FLOPS = MACHINES["gpu"].least_flops  # of a factorization that "auto" gives to the GPU


def panel_offsets(plan: Plan, method: Method) -> np.ndarray:
    """Where the panels of each front begin in a factor on the host, and where the last one ends.

    There they lie in a row, in entries: the (k + m) by k column-major [L11; L21] of a front, and
    with two panels the m by k transpose of U12 behind it.
    """
    k, m = np.diff(plan.start).astype(np.int64), np.diff(plan.pointer)
    offset = np.zeros(plan.start.size, np.int64)
    np.cumsum(k * (k + method.panels * m), out=offset[1:])
    return offset


class NumericFactor(Protocol):
    """The numbers of one factorization, on the device that computed them."""

    perturbed: int
    """Pivots of LU that were tiny and replaced."""

    @property
    def pivots(self) -> np.ndarray:
        """(n,) int32 row interchanges of LU, local to each front; empty for Cholesky."""
        ...

    @property
    def panels(self) -> np.ndarray:
        """The panels of all fronts, on the host."""
        ...

    def solve(self, x: np.ndarray, transposed: bool) -> None:
        """Overwrite x, (n, w) row-major in elimination order, with the solution.

        For every x, applying the factorized matrix to the result gives x back, up to rounding;
        `transposed` takes its plain transpose (LU) or conjugate (Cholesky).
        """
        ...


class Backend(Protocol):
    """Factorizes matrices of one pattern; the pattern's indices are uploaded once."""

    name: str
    device: str

    def upload(self, plan: Plan, method: Method) -> None:
        """Take the index arrays of a pattern."""
        ...

    def factorize(
        self,
        values: np.ndarray,
        tiny: float,
        progress: Progress | None,
        previous: NumericFactor | None = None,
    ) -> NumericFactor:
        """Factorize; raise `PivotFailure` at the first pivot of Cholesky that is not positive.

        The memory of `previous`, which is then no factor any more, is used again.
        """
        ...


class PivotFailure(Exception):  # noqa: N818 - not an error where LU can go on
    """A pivot of Cholesky is not positive; `position` is its place in elimination order."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


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
    asked = os.environ.get("FRONTAL_BACKEND", "auto") if name == "auto" else name
    if asked not in ("auto", "cpu", "gpu"):
        where = "backend" if asked is name else "FRONTAL_BACKEND"
        raise ValueError(f"{where} is {asked!r}; choose 'auto', 'cpu' or 'gpu'")
    return asked


@cache
def _gpu_found() -> bool:
    """Whether there is a GPU; asked once a process, and that takes no context on it."""
    from . import gpu

    return gpu.available()


def resolved(name: str, flops: float) -> str:
    """Return ``"cpu"`` or ``"gpu"`` for what a user asks for and so many operations.

    Examples
    --------
    >>> resolved("gpu", 1e3)
    'gpu'
    """
    asked = requested(name)
    if asked == "auto":
        asked = "gpu" if flops >= GPU_FLOPS and _gpu_found() else "cpu"
    return asked


def get_backend(name: str, flops: float = np.inf) -> Backend:
    """The backend for ``"cpu"``, ``"gpu"`` or ``"auto"``.

    ``FRONTAL_BACKEND`` decides what "auto" is; without it, that is the GPU where there is one and
    a factorization takes at least `GPU_FLOPS`, else the CPU.

    Parameters
    ----------
    name : str
    flops : float
        Operations of one factorization.

    Raises
    ------
    ValueError
        For any other name.
    frontal.gpu.DeviceNotFoundError
        If a GPU is asked for and there is none.
    """
    if resolved(name, flops) == "gpu":
        from .gpu.sparse.backend import GpuBackend

        return GpuBackend()
    from .cpu.backend import CpuBackend

    return CpuBackend()
