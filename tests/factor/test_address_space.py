"""Limits of address space, as by `ulimit -v`: an error with numbers, whatever finds no room."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import frontal
from frontal.cpu import blas_limit
from frontal.cpu.backend import CpuBackend
from frontal.errors import FactorMemoryError
from frontal.machine import threads
from frontal.machine.resources import available_memory

resource = pytest.importorskip("resource")
ROOT = Path(__file__).resolve().parents[2]

LIMITED = """
import resource, sys, threading
import numpy as np
import frontal
from frontal.cpu import backend
from frontal.machine.resources import address_space
from frontal.problems import convdiff2d, poisson2d

make = poisson2d if sys.argv[1] == "cholesky" else convdiff2d
small, A = make(20), make(200)  # what is compiled is loaded before, without a call of BLAS
inline, backend._INLINE_FLOPS = backend._INLINE_FLOPS, 0
frontal.factorize(small, backend="cpu", ordering="amd").solve(np.ones(400))
backend._INLINE_FLOPS = inline
assert address_space() is None
with open("/proc/self/statm") as pages:
    taken = int(pages.read().split()[0]) * resource.getpagesize()
for more in map(int, sys.argv[2:]):
    resource.setrlimit(resource.RLIMIT_AS, (taken + (more << 20), resource.RLIM_INFINITY))
    try:
        x = frontal.factorize(A, backend="cpu", ordering="amd").solve(np.ones(40000))
        print("solved" if abs(A @ x - 1).max() < 1e-8 else "wrong")
    except frontal.FactorMemoryError as error:
        print("refused" if error.required > error.available >= 0 else error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="nothing tells what is taken")
@pytest.mark.parametrize("method", ["cholesky", "lu"])
def test_there_is_an_error_or_a_solution_and_no_hang(method):
    limits = ["1", "4", "12", "30", "60", "110", "180", "1000"]
    command = [sys.executable, "-c", LIMITED, method, *limits]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    outcomes = done.stdout.split()
    assert set(outcomes) <= {"solved", "refused"}, done.stdout + done.stderr
    assert len(outcomes) == len(limits), done.stderr
    assert (outcomes[0], outcomes[-1]) == ("refused", "solved")
    assert done.returncode == 0


@pytest.fixture
def no_threads(monkeypatch):
    """Only so many threads can be started, as by address space or `ulimit -u`."""

    def allow(count):
        left = iter(range(count))

        def limited(start):
            def starting(*given):
                if next(left, None) is None:
                    raise RuntimeError("can't start new thread")
                return start(*given)

            return starting

        for of, name in (threading.Thread, "start"), (_thread, "start_new_thread"):
            monkeypatch.setattr(of, name, limited(getattr(of, name)))

    return allow


@pytest.mark.parametrize("count", [0, 1])
def test_a_team_needs_no_helpers(monkeypatch, no_threads, count):
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "3")
    monkeypatch.setattr("frontal.cpu.backend._INLINE_FLOPS", 0)
    A = frontal.problems.poisson2d(30)
    analysis = frontal.analyze(A, backend="cpu")
    no_threads(count)
    x = analysis.factorize(A).solve(np.ones(900))
    np.testing.assert_allclose(A @ x, 1, rtol=1e-12)


def test_threads_that_never_begin_are_not_waited_for(monkeypatch):
    """As those that find no memory for their first steps; who begins late has nothing to do."""
    late, did = [], []
    monkeypatch.setattr(_thread, "start_new_thread", lambda *given: late.append(given))
    monkeypatch.setattr("frontal.machine.thread_group._START_SECONDS", 0.01)
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "3")
    monkeypatch.setattr("frontal.cpu.backend._INLINE_FLOPS", 0)
    with threads.BackgroundTask(lambda: did.append(1)):
        assert did == [1]
    A = frontal.problems.poisson2d(30)
    x = frontal.solve(A, np.ones(900), backend="cpu")
    np.testing.assert_allclose(A @ x, 1, rtol=1e-12)
    assert len(late) > 1
    for run, given in late:
        run(*given)
    assert did == [1]


def test_parts_without_threads(monkeypatch, no_threads):
    monkeypatch.setattr(threads, "MIN_PARALLEL_ENTRIES", 10)
    monkeypatch.setattr(threads, "thread_count", lambda: 4)
    no_threads(0)
    found = threads.parallel_for(lambda first, last: (first, last), 1000)
    assert found == [(0, 250), (250, 500), (500, 750), (750, 1000)]
    with threads.BackgroundTask(lambda: 42) as work:
        assert work.result() == 42


def test_blas_is_not_called_without_room_for_it(monkeypatch):
    """OpenBLAS asks for its buffer again and again, for ever, where it gets none."""
    if not blas_limit._POOLS:
        pytest.skip("another BLAS")
    monkeypatch.setattr(blas_limit, "address_space", lambda: blas_limit._BUFFER)
    refused = pytest.raises(frontal.FactorMemoryError, match="address space")
    with blas_limit.single_threaded_blas(), refused:
        blas_limit.single_threaded_blas().__enter__()
    with blas_limit.single_threaded_blas():
        pass


def test_no_room_for_values_is_told_in_bytes(monkeypatch):
    A = frontal.problems.poisson2d(30)
    analysis = frontal.analyze(A, backend="cpu")
    monkeypatch.setattr("frontal.factor.analyzed.copied", lambda array: np.empty(1 << 50))
    with pytest.raises(FactorMemoryError, match=f"{2**23:.2f} GiB"):
        analysis.factorize(A)


def test_failed_allocation_of_a_factor_is_told_in_bytes(monkeypatch):
    A = frontal.problems.poisson2d(30)
    analysis = frontal.analyze(A, backend="cpu")
    monkeypatch.setattr(CpuBackend, "factorize", lambda *_, **__: np.empty(1 << 50))
    with pytest.raises(FactorMemoryError, match=f"{2**23:.2f} GiB"):
        analysis.factorize(A)


def test_what_failed_is_told_in_bytes():
    with pytest.raises(MemoryError) as caught:
        np.empty(1 << 50)
    error = FactorMemoryError.from_error(caught.value)
    assert error.required == 8 << 50
    assert error.available == pytest.approx(available_memory() or 0, rel=0.5)
    assert FactorMemoryError.from_error(error) is error
    assert FactorMemoryError.from_error(MemoryError()).required > 0
