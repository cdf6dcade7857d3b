"""Input and refusals of updates, and solutions with A + C D^H by Woodbury's formula."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.errors import IllConditionedWarning

pytestmark = pytest.mark.filterwarnings("error::frontal.errors.IllConditionedWarning")

MATRICES = {
    "cholesky": lambda: problems.poisson2d(9),
    "ldlt": lambda: problems.helmholtz2d(9),
    "lu": lambda: problems.convdiff2d(9),
}


def springs(n):
    C = np.zeros((n, 2))
    C[[3, 4], 0], C[7, 1] = (1, -1), 2
    return C


@pytest.mark.parametrize(
    "convert",
    [
        np.asarray,
        np.asfortranarray,
        lambda C: np.repeat(C, 2, axis=0)[::2],
        lambda C: C.astype(int),
        lambda C: C.astype("f4"),
        sp.csc_array,
        sp.csr_matrix,
        sp.coo_array,
        sp.lil_array,
        lambda C: sp.csc_array(
            (np.array([1.0, 0, -1, 2, 0]), [3, 50, 4, 7, 0], [0, 3, 5]), C.shape
        ),
        lambda C: sp.coo_array(([0.25, -1, 2, 0.75], ([3, 4, 7, 3], [0, 0, 1, 0])), shape=C.shape),
    ],
)
def test_update_takes_any_form_of_columns(convert):
    A = problems.poisson2d(9)
    C = springs(81)
    expected = A.toarray() + C @ C.T
    factor = frontal.factorize(A).update(convert(C))
    assert np.allclose(factor.A.toarray(), expected, rtol=1e-15)
    assert np.allclose(factor.solve(expected @ np.ones(81)), 1, rtol=1e-12)
    one = frontal.factorize(A).update(convert(C)[:, [0]] if convert is sp.lil_array else C[:, 0])
    assert np.allclose(one.A.toarray(), A.toarray() + np.outer(C[:, 0], C[:, 0]))


def test_repeated_entries_of_sparse_columns_are_summed():
    A = problems.poisson2d(9)
    C = sp.csc_array((np.array([1.0, 2, -3, 1]), [3, 3, 4, 4], [0, 4]), shape=(81, 1))
    factor = frontal.factorize(A).update(C)
    c = C.toarray()
    assert np.allclose(factor.A.toarray(), A.toarray() + c @ c.T)
    assert np.allclose(factor.solve(A @ np.ones(81) + c[:, 0] * c.sum()), 1)


def test_columns_of_zeros_change_nothing():
    factor = frontal.factorize(problems.poisson2d(9))
    for C in (np.zeros(81), np.zeros((81, 0)), sp.csc_array((81, 3))):
        assert factor.update(C).downdate(C).version == 0


def test_entry_outside_of_the_pattern_is_named():
    factor = frontal.factorize(problems.poisson2d(9))
    panels = factor._numbers.factor.panels.copy()
    c = np.zeros(81)
    c[[3, 4, 60]] = 1
    with pytest.raises(ValueError, match=r"entry \(60, 3\).*solve_plus.*explicit zeros"):
        factor.update(c)
    assert np.array_equal(factor._numbers.factor.panels, panels)
    assert factor.version == 0


def test_stored_zeros_of_the_pattern_are_enough():
    A = problems.poisson2d(9).tolil()
    A = sp.csc_array(A)
    extra = sp.coo_array(([0.0, 0.0], ([60, 3], [3, 60])), shape=A.shape).tocsc()
    full = sp.csc_array(
        (np.r_[A.tocoo().data, extra.data], np.c_[A.tocoo().coords, extra.tocoo().coords])
    )
    factor, c = frontal.factorize(full, kind="spd"), np.zeros(81)
    c[[3, 60]] = 1, -1
    x = factor.update(c).solve(np.ones(81))
    assert np.allclose(A @ x + c * (c @ x), 1)


@pytest.mark.parametrize(
    ("C", "error"),
    [
        (np.ones(80), ValueError),
        (np.ones((81, 1, 1)), ValueError),
        (np.full(81, np.nan), frontal.NonFiniteInputError),
        (np.full((81, 2), np.inf), frontal.NonFiniteInputError),
        (1j * np.ones(81), TypeError),
        (np.ones(81, object), TypeError),
        (np.ma.masked_equal(np.ones(81), 1), ValueError),
        ("springs", ValueError),
    ],
)
def test_bad_columns_are_refused(C, error):
    factor = frontal.factorize(problems.poisson2d(9))
    for method in (factor.update, factor.downdate):
        with pytest.raises(error):
            method(C)
    assert factor.version == 0
    assert np.allclose(factor.A @ factor.solve(np.ones(81)), 1)


def test_overflow_of_new_values_is_refused():
    factor, c = frontal.factorize(problems.poisson2d(9)), np.zeros(81)
    c[3] = 1e200
    with pytest.raises(frontal.NonFiniteInputError):
        factor.update(c)
    assert np.allclose(factor.A @ factor.solve(np.ones(81)), 1)


def test_other_factors_refuse_updates_with_the_remedy():
    spd = problems.poisson2d(9)
    singular = sp.csc_array(spd - sp.diags_array(np.asarray(spd.sum(axis=1)).ravel()))
    factors = [
        frontal.factorize(MATRICES["ldlt"]()),
        frontal.factorize(MATRICES["lu"]()),
        frontal.factorize(spd, precision="mixed"),
        frontal.factorize(singular, singular="allow"),
        frontal.factorize(spd + sp.eye_array(81, k=1), kind="general"),
    ]
    for factor in factors:
        with pytest.raises(ValueError, match=r"solve_plus.*refactorize"):
            factor.update(springs(81))
    freed = frontal.factorize(spd)
    freed.free()
    with pytest.raises(frontal.FactorFreedError):
        freed.update(springs(81))


@pytest.mark.parametrize("method", MATRICES)
@pytest.mark.parametrize("sign", [1, -1])
def test_solve_plus_solves_the_changed_system(method, sign):
    A, rng = sp.csc_array(MATRICES[method]()), np.random.default_rng(0)
    factor, n = frontal.factorize(A), 81
    assert factor.info["method"] == method
    for C, D in (
        (0.1 * rng.standard_normal((n, 3)), None),
        (sp.random_array((n, 4), density=0.05, rng=rng), None),
        (rng.standard_normal(n), 0.01 * rng.standard_normal(n)),
        (1j * springs(n), springs(n)),
    ):
        c, d = (
            x.toarray() if sp.issparse(x) else x.reshape(n, -1) for x in (C, C if D is None else D)
        )
        M = A.toarray() + sign * c @ d.conj().T
        for b in (rng.standard_normal(n), rng.standard_normal((n, 2)) + 1j):
            x, info = factor.solve_plus(b, C, sign, D=D, return_info=True)
            scale = np.abs(M).sum(axis=1).max() * np.abs(x).max() + np.abs(b).max()
            assert x.shape == b.shape
            assert np.abs(M @ x - b).max() <= 16 * np.finfo("f8").eps * scale
            assert info.backward_error <= 4 * np.finfo("f8").eps
            exact = np.abs(x - np.linalg.solve(M, b)).max() / np.abs(x).max()
            assert exact <= 10 * max(info.forward_error, np.finfo("f8").eps)
    assert factor.version == 0


@pytest.mark.parametrize("dtype", ["f4", "c8"])
def test_solve_plus_has_the_precision_of_its_arguments(dtype):
    A, C = problems.poisson2d(9).astype(dtype), springs(81).astype(dtype)
    factor, b = frontal.factorize(A), np.ones(81, dtype)
    x = factor.solve_plus(b, C)
    assert x.dtype == dtype
    assert np.abs(A @ x + C @ (C.T @ x) - b).max() <= 100 * np.finfo(dtype).eps * np.abs(x).max()
    assert (
        factor.solve_plus(b, C.astype(np.result_type(dtype, "f8"))).dtype.itemsize
        > x.dtype.itemsize
    )


def test_solve_plus_refines_factors_in_single_precision():
    A, C = problems.poisson2d(9), springs(81)
    x, info = frontal.factorize(A, precision="mixed").solve_plus(np.ones(81), C, return_info=True)
    assert info.refinement_steps > 0
    assert np.abs(A @ x + C @ (C.T @ x) - 1).max() <= 1e-14
    with pytest.raises(ValueError, match="refine=0"):
        frontal.factorize(A, precision="mixed").solve_plus(np.ones(81), C, refine=0)


def test_singular_change_is_refused_and_a_nearly_singular_one_warns():
    A, c = sp.csc_array(problems.poisson2d(9)), np.zeros(81)
    factor = frontal.factorize(A)
    c[7] = 1 / np.sqrt(factor.diag_inv()[7])
    with pytest.raises(frontal.SingularMatrixError, match=r"A - C D\^H is singular") as caught:
        factor.solve_plus(np.ones(81), c, -1)
    assert caught.value.column is not None
    with pytest.warns(IllConditionedWarning, match="nearly singular"):
        factor.solve_plus(np.ones(81), (1 - 1e-14) * c, -1)
    with pytest.raises(frontal.SingularMatrixError):
        frontal.factorize(sp.csc_array([[1.0]])).solve_plus([1.0], [1.0], -1)


def test_woodbury_by_an_ill_conditioned_matrix_is_refined():
    """A is nearly singular and A + c c^T is not: the formula alone loses half of the digits."""
    n = 50
    A = sp.diags_array(
        [-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]
    ).tolil()
    A[0, 0] = A[n - 1, n - 1] = 1 + 1e-10
    A, c = sp.csc_array(A), np.zeros(n)
    c[0] = 1
    M = A.toarray() + np.outer(c, c)
    b = np.random.default_rng(0).standard_normal(n)
    x, info = frontal.factorize(A, kind="spd").solve_plus(b, c, return_info=True)
    assert np.abs(x - np.linalg.solve(M, b)).max() <= 1e-11 * np.abs(x).max()
    assert info.backward_error <= 1e-15
    assert info.condition < 1e5


def test_bad_arguments_of_solve_plus_are_refused():
    A, C, b = problems.poisson2d(9), springs(81), np.ones(81)
    factor = frontal.factorize(A)
    for bad in (0, 2, "plus"):
        with pytest.raises(ValueError, match="sign is"):
            factor.solve_plus(b, C, bad)
    with pytest.raises(ValueError, match="D has 1"):
        factor.solve_plus(b, C, D=C[:, :1])
    with pytest.raises(ValueError, match="b has shape"):
        factor.solve_plus(b[1:], C)
    singular = sp.csc_array(A - sp.diags_array(np.asarray(A.sum(axis=1)).ravel()))
    with pytest.raises(ValueError, match="A is singular"):
        frontal.factorize(singular, singular="allow").solve_plus(b, C)
    assert np.allclose(factor.solve_plus(b, np.zeros((81, 0))), factor.solve(b))
    empty = frontal.factorize(sp.csc_array((0, 0)))
    assert empty.solve_plus(np.zeros(0), np.zeros((0, 2))).shape == (0,)
    assert empty.update(np.zeros((0, 2))).version == 0


def test_error_of_a_large_change_is_that_of_the_changed_matrix():
    C, b = np.array([[4609.297177965803, -124180.84527811687, -27765.367126728728]]), [-1.466]
    factor = frontal.factorize(sp.csc_array([[1.0]]), kind="spd")
    x, info = factor.solve_plus(b, C, return_info=True)
    assert abs(x[0] * (1 + (C * C).sum()) / b[0] - 1) <= 1e-15
    assert info.componentwise_error <= 1e-15
