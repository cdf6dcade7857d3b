"""Fixtures shared by the tests: real matrices, random systems, the scaled residual."""

from __future__ import annotations

import _thread
import gzip
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from frontal import api, gpu
from frontal.machine import resources
from frontal.machine.thread_group import ThreadGroup

from .emulation.compiling import COMPILER
from .emulation.device import EmulatedDevice
from .emulation.traffic import watch

os.environ.setdefault("FRONTAL_HELPERS", "0")  # tests count processes, and take memory
SHARED = Path(__file__).resolve().parents[2] / "shared" / "matrices"


ALL_SCALARS = bool(os.environ.get("FRONTAL_ALL_SCALARS"))
# single and double, real and complex are met in half of the time that compiling all four takes
SCALARS = ("f4", "f8", "c8", "c16") if ALL_SCALARS else ("f8", "c8")
TYPES = [np.dtype(scalar).type for scalar in SCALARS]
# scalars of emulated kernels that are left out where a test is run for one of these
_OTHERS = {"f4": ("c8", "f8"), "c16": ("f8", "c8"), "f": ("F", "d"), "D": ("d", "F")}


# Files that worker processes take first. `test_warm.py` compiles most functions of the CPU, for
# all later files. Meanwhile others compile kernels, so that no function is compiled twice.
_FIRST_FILES = "tests/cli/test_warm.py", "tests/gpu/dense/", "tests/gpu/test_gpu_compile.py"


def pytest_configure(config):
    """Let worker processes take files in the order of collection, not by their number of tests."""
    config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Emulate kernels for `SCALARS` alone; a GPU runs all. Workers begin with `_FIRST_FILES`."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _place(item.nodeid))
    if ALL_SCALARS:
        return
    names, kept, left = {item.nodeid for item in items}, [], []
    for item in items:
        (left if _has_another_scalar(item.nodeid, names) else kept).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def _place(name):
    """Return the place of a test in `_FIRST_FILES`, behind all names if it has none."""
    places = (k for k, first in enumerate(_FIRST_FILES) if name.startswith(first))
    return next(places, len(_FIRST_FILES))


def _has_another_scalar(name, names):
    test, _, parameters = name.partition("[emulated-")
    words = parameters.rstrip("]").split("-")
    return any(
        f"{test}[emulated-{'-'.join([*words[:i], other, *words[i + 1 :]])}]" in names
        for i, word in enumerate(words)
        for other in _OTHERS.get(word, ())
    )


@pytest.fixture(scope="session")
def shared_matrix():
    """Read a matrix of the shared collection by name; skip where the collection is absent."""

    def read(name: str) -> sp.csc_array:
        path = SHARED / f"{name}.mtx.gz"
        if not path.exists():
            pytest.skip(f"shared matrix {name} is not here")
        with gzip.open(path) as stream:
            return sp.csc_array(scipy.io.mmread(stream))

    return read


@pytest.fixture(scope="session", params=["emulated", *["gpu"] * gpu.available()])
def device(request):
    """A device to run kernels on: emulated on the CPU, and the GPU where there is one."""
    if request.param == "emulated":
        if COMPILER is None:
            pytest.skip("no C++ compiler to emulate kernels with: install g++ or clang++")
        return EmulatedDevice()
    from frontal.gpu.runtime.device import device_of

    return device_of()


@pytest.fixture
def gpu_backend(device, monkeypatch):
    """Give `backend="gpu"` the device of the test."""
    monkeypatch.setattr("frontal.gpu.runtime.device.device_of", lambda array=None: device)


@pytest.fixture
def traffic(device, monkeypatch):
    """Watch the copies and launches of the device of the test."""
    return watch(device, monkeypatch)


@pytest.fixture(autouse=True)
def nothing_kept():
    """No test meets analyses that another one has left."""
    api._analyses.clear()


@pytest.fixture
def with_fronts(monkeypatch):
    """LU has fronts for thin matrices too."""
    monkeypatch.setattr("frontal.symbolic.columns.MIN_COLUMNS", sys.maxsize)


@pytest.fixture
def warned(monkeypatch):
    """Warnings of a solver, as (message, category).

    Where threads compile meanwhile, Numba may take them from `pytest.warns`.
    """
    found = []
    for module in "batch.systems", "factor.fallbacks":
        monkeypatch.setattr(f"frontal.{module}.warn", lambda *given: found.append(given))
    return found


@contextmanager
def no_thread_stays():
    """What is done inside ``with`` leaves no thread behind, soon after."""
    before, end = _at_work(), time.monotonic() + 30
    yield
    while _at_work() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert _at_work() <= before


def _at_work() -> int:
    """How many threads there are, named or not."""
    return _thread._count()


@contextmanager
def all_is_over():
    """What threads begin inside ``with`` is over when that is left; no other thread is new."""
    begun, start, known = [], ThreadGroup.start, set(threading.enumerate())

    def noted(group, job):
        begun.append(job)
        return start(group, job)

    with mock.patch.object(ThreadGroup, "start", noted):
        yield
    assert all(job.over.is_set or job.cancel() for job in begun)
    new = set(threading.enumerate()) - known
    assert [one.name for one in new if not one.name.startswith("Dummy")] == []


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, as it does not in what a shell starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def fronts_cost(front: float = 0.0, **path):
    """Machines on which a front costs so many seconds, inside ``with``; of free ones none merge.

    ``path`` are the fields of `FrontCost` on fronts that wait for each other.
    """
    fronts = resources.FrontCost(front, 0.0, 3e10, 0.0, **path)
    changed = {name: replace(one, fronts=fronts) for name, one in resources.MACHINES.items()}
    return mock.patch.dict(resources.MACHINES, changed)


@pytest.fixture
def merged_by_work(monkeypatch):
    """Fronts of a GPU are merged by their work alone, not to shorten paths: there are more."""
    gpu = resources.H200
    patient = replace(gpu, fronts=gpu.fronts._replace(latency=0.0))
    monkeypatch.setitem(resources.MACHINES, "gpu", patient)


def scaled_residual(A, x, b) -> float:
    """Normwise backward error ||b - Ax|| / (||A|| ||x|| + ||b||) in the infinity norm."""
    r = np.abs(b - A @ x).max(initial=0.0)
    norm = np.abs(A).sum(axis=1).max() if A.shape[0] else 0.0
    scale = norm * np.abs(x).max(initial=0.0) + np.abs(b).max(initial=0.0)
    return float(r / scale) if scale else float(r)


@pytest.fixture(autouse=True)
def by_the_way_of_all(monkeypatch):
    """However many calls a process has made: code for those who call often has its own tests."""
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 1 << 60)
