"""Columns that get no pivot from the diagonal, against brute force, and what is tied for them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import problems
from frontal.factor.analysis import Analysis
from frontal.matrix.canonical import canonical
from frontal.numeric.method import LDLH, LDLT, LU
from frontal.ordering import order
from frontal.ordering.etree import inverse
from frontal.symbolic.diagonal import columns_without_pivot, tiny_diagonal
from frontal.symbolic.equilibrate import modulus
from frontal.symbolic.matching import maximum_product_matching
from frontal.symbolic.phase import SymbolicOptions
from frontal.symbolic.scaling import ScalingRequest, equilibrate_symmetric, scaling_of

from ..conftest import fronts_cost


def front_of(analysis):
    """The front of each column of A."""
    by_place = np.repeat(np.arange(analysis.n_fronts), analysis.front_sizes()[0])
    return by_place[inverse(analysis.perm)]


@settings(deadline=None, max_examples=100)
@given(n=st.integers(1, 12), fronts=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_against_elimination(n, fronts, seed):
    """Early columns are those whose diagonal no elimination before them has filled."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.3), 1)
    dense = upper + upper.T + np.diag(rng.random(n) * (rng.random(n) < 0.5))
    place = rng.permutation(n).astype(np.int32)
    cuts = np.sort(rng.choice(np.arange(1, n), min(fronts, n) - 1, replace=False)) if n > 1 else []
    start = np.array([0, *cuts, n], np.int32)
    A = sp.csc_array(dense)
    tiny = tiny_diagonal(A)
    assert np.array_equal(tiny, dense.diagonal() == 0)
    early, alone = columns_without_pivot(A, tiny, place, start)
    turn = np.argsort(place)
    filled = dense[np.ix_(turn, turn)] != 0
    front = np.searchsorted(start, np.arange(n), "right") - 1
    for k in range(n):
        j = turn[k]
        assert early[j] == (not filled[k, k])
        inside = (front == front[k]) & (dense[np.ix_([j], turn)][0] != 0)
        assert alone[j] == (early[j] and not inside.any())
        filled[k + 1 :, k + 1 :] |= np.outer(filled[k + 1 :, k], filled[k, k + 1 :])


def test_stored_zeros_are_no_neighbours():
    A = sp.csc_array(np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]))
    A.data[A.indices != A.indptr.searchsorted(np.arange(A.nnz), "right") - 1] = 0
    one = np.zeros(3, np.bool_)
    one[0] = True
    order_of_fronts = np.arange(3, dtype=np.int32), np.array([0, 3], np.int32)
    assert columns_without_pivot(A, one, *order_of_fronts)[1].tolist() == [True, False, False]


@pytest.mark.parametrize("method", [LU, LDLT, LDLH], ids=lambda method: method.name)
def test_an_order_without_stranded_columns_stays(method):
    A = canonical(problems.kkt(900), kind="general")
    analysis = Analysis.from_matrix(A, method, backend="cpu")
    assert analysis.tiny == 300
    assert not analysis.paired
    assert analysis.matching is None
    order_alone = order(problems.kkt(900), "auto")
    assert analysis.ordering.cost == order_alone.cost
    every = analysis.all_paired(A)
    assert every.paired
    assert analysis.flops < every.flops


@pytest.mark.parametrize(("leaves", "few"), [(3, True), (300, False)])
def test_stranded_columns_are_tied_to_their_partners(monkeypatch, leaves, few):
    """Columns with one neighbour and no diagonal, which minimum degree eliminates at once."""
    monkeypatch.setattr("frontal.symbolic.phase.MAX_DELAYED_SHARE", 0)  # as for a GPU
    program = problems.kkt(1200)
    first = np.arange(leaves)
    twin = 2 * first + 1
    B = sp.coo_array((np.ones(leaves), (first, twin)), shape=(leaves, 1200))
    A = problems.tensor.csc(sp.block_array([[program, B.T], [B, None]]))
    leaf = 1200 + first
    with fronts_cost():
        plain = Analysis.from_matrix(
            canonical(A), LDLT, SymbolicOptions("given", order(A, "amd").perm)
        )
        analysis = Analysis.from_matrix(canonical(A), LDLT, SymbolicOptions("amd"))
        every = Analysis.from_matrix(canonical(A), LDLT, SymbolicOptions("amd", pairs="all"))
    assert alone(A, plain)[leaf].mean() > 0.5
    assert not plain.paired
    assert analysis.paired
    assert analysis.ordering.method == "amd"
    front = front_of(analysis)
    assert np.array_equal(front[leaf], front[twin])
    assert not alone(A, analysis)[leaf].any()
    assert (every.flops == analysis.flops) is not few


