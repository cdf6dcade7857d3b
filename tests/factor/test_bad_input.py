"""Bad and unusual input of `frontal.solve` and its phases: a typed error or a right answer."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import errors

from ..conftest import SCALARS, scaled_residual
from ..matrices import path_laplacian, tridiagonal

N = 40
rng = np.random.default_rng(3)
SPD = tridiagonal(N, -1.0, 2.5, -1.0)
LU = sp.csc_array(SPD + sp.random_array((N, N), density=0.05, random_state=rng))
B = rng.standard_normal((N, 3))
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
MATRICES = pytest.mark.parametrize("A", [SPD, LU], ids=["cholesky", "lu"])


def check(A, x, b):
    """The shape of b, the common scalar type, and a small backward error."""
    dense = b.toarray() if sp.issparse(b) else np.asarray(b)
    assert x.shape == dense.shape
    solution = x.toarray() if sp.issparse(x) else x
    eps = np.finfo(np.result_type(A.dtype, dense.dtype, np.float32)).eps
    assert scaled_residual(A, solution, dense) <= 10 * eps


# --- exactly singular ------------------------------------------------------------------------

SINGULAR = {
    "zero": sp.csc_array((4, 4)),
    "empty row": sp.csc_array(np.diag([1.0, 2, 0, 3])),
    "pattern without a matching": sp.csc_array(
        [[1.0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 1]]
    ),
    "equal rows": sp.csc_array(np.ones((4, 4))),
    "equal rows, unsymmetric": sp.csc_array(np.arange(1.0, 17).reshape(4, 4)),
    "pure Neumann problem": path_laplacian(10),
    "explicit zeros": sp.csc_array((np.zeros(3), np.arange(3), np.arange(4)), shape=(3, 3)),
    "1 x 1": sp.csc_array([[0.0]]),
}


@pytest.mark.parametrize("kind", ["auto", "general"])
@pytest.mark.parametrize("dtype", SCALARS)
@pytest.mark.parametrize("why", SINGULAR)
def test_singular(why, dtype, kind):
    A = sp.csc_array(SINGULAR[why].astype(dtype))
    b = np.arange(1, A.shape[0] + 1, dtype=dtype)
    with pytest.raises(frontal.SingularMatrixError, match="singular") as caught:
        frontal.solve(A, b, kind=kind)
    assert isinstance(caught.value, np.linalg.LinAlgError)
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.column is None or 0 <= caught.value.column < A.shape[0]


def test_structural_rank_is_told():
    with pytest.raises(frontal.SingularMatrixError, match="rank 3 of 4") as caught:
        frontal.analyze(SINGULAR["pattern without a matching"])
    assert caught.value.rank == 3


# --- nearly singular -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-16, 1e-18])
def test_nearly_singular(size):
    q, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    r, _ = np.linalg.qr(rng.standard_normal((12, 12)))
    A = sp.csc_array(q @ np.diag([*np.ones(11), size]) @ r)
    b = rng.standard_normal(12)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            x, info = frontal.solve(A, b, return_info=True)
        except frontal.SingularMatrixError:
            return
    assert [w.category for w in caught] == [frontal.IllConditionedWarning]
    assert np.isfinite(x).all()
    assert np.isfinite(info.backward_error)
    assert info.perturbed_pivots >= 0


# --- not positive definite -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", SCALARS)
@pytest.mark.parametrize("place", [0, 17, N - 1])
def test_not_positive_definite(place, dtype):
    A = SPD.astype(dtype).tolil()
    A[place, place] = -3
    with pytest.raises(frontal.NotPositiveDefiniteError, match="column") as caught:
        frontal.solve(A, B[:, 0], kind="spd")
    assert isinstance(caught.value, np.linalg.LinAlgError)
    column = caught.value.column
    assert 0 <= column < N
    x = frontal.solve(A, B[:, 0].astype(dtype))
    check(A.tocsc(), x, B[:, 0].astype(dtype))


def test_the_column_is_that_of_the_matrix():
    A = sp.csc_array(np.diag([3.0, 2, -1, 5]))
    for ordering in ("natural", [3, 1, 0, 2], [2, 0, 1, 3]):
        with pytest.raises(frontal.NotPositiveDefiniteError) as caught:
            frontal.factorize(A, kind="spd", ordering=ordering)
        assert caught.value.column == 2


def test_indefinite_with_a_positive_diagonal_goes_on_by_ldl():
    A = sp.csc_array([[1.0, 2], [2, 1]])
    x, info = frontal.solve(A, [5.0, 4.0], return_info=True)
    np.testing.assert_allclose(x, [1, 2], rtol=1e-14)
    assert info.method == "ldlt"


@pytest.mark.parametrize("kind", ["spd", "hermitian", "symmetric"])
def test_one_triangle_is_not_enough(kind):
    with pytest.raises(ValueError, match="only one triangle was given"):
        frontal.solve(sp.tril(SPD), B[:, 0], kind=kind)


# --- not finite ------------------------------------------------------------------------------


@MATRICES
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(A, bad):
    A = A.copy()
    A.data[7] = bad
    for function in (lambda: frontal.solve(A, B), lambda: frontal.factorize(A)):
        with pytest.raises(frontal.NonFiniteInputError, match=r"A\[\d+, \d+\] is") as caught:
            function()
        assert isinstance(caught.value, ValueError)
        assert not np.isfinite(A[caught.value.index])
    b = B.copy()
    b[4, 1] = bad
    with pytest.raises(frontal.NonFiniteInputError, match=r"b\[4, 1\] is"):
        frontal.solve(SPD, b)
    with pytest.raises(frontal.NonFiniteInputError):
        frontal.factorize(SPD).refactorize(np.where(SPD.data < 0, bad, SPD.data))


# --- formats, index types --------------------------------------------------------------------


@MATRICES
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dia", "lil", "dok", "bsr"])
@pytest.mark.parametrize("make", [sp.csc_array, sp.csc_matrix])
def test_every_sparse_format_is_silent(A, form, make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = frontal.solve(make(A).asformat(form), B)
    check(A, x, B)


def test_dense_gives_one_warning():
    with pytest.warns(sp.SparseEfficiencyWarning) as caught:
        x = frontal.solve(LU.toarray(), B)
    assert len(caught) == 1
    check(LU, x, B)


@MATRICES
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_types(A, index):
    wide = A.copy()
    wide.indices, wide.indptr = wide.indices.astype(index), wide.indptr.astype(index)
    np.testing.assert_array_equal(frontal.solve(wide, B), frontal.solve(A, B))


# --- right-hand sides ------------------------------------------------------------------------


@MATRICES
@pytest.mark.parametrize(
    "b",
    [
        B[:, 0],
        B[:, :1],
        B,
        np.asfortranarray(B),
        B[::-1],
        B[:, ::2],
        B.T.copy().T,
        np.repeat(B, 2, axis=0)[::2],
        list(B[:, 0]),
        B[:, :0],
        np.arange(N),
        B > 0,
        B * (1 - 2j),
        B.astype(np.float16),
        sp.csc_array(B),
        sp.coo_matrix(B[:, :1]),
    ],
    ids=lambda b: f"{type(b).__name__}{np.shape(b)}",
)
def test_shapes_and_layouts(A, b):
    for x in (frontal.solve(A, b), frontal.factorize(A).solve(b)):
        check(A, x, b)
        assert sp.issparse(x) == sp.issparse(b)


@pytest.mark.parametrize("b", [np.ones(N + 1), np.ones((1, N)), np.ones((N, 1, 1)), 1.0])
def test_sizes_that_do_not_fit(b):
    for function in (lambda: frontal.solve(SPD, b), lambda: frontal.factorize(SPD).solve(b)):
        with pytest.raises(ValueError, match=r"b has shape \(.*\) and the matrix \(40, 40\)"):
            function()


@pytest.mark.parametrize("b", [np.ones(N + 1), np.full(N, np.nan)])
def test_right_hand_sides_are_checked_before_any_work(b, monkeypatch):
    monkeypatch.setattr("frontal.api.Factor.from_matrix", lambda *_, **__: pytest.fail("work"))
    with pytest.raises(ValueError, match=r"^b"):
        frontal.solve(SPD, b)


# --- scalar types ----------------------------------------------------------------------------


@MATRICES
@pytest.mark.parametrize("first", [*DTYPES, np.int64])
@pytest.mark.parametrize("second", [*DTYPES, np.int64])
def test_scalar_types_mix(A, first, second):
    A, b = sp.csc_array((A * 8).astype(first)), (B * 8).astype(second)
    common = np.result_type(first, second)
    expected = np.dtype(float) if common.kind == "i" else common
    for x in (frontal.solve(A, b), frontal.factorize(A).solve(b)):
        assert x.dtype == expected
        check(A, x, b)


@MATRICES
def test_complex_right_hand_sides_keep_a_real_factor(A):
    factor = frontal.factorize(A)
    b = B + 1j * B[::-1]
    x = factor.solve(b)
    assert factor.dtype == np.float64
    close = 8 * np.finfo(np.float64).eps * np.abs(x).max()  # BLAS rounds as it likes for a width
    np.testing.assert_allclose(x.real, factor.solve(b.real), rtol=0, atol=close)
    check(A, x, b)


@pytest.mark.parametrize("A", [SPD.astype(np.longdouble), SPD.astype(np.clongdouble)])
def test_long_double(A):
    for function in (frontal.analyze, frontal.factorize, lambda A: frontal.solve(A, B)):
        with pytest.raises(TypeError, match="dtype"):
            function(A)
    with pytest.raises(TypeError, match="dtype"):
        frontal.solve(SPD, B.astype(A.dtype))


# --- not square, empty, tiny -----------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (0, 2)])
def test_not_square(shape):
    for function in (frontal.analyze, frontal.factorize, lambda A: frontal.solve(A, np.ones(3))):
        with pytest.raises(ValueError, match=rf"square, its shape is \({shape[0]}, {shape[1]}\)"):
            function(sp.csc_array(shape))


@pytest.mark.parametrize("kind", ["auto", "spd", "general"])
def test_empty(kind):
    A = sp.csc_array((0, 0))
    for shape in [(0,), (0, 1), (0, 3)]:
        assert frontal.solve(A, np.ones(shape), kind=kind).shape == shape
    factor = frontal.factorize(A, kind=kind)
    assert factor.L.shape == factor.U.shape == factor.shape == (0, 0)
    assert factor.logdet() == 0


@pytest.mark.parametrize("kind", ["auto", "spd", "general"])
def test_one_by_one(kind):
    assert frontal.solve(sp.csc_array([[4.0]]), [8.0], kind=kind).tolist() == [2.0]
    assert frontal.solve(sp.csc_array([[2j]]), [4.0]).tolist() == [-2j]


# --- pickling, silence -----------------------------------------------------------------------


@MATRICES
def test_pickle_and_copy(A):
    factor = frontal.factorize(A)
    for twin in (pickle.loads(pickle.dumps(factor)), copy.deepcopy(factor), factor.copy()):
        np.testing.assert_array_equal(twin.solve(B), factor.solve(B))
    analysis = pickle.loads(pickle.dumps(factor.analysis))
    np.testing.assert_array_equal(analysis.factorize(A).solve(B), factor.solve(B))


@pytest.mark.parametrize(
    "error",
    [
        errors.SingularMatrixError.structural(5, np.array([2])),
        errors.SingularMatrixError.numerical(3, "no pivot"),
        errors.NotPositiveDefiniteError(7),
        errors.NonFiniteInputError("A", (1, 2), np.inf),
        errors.FactorMemoryError(2**40, 2**30),
        errors.OrderingTimeout("METIS took longer than 2 s"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_survive_processes(error):
    twin = pickle.loads(pickle.dumps(error))
    assert isinstance(error, frontal.FrontalError)
    assert type(twin) is type(error)
    assert str(twin) == str(error)
    assert vars(twin) == vars(error)


def test_nothing_is_printed():
    code = (
        "import frontal, numpy as np, scipy.sparse as sp\n"
        "for A in ([[2.0, 1], [1, 2]], [[1.0, 2], [2, 1]], [[1.0, 1], [1, 1]], [[0.0, 1], [3, 0]]):"
        "\n"
        "    try:\n"
        "        frontal.solve(sp.csc_array(A), np.ones(2))\n"
        "    except frontal.FrontalError:\n"
        "        pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_the_input_is_left_alone():
    for A in (SPD, LU):
        before = copy.deepcopy(A), B.copy()
        frontal.solve(A, B)
        np.testing.assert_array_equal(A.toarray(), before[0].toarray())
        np.testing.assert_array_equal(B, before[1])
