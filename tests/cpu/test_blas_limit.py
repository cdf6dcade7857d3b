"""BLAS has one thread while ours call it and as many as before afterwards, whoever leaves last."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import frontal
from frontal import problems
from frontal.cpu import backend as cpu
from frontal.cpu import blas_limit, substitution
from frontal.cpu.blas_limit import SharedPool, single_threaded_blas
from frontal.machine.lockfree_property import cached_property

MANY = 3
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


@pytest.fixture
def pool():
    """The pool of SciPy's OpenBLAS, with more than one thread even on one core."""
    if not blas_limit._POOLS:
        pytest.skip("SciPy's BLAS has no thread pool of the process")
    pool = blas_limit._POOLS[0]
    before = pool.count()
    pool.choose(MANY)
    yield pool
    pool.choose(before)


class Pretended:
    """A number that takes `seconds` to be chosen; some calls are interrupted, early or late."""

    def __init__(self, seconds=0.0, early=(), late=()):
        self.number, self.calls = MANY, 0
        self.seconds, self.early, self.late = seconds, early, late

    def choose(self, number):
        self.calls += 1
        time.sleep(self.seconds)
        if self.calls in self.early:
            raise KeyboardInterrupt
        self.number = number
        if self.calls in self.late:
            raise KeyboardInterrupt


@pytest.fixture
def pretend(monkeypatch):
    def put(**how):
        blas = Pretended(**how)
        pool = SharedPool(lambda: blas.number, blas.choose)
        monkeypatch.setattr(blas_limit, "_POOLS", [pool])
        return blas

    return put


class Visit:
    """A thread that is inside from `Visit()` to `leave()`."""

    def __init__(self):
        self.inside, self.go = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        assert self.inside.wait(10)

    def run(self):
        with single_threaded_blas():
            self.inside.set()
            self.go.wait(10)

    def leave(self):
        self.go.set()
        self.thread.join()


