"""Tuning of the chip-dependent numbers by timing, for `frontal tune`.

The search is coordinate descent: each field of a routine's tuning dataclass takes the values near
its default while the others stay, and a value is adopted if the geometric mean of the times of the
routine's cases falls by more than the noise. A value that fails, or changes a result by more than
rounding, is rejected.
"""

from __future__ import annotations

import datetime
import logging
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path

import numpy as np

from ..runtime import tuned
from ..runtime.array import Array
from ..runtime.device import Device
from . import blas3, gemv, getrf, launch, potrf
from .operands import MatrixBatch
from .workspace import workspace

log = logging.getLogger("frontal")
Timer = Callable[[Callable[[], None], Callable[[], None]], float]
NOISE = 0.02  # relative gain below which a value is not adopted
_RESULT_TOLERANCE = 1e-6  # relative difference of results, bound of rounding


@dataclass(frozen=True)
class Case:
    """A batch that a routine is timed on, of order ``n`` or of random orders up to ``n``."""

    shape: str
    n: int
    count: int

    def sizes(self) -> np.ndarray:
        """Return the order of each matrix."""
        if self.shape == "uniform":
            return np.random.default_rng(1).integers(1, self.n + 1, self.count)
        return np.full(self.count, self.n)


@dataclass(frozen=True)
class Change:
    """Result of a sweep for one knob.

    Attributes
    ----------
    gain : float
        Time before over time after; 1 if the value is unchanged.
    """

    routine: str
    knob: str
    before: object
    after: object
    gain: float


SMALL_CASES = (Case("fixed", 16, 4000), Case("fixed", 32, 4000), Case("fixed", 64, 2000))
MEDIUM = (Case("fixed", 128, 1000), Case("fixed", 256, 500), Case("uniform", 128, 1500))
LARGE_CASES = (Case("fixed", 512, 100), Case("uniform", 512, 500), Case("native", 4096, 1))
CASES: dict[str, tuple[Case, ...]] = {
    "potrf": (*SMALL_CASES, *MEDIUM, *LARGE_CASES, Case("native", 1024, 1)),
    "getrf": (*SMALL_CASES, *MEDIUM, *LARGE_CASES[:2], Case("native", 2048, 1)),
    "gemm": (*SMALL_CASES[1:], *MEDIUM, *LARGE_CASES),
    "herk": (*SMALL_CASES[1:], *MEDIUM, *LARGE_CASES),
    "trsm": (*SMALL_CASES[1:], *MEDIUM, *LARGE_CASES[:2], Case("native", 2048, 1)),
    "gemv": (*SMALL_CASES[1:], *MEDIUM, *LARGE_CASES),
}


def routines() -> list[str]:
    """Return the routines that have numbers to tune."""
    return [r for r in CASES if r in launch.TUNING]


