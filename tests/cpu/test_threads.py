"""Threads: same bits, progress, Ctrl-C, solves at once."""

from __future__ import annotations

import _thread
import threading

import numpy as np
import pytest

import frontal
from frontal import problems
from frontal.backend import choose
from frontal.compile import tile_queue
from frontal.compile.jit import jit
from frontal.cpu import backend as cpu
from frontal.machine.resources import thread_count
from frontal.ordering.dissection import levels
from frontal.ordering.dissection.graph import Weighted
from frontal.ordering.graph import adjacency


@pytest.fixture
def always_threads(monkeypatch):
    monkeypatch.setattr(cpu, "_INLINE_FLOPS", 0)


@pytest.mark.parametrize(
    "problem",
    [problems.poisson3d(17), problems.convdiff3d(13)],
    ids=["cholesky", "lu"],
)
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, always_threads, problem):
    b = np.cos(np.arange(problem.shape[0]))
    analysis = frontal.analyze(problem)
    solutions = []
    for threads in (1, 2, 3):
        monkeypatch.setenv("FRONTAL_NUM_THREADS", str(threads))
        choose._engines.pop(analysis, None)
        factor = analysis.factorize(problem)
        solutions.append((factor.solve(b), factor.L.data))
    for x, L in solutions[1:]:
        assert np.array_equal(x, solutions[0][0])
        assert np.array_equal(L, solutions[0][1])


def test_progress_ends_at_the_number_of_fronts(always_threads):
    calls = []
    A = problems.poisson2d(40)
    analysis = frontal.analyze(A, progress=lambda *call: calls.append(call))
    analysis.factorize(A, progress=lambda *call: calls.append(call))
    phases = {phase for phase, _, _ in calls}
    assert {"ordering", "symbolic", "plan", "factorization"} <= phases
    assert calls[-1] == ("factorization", analysis.n_fronts, analysis.n_fronts)


def test_interrupt_keeps_the_analysis(always_threads, interruptible):
    A = problems.poisson2d(40)
    analysis = frontal.analyze(A)

    def interrupt(phase, done, total):
        _thread.interrupt_main()

    with pytest.raises(KeyboardInterrupt):
        analysis.factorize(A, progress=interrupt)
    x = np.ones(1600)
    assert np.allclose(analysis.factorize(A).solve(A @ x), x)


def test_thread_count(monkeypatch):
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "3")
    assert thread_count() == 3
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="'many'"):
        thread_count()
    monkeypatch.delenv("FRONTAL_NUM_THREADS")
    assert thread_count() >= 1


def test_a_tile_is_claimed_once():
    assert claims_around_a_phase(tile_queue.closed_state()) == [[], [0, 1, 2], []]


def test_no_tile_is_claimed_of_a_phase_that_is_being_opened():
    graph, weights = adjacency(problems.poisson2d(8)), np.ones(64, np.int32)
    state = levels._shared(Weighted(graph.indptr, graph.indices, graph.indices, weights), 3).state
    state[tile_queue.TILES] = 3  # the leader writes this first
    assert claims(state, np.zeros(8, np.int64)) == 0
    assert state[tile_queue.WORD] == tile_queue.CLOSED
    assert claims_around_a_phase(state) == [[], [0, 1, 2], []]


@jit
def claims(state, out):
    count = 0
    while True:
        tile = tile_queue.claim(state)
        if tile < 0:
            return count
        out[count] = tile
        count += 1


def claims_around_a_phase(state):
    @jit
    def opened(state):
        tile_queue.open_phase(state, np.int64(1), np.int64(0), np.int64(0), np.int64(3))

    out = np.zeros(8, np.int64)
    before = out[: claims(state, out)].tolist()
    opened(state)
    during = out[: claims(state, out)].tolist()
    after = out[: claims(state, out)].tolist()
    return [before, during, after]


def test_solves_from_many_threads_at_once():
    A = problems.poisson2d(30)
    factor = frontal.factorize(A)
    b = np.random.default_rng(0).standard_normal((900, 8))
    expected = factor.solve(b)
    results = [None] * 8

    def work(j):
        results[j] = factor.solve(b[:, j])

    crew = [threading.Thread(target=work, args=(j,)) for j in range(8)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    assert np.allclose(np.array(results).T, expected, rtol=1e-12)
