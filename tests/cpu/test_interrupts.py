"""Ctrl-C at any instruction: no thread is at work afterwards, and the next factor is a fresh one.

A trace function raises `KeyboardInterrupt` once, before a chosen instruction of the package: any
one of the modules about threads, and elsewhere one before which CPython handles signals. A timer
raises it several times, also while threads are waited for.
"""

from __future__ import annotations

import _thread
import contextlib
import dis
import itertools
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import frontal
from frontal import problems
from frontal.cpu import backend as cpu
from frontal.cpu import threads as team_threads
from frontal.machine import thread_group, threads
from frontal.machine.thread_group import Job, ThreadGroup, run_each, run_with_threads
from frontal.ordering.dissection import dissect, team

PACKAGE = str(Path(frontal.__file__).parent)
THREADS = {module.__file__ for module in (thread_group, team_threads)}
SECONDS = 5.0  # limit for orderings that were stopped


class Moments:
    """Counts instructions of the package, and raises `KeyboardInterrupt` before a chosen one."""

    def __init__(self, chosen: int = -1) -> None:
        self.count, self._chosen = 0, chosen

    def __call__(self, frame, event, _):
        file = frame.f_code.co_filename
        if not file.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        code, anywhere, before = frame.f_code.co_code, file in THREADS, "RESUME"

        def local(frame, event, _):
            nonlocal before
            if event == "opcode":
                last, before = before, dis.opname[code[frame.f_lasti]]
                if anywhere or last.startswith("CALL") or before.startswith("JUMP_B"):
                    self.count += 1
                    if self.count == self._chosen:
                        raise KeyboardInterrupt
            return local

        return local


def traced(call, chosen=-1):
    """Call under a trace; return the number of moments, and whether it was interrupted."""
    moments = Moments(chosen)
    before = sys.gettrace()
    try:
        sys.settrace(moments)
        call()
    except KeyboardInterrupt:
        return moments.count, True
    finally:
        sys.settrace(before)
    return moments.count, False


@pytest.fixture
def groups(monkeypatch):
    """Threads for the smallest problems, which are slow, and the groups that they are in."""
    made, start, run = [], ThreadGroup.start, cpu.run

    def noted(group, job):
        made.append(group)
        return start(group, job)

    def slow(*given):
        time.sleep(1e-3)
        return run(*given)

    monkeypatch.setenv("FRONTAL_NUM_THREADS", "3")
    monkeypatch.setattr(ThreadGroup, "start", noted)
    monkeypatch.setattr(cpu, "run", slow)
    monkeypatch.setattr(cpu, "_INLINE_FLOPS", 0)
    monkeypatch.setattr(threads, "MIN_PARALLEL_ENTRIES", 64)
    monkeypatch.setattr(dissect, "MIN_EDGES_PER_THREAD", 64)
    monkeypatch.setattr(dissect, "MAX_SERIAL_NODES", 64)
    monkeypatch.setattr(team, "MIN_RANGE_EDGES", 64)
    return made


def numbers(factor, b):
    """A method and the bits of a factor."""
    return factor.info["method"], factor.logdet(), factor.solve(b, refine=0).tobytes()


def moments_of(call, number, seed=1):
    """Instructions of a call that has run before, at equal distances from a random one."""
    call()
    traced(call)  # CPython 3.12 tells instructions from the second trace on
    count, _ = traced(call)
    first = np.random.default_rng(seed).uniform()
    return sorted({int((first + k) * count / number) + 1 for k in range(number)})


def spd():
    A = problems.poisson2d(12)
    return A, np.cos(np.arange(144.0)), frontal.analyze(A, backend="cpu")


@pytest.mark.parametrize(
    ("name", "number"), [("refactorize", 200), ("factorize", 140), ("solve", 20)]
)
def test_refactorize_after_an_interrupt_equals_fresh(groups, name, number):
    A, b, analysis = spd()
    fresh, factor = numbers(analysis.factorize(A), b), analysis.factorize(A)
    call = {
        "refactorize": lambda: factor.refactorize(A * 2),
        "factorize": lambda: analysis.factorize(A * 2),
        "solve": lambda: factor.solve(b),
    }[name]
    interrupted = 0
    for moment in moments_of(call, number):
        factor.refactorize(A)
        groups.clear()
        interrupted += traced(call, moment)[1]
        assert not any(group.active for group in groups), moment
        factor.refactorize(A)
        assert numbers(factor, b) == fresh, moment
    assert interrupted > number // 2


@pytest.mark.parametrize("ordering", ["dissection", "layers"])
def test_analyze_after_an_interrupt_equals_fresh(groups, ordering):
    A = problems.poisson2d(30)
    fresh = frontal.analyze(A, backend="cpu", ordering=ordering)

    def call():
        frontal.analyze(A, backend="cpu", ordering=ordering)

    interrupted = 0
    for moment in moments_of(call, 50):
        groups.clear()
        interrupted += traced(call, moment)[1]
        assert all_end(groups), moment
        again = frontal.analyze(A, backend="cpu", ordering=ordering)
        assert np.array_equal(again.perm, fresh.perm), moment
        assert np.array_equal(again.plan.start, fresh.plan.start), moment
    assert interrupted > 25