def forked(action):
    """Run `action` in a forked process, killed after 5 seconds; return its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(5)
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_nested(pool):
    with single_threaded_blas():
        with single_threaded_blas():
            assert pool.count() == 1
        assert pool.count() == 1
    assert pool.count() == MANY


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)])
def test_threads_leave_in_any_order(pool, order):
    visits = [Visit() for _ in order]
    for left, i in enumerate(order):
        assert pool.count() == 1, left
        visits[i].leave()
    assert pool.count() == MANY


def test_limits_of_others_do_not_stand_in_the_way(pool):
    with threadpool_limits(MANY + 1, user_api="blas"):  # this thread alone may lift it
        before = pool.count()
        visit = Visit()
        assert pool.count() == 1
        visit.leave()
        assert pool.count() == before
    assert pool.count() == MANY


def test_a_number_chosen_meanwhile_stays(pool):
    with single_threaded_blas():
        pool.choose(2)
    assert pool.count() == 2


def test_after_solves_from_threads(monkeypatch, pool):
    monkeypatch.setattr(cpu, "_INLINE_FLOPS", 0)
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "2")
    A = problems.poisson2d(30)  # it has fronts that call BLAS
    x = np.arange(900.0)
    solutions, counts = [], []

    def spied(function):
        return lambda *arguments: [counts.append(pool.count()), function(*arguments)][1]

    for module, name in [(cpu, "run"), (substitution, "_substitute")]:
        monkeypatch.setattr(module, name, spied(getattr(module, name)))
    crew = [
        threading.Thread(target=lambda: solutions.append(frontal.solve(A, A @ x))) for _ in "abc"
    ]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert pool.count() == MANY
    assert counts == [1] * len(counts)
    assert len(counts) >= 3 * 4  # of each, two threads that factorize and two solutions
    assert np.abs(solutions[0] - x).max() < 1e-11
    assert all(np.array_equal(solutions[0], other) for other in solutions[1:])


def test_exceptions(pool):
    with pytest.raises(ZeroDivisionError), single_threaded_blas():
        assert 1 / 0
    assert pool.count() == MANY
    visitor = single_threaded_blas()
    visitor.__enter__()
    del visitor  # as by Ctrl-C before the body began
    gc.collect()
    assert pool.count() == MANY


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize("calls", [(1,), (2,), (1, 2)])
def test_interrupts_while_the_number_is_chosen(pretend, when, calls):
    blas = pretend(**{when: calls})
    with contextlib.suppress(KeyboardInterrupt), single_threaded_blas():
        assert blas.number == 1
    assert blas.number == MANY
    blas.early = blas.late = ()
    with single_threaded_blas():
        assert blas.number == 1
    assert blas.number == MANY


def test_libraries_with_a_number_for_each_thread(monkeypatch):
    class Library(threading.local):
        number = MANY

        def get_num_threads(self):
            return self.number

        def set_num_threads(self, number):
            self.number = number

    library, after = Library(), []
    monkeypatch.setattr(blas_limit, "_POOLS", [])
    monkeypatch.setattr(blas_limit, "_LIBRARIES", [library])

    def work(meet):
        with single_threaded_blas(), single_threaded_blas():
            after.append(library.number)
            meet.wait(10)
        after.append(library.number)

    meet = threading.Barrier(2)
    thread = threading.Thread(target=work, args=(meet,))
    thread.start()
    work(meet)
    thread.join()
    assert after == [1, 1, MANY, MANY]


def test_all_pools_are_found_where_that_of_scipy_cannot_be_told(monkeypatch):
    monkeypatch.setattr(blas_limit.cython_blas, "__file__", "nowhere")
    pools, libraries = blas_limit._find()
    loaded = [info for info in threadpool_info() if info["user_api"] == "blas"]
    own = [info for info in loaded if info.get("threading_layer") == "pthreads"]
    assert len(pools) == len(own)
    assert len(libraries) == len(loaded) - len(own)
    assert [pool.count() for pool in pools] == [info["num_threads"] for info in own]


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
class TestForks:
    def test_a_process_has_the_limits_of_its_own_thread(self, pool):
        visit = Visit()

        def alone():
            assert pool.count() == MANY
            with single_threaded_blas():
                assert pool.count() == 1
            assert pool.count() == MANY

        assert forked(alone) == 0
        with single_threaded_blas():
            visit.leave()
            assert forked(lambda: 1 // (pool.count() == 1)) == 0
            assert pool.count() == 1
        assert pool.count() == MANY

    def test_while_another_thread_is_entering(self, pretend):
        blas = pretend(seconds=0.1)
        thread = threading.Thread(target=lambda: single_threaded_blas().__enter__())
        thread.start()
        while not blas.calls:
            time.sleep(0.001)

        def enter():
            assert (blas.number, blas.calls) == (MANY, 2)  # not forked in the midst of a call
            Visit().leave()  # from another thread

        assert forked(enter) == 0
        thread.join()

    def test_while_another_thread_computes_a_property(self):
        begun = threading.Event()

        class Slow:
            @cached_property
            def value(self):
                begun.set()
                time.sleep(0.2)
                return 7

        thread = threading.Thread(target=lambda: Slow().value)
        thread.start()
        begun.wait()
        assert forked(lambda: 1 // (Slow().value == 7)) == 0
        thread.join()

    def test_while_another_thread_solves(self):
        A = problems.poisson2d(8)
        factor = frontal.factorize(A)
        expected = factor.solve(np.ones(64))
        factor.solve(np.ones(64))
        frontal.solve(A, np.ones(64))  # all is compiled: Numba's lock is no matter of this test
        stop = threading.Event()

        def work():
            while not stop.is_set():
                frontal.solve(A, np.ones(64))

        def solve():
            np.testing.assert_array_equal(factor.solve(np.ones(64)), expected)
            np.testing.assert_array_equal(frontal.solve(A, np.ones(64)), expected)

        thread = threading.Thread(target=work)
        thread.start()
        codes = [forked(solve) for _ in range(10)]
        stop.set()
        thread.join()
        assert codes == [0] * 10
