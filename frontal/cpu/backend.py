"""The CPU backend: threads that run compiled code without the GIL."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..errors import FactorMemoryError
from ..machine import CPU, available_memory, thread_count
from ..method import Method
from ..protocol import NumericFactor, PivotFailure, Progress, panel_offsets
from ..symbolic.plan import Plan, front_flops
from . import team
from .assembly import Work
from .blas import routines
from .blas_limit import single_threaded_blas
from .factorize import run
from .layout import Layout
from .triangular import sweep

_INLINE_FLOPS = CPU.least_flops
_POLL_SECONDS = 0.1
_UNCHECKED_BYTES = 1 << 24  # so little is taken without a look at the system's memory
_SOLVE_WIDTH = 32  # right-hand sides solved together


class CpuFactor:
    """Panels in one array; see `NumericFactor`."""

    def __init__(
        self, plan: Plan, method: Method, panels: np.ndarray, pivots: np.ndarray, perturbed: int
    ) -> None:
        self.plan, self.method = plan, method
        self.panels = panels
        self.pivots = pivots
        self.perturbed = perturbed
        self.arena: np.ndarray | None = None  # kept by those who factorize again and again

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "arena": None}

    def solve(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        plan, method, panels = self.plan, self.method, self.panels
        n, width = x.shape
        conjugate = method.one_triangle and np.iscomplexobj(x)
        panel = panel_offsets(plan, method)
        largest = int(np.diff(plan.pointer).max(initial=0))
        calls = routines(panels.dtype)
        buffer = np.empty(max(1, largest * min(width, _SOLVE_WIDTH)), panels.dtype)
        with single_threaded_blas():
            for first in range(0, width, _SOLVE_WIDTH):
                part = x[:, first : first + _SOLVE_WIDTH]
                block = np.ascontiguousarray(part).reshape(-1)
                w = part.shape[1]
                if conjugate and transposed:
                    np.conjugate(block, out=block)
                # with two panels L serves the forward sweep, and the backward one of A^T
                first_lower = method.one_triangle or not transposed
                last_lower = method.one_triangle or transposed
                given = plan, panel, calls, panels, self.pivots, block, w, buffer
                sweep(*given, first_lower, first_lower and method.pivots, False)
                if conjugate:  # L^H y = z is L^T conj(y) = conj(z)
                    np.conjugate(block, out=block)
                sweep(*given, last_lower, last_lower and method.pivots, True)
                if conjugate and not transposed:
                    np.conjugate(block, out=block)
                part[...] = block.reshape(n, w)


class CpuBackend:
    """See `backend.Backend`."""

    name = "cpu"

    def __init__(self) -> None:
        self.threads = thread_count()
        self.device = f"{self.threads} thread" + "s" * (self.threads > 1)
        self._layouts: dict[int, Layout] = {}

    def upload(self, plan: Plan, method: Method) -> None:
        """See `Backend`."""
        self.plan, self.method = plan, method
        self.flops = float(front_flops(plan.start, plan.pointer).sum())

    def _layout(self, threads: int) -> Layout:
        if threads not in self._layouts:
            self._layouts[threads] = Layout.of(self.plan, self.method, threads)
        return self._layouts[threads]

    def factorize(
        self,
        values: np.ndarray,
        tiny: float,
        progress: Progress | None,
        previous: NumericFactor | None = None,
    ) -> NumericFactor:
        """See `Backend`."""
        plan, calls = self.plan, routines(values.dtype)
        threads = self.threads if self.flops > _INLINE_FLOPS else 1
        layout = self._layout(threads)
        blocks = layout.shared + threads * layout.own
        panels, arena = _storage(int(layout.panel[-1]), blocks, values.dtype, previous)
        state = np.zeros(team.STATE_SIZE, np.int64)
        state[team.FAILURE] = team.NO_FAILURE
        state[team.WORD] = team.CLOSED
        pivots = np.empty(plan.start[-1] if self.method.pivots else 0, np.int32)
        places = layout.panel, layout.block, layout.local
        given = self.method, plan, calls, values, panels, pivots, tiny, arena
        work = Work(*given, *places, state)

        def member(rank: int) -> None:
            own = layout.shared + rank * layout.own
            cut, info = (layout.low, layout.root, layout.top), np.zeros(1, np.int32)
            with single_threaded_blas():
                run(work, *cut, rank == 0, own, info)

        if self.flops > _INLINE_FLOPS:
            _run_team(member, threads, state, plan.parent.size, progress)
        else:
            member(0)
        if state[team.FAILURE] != team.NO_FAILURE:
            raise PivotFailure(int(state[team.FAILURE]) - 1)
        factor = CpuFactor(plan, self.method, panels, pivots, int(state[team.PERTURBED]))
        factor.arena = arena if previous is not None else None
        return factor


def _run_team(member, threads: int, state: np.ndarray, fronts: int, progress) -> None:
    """Run all members in threads; the calling thread stays free for Ctrl-C and progress."""
    failures: list[BaseException] = []

    def guarded(rank: int) -> None:
        try:
            member(rank)
        except BaseException as error:
            failures.append(error)
            state[team.QUIT] = state[team.INTERRUPT] = 1

    crew = [threading.Thread(target=guarded, args=(rank,), daemon=True) for rank in range(threads)]
    for thread in crew:
        thread.start()
    try:
        for thread in crew:
            while thread.is_alive():
                thread.join(_POLL_SECONDS)
                if progress:
                    progress("factorization", float(state[team.PROGRESS]), float(fronts))
        if progress:
            progress("factorization", float(state[team.PROGRESS]), float(fronts))
    except BaseException:
        state[team.INTERRUPT] = 1
        for thread in crew:
            thread.join()
        raise
    if failures:
        raise failures[0]


def _storage(
    panels: int, blocks: int, dtype: np.dtype, previous: NumericFactor | None
) -> tuple[np.ndarray, np.ndarray]:
    """Arrays for panels and contribution blocks, those of `previous` where they fit.

    Fresh pages cost as much as the arithmetic of a small front: the system clears each of them.

    Raises
    ------
    FactorMemoryError
        If they are larger than the memory that is left: nothing is begun that cannot end.
    """
    kept: list[np.ndarray | None] = [None, None]
    if isinstance(previous, CpuFactor):
        kept = [previous.panels, previous.arena]
    sizes = max(1, panels), max(1, blocks)
    fits = [a if a is not None and a.size >= n and a.dtype == dtype else None
            for a, n in zip(kept, sizes, strict=True)]  # fmt: skip
    required = sum(n for a, n in zip(fits, sizes, strict=True) if a is None) * dtype.itemsize
    available = available_memory() if required > _UNCHECKED_BYTES else None
    if available is not None and required > available:
        raise FactorMemoryError(required, available)
    first, second = (np.empty(n, dtype) if a is None else a
                     for a, n in zip(fits, sizes, strict=True))  # fmt: skip
    return first, second