def test_few_stranded_columns_are_delayed_on_the_cpu():
    """Another ordering for three columns of 1503 would take longer than their delays."""
    first = np.arange(3)
    B = sp.coo_array((np.ones(3), (first, 2 * first + 1)), shape=(3, 1200))
    A = problems.tensor.csc(sp.block_array([[problems.kkt(1200), B.T], [B, None]]))
    analysis = frontal.analyze(A, backend="cpu")
    assert not analysis.paired
    assert 1 <= alone(A, analysis).sum() <= 3
    factor = analysis.factorize(A)
    assert np.count_nonzero(factor.analysis.perm != analysis.perm) >= 1
    _, info = factor.solve(A @ np.ones(A.shape[0]), return_info=True)
    assert info.perturbed_pivots == 0
    assert info.backward_error <= 4 * np.finfo(float).eps


def alone(A, analysis):
    """Whether each column of A is stranded in the fronts of an analysis."""
    tiny, place = tiny_diagonal(A), inverse(analysis.perm)
    return columns_without_pivot(A, tiny, place, analysis.plan.start)[1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_symmetric_scaling(dtype):
    """One array of powers of two; the largest entry of each row comes near 1."""
    rng = np.random.default_rng(0)
    A = abs(problems.kkt(300, spread=3)).toarray() * np.outer(
        *2 * [10.0 ** rng.uniform(-6, 6, 300)]
    )
    phase = rng.uniform(-3, 3, A.shape)
    A = A * np.exp(1j * (phase + phase.T)) if np.dtype(dtype).kind == "c" else A
    matrix = canonical(sp.csc_array(A.astype(dtype)), kind="general")
    for scaling in (
        scaling_of(matrix, ScalingRequest(), True),
        scaling_of(
            matrix,
            ScalingRequest(
                Analysis.from_matrix(matrix, LDLT, SymbolicOptions(pairs="all")).matching
            ),
            True,
        ),
    ):
        assert scaling.row is scaling.column
        assert np.array_equal(np.frexp(scaling.row)[0], np.full(300, 0.5))
        largest = (modulus(A) * np.outer(scaling.row, scaling.row)).max(axis=0)
        assert largest.max() <= 2.0
        assert largest.min() >= 0.25


def test_symmetric_scaling_is_that_of_the_matching():
    """Matched entries stay near 1, which equilibration of rows alone does not bring about."""
    rng = np.random.default_rng(0)
    size = 10.0 ** rng.uniform(-8, 8, 300)
    A = canonical(
        sp.csc_array(sp.diags_array(size) @ problems.kkt(300, spread=6) @ sp.diags_array(size))
    )
    matching = maximum_product_matching(A.A)
    scale = scaling_of(A, ScalingRequest(matching), True).row
    matched = abs(A.A.toarray()[matching.rows, np.arange(300)]) * scale[matching.rows] * scale
    assert matched.min() >= 0.25
    assert matched.max() <= 2.0


def test_symmetric_scaling_of_extremes():
    A = sp.csc_array(
        np.array([[1e-300, 0, 0, 0], [0, 0, 1e300, 0], [0, 1e300, 1, 0], [0, 0, 0, 0]])
    )
    scale = equilibrate_symmetric(A.indptr, A.indices, abs(A.data))
    scaled = scale[:, None] * A.toarray() * scale
    assert np.allclose(scaled.max(axis=0), [1, 1, 1, 0], atol=0.6)
    assert np.isfinite(1 / scale).all()
