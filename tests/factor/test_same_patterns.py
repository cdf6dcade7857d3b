"""Matrices of patterns that come again: taken as they are, if nothing is new but their values."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.analysis_cache import AnalysisCache
from frontal.errors import NonFiniteInputError
from frontal.machine.resources import thread_count
from frontal.matrix.complete import to_canonical

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
N = 30


@pytest.fixture(autouse=True)
def from_the_first_call(monkeypatch):
    """What is done at once is, however few calls there were."""
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 0)


def matrix(structure, dtype):
    """One of a symmetric pattern, whose values are symmetric in one way or in none."""
    rng = np.random.default_rng(0)
    T = sp.random_array((N, N), density=0.1, random_state=rng).tocsc().astype(dtype)
    if np.dtype(dtype).kind == "c":
        T.data *= 1 + 1j
    other = T.T if structure == "transposed" else T.conj().T
    diagonal = np.where(np.arange(N) % 2, -9, 9) if structure == "hermitian" else np.full(N, 9)
    A = T + other + sp.diags_array(diagonal.astype(dtype))
    A = sp.csc_array(A).astype(dtype)
    A.sort_indices()
    if structure == "general":
        A.data[: A.nnz // 2] *= 1.5
    return A


def as_looked_at(cache, A):
    """What `lookup` has to say, by a look at everything."""
    found = to_canonical(A, None)
    return found, cache.get(found)


def variants(A):
    """The same pattern with other values, and other patterns and forms with as many entries."""
    yield 3 * A
    yield sp.csc_matrix(A)
    for kind in ("positive", "hermitian", "transposed", "general"):
        B = matrix(kind, A.dtype)
        if B.nnz == A.nnz:
            yield B
    for value in (1e-20, 0.0):
        B = A.copy()
        B.setdiag(np.where(np.arange(N) == 7, value, B.diagonal()))
        yield B
    B = A.copy()
    free = np.setdiff1d(np.arange(N), B.indices[B.indptr[3] : B.indptr[4]])
    B.indices[B.indptr[4] - 1] = free[-1]
    B.sort_indices()
    yield B
    B = A.copy()
    B.indptr[5] += 1  # the last entry of a column is the first one of the column before
    yield B
    yield A.tocsr()
    yield A.tocoo()
    B = A.copy()
    B.data = B.data.astype(A.dtype.newbyteorder())
    yield B
    yield sp.csc_array((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), A.shape)
    B = A.copy()
    B.data = np.repeat(A.data, 2)[::2]
    yield B


@pytest.mark.parametrize("structure", ["positive", "hermitian", "transposed", "general"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_pattern_that_comes_again_is_what_a_look_at_everything_finds(dtype, structure):
    A, taken = matrix(structure, dtype), 0
    for other in variants(A):
        cache = AnalysisCache()
        as_looked_at(cache, A)
        with np.errstate(all="ignore"):
            found = cache.lookup(other)
        if found is None:
            continue
        taken += 1
        made, analysis = as_looked_at(cache, other)
        assert found[1] is analysis
        assert (found[0].method, found[0].hermitian) == (made.method, made.hermitian)
        for name in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(found[0], name), getattr(made, name))
        assert found[0].dtype == made.dtype
    assert taken >= 2


def test_a_pattern_that_comes_again_is_not_looked_at(monkeypatch):
    A = matrix("general", np.float64)
    frontal.factorize(A)
    monkeypatch.setattr("frontal.api.to_canonical", lambda *_, **__: pytest.fail("it was"))
    b = np.ones(N)
    np.testing.assert_allclose(A @ frontal.factorize(A).solve(b), b)
    np.testing.assert_allclose(A @ frontal.solve(2 * A, 2 * b), b)


def test_analysis_serves_only_what_was_asked_for(monkeypatch):
    A = to_canonical(matrix("hermitian", np.float64), None, kind="symmetric")
    cache = AnalysisCache()
    for fallback in (True, False, True):
        assert cache.get(A, fallback=fallback).fallback == fallback
    assert (cache.hits, cache.misses) == (1, 2)
    for ordering in ("amd", "natural"):
        cache.get(A, ordering, fallback=True)
    assert (cache.hits, cache.misses) == (1, 4)
    cache.get(A, fallback=True, backend="cpu")
    monkeypatch.setenv("FRONTAL_NUM_THREADS", str(thread_count() + 1))
    cache.get(A, fallback=True, backend="cpu")
    assert (cache.hits, cache.misses) == (1, 6)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused_all_the_same(value):
    for structure in ("positive", "general"):
        A = matrix(structure, np.float64)
        frontal.factorize(A)
        A.data[5] = value
        with pytest.raises(NonFiniteInputError, match="A"):
            frontal.factorize(A)


@pytest.mark.parametrize("damage", ["shape", "short", "list", "wide"])
def test_damaged_matrices_are_refused_as_ever(damage):
    A = matrix("general", np.float64)
    frontal.factorize(A)
    if damage == "shape":
        A._shape = (N + 1, N + 1)
    elif damage == "short":
        A.data = A.data[:-1]
    elif damage == "list":
        A.indptr = list(A.indptr)
    else:
        A._shape = (N, N + 1)
    with pytest.raises(ValueError, match=r"corrupt|square"):
        frontal.factorize(A)


def test_choices_are_heeded_where_a_pattern_comes_again():
    A = matrix("positive", np.float64)
    assert frontal.factorize(A).info["method"] == "cholesky"
    assert frontal.factorize(A, kind="general").info["method"] == "lu"
    assert frontal.factorize(A).info["method"] == "cholesky"
    assert frontal.factorize(A, ordering="natural").analysis.ordering.method == "natural"
    lower = sp.csc_array(sp.tril(A))
    frontal.factorize(lower)
    L = frontal.factorize(lower, kind="spd", triangle="lower")
    np.testing.assert_array_equal(L.A.toarray(), A.toarray())


def test_the_factor_of_a_pattern_that_comes_again_has_its_own_values():
    A = matrix("general", np.float64)
    frontal.factorize(A)
    values, b = A.data.copy(), np.ones(N)
    factor = frontal.factorize(A)
    wanted = A.copy()
    A.data[:] = np.nan
    np.testing.assert_allclose(wanted @ factor.solve(b), b)
    np.testing.assert_allclose(2 * wanted @ factor.refactorize(2 * values).solve(b), b)
