"""Messages name the right cause, and advise only what helps with this matrix."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import frontal
from frontal import errors, problems
from frontal.factor import state

SIZES = {"f4": 5, "c8": 5, "f8": 12, "c16": 12}  # of Hilbert matrices that are ill-conditioned


def hilbert(dtype):
    """Return an ill-conditioned matrix and a right-hand side."""
    n = SIZES[dtype]
    return scipy.linalg.hilbert(n).astype(dtype), np.ones(n, dtype)


def messages(A, b, kind="auto"):
    """Return the messages of a solve, warnings and an error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            frontal.solve(sp.csc_array(A), b, kind=kind)
        except frontal.FrontalError as error:
            return [str(error)]
    return [str(w.message) for w in caught]


@pytest.mark.parametrize(("dtype", "wider"), [("f4", "float64"), ("c8", "complex128")])
def test_single_precision_is_advised_to_use_double(dtype, wider):
    (text,) = messages(*hilbert(dtype))
    assert f"use {wider}" in text


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_double_precision_is_not_advised_to_use_double(dtype):
    (text,) = messages(*hilbert(dtype))
    assert "float64" not in text
    assert "complex128" not in text
    assert "Try: " in text


def test_numerical_advice_depends_on_the_dtype():
    of = errors.SingularMatrixError.numerical
    ending = "Try: fix one unknown of each free motion, remove dependent equations"
    assert str(of(3, dtype="float64")).endswith(f"{ending} or scale the matrix")
    assert str(of(3, dtype="float32")).endswith(f"{ending}, scale the matrix or use float64")
    assert "float64" not in str(errors.SolutionOverflowError("complex128"))
    assert str(errors.SolutionOverflowError("complex64")).endswith("or use complex128")


def test_columns_are_listed_in_english():
    A = sp.csc_array(sp.eye_array(60) - 2 * sp.eye_array(60, k=1))
    (text,) = messages(A, A @ np.ones(60), "general")
    assert "combination of columns has its largest weights in columns 0, 1, 2 and 3. Try: " in text
    error = errors.SingularMatrixError.of_rank(9, np.array([8, 7, 2]))
    assert "its rank is 6 of 9, and columns 8, 7 and 2 are linear combinations" in str(error)
    error = errors.SingularMatrixError.of_rank(9, np.array([4]))
    assert "column 4 is a linear combination of the others" in str(error)


def test_indefinite_matrix_is_advised_to_use_ldl():
    with pytest.raises(frontal.NotPositiveDefiniteError) as caught:
        frontal.solve(sp.csc_array([[1.0, 2.0], [2.0, 1.0]]), np.ones(2), kind="spd")
    assert "Try: kind='symmetric'" in str(caught.value)
    assert "LU" not in str(caught.value)


def test_factor_in_use_by_a_refactorize_says_so(monkeypatch):
    """What another thread sees meanwhile."""
    A = problems.poisson2d(6)
    factor, seen, true = frontal.factorize(A), [], state.factorize

    def interrupted(*args, **options):
        with pytest.raises(frontal.FactorInvalidError) as caught:
            factor.solve(np.ones(36))
        seen.extend((caught.value.state, str(caught.value), repr(factor)))
        return true(*args, **options)

    monkeypatch.setattr(state, "factorize", interrupted)
    factor.refactorize(2 * A.data)
    assert seen[0] == "running"
    assert seen[1].startswith("the factor is being refactorized by another thread")
    assert "the last refactorize" not in seen[1]
    assert seen[2].endswith("being refactorized>")
    assert repr(factor).endswith("amd>")


def test_failed_refactorize_says_so():
    A = problems.poisson2d(6)
    factor = frontal.factorize(A)
    with pytest.raises(frontal.SingularMatrixError):
        factor.refactorize(A - sp.diags_array(A.sum(axis=1)))
    with pytest.raises(frontal.FactorInvalidError, match="the last refactorize failed") as caught:
        factor.solve(np.ones(36))
    assert caught.value.state == "failed"


def test_invalid_factor_of_unknown_history_claims_nothing():
    text = str(errors.FactorInvalidError())
    assert "has not completed" in text
    assert "(a) another thread is refactorizing it, (b) the new values could not be" in text


# --- stored zeros ----------------------------------------------------------------------------

UNSYMMETRIC = sp.csc_array(np.array([[4.0, -3, 0], [1, 5, 2], [0, 7, 6]]))
SYMMETRIC = sp.csc_array(np.array([[4.0, 1, 0], [1, -5, 2], [0, 2, 6]]))


def zeros(A):
    """Return a matrix of this pattern whose stored entries are zero."""
    Z = A.copy()
    Z.data[:] = 0
    return Z


@pytest.mark.parametrize(
    ("A", "kind"), [(UNSYMMETRIC, "general"), (SYMMETRIC, "symmetric"), (SYMMETRIC, "auto")]
)
def test_stored_zeros_are_analyzed_as_a_pattern(A, kind):
    """Values may come later."""
    factor = frontal.analyze(zeros(A), kind=kind).factorize(A)
    np.testing.assert_allclose(A @ factor.solve(np.ones(3)), 1)


@pytest.mark.parametrize(("A", "kind"), [(UNSYMMETRIC, "general"), (SYMMETRIC, "symmetric")])
def test_stored_zeros_are_no_structural_singularity(A, kind):
    Z = A.copy()
    Z.data[Z.indptr[1] : Z.indptr[2]] = 0  # a column
    with pytest.raises(frontal.SingularMatrixError) as caught:
        frontal.solve(zeros(A), np.ones(3), kind=kind)
    text = str(caught.value)
    assert "structurally singular" not in text
    assert "because of stored zeros" in text
    assert "its nonzero entries have rank 0 of 3 at most" in text
    with pytest.raises(frontal.SingularMatrixError) as caught:
        frontal.solve(Z if kind == "general" else zeros(A), np.ones(3), kind=kind)
    assert caught.value.rank == (2 if kind == "general" else 0)


def test_pattern_without_a_matching_is_structurally_singular():
    A = sp.csc_array((np.ones(4), [0, 0, 0, 1], [0, 1, 2, 4]), shape=(3, 3))
    A.data[3] = 0  # stored, and counts for the pattern
    for use in (frontal.analyze, frontal.factorize):
        with pytest.raises(frontal.SingularMatrixError, match="its pattern has rank 2 of 3"):
            use(A)


def test_batch_of_a_pattern_of_zeros_is_factorized():
    """The first matrix of a list has no values yet; the others are regular."""
    factors = frontal.factorize_batch([zeros(UNSYMMETRIC), UNSYMMETRIC], check=False)
    assert factors.status.tolist()[1] == 0
    x = factors.solve([np.ones(3), np.ones(3)])[1]
    np.testing.assert_allclose(UNSYMMETRIC @ x, 1)
