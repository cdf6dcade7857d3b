"""Masked entries, integers that float64 cannot hold, and numbers of steps that are none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.matrix.exact import refuse_inexact

A = sp.csc_array(np.array([[4.0, 1.0, 0.0], [1.0, 5.0, 2.0], [0.0, 2.0, 6.0]]))
MASKED = np.ma.masked_invalid([1.0, np.nan, 3.0])
LARGE = np.array([1, 2**53 + 1, 3])
INTEGERS = sp.csc_array(np.array([[2**53 + 1, 0], [0, 1]]))
COLUMNS = np.ma.masked_invalid([[4.0, 1.0, 0.0], [1.0, np.nan, 2.0], [0.0, 2.0, 6.0]])

factor = pytest.fixture(scope="module")(lambda: frontal.factorize(A))
batch = pytest.fixture(scope="module")(lambda: frontal.factorize_batch(A, np.stack([A.data] * 2)))
SOLVES = {
    "solve": lambda b: frontal.solve(A, b),
    "Solver": lambda b: frontal.Solver()(A, b),
    "spsolve": lambda b: frontal.linalg.spsolve(A, b),
    "splu": lambda b: frontal.linalg.splu(A).solve(b),
    "factorized": lambda b: frontal.linalg.factorized(A)(b),
    "solve_batch": lambda b: frontal.solve_batch(A, A.data[None], b),
}
MATRICES = {
    "solve": lambda M: frontal.solve(M, np.ones(M.shape[0])),
    "analyze": lambda M: frontal.analyze(M),
    "factorize": lambda M: frontal.factorize(M),
    "Solver": lambda M: frontal.Solver()(M, np.ones(M.shape[0])),
    "spsolve": lambda M: frontal.linalg.spsolve(M, np.ones(M.shape[0])),
    "splu": lambda M: frontal.linalg.splu(M),
    "batch": lambda M: frontal.factorize_batch([M]),
}
right_hand_sides = pytest.mark.parametrize("solve", SOLVES.values(), ids=SOLVES)
matrices = pytest.mark.parametrize("use", MATRICES.values(), ids=MATRICES)


@right_hand_sides
def test_masked_b_is_refused(solve):
    with pytest.raises(
        ValueError, match=r"^b has 1 masked entry of 3, the first is b\[1\].*Try: b"
    ):
        solve(MASKED)


@right_hand_sides
def test_large_integers_in_b_are_refused(solve):
    with pytest.raises(ValueError, match=r"^b has the integer 9007199254740993, which float64"):
        solve(LARGE)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@matrices
def test_masked_matrix_is_refused(use):
    with pytest.raises(ValueError, match=r"^A has 1 masked entry of 9, the first is A\[1, 1\]"):
        use(COLUMNS)
    M = A.copy()
    M.data = np.ma.masked_equal(A.data, 5.0)
    with pytest.raises(
        ValueError, match=r"^A.data has 1 masked entry of 7, the first is A.data\[3"
    ):
        use(M)


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@matrices
def test_large_integers_in_a_matrix_are_refused(use):
    formats = [INTEGERS, INTEGERS.tocsr(), INTEGERS.tocoo(), INTEGERS.todia(), INTEGERS.toarray()]
    for M in (*formats, INTEGERS.astype(np.uint64)):
        with pytest.raises(ValueError, match=r"^A has the integer 9007199254740993, which float64"):
            use(M)


def test_factor_refuses_masked_and_large_values(factor, batch):
    values = np.ma.masked_equal(A.data, 5.0)
    for use in (factor.solve, lambda b: factor.solve(b, return_info=True), batch.solve):
        with pytest.raises(ValueError, match="masked"):
            use(MASKED)
        with pytest.raises(ValueError, match="integer"):
            use(LARGE)
    with pytest.raises(ValueError, match=r"b\[1\] has 1 masked"):
        batch.solve([np.ones(3), MASKED])
    for use in (factor.refactorize, lambda v: batch.refactorize(np.ma.stack([v, v]))):
        with pytest.raises(ValueError, match="masked"):
            use(values)
    large = A.data.astype(np.int64) * (2**53 + 1)
    for use in (factor.refactorize, lambda v: batch.refactorize(np.stack([v, v]))):
        with pytest.raises(ValueError, match="integer"):
            use(large)
    with pytest.raises(ValueError, match="masked"):
        frontal.factorize_batch(A, np.ma.stack([values, values]))
    np.testing.assert_allclose(A @ factor.solve(np.ones(3)), 1)  # it is as before
    np.testing.assert_allclose(batch.solve(np.ones(3)) @ A, 1)


def test_exact_integers_and_empty_masks_pass(factor):
    x = frontal.solve(sp.csc_array(np.diag([1.0, 4.0, 16.0])), np.array([1, 2**60, 16]))
    assert x.tolist() == [1, 2**58, 1]
    np.testing.assert_allclose(A @ factor.solve(np.ma.array([1.0, 2.0, 3.0])), [1, 2, 3])
    x = frontal.solve(sp.csc_array(np.diag([2**53, 2**62])), [2**53, 2**62])
    np.testing.assert_allclose(x, 1)
    for values in ([2**63 - 1], [-(2**63) + 1]):
        with pytest.raises(ValueError, match=str(values[0])):
            refuse_inexact(np.array(values), "b")
    refuse_inexact(np.array([-(2**63), 0]), "b")
    refuse_inexact(np.array([2**63], np.uint64), "b")


REFINED = {
    "solve": lambda steps: frontal.solve(A, np.ones(3), refine=steps),
    "Solver": lambda steps: frontal.Solver(refine=steps),
    "factor": lambda steps: frontal.factorize(A).solve(np.ones(3), refine=steps),
    "operator": lambda steps: frontal.factorize(A).as_linear_operator(refine=steps),
}


@pytest.mark.parametrize("use", REFINED.values(), ids=REFINED)
def test_refine_that_is_no_number_of_steps_is_refused(use):
    with pytest.raises(ValueError, match=r"refine is -1, .* not negative. Try: refine=None"):
        use(-1)
    for steps in (2.0, "3", True):
        with pytest.raises(TypeError, match=f"refine is {steps!r}, a {type(steps).__name__}"):
            use(steps)
    for steps in (None, 0, 2, np.int64(1)):
        use(steps)
