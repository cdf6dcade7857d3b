"""Batches of sparse systems: each as if it were alone, whatever becomes of the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.batch.per_system import pivot_ratios
from frontal.errors import BatchError, NonFiniteInputError, PerformanceWarning
from frontal.machine.resources import CPU
from frontal.numeric.method import LDLH, LDLT
from frontal.problems import convdiff2d

from ..matrices import grid_matrices, scaled_values, with_phases, with_values

CASES = grid_matrices(9)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param].tocsc()


@pytest.mark.filterwarnings("error::frontal.errors.PerformanceWarning")
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("spd", "d"), ("general", "d"), ("symmetric", "d"), ("general", "f"), ("hermitian", "F")],
)
def test_solutions_are_those_of_each_system(kind, dtype):
    case = CASES["symmetric" if kind == "hermitian" else kind].tocsc()
    if kind == "hermitian":
        case = with_phases(case, complex)
    values = scaled_values(case, 7).astype(dtype)
    factors = frontal.factorize_batch(case.astype(dtype), values, backend="cpu")
    assert (factors.status == 0).all()
    assert (factors.perturbed == 0).all()
    assert len(factors) == 7
    b = np.random.default_rng(1).standard_normal((7, 81, 3)).astype(dtype)
    for trans in "NTH":
        x, info = factors.solve(b, trans, return_info=True)
        assert x.shape == b.shape
        assert x.dtype == b.dtype
        assert (info.backward_error < 4 * np.finfo(dtype).eps).all()
        for i in range(7):
            A = with_values(case, values[i])
            A = {"N": A, "T": A.T, "H": A.conj().T}[trans]
            scale = abs(A).max() * abs(x[i]).max()
            assert abs(A @ x[i] - b[i]).max() < 100 * np.finfo(dtype).eps * scale
    alone = [factors[i].slogdet() for i in range(7)]
    sign, value = factors.slogdet()
    np.testing.assert_allclose(sign, [one[0] for one in alone], rtol=1e-5)
    np.testing.assert_allclose(value, [one[1] for one in alone], rtol=1e-5)


def test_bits_do_not_depend_on_place_size_or_mask(case):
    values, b = scaled_values(case, 33), np.random.default_rng(1).standard_normal((33, 81))
    whole = frontal.factorize_batch(case, values, backend="cpu")
    x = whole.solve(b)
    turn = np.random.default_rng(2).permutation(33)
    assert np.array_equal(frontal.solve_batch(case, values[turn], b[turn], backend="cpu"), x[turn])
    for i in (0, 17):
        one = frontal.factorize_batch(case, values[i : i + 1], backend="cpu")
        assert np.array_equal(one.solve(b[i : i + 1])[0], x[i])
    mask = np.arange(33) % 3 == 0
    other = frontal.factorize_batch(
        case, np.where(mask[:, None], 2 * values[:1], values), backend="cpu"
    )
    other.refactorize(np.where(mask[:, None], values, np.nan), where=mask)
    assert np.array_equal(other.solve(b), x)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_bad_systems_harm_no_other(case, threads, monkeypatch):
    monkeypatch.setenv("FRONTAL_NUM_THREADS", threads)
    few = replace(CPU, least_flops=0.0)
    monkeypatch.setattr("frontal.batch.factorize.CPU", few)
    values, b = scaled_values(case, 20), np.ones(81)
    x = frontal.solve_batch(case, values, b, backend="cpu")
    bad = values.copy()
    bad[3, 17] = np.nan
    bad[8] = 0
    column = case.indices == 40
    column[case.indptr[40] : case.indptr[41]] = True
    bad[12, column] = 0  # column and row 40 are zero
    with pytest.raises(BatchError, match="3 of 20") as error:
        frontal.factorize_batch(case, bad, backend="cpu")
    assert error.value.indices.tolist() == [3, 8, 12]
    assert error.value.columns[2] == 40
    factors = error.value.result
    assert np.flatnonzero(factors.status).tolist() == [3, 8, 12]
    found, good = factors.solve(b), factors.status == 0
    assert np.array_equal(found[good], x[good])
    assert np.isnan(found[~good]).all()
    assert np.isnan(factors.logdet()[~good]).all()
    with pytest.raises(np.linalg.LinAlgError):
        factors[8]
    factors.refactorize(values, where=~good)
    assert np.array_equal(factors.solve(b), x)


def test_indefinite_systems_are_redone_or_refused():
    A = CASES["spd"].tocsc()
    values = scaled_values(A, 6)
    values[4] = (A - 2.7 * sp.eye_array(81)).tocsc().data
    with pytest.warns(PerformanceWarning, match="1 of 6"):
        factors = frontal.factorize_batch(A, values, backend="cpu")
    assert factors[4].analysis.method == "ldlt"
    assert factors.status[4] == 0
    x = factors.solve(np.ones(81))
    assert abs(with_values(A, values[4]) @ x[4] - 1).max() < 1e-12
    with pytest.raises(BatchError) as error:
        frontal.factorize_batch(A, values, kind="spd", backend="cpu")
    assert error.value.indices.tolist() == [4]


def test_ill_conditioned_systems_are_warned_of_as_ever():
    """Pivots of 1, and an inverse with entries of 2^48."""
    n = 50
    A = sp.csc_array(np.triu(np.full((n, n), -1.0), 1) + np.eye(n))
    diagonal = A.indices == np.repeat(np.arange(n), np.diff(A.indptr))
    good, b = A.data + 99 * diagonal, A @ np.ones(n)
    with pytest.warns(frontal.IllConditionedWarning):
        frontal.factorize(A).solve(b)
    factors = frontal.factorize_batch(with_values(A, good), np.stack([good, A.data]), backend="cpu")
    with (
        pytest.warns(PerformanceWarning, match="1 of 2"),
        pytest.warns(frontal.IllConditionedWarning),
    ):
        factors.solve(b)


@pytest.mark.filterwarnings("error")
def test_solution_of_own_condition_passes():
    """The inverse has entries of 2^48, which this right-hand side does not meet."""
    n = 50
    A = sp.csc_array(np.triu(np.full((n, n), -1.0), 1) + np.eye(n))
    factors = frontal.factorize_batch(A, np.stack([A.data, A.data]), kind="general", backend="cpu")
    b = np.eye(n)[0]
    x, info = factors.solve(b, return_info=True)
    np.testing.assert_array_equal(x, np.stack([b, b]))
    assert (info.condition < 10).all()


def test_unsymmetric_entry_beside_a_penalty_is_redone():
    D = 4 * np.eye(9) + np.eye(9, k=1) + np.eye(9, k=-1)
    D[4, 4] = 1e17
    A = sp.csc_array(D)
    values = np.stack([A.data] * 2)
    values[1, A.indptr[4]] = 0.5
    with pytest.warns(PerformanceWarning, match="1 of 2"):
        factors = frontal.factorize_batch(A, values, backend="cpu")
    for x, one in zip(factors.solve(np.ones(9)), values, strict=True):
        np.testing.assert_allclose(with_values(A, one) @ x, 1, rtol=1e-14)


def test_weak_pivots_are_refined_or_redone():
    """Pivots that the common order does not suit give solutions as accurate as any."""
    A = convdiff2d(9).tocsc()
    values = scaled_values(A, 12)
    diagonal = A.indices == np.repeat(np.arange(81), np.diff(A.indptr))
    values[5, diagonal] *= 1e-9
    with pytest.warns(PerformanceWarning, match="of 12"):
        factors = frontal.factorize_batch(A, values, backend="cpu")
    _x, info = factors.solve(np.ones(81), return_info=True)
    assert (info.backward_error < 1e-15).all()


def test_shapes_of_right_hand_sides():
    A = CASES["general"].tocsc()
    factors = frontal.factorize_batch(A, scaled_values(A, 4), backend="cpu")
    b = np.random.default_rng(0).standard_normal((4, 81, 17))
    x = factors.solve(b)
    for k in (0, 1, 2):
        assert np.allclose(factors.solve(b[:, :, :k]), x[:, :, :k], rtol=1e-10)
    assert np.allclose(factors.solve(b[:, :, 0]), x[:, :, 0])
    assert np.allclose(factors.solve(b[2])[2], x[2])
    assert np.allclose(factors.solve(b[2, :, 1])[2], x[2, :, 1])
    assert np.allclose(factors.solve(1j * b), 1j * x)
    for wrong in (b[:3], b[:, :80], b[0, :80]):
        with pytest.raises(ValueError, match="b has shape"):
            factors.solve(wrong)
    b[1, 7, 2] = np.inf
    with pytest.raises(NonFiniteInputError, match=r"b\[1, 7, 2\]"):
        factors.solve(b)


def test_values_are_in_the_order_of_the_matrix():
    A = CASES["general"].tocsc()
    values = scaled_values(A, 3)
    rows = A.tocsr()
    turned = np.stack([with_values(A, v).tocsr().data for v in values])
    x = frontal.solve_batch(A, values, np.ones(81), backend="cpu")
    assert np.array_equal(frontal.solve_batch(rows, turned, np.ones(81), backend="cpu"), x)
    strided = np.asfortranarray(values)
    assert np.array_equal(frontal.solve_batch(A, strided, np.ones(81), backend="cpu"), x)
    with pytest.raises(ValueError, match="values has shape"):
        frontal.factorize_batch(A, values.T, backend="cpu")
    factors = frontal.factorize_batch(A, values, backend="cpu")
    with pytest.raises(TypeError, match="complex128"):
        factors.refactorize(1j * values)
    assert np.array_equal(factors.solve(np.ones(81)), x)


def test_patterns_of_their_own():
    """Matrices of many sizes; equal patterns are analyzed once."""
    A, B = CASES["spd"].tocsc(), convdiff2d(5).tocsr()
    one = sp.csc_array(np.array([[2.0]]))
    given = [A, B, one, with_values(A, 3 * A.data), B * 2, one, A]
    factors = frontal.factorize_batch(given, backend="cpu")
    assert "3 patterns" in repr(factors)
    x = factors.solve([M @ np.full(M.shape[0], 2.0) for M in given])
    assert all(np.allclose(each, 2) for each in x)
    assert factors.solve([np.ones((M.shape[0], 2)) for M in given])[1].shape == (25, 2)
    factors.refactorize([2 * M.data for M in given], where=np.arange(7) != 1)
    x = factors.solve([M @ np.full(M.shape[0], 2.0) for M in given])
    assert [round(float(each[0])) for each in x] == [1, 2, 1, 1, 1, 1, 1]
    with pytest.raises(ValueError, match="list"):
        factors.solve(np.ones(81))


def test_a_pattern_without_regular_matrices_harms_no_other():
    given = [CASES["spd"], sp.csc_array(np.diag([1.0, 0.0, 1.0])), convdiff2d(5)]
    b = [M @ np.ones(M.shape[0]) for M in given]
    with pytest.raises(BatchError) as error:
        frontal.factorize_batch(given, backend="cpu")
    assert error.value.indices.tolist() == [1]
    x = error.value.result.solve(b)
    assert [bool(np.allclose(one, 1)) for one in x] == [True, False, True]
    assert np.isnan(x[1]).all()
    with pytest.raises(frontal.SingularMatrixError):
        error.value.result[1]


def test_empty_batches_and_empty_matrices():
    A = CASES["spd"].tocsc()
    factors = frontal.factorize_batch(A, np.empty((0, A.nnz)), backend="cpu")
    assert len(factors) == 0
    assert factors.solve(np.ones(81)).shape == (0, 81)
    assert frontal.factorize_batch([], backend="cpu").solve([]) == []
    empty = sp.csc_array((0, 0))
    assert frontal.factorize_batch(empty, np.empty((3, 0))).solve(np.ones((3, 0))).shape == (3, 0)


def test_square_b_of_n_systems_has_one_row_each():
    """Of (batch, n) and (n, k) the first is meant where both fit."""
    A, b = convdiff2d(3).tocsc(), np.random.default_rng(0).standard_normal((9, 9))
    values = scaled_values(A, 9)
    x = frontal.factorize_batch(A, values, backend="cpu").solve(b)
    for v, one, right in zip(values, x, b, strict=True):
        np.testing.assert_allclose(with_values(A, v) @ one, right, atol=1e-12)


def test_square_b_for_a_group_of_n_systems_has_columns():
    """Five matrices of order 4, four of one pattern: b (4, 4) has no axis of systems."""
    A = sp.csc_array(np.diag([2.0, 3.0, 4.0, 5.0]))
    B = sp.csc_array(A + sp.eye_array(4, k=1))
    given, b = [A, B, 2 * A, 3 * A, 4 * A], np.arange(16.0).reshape(4, 4)
    x = frontal.factorize_batch(given, backend="cpu").solve(b)
    assert x.shape == (5, 4, 4)
    for M, one in zip(given, x, strict=True):
        np.testing.assert_allclose(M @ one, b, atol=1e-14)


def test_failures_outside_the_mask_are_not_raised():
    A = CASES["general"].tocsc()
    values, bad = scaled_values(A, 3), scaled_values(A, 3)
    bad[1, A.indptr[7]] = np.nan  # a row above the diagonal
    row = int(A.indices[A.indptr[7]])
    assert row != 7
    with pytest.raises(BatchError) as error:
        frontal.factorize_batch(A, bad, backend="cpu")
    assert error.value.columns.tolist() == [7]
    factors = error.value.result
    assert factors.refactorize(values, where=[True, False, True]) is factors
    assert factors.status.tolist() == [0, 8, 0]
    with pytest.raises(BatchError, match="1 of 3"):
        factors.refactorize(bad, where=[False, True, True])


def test_system_that_went_alone_comes_back():
    A = CASES["spd"].tocsc()
    values, other = scaled_values(A, 3), scaled_values(A, 3)
    other[1] = (A - 2.7 * sp.eye_array(81)).tocsc().data
    with pytest.warns(PerformanceWarning, match="1 of 3"):
        factors = frontal.factorize_batch(A, other, backend="cpu")
    b = np.random.default_rng(0).standard_normal((3, 81))
    x = factors.solve(b)
    np.testing.assert_allclose(with_values(A, other[1]) @ x[1], b[1], atol=1e-12)
    factors.refactorize(values)
    np.testing.assert_allclose(with_values(A, values[1]) @ factors.solve(b)[1], b[1], atol=1e-12)
    assert factors[1].analysis.method == "cholesky"


def test_scalar_types_of_a_list_stay_apart():
    A = CASES["general"].tocsc()
    factors = frontal.factorize_batch([A.astype("f4"), A], backend="cpu")
    x = factors.solve([np.ones(81, "f4"), np.ones(81)])
    assert [one.dtype for one in x] == [np.float32, np.float64]


def test_pivot_ratio_of_hermitian_blocks_is_that_of_moduli():
    """A block [[1, -2i], [2i, 1]] has the determinant -3, a symmetric one with 2i has 5."""
    diagonal, coupling = np.ones((1, 3), "c16"), np.array([[2j, 0, 0]])
    ratios = [pivot_ratios(method, diagonal, coupling)[0] for method in (LDLH, LDLT)]
    np.testing.assert_allclose(ratios, [1 / 1.5, 1 / 2.5], rtol=1e-15)


def test_condition_numbers_are_those_of_the_last_values():
    A, b = sp.csc_array(sp.eye_array(20) + sp.eye_array(20, k=1)), np.ones(20)
    columns = np.repeat(np.arange(20), np.diff(A.indptr))
    values = np.stack([np.where(A.indices == columns, 1.0, -t) for t in (0.25, 0.9)])
    factors = frontal.factorize_batch(A, values, backend="cpu")
    conditions = []
    for given in (values, values[::-1]):
        factors.refactorize(given.copy())
        conditions.append(factors.solve(b, return_info=True)[1].condition)
    assert conditions[0][1] > 3 * conditions[0][0]
    np.testing.assert_array_equal(conditions[1], conditions[0][::-1])
