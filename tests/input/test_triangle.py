"""One triangle of a symmetric or Hermitian matrix in place of both."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.matrix.half_storage import completed

from ..conftest import TYPES

PARTS = {"lower": sp.tril, "upper": sp.triu}
each_part = pytest.mark.parametrize("part", PARTS)
each_type = pytest.mark.parametrize("dtype", TYPES)


def matrix(kind, dtype, seed=0):
    A = problems.poisson2d(6) if kind == "spd" else problems.kkt(60, seed=seed)
    if np.dtype(dtype).kind == "c":
        A = problems.turned(A, seed, hermitian=kind != "symmetric")
    return sp.csc_array(A.astype(dtype))


def like(a, b):
    return np.abs(a - b).max() <= 1e3 * np.finfo(a.dtype).eps * np.abs(b).max()


@pytest.mark.parametrize("form", ["csc", "csr", "coo", "unsorted"])
@each_part
@pytest.mark.parametrize("kind", ["spd", "symmetric", "hermitian"])
@each_type
def test_a_triangle_is_the_matrix(dtype, kind, part, form):
    A = matrix(kind, dtype)
    b = np.arange(1, A.shape[0] + 1, dtype=dtype)
    expected = np.linalg.solve(A.toarray(), b)
    T = PARTS[part](A, format="csc" if form == "unsorted" else form)
    if form == "unsorted":  # columns from the bottom up
        turn = np.lexsort((-T.indices, np.repeat(np.arange(T.shape[0]), np.diff(T.indptr))))
        T = sp.csc_array((T.data[turn], T.indices[turn], T.indptr), shape=T.shape)
    assert like(frontal.solve(T, b, kind=kind, triangle=part), expected)
    factor = frontal.factorize(T, kind=kind, triangle=part)
    assert like(factor.solve(b), expected)
    twice = T.copy()
    twice.data = twice.data * 2
    assert like(factor.refactorize(twice.data).solve(b), expected / 2)
    assert like(factor.refactorize(T, triangle=part).solve(b), expected)
    assert like(factor.refactorize(2 * A).solve(b), expected / 2)  # both triangles again
    analysis = frontal.analyze(T, kind=kind, triangle=part)
    assert np.array_equal(analysis.perm, frontal.analyze(A, kind=kind).perm)
    assert like(frontal.factorize(T, analysis, triangle=part).solve(b), expected)


@each_part
def test_a_lone_triangle_gives_a_warning(part):
    T, b = sp.csc_array(PARTS[part](problems.poisson2d(4))), np.ones(16)
    with pytest.warns(frontal.TriangleWarning, match=f"triangle='{part}'"):
        x = frontal.solve(T, b)
    assert like(x, np.linalg.solve(T.toarray(), b))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frontal.solve(T, b, kind="general")
        frontal.solve(sp.eye_array(16, format="csc"), b)
        frontal.solve(sp.csc_array(problems.convdiff2d(4)), b)


@each_part
def test_lone_triangle_of_an_earlier_pattern_warns(part, monkeypatch):
    monkeypatch.setattr("frontal.analysis_cache._often", lambda: True)
    T = sp.csc_array(PARTS[part](problems.poisson2d(4)))
    for call in (frontal.factorize, frontal.factorize, lambda A: frontal.solve(A, np.ones(16))):
        with pytest.warns(frontal.TriangleWarning, match=f"triangle='{part}'"):
            call(T)


@each_part
def test_repeated_entries_are_summed(part):
    A = problems.poisson2d(4)
    T = sp.coo_array(PARTS[part](A))
    rows, cols = T.coords
    twice = np.tile(rows, 2), np.tile(cols, 2)
    factor = frontal.factorize(sp.coo_array((np.tile(T.data / 2, 2), twice)), triangle=part)
    b = np.ones(16)
    assert like(factor.solve(b), np.linalg.solve(A.toarray(), b))
    factor.refactorize(np.tile(T.data, 2))
    assert like(factor.solve(b), np.linalg.solve(2 * A.toarray(), b))


@each_part
def test_pattern(part):
    """Against SciPy: every value in its two places, columns ascending."""
    rng = np.random.default_rng(0)
    T = sp.csc_array(PARTS[part](sp.random_array((40, 40), density=0.1, random_state=rng)))
    T.sort_indices()
    found, indptr, indices = completed(T.indptr.astype(np.int64), T.indices, part, True)
    data = found.complete(T.data * (1 + 2j))
    rest = T - sp.diags_array(T.diagonal())
    expected = sp.csc_array(T * (1 + 2j) + rest.T * (1 - 2j))
    whole = sp.csc_array((data, indices, indptr), shape=(40, 40))
    assert abs(whole - expected).max() == 0
    assert whole.has_canonical_format


def test_zeros_in_the_other_triangle_are_no_entries():
    T = sp.csc_array(np.array([[2.0, 5.0], [1.0, 3.0]]))
    T.data[2] = 0.0
    factor = frontal.factorize(T, triangle="lower")
    assert like(factor.solve(np.array([3.0, 4.0])), np.ones(2))
    with pytest.raises(ValueError, match=r"only the lower triangle.*A\[0, 1\] = 7"):
        factor.refactorize(np.array([2.0, 1.0, 7.0, 3.0]))
    assert like(factor.solve(np.array([3.0, 4.0])), np.ones(2))  # as it was


def test_what_is_refused():
    A, complex_one = problems.poisson2d(3), matrix("hermitian", np.complex128)
    b = np.ones(9)
    with pytest.raises(ValueError, match="only the upper triangle is stored"):
        frontal.solve(A, b, triangle="upper")
    with pytest.raises(ValueError, match="choose 'lower', 'upper' or None"):
        frontal.solve(A, b, triangle="L")
    with pytest.raises(ValueError, match="needs a symmetric matrix"):
        frontal.solve(sp.tril(A), b, kind="general", triangle="lower")
    with pytest.raises(ValueError, match="kind='hermitian' or 'spd' for its adjoint"):
        frontal.analyze(sp.tril(complex_one), triangle="lower")
    with pytest.raises(ValueError, match="triangle='lower' or 'upper'"):
        frontal.factorize(A).refactorize(sp.tril(A))
    general = frontal.analyze(complex_one, kind="general")
    with pytest.raises(ValueError, match="needs a symmetric matrix"):
        general.factorize(sp.tril(complex_one), triangle="lower")
    T = sp.csc_array(sp.tril(complex_one) + 1j * sp.eye_array(60))
    with pytest.raises(ValueError, match="requires a Hermitian matrix"):
        frontal.solve(T, np.ones(60), kind="hermitian", triangle="lower")
