"""Leaves of one or two pivot columns, whose parent computes their contributions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal

from ..conftest import fronts_cost, scaled_residual

EPS = np.finfo(float).eps


def network(leaves, hubs, width, kind, dtype=np.float64, rows=5, seed=0, first=0):
    """Groups of `width` columns, each joined to at most `rows` of the last `hubs` columns.

    They are joined to the `first` hubs, too.
    """
    rng = np.random.default_rng(seed)
    count = leaves * width
    inside = np.kron(np.eye(leaves), np.ones((width, width)) - np.eye(width))
    across = np.zeros((hubs, count))
    for leaf in range(leaves):
        near = rng.choice(hubs, int(rng.integers(0, rows + 1)), replace=False)
        near = np.union1d(near, np.arange(first))
        across[near, leaf * width : (leaf + 1) * width] = rng.standard_normal((near.size, width))
    core = rng.standard_normal((hubs, hubs))
    A = np.block([[inside, np.zeros((count, hubs))], [across, core]])
    A = np.tril(A, -1).astype(dtype)
    if np.dtype(dtype).kind == "c":
        A = A * np.exp(1j * np.arange(A.shape[0]))
    A = A + {"symmetric": A.T}.get(kind, A.conj().T)
    signs = np.where(rng.random(A.shape[0]) < 0.5, -1, 1) if kind != "spd" else 1
    np.fill_diagonal(A, signs * (1 + np.abs(A).sum(axis=1)))
    return A


def factorized(A, kind):
    """The factor in the order of the columns, with a front for each chain of equal columns."""
    with fronts_cost():
        return frontal.factorize(sp.csc_array(A), kind=kind, ordering="natural", backend="cpu")


def leaves_of(plan):
    """The number of fronts without children of at most two columns, and with update rows."""
    k, m = np.diff(plan.start), np.diff(plan.pointer)
    return int(((np.diff(plan.child_pointer) == 0) & (k <= 2) & (m > 0)).sum())


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("spd", "f8"), ("spd", "c16"), ("symmetric", "f8"), ("symmetric", "c16"),
     ("hermitian", "c16"), ("general", "f8")],
)  # fmt: skip
def test_leaves_of_hubs_add_their_contributions(kind, dtype, width):
    A = network(60, 9, width, kind, np.dtype(dtype))
    factor, b = factorized(A, kind), np.arange(1.0, A.shape[0] + 1)
    assert (leaves_of(factor.analysis.plan) >= 40) is (width < 3)
    for trans, op in (("N", A), ("T", A.T), ("H", A.conj().T)):
        assert scaled_residual(op, factor.solve(b, trans, refine=0), b) <= 4 * EPS
    two = np.stack([b, 1 / b], axis=1)
    assert scaled_residual(A, factor.solve(two, refine=0), two) <= 4 * EPS
    again = factor.copy().refactorize(sp.csc_array(4 * A))
    np.testing.assert_array_equal(again.solve(4 * b, refine=0), factor.solve(b, refine=0))


@pytest.mark.parametrize("kind", ["symmetric", "hermitian"])
def test_leaves_with_coupled_pivots_add_their_contributions(kind):
    """Two columns without diagonal entries are one pivot."""
    dtype = np.float64 if kind == "symmetric" else np.complex128
    A = network(50, 7, 2, kind, dtype)
    diagonal = np.arange(100)
    A[diagonal, diagonal] = 0
    factor, b = factorized(A, kind), np.ones(A.shape[0])
    assert np.count_nonzero(factor._numbers.factor.subdiagonal()) >= 50
    assert leaves_of(factor.analysis.plan) >= 30
    assert scaled_residual(A, factor.solve(b, refine=0), b) <= 16 * EPS


@pytest.mark.parametrize("width", [1, 2])
def test_unstable_leaves_are_delayed(width):
    """Their parent eliminates them, and adds nothing else of them."""
    A = network(40, 6, width, "symmetric", rows=3, seed=2)
    weak = np.arange(0, 40 * width, 7)
    A[weak, weak] = 1e-4
    if width == 2:
        A[weak, weak ^ 1] = A[weak ^ 1, weak] = 1e-4
    factor, b = factorized(A, "symmetric"), np.ones(A.shape[0])
    x, info = factor.solve(b, return_info=True)
    assert info.perturbed_pivots == 0
    assert factor.analysis.amendments == 1
    assert scaled_residual(A, x, b) <= 4 * EPS
    assert scaled_residual(A, factor.solve(b, refine=0), b) <= 100 * EPS


@pytest.mark.parametrize("kind", ["spd", "symmetric"])
def test_leaves_of_a_tiled_parent_add_to_each_tile(monkeypatch, kind):
    A, bits = network(300, 660, 1, kind, rows=20, first=1), []
    for threads in ("1", "3"):
        monkeypatch.setenv("FRONTAL_NUM_THREADS", threads)
        factor = factorized(A, kind)
        assert max(np.diff(factor.analysis.plan.start)) >= 640
        b = np.ones(A.shape[0])
        bits.append(factor.solve(b, refine=0))
        assert scaled_residual(A, bits[-1], b) <= 4 * EPS
    np.testing.assert_array_equal(*bits)


def test_a_leaf_that_is_not_positive_is_named():
    A = network(30, 5, 1, "spd")
    A[17, 17] = -1
    with pytest.raises(frontal.NotPositiveDefiniteError, match="17"):
        factorized(A, "spd")
