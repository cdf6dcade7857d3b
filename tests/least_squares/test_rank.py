"""Tests of least-squares problems of deficient rank, empty ones, and invalid input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.least_squares.augmented import FactorOptions
from frontal.least_squares.certificate import certify
from frontal.least_squares.rank import count_above
from frontal.least_squares.scaling import equilibrated, two_norm

from .problems import (
    dense_solution,
    random_block,
    refined_solution,
    sparse_random,
    with_singular_values,
)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(40, 25), (25, 40), (30, 30)])
@pytest.mark.parametrize("rank", [3, 20, 24])
def test_lstsq_deficient_rank_has_least_norm(dtype, shape, rank):
    A = with_singular_values(*shape, np.linspace(1, 4, rank), dtype)
    b = random_block((shape[0], 2), dtype)
    with pytest.warns(frontal.IllConditionedWarning, match=f"has rank {rank}"):
        x, info = frontal.lstsq(A, b, return_info=True)
    expected, _ = dense_solution(A, b)
    if np.finfo(dtype).eps > 1e-10:  # NumPy finds full rank in double
        U, s, V = np.linalg.svd(A.toarray().astype(complex), full_matrices=False)
        expected = V[:rank].conj().T @ ((U[:, :rank].conj().T @ b) / s[:rank, None])
    eps = np.finfo(dtype).eps
    assert info.rank == rank
    assert np.linalg.norm(x - expected) <= 2000 * eps * np.linalg.norm(expected)
    assert info.backward_error <= 20 * eps
    assert info.norm_error <= 1e-12
    assert info.condition is None


@pytest.mark.parametrize("kappa", [1e4, 1e5])
def test_lstsq_deficient_rank_ill_conditioned(kappa):
    A = with_singular_values(40, 25, np.geomspace(1, 1 / kappa, 20))
    b = random_block(40)
    x, info = frontal.lstsq(A, b, singular="allow", return_info=True)
    expected, rank = dense_solution(A, b)
    assert info.rank == rank == 20
    assert np.linalg.norm(x - expected) <= 1e-14 * kappa**2 * np.linalg.norm(expected)
    assert info.backward_error <= 1e-14


def test_lstsq_deficient_rank_without_gap_refused():
    A = with_singular_values(40, 25, np.r_[np.geomspace(1, 1e-12, 20), [1e-18] * 5])
    with pytest.raises(frontal.RankUncertainError, match="damp > 0") as caught:
        frontal.lstsq(A, random_block(40))
    assert 0 <= caught.value.lower <= 20
    assert caught.value.upper >= caught.value.lower
    b = random_block(40)
    x = frontal.lstsq(A, b, 1e-3)
    np.testing.assert_allclose(x, refined_solution(A, b, 1e-3), rtol=1e-8, atol=1e-8)


def test_lstsq_graph_incidence_has_rank_of_components():
    n = 60
    edges = np.array([(i, i + 1) for i in range(n - 1) if i != 30] + [(0, 5), (40, 59)])
    rows = np.arange(len(edges))
    A = sp.csc_array(
        (np.r_[np.ones(rows.size), -np.ones(rows.size)], (np.r_[rows, rows], edges.T.ravel()))
    )
    b = random_block(rows.size)
    x, info = frontal.lstsq(A, b, singular="allow", return_info=True)
    assert info.rank == n - 2
    np.testing.assert_allclose(x, dense_solution(A, b)[0], rtol=1e-10, atol=1e-11)
    assert abs(x[:31].sum()) <= 1e-11


@pytest.mark.parametrize("singular", ["warn", "raise", "allow"])
def test_lstsq_empty_rows_and_columns(singular):
    A = with_singular_values(20, 10, np.linspace(1, 2, 10)).tolil()
    A[[0, 7, 19]] = 0
    A[:, [2, 9]] = 0
    A = sp.csc_array(A)
    A.eliminate_zeros()
    b = random_block(20)
    if singular == "raise":
        with pytest.raises(frontal.SingularMatrixError, match="2 empty columns") as caught:
            frontal.lstsq(A, b, singular=singular)
        assert caught.value.rank == 8
        return
    with np.testing.suppress_warnings() as suppressed:
        record = suppressed.record(frontal.IllConditionedWarning)
        x, info = frontal.lstsq(A, b, singular=singular, return_info=True)
    assert len(record) == (singular == "warn")
    expected, rank = dense_solution(A, b)
    np.testing.assert_allclose(x, expected, rtol=1e-12, atol=1e-13)
    assert info.rank == rank == 8
    assert (x[[2, 9]] == 0).all()
    np.testing.assert_allclose(info.residual_norm, np.linalg.norm(b - A @ x), rtol=1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (3, 2)])
def test_lstsq_without_entries_is_zero(shape):
    A, b = sp.csc_array(shape), np.ones((shape[0], 2))
    x, info = frontal.lstsq(A, b, singular="allow", return_info=True)
    assert x.shape == (shape[1], 2)
    assert not x.any()
    assert info.rank == 0
    assert info.residual_norm == np.sqrt(shape[0])
    assert frontal.lstsq(A, b, 1.0).shape == x.shape


def test_lstsq_no_right_hand_side():
    A = sparse_random(6, 3, density=1)
    assert frontal.lstsq(A, np.ones((6, 0))).shape == (3, 0)
    assert not frontal.lstsq(A, np.zeros(6)).any()


@pytest.mark.parametrize("threshold", [0.5, 1e-3, 1e-7])
def test_count_above_equals_singular_values(threshold):
    values = np.geomspace(1, 1e-16, 25) * 0.9
    for dtype in (np.float64, np.complex128):
        B = with_singular_values(40, 25, values, dtype)
        count = int((values > threshold).sum())
        assert count_above(B, threshold, FactorOptions()) == count


def test_certificate_detects_wrong_solutions():
    A = with_singular_values(30, 20, np.linspace(1, 3, 20))
    b, x = random_block(30), frontal.lstsq(A, random_block(30))
    norm = two_norm(A)
    assert 2.5 <= norm <= 3
    wrong = np.stack([x, x + 1e-6, 0 * x], axis=1)
    B = np.stack([b] * 3, axis=1)
    r = B - A @ wrong
    errors = certify(A, norm, 0.0, wrong, B, B - A @ x[:, None])
    assert errors.backward_error[0] <= 1e-15
    assert 1e-9 <= errors.backward_error[1] <= 1e-5
    assert errors.backward_error[2] >= 1e-2
    assert 1e-9 <= errors.optimality[1] <= 1e-5
    itself = certify(A, norm, 0.0, wrong, B, r)
    np.testing.assert_array_less(1e-9, itself.backward_error[1:])
    np.testing.assert_allclose(errors.residual_norm, np.linalg.norm(r, axis=0))


def test_certificate_measures_the_rounded_solution():
    A = with_singular_values(30, 20, np.linspace(1, 3, 20), np.float32)
    _, info = frontal.lstsq(A, random_block(30, np.float32), return_info=True)
    assert 1e-10 <= info.optimality <= 1e-6
    assert 1e-10 <= info.backward_error <= 1e-6


def test_lstsq_inaccurate_factor_warns(monkeypatch):
    monkeypatch.setattr(
        "frontal.least_squares.augmented.AugmentedSystem.refined",
        lambda system, f, g: type("S", (), {"u": f, "v": g + 1.0, "steps": 0}),
    )
    A = with_singular_values(30, 20, np.linspace(1, 3, 20))
    with pytest.warns(frontal.IllConditionedWarning, match="may not be a minimizer"):
        frontal.lstsq(A, random_block(30))


def test_lstsq_searches_pivots_if_refinement_fails(monkeypatch):
    monkeypatch.setattr(
        "frontal.least_squares.augmented.AugmentedSystem.smallest_eigenvalue", lambda system: 1.0
    )
    A = with_singular_values(60, 40, np.geomspace(1, 1e-9, 40))
    x, info = frontal.lstsq(A, A @ np.ones(40), return_info=True)
    assert info.method == "ldlt"
    assert info.backward_error <= 1e-15
    assert np.linalg.norm(x - 1) <= 1e-5


def test_equilibrated_columns_have_equal_norms():
    A = sp.csc_array(
        sparse_random(30, 10, density=0.5) @ sp.diags_array(np.geomspace(1e-150, 1e150, 10))
    )
    B, D = equilibrated(A)
    norms = np.sqrt((abs(B) ** 2).sum(axis=0))
    assert norms.max() <= 2 * norms.min()
    np.testing.assert_array_equal((A @ sp.diags_array(D)).toarray(), B.toarray())
    assert (np.frexp(D)[0] == 0.5).all()


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"b": np.ones(4)}, ValueError, "A has 5 rows"),
        ({"b": np.full(5, np.nan)}, frontal.NonFiniteInputError, r"b\[0\]"),
        (
            {"A": sp.csc_array([[1.0], [np.inf], [0], [0], [1]])},
            frontal.NonFiniteInputError,
            r"A\[1",
        ),
        ({"damp": -1.0}, ValueError, "damp is -1.0"),
        ({"damp": np.nan}, ValueError, "damp"),
        ({"damp": 1j}, TypeError, "damp"),
        ({"singular": "maybe"}, ValueError, "singular is 'maybe'"),
        ({"backend": "tpu"}, ValueError, "backend"),
        ({"ordering": "alphabetic"}, ValueError, "ordering"),
        ({"A": sp.csc_array(np.ones((5, 1), np.longdouble))}, TypeError, "longdouble|float128"),
    ],
)
def test_lstsq_bad_input_raises(change, error, match):
    arguments = {"A": sparse_random(5, 3, density=1), "b": np.ones(5), **change}
    with pytest.raises(error, match=match):
        frontal.lstsq(**arguments)


@pytest.mark.parametrize("call", [frontal.factorize, frontal.analyze])
def test_square_solvers_name_lstsq(call):
    with pytest.raises(ValueError, match=r"must be square.*frontal\.lstsq"):
        call(sparse_random(5, 3))


def test_lstsq_overflow_raises():
    A = sp.csc_array(np.array([[1e-30], [0]], np.float32))
    with pytest.raises(frontal.SolutionOverflowError):
        frontal.lstsq(A, np.array([1e20, 1], np.float32))
