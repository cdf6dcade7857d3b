"""Entries of A, b and x near the largest and smallest numbers: no wrong refusal, no infinity."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device
from frontal import problems
from frontal.factor import extreme_scales
from frontal.factor.refine import BackwardErrors
from frontal.numeric.acceptance import limits_of
from frontal.symbolic.scaling import equilibrate, extreme, scaled

pytestmark = pytest.mark.filterwarnings("error")

N = 36
GRID = sp.csc_array(problems.poisson2d(6))
WIND = sp.csc_array(problems.convdiff2d(6))
X = np.sin(np.arange(1.0, N + 1))
KINDS = ["spd", "general"]
MATRIX = {"spd": GRID, "general": WIND}


def powers(low, high, seed=0):
    """Powers of two: products with them are exact."""
    return 2.0 ** np.random.default_rng(seed).integers(low, high, N)


def diag(d):
    return sp.diags_array(np.asarray(d, float), format="csc")


def graded(name):
    """A matrix with entries from 1e-300 to 1e300, and a right-hand side with the solution X / d."""
    e = np.resize([2.0**-498, 2.0**498, 1.0, 2.0**-250], N)
    if name == "diagonal":
        return diag(e * e), X * e * e / 4, np.full(N, 4.0)
    if name == "definite":
        return diag(e) @ GRID @ diag(e), (GRID @ X) * e, e
    if name == "general":
        f = powers(-498, 498)
        return diag(e) @ WIND @ diag(f), (WIND @ X) * e, f
    if name == "rows":
        return diag(e * e) @ WIND, (WIND @ X) * e * e, np.ones(N)
    return WIND @ diag(e * e), WIND @ X, e * e


@pytest.mark.parametrize("name", ["diagonal", "definite", "general", "rows", "columns"])
@pytest.mark.parametrize("trans", ["N", "T"])
def test_entries_of_all_magnitudes(name, trans):
    A, b, d = graded(name)
    A = sp.csc_array(A.T) if trans == "T" else sp.csc_array(A)
    for kind in KINDS if name in ("diagonal", "definite") else ["general"]:
        x, info = frontal.factorize(A, kind=kind).solve(b, trans, return_info=True)
        np.testing.assert_allclose(x * d, X, rtol=1e-10)
        assert info.perturbed_pivots == 0
        assert info.backward_error <= 1e-15
        assert info.componentwise_error <= 1e-12


@pytest.mark.parametrize(("dtype", "bits"), [("f4", 18), ("f8", 40), ("f8", 300)])
def test_rows_and_columns_of_different_size(dtype, bits):
    """Equilibrated by rows first, the diagonal would be full of tiny pivots."""
    e, f = powers(-bits, bits, 1), powers(-bits, bits, 2)
    A = sp.csc_array(diag(e) @ WIND @ diag(f)).astype(dtype)
    x, info = frontal.factorize(A).solve((A.astype(float) @ (X / f)), return_info=True)
    np.testing.assert_allclose(x * f, X, rtol=1e-11)
    assert info.perturbed_pivots == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [1e-60, 1e-30, 1e30, 1e60, 1e300, 1e-300])
def test_right_hand_sides_outside_the_type_of_the_factor(kind, scale):
    A = MATRIX[kind].astype(np.float32)
    b = A.astype(float) @ X
    factor = frontal.factorize(A, kind=kind)
    B = np.column_stack([b, b * scale, np.zeros(N), -b * scale * (1 + 2j)])
    x, info = factor.solve(B, return_info=True)
    assert info.backward_error <= 1e-15
    for column, wanted in zip(x.T, (X, scale * X, 0 * X, -scale * (1 + 2j) * X), strict=True):
        np.testing.assert_allclose(column, wanted, rtol=1e-12)
    np.testing.assert_allclose(factor.solve(b * scale, refine=0), scale * X, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_right_hand_sides_near_the_largest_number(kind, dtype):
    """|A| |x| + |b| overflows, and so do sums of a row of A x."""
    A = (MATRIX[kind] * 4).astype(dtype)
    largest = np.finfo(dtype).max
    b = np.full(N, largest, dtype)
    b[::2] *= -1 if dtype[0] == "f" else 1j
    b = b if dtype[0] == "f" else b * (1 + 1j) / 1.01
    assert np.isfinite(b).all()
    x, info = frontal.factorize(A, kind=kind).solve(b, return_info=True)
    wanted = np.linalg.solve(A.toarray().astype("c16"), b / np.float64(2.0**64))
    np.testing.assert_allclose(x / np.float64(2.0**64), wanted, rtol=2e3 * np.finfo(dtype).eps)
    assert info.backward_error <= 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16"])
@pytest.mark.parametrize("end", ["tiny", "max"])
def test_sums_of_a_row_that_overflow_and_entries_that_underflow(kind, dtype, end):
    info = np.finfo(dtype)
    size = {"tiny": float(info.tiny), "max": float(info.max) / 4.5}[end]
    A = (MATRIX[kind] * (4 / MATRIX[kind].max()) * size).astype(dtype)
    y = (1 + 0.5 * X) / 4
    b = (A @ y.astype(dtype)).astype(dtype)
    x, told = frontal.factorize(A, kind=kind).solve(b, return_info=True)
    np.testing.assert_allclose(x, y, rtol=1e3 * info.eps)
    assert told.backward_error <= 4 * info.eps


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("refine", [None, 0])
def test_solutions_that_are_no_numbers(kind, refine):
    factor = frontal.factorize(MATRIX[kind] * 1e-200, kind=kind)
    with pytest.raises(frontal.SolutionOverflowError, match="too large for float64"):
        factor.solve(np.column_stack([X, 1e200 * X]), refine=refine)
    small = frontal.factorize(MATRIX[kind].astype("f4") * np.float32(1e-30), kind=kind)
    with pytest.raises(OverflowError, match="float32"):
        small.solve(np.full(N, 1e20, "f4"), refine=refine)
    assert small.solve(np.full(N, 1e20)).max() > 1e50


@pytest.mark.parametrize("kind", KINDS)
def test_solutions_that_underflow_are_not_called_singular(kind):
    factor = frontal.factorize(MATRIX[kind] * 1e200, kind=kind)
    with pytest.warns(frontal.IllConditionedWarning, match="so small that float64") as caught:
        x, info = factor.solve(np.full(N, 1e-200), return_info=True)
    assert len(caught) == 1
    assert not x.any()
    assert info.backward_error == 1
    x = factor.solve(MATRIX[kind] @ X * 1e-100)  # 1e-300 is a number still
    np.testing.assert_allclose(x * 1e300, X, rtol=1e-12)


def test_errors_of_solutions_that_have_few_digits():
    """What a condition number is estimated of is next to nothing there, and so was the error."""
    with pytest.warns(frontal.IllConditionedWarning, match="so small that float64"):
        x, info = frontal.solve(diag([1e160, 1e160]), np.full(2, 1.2345e-160), return_info=True)
    lost = abs(x[0] * 1e300 / 1.2345e-20 - 1)
    assert 1e-6 < lost <= 3 * info.forward_error < 1e-3
    assert lost <= 3 * info.backward_error


def test_an_inverse_beyond_the_numbers_is_not_called_ill_conditioned():
    """Zeros on the diagonal, tiny columns: the estimates use variables of moderate size."""
    d = np.resize([2.0**-1000, 1.0, 2.0**900], 6)
    A = sp.csc_array(np.kron(np.eye(3), [[1.0, 1.0], [1.0, 1.0 + 1e-12]])) @ diag(d)
    factor = frontal.factorize(A, kind="general")
    x = factor.solve(A @ (1 / d))
    np.testing.assert_allclose(x * d, 1, rtol=1e-2)
    assert factor._numbers.factor.scaling.column.max() > 2.0**960


def test_singular_matrices_stay_singular():
    A = GRID - sp.diags_array(GRID.sum(axis=1))
    for scale in (1e-290, 1.0, 1e300):
        with pytest.raises(frontal.SingularMatrixError):
            frontal.factorize(A * scale, kind="general")


def test_columns_away_from_the_borders_are_left_alone(monkeypatch):
    def fails(*_):
        pytest.fail("a column far from the borders")

    monkeypatch.setattr(extreme_scales, "_solve_scaled", fails)
    for kind in KINDS:
        for dtype, sizes in (("f4", (1e-12, 1e20)), ("f8", (1e-250, 1e250))):
            for size in sizes:
                A = MATRIX[kind].astype(dtype)
                assert np.isfinite(frontal.factorize(A, kind=kind).solve(size * X)).all()


def test_what_is_near_a_border():
    def near(rhs, solution, norm, residual=0.0, factor="f4", vectors="f8"):
        parts = [np.array([float(a)]) for a in (residual, solution, rhs)]
        errors = BackwardErrors(*parts, norm, parts[0], parts[0])
        return errors.near_border(limits_of(np.dtype(factor), np.dtype(vectors)))[0]

    assert not near(1, 1, 1)
    assert near(1e30, 1, 1)
    assert near(1e-30, 1, 1)
    assert near(1, 0, 1)
    assert near(1, 1, np.inf)
    assert near(1, 1, 1, np.nan)
    assert near(1, np.nan, 1)
    assert not near(0, 0, 1)
    assert near(1e20, 1e20, 1e20, vectors="f4")
    assert not near(1e20, 1e20, 1e20)
    assert not near(1e200, 1e-200, 1e200, factor="f8")
    assert near(1e295, 1e295, 1e10, factor="f8")


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_equilibration_at_the_borders(dtype):
    """Products of a row's and a column's factor overflow; a modulus does."""
    row, column = np.full(N, 2.0**-1020), np.full(N, 2.0**1000)
    data = (WIND.data * 2.0**1015).astype(dtype)
    row[1::2] = 2.0**1010
    data[WIND.indices % 2 == 1] *= 2.0**-1000
    data[WIND.indices % 2 == 1] *= 2.0**-1000
    if dtype == "c16":
        data[:3] = (1 + 1j) * np.finfo(float).max
    of = WIND.indptr, WIND.indices, data
    for begin in ((), (row, column)):
        r, c = equilibrate(*of, *begin)
        assert np.isfinite([r, c, 1 / r, 1 / c]).all()
        assert (np.frexp([r, c])[0] == 0.5).all()
        values = np.abs(scaled(*of, r, c))
        assert 0.5 <= values.max() <= 3
        largest = np.zeros(N)
        np.maximum.at(largest, WIND.indices, values)
        assert largest.min() >= 0.1
    assert extreme(row, column)
    assert not extreme(column, np.ones(N))


def test_ordinary_scalings_are_as_before():
    data = WIND.data * np.random.default_rng(0).uniform(0.01, 100, WIND.nnz)
    data[::3] *= 2.0**-30
    data[WIND.indices == 5] *= 2.0**-20
    data[np.flatnonzero(WIND.indices == 5)[:2]] = 0  # stored zeros are no entries
    r, c = equilibrate(WIND.indptr, WIND.indices, data)
    A = abs(sp.csc_array((data, WIND.indices, WIND.indptr)).toarray())
    np.testing.assert_array_equal(r, 2.0 ** -np.round(np.log2(A.max(1))))
    np.testing.assert_array_equal(c, 2.0 ** -np.round(np.log2((r[:, None] * A).max(0))))
    found = scaled(WIND.indptr, WIND.indices, data, r, c)
    place = np.repeat(np.arange(N), np.diff(WIND.indptr))
    np.testing.assert_array_equal(found, r[WIND.indices] * data * c[place])


@pytest.mark.parametrize("kind", KINDS)
def test_on_the_device(device, kind, monkeypatch):
    """Columns near a border are solved around the sweeps; the others stay as they are."""
    monkeypatch.setattr(frontal.gpu.runtime.device, "device_of", lambda array=None: device)
    A = MATRIX[kind].astype("f4")
    b = A.astype(float) @ X
    factor = frontal.factorize(A, kind=kind, backend="gpu")
    x = factor.solve(np.column_stack([b, 1e60 * b, 1e-60 * b]))
    np.testing.assert_allclose(x, np.outer(X, [1, 1e60, 1e-60]), rtol=1e-12)
    A, b, d = graded("definite" if kind == "spd" else "columns")
    factor = frontal.factorize(sp.csc_array(A), kind=kind, backend="gpu")
    np.testing.assert_allclose(factor.solve(b) * d, X, rtol=1e-12)
    factor.refactorize(sp.csc_array(4 * A))
    np.testing.assert_allclose(factor.solve(b) * d, X / 4, rtol=1e-12)
