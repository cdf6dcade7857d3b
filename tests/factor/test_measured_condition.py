"""Condition numbers by the factors alone, where pivots are small, if a solution proves them."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.factor.condition import hides
from frontal.factor.factor_condition import factor_condition
from frontal.factor.measured_condition import measured_condition


def bordered(gap, kind):
    """A matrix whose last pivot is `gap`, and its condition number about 4 / gap."""
    P = frontal.problems.poisson2d(9).toarray()
    P += np.diag(np.full(80, 0.05), 1) if kind == "general" else 0
    column, n = np.linalg.solve(P, np.eye(81)[:, 40]), 82
    A = np.zeros((n, n))
    A[:81, :81], A[40, 81], A[81, 40], A[81, 81] = P, 1, 1, column[40] + gap
    return sp.csc_array(A)


def factor_of(A, kind):
    options = {"kind": kind, "ordering": "natural", "backend": "cpu", "singular": "allow"}
    return frontal.factorize(A, **options)._numbers.factor


KINDS = ["symmetric", "general"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_that_of_the_matrix(kind):
    A = bordered(1e-9, kind)
    factor = factor_of(A, kind)
    assert hides(factor)
    M = A.toarray()
    wanted = (np.abs(np.linalg.inv(M)) @ np.abs(M).sum(axis=1)).max()
    found = measured_condition(factor)
    assert 0.3 * wanted <= found.value <= 1.1 * wanted
    refined = factor_condition(factor, "N", np.dtype("f8"), False)
    assert found.value == pytest.approx(refined.value, rel=1e-3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gap", [1e-13, 0.0])
def test_it_is_left_to_others_near_singularity(gap, kind):
    assert measured_condition(factor_of(bordered(gap, kind), kind)) is None


@pytest.mark.parametrize("change", [1e-13, 1e-9])
def test_inaccurate_factors_prove_nothing(change):
    """Factors of A + E hide its condition number, if E is large in a row that the norm ignores."""
    rows = np.where(np.arange(82) == 40, 1e-7, 1.0)
    factor = factor_of(sp.csc_array(sp.diags_array(rows) @ bordered(1e-9, "general")), "general")
    matrix = factor.matrix
    matrix.data[matrix.indices == 40] *= 1 + change * np.arange(np.sum(matrix.indices == 40))
    found = measured_condition(factor)
    assert (found is None) == (change > 1e-10)
