"""Arrays of values: their order is that of the matrix that was given last, of any format."""

import copy
import gc
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device
from frontal import problems
from frontal.matrix.canonical import canonical
from frontal.matrix.symmetry import is_hermitian
from frontal.matrix.value_map import ValueMap, of_pattern

from ..emulation.traffic import Sparse, forget, put

pytestmark = pytest.mark.usefixtures("gpu_backend")

N = 30
B = np.random.default_rng(0).standard_normal((N, 2))
both = pytest.mark.parametrize("where", ["cpu", "gpu"])
FORMS = ["csc", "csr", "coo", "bsr", "csc unsorted", "csr unsorted", "csr repeated", "coo repeated"]


def unsymmetric(dtype="f8"):
    rng = np.random.default_rng(4)
    a = sp.random_array((N, N), density=0.1, random_state=rng) + sp.diags_array(
        rng.uniform(3, 4, N)
    )
    if np.dtype(dtype).kind == "c":
        a = a * np.exp(0.7j)
    return sp.csc_array(a).astype(dtype)


def stored(a, form):
    """The matrix a, its entries stored in some order; repeated ones in parts."""
    rng = np.random.default_rng(8)
    kind, _, how = form.partition(" ")
    if kind == "bsr":
        return a.tobsr((3, 2))
    b = sp.coo_array(a)
    row, column, data = b.coords[0], b.coords[1], b.data
    if how == "repeated":
        part = rng.uniform(0.2, 0.8, data.size).astype(data.real.dtype)
        row, column = np.tile(row, 2), np.tile(column, 2)
        data = np.concatenate([part * data, (1 - part) * data])
    if kind == "coo":
        turn = rng.permutation(data.size)
        return sp.coo_array((data[turn], (row[turn], column[turn])), shape=a.shape)
    outer = row if kind == "csr" else column
    turn = rng.permutation(data.size)
    turn = turn[np.argsort(outer[turn], kind="stable")]
    inner = (column if kind == "csr" else row)[turn]
    pointer = np.searchsorted(outer[turn], np.arange(N + 1))
    made = {"csr": sp.csr_array, "csc": sp.csc_array}[kind]((data[turn], inner, pointer), a.shape)
    return made if how else made.sorted_indices()


def check(factor, a, tolerance=1e-12):
    np.testing.assert_allclose(a @ factor.solve(B), B, atol=tolerance)
    np.testing.assert_allclose(factor.A.toarray(), a.toarray(), rtol=1e-6)


@both
@pytest.mark.parametrize("dtype", ["f8", "c16"])
@pytest.mark.parametrize("form", FORMS)
def test_the_order_is_that_of_the_matrix(device, where, form, dtype):
    """The same values, and others at the same places."""
    given = stored(unsymmetric(dtype), form)
    factor = frontal.factorize(given, backend=where)
    check(factor.refactorize(given.data), given)
    other = given.copy()
    other.data = given.data * np.random.default_rng(1).uniform(0.5, 2, given.data.shape)
    check(factor.refactorize(other.data), other)
    check(factor.analysis.factorize(given).refactorize(other.data), other)
    if where == "gpu":
        check(factor.refactorize(given), given)
        check(factor.refactorize(put(device, other.data)), other)
        assert factor._numbers.factor.dtype == dtype


@both
def test_the_order_is_that_of_the_matrix_given_last(device, where):
    a = unsymmetric()
    factor = frontal.factorize(a, backend=where)
    for form in [*FORMS, *FORMS[::-1]]:
        given = stored(a, form)
        if given.format == "bsr":  # its blocks hold zeros, so that its pattern is another
            with pytest.raises(ValueError, match="pattern differs"):
                factor.refactorize(given)
            continue
        factor.refactorize(given)
        check(factor.refactorize(given.data), a)
        check(factor.refactorize(2 * given.data), 2 * a)