def all_end(groups):
    """Wait for threads that only write to arrays of their own."""
    end = time.monotonic() + SECONDS
    while any(group.active for group in groups) and time.monotonic() < end:
        time.sleep(1e-4)
    return not any(group.active for group in groups)


def test_batch_after_an_interrupt_equals_fresh(groups):
    A, b, _ = spd()
    matrices = [A, A * 2, A * 3]

    def call():
        return frontal.factorize_batch(matrices, backend="cpu").solve([b, b, b])

    fresh = np.array(call())
    for moment in moments_of(call, 12):
        groups.clear()
        traced(call, moment)
        assert not any(group.active for group in groups), moment
        assert np.array_equal(call(), fresh), moment


class Alarm:
    """Raises `KeyboardInterrupt` in the main thread, several times at short distances."""

    def __init__(self) -> None:
        self.left = 0
        self._before = signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, _, frame):
        while frame and frame.f_code.co_name != "unraisable_hook":  # where pytest must not fail
            frame = frame.f_back
        if self.left and not frame:
            self.left -= 1
            raise KeyboardInterrupt

    def ring(self, seconds, times):
        self.left = times
        signal.setitimer(signal.ITIMER_REAL, seconds, 2e-4)

    def silence(self):
        while True:  # a last signal may come here
            try:
                self.left = 0
                signal.setitimer(signal.ITIMER_REAL, 0)
                return
            except KeyboardInterrupt:
                continue

    def restore(self):
        signal.signal(signal.SIGALRM, self._before)


@pytest.fixture
def alarm():
    if not hasattr(signal, "setitimer"):
        pytest.skip("no timers")
    alarm = Alarm()
    yield alarm
    alarm.silence()
    alarm.restore()


def interrupted_by(alarm, call, seconds, times):
    """Call until a timer interrupts; then no further interrupt comes."""
    try:
        try:
            while True:
                alarm.ring(seconds, times)
                last = time.monotonic() + 2
                while time.monotonic() < last:  # Python discards an interrupt of a finalizer
                    call()
        finally:
            alarm.silence()
    except KeyboardInterrupt:
        alarm.silence()


@pytest.mark.parametrize("times", [1, 5])
def test_refactorize_after_signals_equals_fresh(groups, alarm, times):
    A, b, analysis = spd()
    fresh, factor = numbers(analysis.factorize(A), b), analysis.factorize(A)
    rng = np.random.default_rng(times)
    for k in range(40):
        groups.clear()
        interrupted_by(alarm, lambda: factor.refactorize(A * 2), rng.uniform(1e-3, 1.2e-2), times)
        assert not any(group.active for group in groups), k
        factor.refactorize(A)
        assert numbers(factor, b) == fresh, k


def test_run_with_threads_waits_through_signals(alarm):
    """All but the first signal come while the thread is waited for."""
    for _ in range(5):
        ended = []

        def work(ended=ended):
            time.sleep(0.03)
            ended.append(True)

        def body(group, work=work):
            group.begin(work)
            while True:
                time.sleep(1)

        with contextlib.suppress(KeyboardInterrupt):
            interrupted_by(alarm, lambda body=body: run_with_threads(body), 1e-2, 50)
        assert ended == [True]


def interrupted_anywhere(call):
    """Call with a slow work, interrupted at each moment; it is over, or has never begun."""
    for moment in itertools.count(1):
        states = []

        def work(states=states):
            states.append("begun")
            time.sleep(2e-3)
            states.append("over")

        count, interrupted = traced(lambda work=work: call(work), moment)
        assert states in ([], ["begun", "over"]) or not interrupted, moment
        if count < moment:
            return
        time.sleep(1e-3)
        assert states in ([], ["begun", "over"]), moment


def test_run_with_threads_interrupted_twice_waits():
    def call(work):
        def body(group):
            group.begin(work)
            raise KeyboardInterrupt

        run_with_threads(body)

    interrupted_anywhere(call)


def test_ahead_interrupted_while_it_begins_is_over():
    interrupted_anywhere(threads.BackgroundTask)


def test_a_closed_group_runs_no_job():
    group = ThreadGroup()
    group.end()
    job = Job(lambda: 42)
    group._run(job)
    assert not job.over.is_set
    assert job.run()
    assert job.result() == 42


def test_begin_with_a_late_thread_cancels_its_call(monkeypatch):
    """The caller makes the call itself then, as that of a team's leader."""
    late, did = [], []
    monkeypatch.setattr(_thread, "start_new_thread", lambda *given: late.append(given))
    monkeypatch.setattr(thread_group, "_START_SECONDS", 0.01)
    assert ThreadGroup().begin(lambda: did.append(1)) is None
    (run, given), *none = late
    run(*given)
    assert (did, none) == ([], [])


def test_run_each_without_threads_runs_all(monkeypatch):
    monkeypatch.setattr(ThreadGroup, "start", lambda *_: False)
    assert run_each([lambda k=k: k for k in range(4)]) == [0, 1, 2, 3]


def test_job_result_is_not_there_in_time():
    with pytest.raises(TimeoutError):
        Job(lambda: 42).result(0.01)
