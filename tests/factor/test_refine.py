"""Refinement column by column: what a correction makes worse stays, the errors told are true."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from frontal.factor.refine import HostSystem, refine


def system(factors):
    """The identity, with a solver whose solutions are `factors[j]` times the right ones."""
    A = sp.csc_array(np.eye(6))
    return HostSystem.from_matrix(A, 1.0, lambda R: R * factors)


@pytest.mark.parametrize("steps", [None, 1, 3])
def test_each_column_keeps_its_best_solution(steps):
    B = np.random.default_rng(0).uniform(1, 2, (6, 4))
    X = B * [1 + 1e-6, 1 + 1e-6, 1.0, 1 + 1e-6]
    identity = system(np.array([1.0, -5.0, -5.0, 0.4]))  # right, wrong, wrong, half of it
    found, errors, taken = refine(identity, X.copy(), B, steps)
    np.testing.assert_array_equal(found[:, 1:3], X[:, 1:3])
    np.testing.assert_allclose(found[:, 0], B[:, 0], rtol=1e-15)
    assert 1 <= taken <= (5 if steps is None else steps)
    np.testing.assert_allclose(found[:, 3] / B[:, 3] - 1, 1e-6 * 0.6**taken, rtol=1e-6)
    left, size = np.abs(B - found), np.abs(found) + np.abs(B)
    largest = [M.max(axis=0) for M in (left, found, B)]
    np.testing.assert_allclose(errors.normwise, largest[0] / (largest[1] + largest[2]), rtol=1e-12)
    np.testing.assert_allclose(errors.componentwise, (left / size).max(axis=0), rtol=1e-12)
    assert errors.worst == errors.rowwise.max()


def test_nothing_is_done_to_good_solutions():
    B = np.ones((6, 2))
    found, errors, taken = refine(system(np.array([-5.0, -5.0])), B.copy(), B, None)
    assert taken == 0
    np.testing.assert_array_equal(found, B)
    assert not errors.normwise.any()


def test_norms_are_corrected_before_small_rows():
    """A first correction by a factor in single gains two digits of the norm, not of a small row."""
    B = np.array([[1.0], [1e-3]])
    left = iter([np.array([[1e-9], [1.1e-6]]), np.zeros((2, 1))])
    solver, single = lambda R: R - next(left), np.dtype(np.float32)
    identity = HostSystem.from_matrix(sp.csc_array(np.eye(2)), 1.0, solver, single)
    found, errors, taken = refine(identity, B - [[1e-4], [1e-6]], B, None)
    assert taken == 2
    assert errors.worst <= 4 * np.finfo(float).eps
    np.testing.assert_allclose(found, B, rtol=1e-15)