def test_a_matrix_on_the_device_sets_the_order(device, traffic):
    a = unsymmetric()
    factor = frontal.factorize(a, backend="gpu")
    for form in ("csr", "csc", "csr"):
        given = a.asformat(form)
        check(factor.refactorize(Sparse(device, given)), a)
        values = put(device, 3 * given.data)
        check(factor.refactorize(values), 3 * a)
        check(factor.refactorize(2 * given.data), 2 * a)
        forget(traffic, factor)
        factor.refactorize(values)
        assert traffic["up"] == []
        assert max(traffic["down"], default=0) <= 14  # none that is not in a graph


@pytest.mark.parametrize("form", ["coo", "csr repeated"])
def test_values_in_any_order_stay_on_the_device(device, traffic, form):
    given = stored(unsymmetric(), form)
    factor = frontal.factorize(given, backend="gpu")
    values = put(device, given.data)
    check(factor.refactorize(put(device, given.data.astype("f4"))), given.astype("f4"), 1e-5)
    factor.refactorize(values)
    forget(traffic, factor)
    factor.refactorize(values)
    assert traffic["up"] == []
    assert max(traffic["down"], default=0) <= 14  # none that is not in a graph
    orders = factor._numbers.factor.entries._orders
    assert len(orders) == 1
    factor.free()
    del factor.__dict__["_order"]
    gc.collect()
    assert len(orders) == 0


@both
@pytest.mark.parametrize("form", ["csr", "coo repeated"])
def test_copies_keep_the_order(device, where, form):
    given = stored(unsymmetric(), form)
    factor = frontal.factorize(given, backend=where)
    factor.refactorize(given.data)
    twins = [factor.copy(), copy.deepcopy(factor), factor.to_cpu()]
    twins.append(pickle.loads(pickle.dumps(factor)))
    factor.refactorize(factor.A)
    for twin in twins:
        check(twin.refactorize(2 * given.data), 2 * given)


@both
def test_a_symmetric_pattern_with_new_values_by_rows(device, where):
    """Rows of a symmetric matrix are taken for its columns; those of new values are not."""
    a = problems.poisson2d(6).tocsr()
    factor = frontal.factorize(a, backend=where)
    data = a.data * np.random.default_rng(2).uniform(0.5, 1, a.nnz)
    b = sp.csr_array((data, a.indices, a.indptr), shape=a.shape)
    for values in (data, put(device, data)) if where == "gpu" else (data,):
        factor.refactorize(a)
        x = factor.refactorize(values).solve(np.ones(36))
        np.testing.assert_allclose(b @ x, 1, rtol=1e-12)


@both
def test_later_changes_of_the_matrix_are_not_seen(where):
    given = stored(unsymmetric(), "coo")
    data = given.data.copy()
    a = given.tocsc()
    factor = frontal.factorize(given, backend=where)
    given.coords[0][:] = given.coords[1][:] = 0
    check(factor.refactorize(data), a)
    b = a.copy()
    b.data[[3, 5]] = 0
    factor = frontal.factorize(b, backend=where)
    wanted = b.toarray()
    b.eliminate_zeros()
    np.testing.assert_allclose(wanted @ factor.solve(B), B, atol=1e-12)


def test_zeros_are_entries():
    a = unsymmetric().tocsr()
    a.data[::7] = 0
    a.setdiag(3.0)
    factor = frontal.factorize(a)
    a.data[:] = np.random.default_rng(3).uniform(0.1, 1, a.nnz)
    a.setdiag(4.0)
    check(factor.refactorize(a.data), a)


def test_small_integers_and_bool_are_added_as_in_a_matrix(device):
    row, column = np.r_[np.arange(5), np.arange(5), 0], np.r_[np.arange(5), np.arange(5), 4]
    for data in (np.full(11, 100, np.int8), np.ones(11, bool)):
        given = sp.coo_array((data, (row, column)), shape=(5, 5))
        wanted = canonical(given).data
        for where in ("cpu", "gpu"):
            factor = frontal.factorize(given, backend=where, kind="general")
            np.testing.assert_array_equal(factor.refactorize(data).A.data, wanted)
        np.testing.assert_array_equal(factor.refactorize(put(device, data)).A.data, wanted)