def choices(knob: Field) -> Sequence[object]:
    """Return the values to try for a field: its declared choices, or values near its default.

    Examples
    --------
    >>> from dataclasses import dataclass, field, fields
    >>> @dataclass
    ... class Numbers:
    ...     threads: int = 64
    ...     tile: int = field(default=32, metadata={"choices": (16, 32)})
    >>> [choices(f) for f in fields(Numbers)]
    [[32, 48, 64, 96, 128], [16, 32]]
    """
    if "choices" in knob.metadata:
        return list(knob.metadata["choices"])
    default = knob.default
    if isinstance(default, bool):
        return [False, True]
    if isinstance(default, int) and default > 1:
        near = {default // 2, 3 * default // 4, default, 3 * default // 2, 2 * default}
        return sorted(near)
    return []


def sweep(
    device: Device,
    selected: Sequence[str] = (),
    *,
    timer: Timer | None = None,
    cases: dict[str, tuple[Case, ...]] | None = None,
    seconds: float = 120.0,
    progress: Callable[[str, float, float], None] | None = None,
) -> tuple[tuned.Numbers, list[Change]]:
    """Tune the numbers of a device.

    Parameters
    ----------
    selected : sequence of str
        Routines; default: all that have numbers.
    timer : callable, optional
        Returns the seconds of a call, its first argument; the second one restores the inputs.
        Default: by CUDA events.
    cases : dict of str to tuple of Case, optional
        Batches to time, by routine; default: `CASES`.
    seconds : float
        Time after which no new value is tried; routines share the remaining time equally.
    progress : callable, optional
        Called with a label, the number of finished routines and the number of all.

    Returns
    -------
    numbers : dict
        Chosen values that differ from the defaults, by routine and field.
    changes : list of Change
        One for each knob that was swept.
    """
    end = time.perf_counter() + seconds
    numbers: tuned.Numbers = {}
    changes: list[Change] = []
    names = list(selected) or routines()
    for i, routine in enumerate(names):
        if progress:
            progress("tuning", i, len(names))
        probes = [Probe(device, routine, c) for c in (cases or CASES)[routine]]
        now = time.perf_counter()
        descent = _Sweep(
            routine, probes, timer or device_timer, now + (end - now) / (len(names) - i)
        )
        try:
            changes += descent.run()
        except Exception as error:  # continue with the other routines
            log.warning("%s is not tuned, because it fails with its defaults: %s", routine, error)
            continue
        if descent.values:
            numbers[routine] = descent.values
    if progress:
        progress("tuning", len(names), len(names))
    return numbers, changes


def save(device_name: str, numbers: tuned.Numbers, to: Path | None = None) -> Path:
    """Write the numbers to a file; default: the user's file for this device."""
    path = to or tuned.folder() / tuned.file_name(device_name)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    tuned.write(device_name, numbers, {"date": date}, path)
    launch.tuning.cache_clear()
    return path


class _Sweep:
    """The coordinate descent over the knobs of one routine."""

    def __init__(self, routine: str, probes: list[Probe], timer: Timer, end: float) -> None:
        self.routine, self.probes, self.timer, self.end = routine, probes, timer, end
        self.values: dict[str, object] = {}

    def run(self) -> list[Change]:
        """Sweep all knobs; return their changes."""
        kind = launch.TUNING[self.routine]
        with trial(self.routine, {}):  # the defaults, without the files
            for probe in self.probes:
                probe.expect()
            best = self._time()
        if math.isinf(best):
            raise RuntimeError(f"{self.routine} with its defaults does not reproduce its results")
        changes = []
        for knob in fields(kind):
            if choices(knob):
                before = best
                best = self._descend(knob, best)
                after = self.values.get(knob.name, knob.default)
                gain = math.exp(before - best)
                changes.append(Change(self.routine, knob.name, knob.default, after, gain))
        return changes

    def _descend(self, knob: Field, best: float) -> float:
        """Try a knob's values; adopt the fastest and return the score."""
        for value in choices(knob):
            if value == knob.default or time.perf_counter() > self.end:
                continue
            with trial(self.routine, {**self.values, knob.name: value}):
                score = self._score()
            if score < best + math.log1p(-NOISE):
                best = score
                self.values[knob.name] = value
        return best

    def _score(self) -> float:
        """Return `_time`, or infinity for values with which a case cannot be launched."""
        try:
            return self._time()
        except Exception as error:  # too much shared memory or no such tile: rejected
            log.debug("%s: %s", self.routine, error)
            return math.inf

    def _time(self) -> float:
        """Return the mean logarithm of the cases' times; infinity if a result has changed."""
        total = 0.0
        for probe in self.probes:
            total += math.log(self.timer(probe.call, probe.restore))
            if not probe.agrees():
                return math.inf
        return total / max(len(self.probes), 1)


@contextmanager
def trial(routine: str, values: dict[str, object]) -> Iterator[None]:
    """Run a routine with these values over its defaults, without the files."""
    kind = launch.TUNING[routine]
    defaults = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    tuned.trial[routine] = defaults | values
    launch.tuning.cache_clear()
    try:
        yield
    finally:
        del tuned.trial[routine]
        launch.tuning.cache_clear()


# --- timed calls -------------------------------------------------------------------------------


class Probe:
    """A routine on the matrices of a case: its call, restored inputs, comparison of results."""

    def __init__(self, device: Device, routine: str, case: Case) -> None:
        self.device = device
        sizes = case.sizes()
        batches = 1 if routine in ("potrf", "getrf") else 2 if routine in ("herk", "trsm") else 3
        ones = np.ones_like(sizes)
        columns = [sizes] * 3 if routine != "gemv" else [sizes, ones, ones]
        self.operands = [self._operand(case, sizes, columns[i], i) for i in range(batches)]
        self.flat = self.operands[-1][0]
        self.original = self.flat.copy()
        self.info = device.xp.zeros(len(sizes), np.int32)
        self.call = _driver(routine, [batch for _, batch in self.operands], self.info)

    def _operand(
        self, case: Case, m: np.ndarray, n: np.ndarray, seed: int
    ) -> tuple[Array, MatrixBatch]:
        """Return consecutive random matrices; the first operand's are diagonally dominant."""
        rng = np.random.default_rng(seed)
        start = np.concatenate([[0], np.cumsum(m * n)])
        host = rng.uniform(-1, 1, int(start[-1]))
        if seed == 0:
            for i, k in zip(start[:-1], m, strict=True):
                host[i : i + k * k : k + 1] = k + 1
        flat = self.device.upload(host)
        if case.shape == "uniform":
            pointers = self.device.pointer(flat) + 8 * start[:-1].astype(np.uint64)
            batch = MatrixBatch.of_sizes(self.device, flat.dtype, pointers, m, n, np.maximum(m, 1))
            return flat, batch
        stack = flat.reshape(case.count, int(n[0]), int(m[0])).transpose(0, 2, 1)
        return flat, MatrixBatch.from_array(
            self.device, stack if case.shape == "fixed" else stack[0]
        )

    def restore(self) -> None:
        """Restore the inputs that a run overwrites."""
        self.flat[...] = self.original

    def expect(self) -> None:
        """Run once and store the result as reference."""
        self.restore()
        self.call()
        self.expected = self.flat.copy()

    def agrees(self) -> bool:
        """Return whether a run reproduces the reference up to rounding."""
        self.restore()
        self.call()
        xp = self.device.xp
        error, size = xp.abs(self.flat - self.expected).max(), xp.abs(self.expected).max()
        return bool(error <= _RESULT_TOLERANCE * xp.maximum(size, 1.0))


def _driver(routine: str, operands: list[MatrixBatch], info: Array) -> Callable[[], None]:
    """Return the host driver of a routine as a call without arguments."""
    first, *others = operands
    if routine == "getrf":
        pivots = workspace(first, first.m, 1, np.int32)
        return lambda: getrf.getrf(first, pivots, info)
    calls: dict[str, Callable[[], None]] = {
        "potrf": lambda: potrf.potrf(first, info, uplo="L"),
        "gemm": lambda: blas3.gemm("N", "N", 1.0, first, others[0], 0.0, others[1]),
        "herk": lambda: blas3.herk("L", "N", 1.0, first, 0.0, others[0]),
        "trsm": lambda: blas3.trsm("R", "L", "C", "N", 1.0, first, others[0]),
        "gemv": lambda: gemv.gemv("N", 1.0, first, others[0], 0.0, others[1]),
    }
    return calls[routine]


def device_timer(call: Callable[[], None], restore: Callable[[], None]) -> float:
    """Return the seconds of a call by CUDA events, the minimum of 5."""
    import cupy

    restore()
    call()
    best = math.inf
    for _ in range(5):
        start, stop = cupy.cuda.Event(), cupy.cuda.Event()
        restore()
        start.record()
        call()
        stop.record()
        stop.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return best
