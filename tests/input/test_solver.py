"""Solver: what is done again, and what is not, whoever calls."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.problems import convdiff2d, poisson2d

N = 144


def counts(solver):
    return solver.analyses, solver.factorizations, solver.solves


def assert_solved(A, x, b):
    np.testing.assert_allclose(A @ x, b, atol=1e-12)


@pytest.mark.parametrize("form", ["csc", "csr", "coo", "bsr", "dia", "lil"])
def test_only_what_has_changed_is_done_again(form):
    A, b = convdiff2d(12).asformat(form), np.arange(N) + 1.0
    solver = frontal.Solver()
    assert_solved(A, solver(A, b), b)
    assert_solved(A, solver(A.copy(), 2 * b), 2 * b)
    assert counts(solver) == (1, 1, 2)
    B = (3 * A).asformat(form)
    assert_solved(B, solver(B, b), b)
    assert_solved(B.T, solver(B, b, "T"), b)
    assert counts(solver) == (1, 2, 4)
    C = (A + sp.eye_array(N, k=5)).asformat(form)
    assert_solved(C, solver(C, b), b)
    assert counts(solver) == (2, 3, 5)
    x, info = solver(C, b, return_info=True)
    assert info.backward_error < 1e-15
    assert_solved(C, x, b)


def test_changes_in_place_are_seen():
    """One value, of one bit, of the very same object; or of its pattern alone."""
    A, b = convdiff2d(100).tocsc(), np.ones(10000)
    solver = frontal.Solver(backend="cpu")
    solver(A, b)
    for entry in (0, A.nnz // 2, A.nnz - 1):
        A.data[entry] = np.nextafter(A.data[entry], np.inf)
        solver(A, b)
    assert counts(solver) == (1, 4, 4)
    A.indices[-2] -= 1
    assert_solved(A, solver(A, b), b)
    assert counts(solver) == (2, 5, 5)


def test_types_are_told_apart_and_values_of_repeated_entries_summed():
    A = sp.coo_array(([1.0, 1.0, 4.0, 5.0], ([0, 0, 0, 1], [0, 0, 1, 1])), shape=(2, 2))
    solver, b = frontal.Solver(), np.ones(2)
    for B in (A, 2 * A, A.astype(np.float32), A.astype(complex)):
        assert_solved(B, solver(B, b), b)
    assert counts(solver) == (3, 4, 4)
    zero = -0.0 * A
    zero.data[:2], zero.data[3] = 1.0, 1.0
    assert_solved(zero, solver(zero, b), b)


def test_after_a_failure_the_analysis_is_kept():
    A, b = poisson2d(12), np.ones(N)
    solver = frontal.Solver(kind="spd")
    solver(A, b)
    for _ in range(2):
        with pytest.raises(frontal.NotPositiveDefiniteError):
            solver(-A, b)
    assert_solved(A, solver(A, b), b)
    assert counts(solver) == (1, 2, 2)
    broken = A.copy()
    broken.data[7] = np.nan
    with pytest.raises(frontal.NonFiniteInputError):
        solver(broken, b)
    with pytest.raises(ValueError, match="square"):
        solver(A[:3], b)
    with pytest.raises(ValueError, match="b must be"):
        solver(A, b[:3])
    solver.free()
    assert_solved(A, solver(A, b), b)
    assert counts(solver) == (2, 4, 3)


def test_choices_are_looked_at_and_kept():
    for wrong in ({"kind": "best"}, {"singular": "perhaps"}, {"precision": "low"}, {"memory": -1}):
        with pytest.raises(ValueError, match="choose"):
            frontal.Solver(**wrong)
    A, b = poisson2d(12), np.ones(N)
    solver = frontal.Solver("spd", triangle="lower", precision="mixed", backend="cpu")
    T = sp.tril(A, format="csr")
    assert_solved(A, solver(T, b), b)
    twin = pickle.loads(pickle.dumps(solver))
    assert_solved(2 * A, twin(2 * T, b), b)
    assert_solved(4 * A, twin(4 * T, b), b)
    assert (counts(solver), counts(twin)) == ((1, 1, 1), (1, 2, 2))


def test_threads_share_a_solver(monkeypatch):
    """Values that change while others solve leave the factor of the others alone."""
    A, b = convdiff2d(12), np.ones(N)
    solver, inside, go_on = frontal.Solver(), threading.Event(), threading.Event()
    solver(A, b)
    solve, found = frontal.Factor.solve, []

    def slow(factor, *arguments, **named):
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            go_on.wait(20)
        return solve(factor, *arguments, **named)

    monkeypatch.setattr(frontal.Factor, "solve", slow)
    thread = threading.Thread(target=lambda: found.append(solver(A, b)))
    thread.start()
    assert inside.wait(20)
    assert_solved(5 * A, solver(5 * A, b), b)
    go_on.set()
    thread.join()
    assert_solved(A, found[0], b)
    assert counts(solver) == (1, 2, 3)
    assert_solved(7 * A, solver(7 * A, b), b)
    assert counts(solver) == (1, 3, 4)


def test_refinement_of_a_solver_is_that_of_its_choice():
    A, b = convdiff2d(12), np.ones(N)
    for steps, refined in ((0, False), (None, True)):
        _, info = frontal.Solver(refine=steps, backend="cpu")(A, b, return_info=True)
        assert info.refined == refined