@both
@pytest.mark.filterwarnings("ignore:A is a dense array")
@pytest.mark.parametrize("form", ["lil", "dok", "dia", "dense"])
def test_formats_without_an_order_want_the_matrix(device, where, form):
    a = unsymmetric()
    given = a.toarray() if form == "dense" else a.asformat(form)
    factor = frontal.factorize(given, backend=where)
    before = factor.solve(B)
    tried = [a.data, a.data.tolist(), given.data if form == "dia" else a.data]
    for values in [*tried, put(device, a.data)] if where == "gpu" else tried:
        with pytest.raises(ValueError, match=f"{form}.*refactorize with the matrix itself"):
            factor.refactorize(values)
    np.testing.assert_array_equal(factor.solve(B), before)
    check(factor.refactorize(given), a)
    check(factor.refactorize(a).refactorize(a.data), a)


@both
def test_the_number_of_values_is_that_of_the_matrix(device, where):
    given = stored(unsymmetric(), "csr repeated")
    factor = frontal.factorize(given, backend=where)
    values = unsymmetric().data
    for wrong in (values, put(device, values)) if where == "gpu" else (values,):
        with pytest.raises(ValueError, match=f"csr matrix .* stores {given.nnz} entries"):
            factor.refactorize(wrong)
    check(factor, given)
    with pytest.raises(ValueError, match="two dimensions"):
        factor.refactorize(np.ones((2, 2, 2)))
    with pytest.raises(TypeError, match="dtype object"):
        factor.refactorize(given.data.astype(object))


def test_a_plain_matrix_keeps_no_map():
    a = unsymmetric()
    big = a.copy()
    big.indices, big.indptr = big.indices.astype(np.int64), big.indptr.astype(np.int64)
    for given in (a, big, a.tocsr(), a.tocsr().T):
        order = canonical(given, ordered=True).order
        assert order is not None
        assert order.place is None
        assert order.shape == (a.nnz,)
    assert canonical(a).order is None


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_symmetry_of_values_by_places(dtype):
    one = unsymmetric(dtype)
    alike = sp.csc_array(one + one.conj().T)
    other, unknown = alike.copy(), alike.copy()
    other.data[5] *= 2  # off the diagonal
    unknown.data[[5, 6]] = np.nan
    ones = sp.csc_array((np.ones(one.nnz), one.indices, one.indptr))  # its pattern is not symmetric
    for a in (alike, other, unknown, one, ones):
        order = ValueMap.by_columns(a.nnz)
        for _ in range(2):  # the second time by what the first has found
            found = order.hermitian(a.data, a.indptr, a.indices)
            assert found == is_hermitian(a.indptr, a.indices, a.data) == (a is alike)


def test_values_of_a_known_pattern():
    a = unsymmetric()
    more, fewer = a.copy(), a.copy()
    more.data, more.indices = np.append(a.data, 1.0), np.append(a.indices, np.int32(0))  # room
    fewer.data[-1] = 0
    fewer.eliminate_zeros()
    for given in (a, more):
        np.testing.assert_array_equal(of_pattern(given, a.indptr, a.indices), a.data)
    for given in (fewer, a.tocsr(), a.toarray(), a.T, a[:, ::-1]):
        assert of_pattern(given, a.indptr, a.indices) is None
    factor = frontal.factorize(a.tocoo())
    twice = 2 * a
    check(factor.refactorize(twice), twice)
    check(factor.refactorize(a.data), a)  # by columns from now on


def test_symmetry_of_values_takes_nan_for_nan():
    A = sp.csc_array([[1.0, np.nan], [np.nan, 2.0]])
    order = ValueMap.by_columns(4)
    assert order.hermitian(A.data, A.indptr, A.indices)
    assert not order.hermitian(np.array([1.0, np.nan, 3.0, 2.0]), A.indptr, A.indices)
