"""Input: every kind of matrix and right-hand side comes out in the one form the solver reads."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from frontal.errors import NonFiniteInputError
from frontal.matrix.canonical import KINDS, canonical, working_dtype
from frontal.numeric.method import CHOLESKY, LDLH, LDLT, LU, SIGNED_LDLH

FORMATS = ["csr", "csc", "coo", "dia", "lil", "dok", "bsr"]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def example(dtype=np.float64, n=7, seed=0) -> np.ndarray:
    """An unsymmetric matrix with an entry in every row and column."""
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((n, n)) < 0.4, rng.integers(1, 9, (n, n)), 0) + 9 * np.eye(n)
    if np.issubdtype(dtype, np.complexfloating):
        dense = dense * (1 + 0.5j)
    return dense.astype(dtype)


def hermitian(dtype=np.float64, n=7) -> np.ndarray:
    dense = example(dtype, n)
    return dense + dense.conj().T


def to_dense(matrix) -> np.ndarray:
    """The dense form, after the promises on the arrays were checked."""
    assert matrix.indptr.dtype == np.int64
    assert matrix.indices.dtype == np.int32
    A = sp.csc_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
    for j in range(matrix.n):
        assert np.all(np.diff(matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]) > 0)
    return A.toarray()


# --- formats and copies ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", [sp.csc_array, sp.csc_matrix], ids=["array", "matrix"])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format(form, make, dtype):
    for dense in (example(dtype), hermitian(dtype)):
        A = make(dense).asformat(form)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            matrix = canonical(A)
        assert matrix.dtype == dtype
        np.testing.assert_array_equal(to_dense(matrix), dense)
        assert matrix.hermitian == np.array_equal(dense, dense.conj().T)
        np.testing.assert_array_equal(A.toarray(), dense)


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, np.ndarray.tolist])
def test_a_dense_matrix_gives_one_warning_at_the_callers_line(make):
    with pytest.warns(sp.SparseEfficiencyWarning) as caught:
        matrix = canonical(make(example()))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(to_dense(matrix), example())


@pytest.mark.parametrize("index", [np.int8, np.int16, np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("form", ["csc", "csr"])
def test_every_index_type(form, index):
    A = sp.csc_array(example()).asformat(form)
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    np.testing.assert_array_equal(to_dense(canonical(A)), example())


def test_duplicates_and_disorder_are_resolved_in_a_copy():
    A = sp.csc_array(
        (np.array([1.0, 2, 3, 4, 5]), np.array([1, 0, 1, 1, 1]), np.array([0, 3, 5])), shape=(2, 2)
    )
    before = A.data.copy(), A.indices.copy(), A.indptr.copy()
    np.testing.assert_array_equal(to_dense(canonical(A)), [[2, 0], [4, 9]])
    np.testing.assert_array_equal(to_dense(canonical(A.T)), [[2, 4], [0, 9]])
    for kept, now in zip(before, (A.data, A.indices, A.indptr), strict=True):
        np.testing.assert_array_equal(kept, now)
    ascending = sp.csc_array((before[0], [0, 1, 1, 1, 1], [0, 3, 5]), shape=(2, 2))
    for form in (ascending, ascending.T):
        assert canonical(form).indices.size == 3
        np.testing.assert_array_equal(to_dense(canonical(form)), form.toarray())


def test_a_stale_flag_of_scipy_is_not_believed():
    A = sp.csc_array(example())
    assert A.has_canonical_format
    column = slice(*A.indptr[:2])
    A.indices[column], A.data[column] = A.indices[column][::-1].copy(), A.data[column][::-1].copy()
    np.testing.assert_array_equal(to_dense(canonical(A)), example())


@pytest.mark.parametrize("form", ["csc", "csr"])
def test_sorted_input_is_not_copied(form):
    A = sp.csc_array(hermitian()).asformat(form)
    matrix = canonical(A)
    assert np.shares_memory(matrix.data, A.data)
    assert np.shares_memory(matrix.indices, A.indices)
    A.data[0] += 1  # as the docstring says: seen
    assert matrix.data[0] == A.data[0]


def test_unusual_memory():
    dense = hermitian()
    A = sp.csc_array(dense)
    longer = sp.csc_array(A)
    longer.data = np.append(A.data, np.nan)  # room beyond the last entry
    longer.indices = np.append(A.indices, -1).astype(np.int32)
    strided = sp.csc_array((np.repeat(A.data, 2)[::2], A.indices, A.indptr), shape=A.shape)
    swapped = sp.csc_array((A.data.astype(">f8"), A.indices, A.indptr), shape=A.shape)
    frozen = sp.csc_array(A)
    for array in (frozen.data, frozen.indices, frozen.indptr):
        array.flags.writeable = False
    for case in (longer, strided, swapped, frozen):
        np.testing.assert_array_equal(to_dense(canonical(case)), dense)


def test_explicit_zeros_stay_in_the_pattern():
    A = sp.csc_array(
        (np.array([1.0, 0, 0, 2]), (np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]))), shape=(2, 2)
    )
    for form in ("csc", "csr", "coo"):
        matrix = canonical(A.asformat(form))
        np.testing.assert_array_equal(matrix.indices, [0, 1, 0, 1])
        np.testing.assert_array_equal(matrix.data, [1, 0, 0, 2])


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("form", FORMATS)
def test_smallest(form, n):
    if form in ("dia", "bsr") and n == 0:
        pytest.skip("scipy has no empty matrix of this format")
    matrix = canonical(sp.csc_array(2 * np.eye(n)).asformat(form))
    assert matrix.n == n
    np.testing.assert_array_equal(to_dense(matrix), 2 * np.eye(n))
    assert canonical(sp.csc_array((1, 1))).method is LDLT


# --- scalar types ----------------------------------------------------------------------------


@pytest.mark.parametrize("code", "?bBhHiIlLqQ")
def test_integers_and_bool_become_float64(code):
    dense = example().astype(code)
    matrix = canonical(sp.csr_array(dense))
    assert matrix.dtype == np.float64
    np.testing.assert_array_equal(to_dense(matrix), dense.astype(float))


def test_float16_becomes_float32():
    A = sp.csc_array(example())
    half = sp.csc_array((A.data.astype(np.float16), A.indices, A.indptr), shape=A.shape)
    assert canonical(half).dtype == np.float32
    with pytest.warns(sp.SparseEfficiencyWarning):
        assert canonical(example(np.float16)).dtype == np.float32


def test_duplicates_of_small_integers_do_not_overflow():
    twice = np.zeros(2, int)
    A = sp.coo_array((np.array([100, 100], np.int8), (twice, twice)), shape=(1, 1))
    assert canonical(A).data.tolist() == [200]
    assert canonical(A.astype(bool)).data.tolist() == [1]


@pytest.mark.parametrize("code", ["g", "G"])
def test_long_double_is_refused(code):
    with pytest.raises(TypeError, match="A has dtype"):
        canonical(sp.csc_array(example().astype(code)))


def test_a_type_may_be_asked_for():
    A = sp.csc_array(example())
    assert canonical(A, dtype=np.complex64).dtype == np.complex64
    assert canonical(A, dtype=np.int64).dtype == np.float64
    assert working_dtype(np.dtype(">c8"), "A") == np.complex64
    with pytest.raises(TypeError, match="cannot hold"):
        canonical(A * 1j, dtype=np.float64)


# --- kinds -----------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_symmetry_against_brute_force(data):
    n = data.draw(st.integers(1, 5))
    values = st.sampled_from([0, 0, 1, 2, -1, 1j, -1j])
    dense = np.array(data.draw(st.lists(values, min_size=n * n, max_size=n * n)), complex)
    dense = dense.reshape(n, n)
    if data.draw(st.booleans()):
        dense = dense + dense.conj().T
    if not dense.imag.any():
        dense = dense.real
    adjoint = dense.conj().T
    diagonal = np.diagonal(dense)
    for form in ("csc", "csr"):
        matrix = canonical(sp.csc_array(dense).asformat(form))
        assert matrix.hermitian == np.array_equal(dense, adjoint)
        assert (matrix.method is CHOLESKY) == (matrix.hermitian and bool((diagonal.real > 0).all()))
        np.testing.assert_array_equal(to_dense(matrix), dense)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind):
    for dtype in DTYPES:
        adjoint = LDLH if np.issubdtype(dtype, np.complexfloating) else LDLT
        others = {"symmetric": LDLT, "hermitian": adjoint, "general": LU}
        others["quasidefinite"] = SIGNED_LDLH
        if kind == "symmetric" and np.issubdtype(dtype, np.complexfloating):
            dense = example(dtype) + example(dtype).T
        else:
            dense = hermitian(dtype)
        assert canonical(sp.csc_array(dense), kind=kind).method is others.get(kind, CHOLESKY)


def test_auto_needs_a_positive_diagonal():
    assert canonical(sp.csc_array([[1.0, 2], [2, 1]])).method is CHOLESKY  # Cholesky finds out
    assert canonical(sp.csc_array([[0.0, 2], [2, 1]])).method is LDLT
    stored = sp.csc_array(([0.0, 2, 2, 1], [0, 1, 0, 1], [0, 2, 4]))
    assert canonical(stored).method is LDLT
    assert canonical(sp.csc_array([[-1.0, 2], [2, 1]])).method is LDLT
    assert canonical(sp.csc_array([[-1.0, 2j], [-2j, 1]])).method is LDLH
    assert canonical(sp.csc_array([[1j, 2], [2, 1]])).method is LDLT
    assert canonical(sp.csc_array([[1j, 2], [3, 1]])).method is LU


def test_unknown_kind():
    with pytest.raises(ValueError, match="kind is 'banded'; choose one of 'auto'"):
        canonical(sp.csc_array(example()), kind="banded")


@pytest.mark.parametrize("kind", ["spd", "symmetric", "hermitian"])
def test_a_broken_promise_is_explained(kind):
    dense = hermitian()
    dense[2, 4] += 1
    with pytest.raises(ValueError, match=r"A\[(2, 4|4, 2)\] = .* and A\[(2, 4|4, 2)\] = "):
        canonical(sp.csc_array(dense), kind=kind)
    with pytest.raises(ValueError, match="only one triangle was given"):
        canonical(sp.tril(hermitian(), format="csc"), kind=kind)


@pytest.mark.parametrize("scale", [2.0**-40, 1.0, 2.0**40])
def test_a_promise_is_kept_up_to_rounding(scale):
    dense = hermitian() * scale
    dense[0, 1] = dense[1, 0] = scale
    dense[0, 1] += 4e-16 * scale
    for kind in ("spd", "auto"):
        matrix = canonical(sp.csc_array(dense), kind=kind)
        assert matrix.method is CHOLESKY
        assert not matrix.hermitian
    dense[0, 1] += 1e-12 * scale
    assert canonical(sp.csc_array(dense)).method is LU
    with pytest.raises(ValueError, match="requires"):
        canonical(sp.csc_array(dense), kind="spd")


def test_symmetric_up_to_rounding_beside_a_huge_entry():
    A = sp.block_diag([[[1e17]], [[2.0, 1.0], [1.0 + 1e-10, 2.0]]], "csc")
    assert canonical(A).method is LU
    assert canonical(sp.csc_array(np.array([[1j, 2], [2 + 1e-16j, 1]]))).method is LDLT


def test_complex_symmetric_is_not_hermitian():
    dense = example(complex)
    dense = dense + dense.T
    assert canonical(sp.csc_array(dense), kind="symmetric").method is LDLT
    with pytest.raises(ValueError, match="Hermitian"):
        canonical(sp.csc_array(dense), kind="hermitian")


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, complex(1, np.nan)])
@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
def test_the_first_entry_that_is_not_finite_is_named(form, bad):
    dense = example(np.result_type(bad))
    dense[5, 1] = dense[0, 3] = bad
    A = sp.csc_array(dense).asformat(form)
    with pytest.raises(NonFiniteInputError, match=r"A\[5, 1\]") as caught:
        canonical(A)
    assert caught.value.index == (5, 1)
    np.testing.assert_array_equal(to_dense(canonical(A, check_finite=False)), dense)


def test_every_place_of_a_nan_is_named():
    """First and last entries of columns, some of which are empty."""
    A = sp.csc_array(np.array([[1.0, 0, 2, 0], [0, 0, 3, 0], [4, 0, 0, 5], [6, 0, 7, 0]]))
    for p in range(A.nnz):
        B = A.copy()
        B.data[p] = np.nan
        with pytest.raises(NonFiniteInputError) as caught:
            canonical(B)
        assert np.isnan(B[caught.value.index])


def test_large_finite_values_are_finite():
    A = sp.csc_array(np.diag([1e308, 1e308, 1e308]))
    assert canonical(A).hermitian


@pytest.mark.parametrize(
    ("A", "message"),
    [
        (sp.csc_array((3, 4)), r"square, its shape is \(3, 4\)"),
        (sp.coo_array(np.ones(3)), r"two dimensions, its shape is \(3,\)"),
        (np.ones((2, 2, 2)), r"two dimensions, its shape is \(2, 2, 2\)"),
        (3.0, "two dimensions"),
    ],
)
def test_shapes_that_are_not_square(A, message):
    with pytest.raises(ValueError, match=message):
        canonical(A)


@pytest.mark.parametrize("A", [None, object(), "A", np.array([[object()]]), np.array([["a"]])])
def test_what_is_no_matrix(A):
    with pytest.raises(TypeError, match="A has dtype"):
        canonical(A)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("value", [-1, 7, 2**31 + 1])
def test_corrupt_index_arrays_are_refused(value, index):
    if value > 2**31 and index is np.int32:
        pytest.skip("does not fit")
    A = sp.csc_array(example())
    A.indices = A.indices.astype(index)
    A.indices[3] = value
    with pytest.raises(ValueError, match="corrupt"):
        canonical(A)
    A = sp.csc_array(example())
    A.indptr[2] = A.indptr[1] - 1
    with pytest.raises(ValueError, match="corrupt"):
        canonical(A)


# --- CuPy, without CuPy ----------------------------------------------------------------------


class OnDevice:
    """What lives on a device, as far as duck typing sees it."""

    __module__ = "cupyx.scipy.sparse"

    def __init__(self, host):
        self.host = host

    def get(self):
        return self.host


def test_device_matrices_are_fetched():
    np.testing.assert_array_equal(
        to_dense(canonical(OnDevice(sp.csr_matrix(example())))), example()
    )
