"""LDL^T, LDL^H and LU on the CPU: pivots that bear their columns, and columns that are delayed."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import problems
from frontal.cpu import eliminate
from frontal.cpu.host_system import direct
from frontal.cpu.ldl import front as ldl
from frontal.numeric.method import LDLH, LDLT, LU
from frontal.symbolic.delayed_plan import delay_to_parent

from ..conftest import fronts_cost, scaled_residual
from ..matrices import zero_diagonal_system

METHODS = [(LDLT, "f4"), (LDLT, "f8"), (LDLT, "c16"), (LDLH, "c8"), (LDLH, "c16"), (LU, "f8")]
APART = -1.0  # seconds a front: the more the better


def factored(A, method, **choices):
    kind = {LU: "general", LDLT: "symmetric", LDLH: "hermitian"}[method]
    return frontal.factorize(A, kind=kind, backend="cpu", **choices)


def residuals(factor, A, refine=None):
    b = np.cos(np.arange(A.shape[0])).astype(A.dtype)
    ops = {"N": A, "T": A.T, "H": A.conj().T}
    return [scaled_residual(op, factor.solve(b, t, refine=refine), b) for t, op in ops.items()]


@pytest.mark.parametrize(("method", "dtype"), METHODS)
@pytest.mark.parametrize(("n", "density"), [(7, 0.5), (60, 0.08), (260, 0.012), (200, 0.6)])
def test_matrices_with_zeros_on_the_diagonal(method, dtype, n, density):
    A = zero_diagonal_system(method, dtype, n, density, n)
    eps = np.finfo(A.dtype).eps
    factor = factored(A, method)
    for again in (factor, factor.refactorize(A)):
        assert again.info["perturbed_pivots"] == 0
        assert max(residuals(again, A)) <= 4 * eps
        assert max(residuals(again, A, refine=0)) <= 1e4 * eps


@pytest.mark.parametrize(("method", "dtype"), METHODS)
def test_columns_go_up_and_stay_there(method, dtype):
    """In the order of the matrix, with a front for each few columns, many have no pivot there."""
    A = zero_diagonal_system(method, dtype, 120, 0.03, 3, zeros=0.9)
    with fronts_cost(APART):
        factor = factored(A, method, ordering="natural")
    first = factor.analysis
    assert first.amendments == 1 or method is LU  # which pairs columns where the order is given
    symbolic = factor._numbers.factor.symbolic
    assert symbolic is first.symbolic
    factor.refactorize(A)
    assert factor.analysis is first
    assert max(residuals(factor, A)) <= 4 * np.finfo(A.dtype).eps
    assert factor._numbers.factor.panels.size == factor._numbers.factor.panel[-1]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("method", "dtype"), METHODS)
def test_threads_give_the_same_bits(monkeypatch, method, dtype, threads):
    A = zero_diagonal_system(method, dtype, 900, 0.004, 1, zeros=0.3)
    monkeypatch.setattr("frontal.cpu.backend._INLINE_FLOPS", 0)
    found = []
    for count in (1, threads):
        monkeypatch.setenv("FRONTAL_NUM_THREADS", str(count))
        found.append(factored(A, method)._numbers.factor)
    one, other = found
    assert np.array_equal(one.symbolic.perm, other.symbolic.perm)
    np.testing.assert_array_equal(one.pivots, other.pivots)
    np.testing.assert_array_equal(one.diagonal(), other.diagonal())
    b = np.cos(np.arange(900.0)).astype(dtype)[:, None]
    np.testing.assert_array_equal(direct(one, b, "N"), direct(other, b, "N"))


def bordered(k, m, weak, seed, indefinite=False):
    """A front of k columns, `weak` of them with entries in the border alone, below one of m.

    The first column is a leaf below the border, so that this is a front of its own. `indefinite`
    columns have zeros on the diagonal, and pivots of order 2.
    """
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((k + m, k + m))
    a[:k, :k] += 4 * np.sqrt(k) * np.diag(rng.choice([-1.0, 1.0], k))
    if indefinite:
        np.fill_diagonal(a[:k, :k], 0)
    a[weak, :k] = a[:k, weak] = 0
    a[weak, weak] = 1e-5
    a[k:, k:] += 20 * np.sqrt(k + m) * np.eye(m)
    A, stored = np.eye(1 + k + m), np.ones((1 + k + m, 1 + k + m), bool)
    A[1:, 1:] = a + a.T
    stored[0, 1 : k + 1] = stored[1 : k + 1, 0] = False
    return sp.csc_array(sp.coo_array((A[stored], stored.nonzero())))


def analyzed(A, k, m):
    """The analysis of `bordered`, with these fronts."""
    with fronts_cost(APART):
        analysis = frontal.analyze(A, kind="symmetric", ordering="natural", backend="cpu")
    assert np.array_equal(analysis.front_sizes(), [[1, k, m], [m, m, 0]])
    return analysis


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("k", "m", "distance"), [(40, 30, 37), (200, 120, 37), (200, 120, 1), (500, 300, 37)]
)
def test_what_fails_in_a_block_is_undone(monkeypatch, k, m, distance, threads):
    """Columns that L21 refuses, in the middle of blocks: the others keep their pivots.

    Where nearly all are refused, the border takes over more columns than it has.
    """
    monkeypatch.setattr("frontal.cpu.backend._INLINE_FLOPS", 0)
    monkeypatch.setenv("FRONTAL_NUM_THREADS", str(threads))
    weak = np.arange(5, k, distance)
    A = bordered(k, m, weak, k)
    factor = analyzed(A, k, m).factorize(A)
    assert factor.growth <= ldl.MAX_MULTIPLIER
    assert max(residuals(factor, A, refine=0)) <= 1e-14
    signs = np.sign(scipy.linalg.eigvalsh(A.toarray()))
    numbers = factor._numbers.factor
    d, e = numbers.diagonal(), numbers.subdiagonal()
    j = np.flatnonzero(e)
    alone = np.setdiff1d(np.arange(d.size), np.append(j, j + 1))
    assert (d[alone] > 0).sum() + j.size == (signs > 0).sum()
    assert eliminate.TILE == 256  # so that the largest of these has several tiles


def test_products_with_a_pivot_of_order_2_at_their_end():
    """A product of 256 columns would end between the two."""
    A = bordered(300, 60, [], 4, indefinite=True)
    factor = analyzed(A, 300, 60).factorize(A)
    first, end = 1, 1 + ldl._DEPTH
    assert factor._numbers.factor.symbolic.plan.start[1:].tolist() == [first, 301, 361]
    assert factor._numbers.factor.subdiagonal()[end - 1] != 0
    assert max(residuals(factor, A, refine=0)) <= 1e-13


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([LDLT, LU]))
def test_plans_are_amended(seed, method):
    """Whichever columns move to their parents, the plan is one for the same matrix."""
    rng = np.random.default_rng(seed)
    A = sp.csc_array(problems.poisson2d(7) + 1e-3 * sp.eye_array(49))
    kind = "general" if method is LU else "symmetric"
    analysis = frontal.analyze(A, kind=kind, ordering="amd", backend="cpu")
    symbolic = analysis.symbolic
    for _ in range(2):
        failed, start = rng.choice(49, int(rng.integers(0, 20)), replace=False), symbolic.plan.start
        first = np.searchsorted(start, failed, "right") - 1  # of LU, with the next rows
        first, last = start[first], start[first + 1]
        rows = first + (failed - first + 1) % (last - first) if method is LU else failed
        symbolic = delay_to_parent(symbolic, failed, rows)
        plan = symbolic.plan
        assert plan.start[-1] == 49
        assert np.all(np.diff(plan.start) > 0)
        assert np.all(plan.parent[:-1] > np.arange(plan.parent.size - 1)) or -1 in plan.parent
        np.testing.assert_array_equal(np.sort(symbolic.perm), np.arange(49))
    factor = analysis.amended(symbolic).factorize(A)
    assert max(residuals(factor, A, refine=0)) <= 1e-13


def test_null_columns_are_found():
    """The Laplacian of a graph with two parts, and a constraint that is there twice."""
    graph = problems.poisson2d(6).tolil()
    graph.setdiag(0)
    graph = sp.csgraph.laplacian(sp.csr_array(abs(graph)))
    A = sp.block_diag([graph, graph], format="csc")
    for kind in ("symmetric", "general"):
        factor = frontal.analyze(A, kind=kind, backend="cpu").engine.factorize(A.data, None)
        assert factor.nulls.size == 2, kind


def test_a_pair_with_a_sound_diagonal_entry_is_none():
    """Rook pivoting takes that entry alone: with its partner it would be nearly singular."""
    n = 140  # rows of a front that is eliminated by blocks
    A = np.diag(np.where(np.arange(n) % 2, 2.0, -2.0))
    A[0, 0], A[0, 1], A[1, 0], A[1, 1] = 1e-6, 1e-3, 1e-3, 1 + 1e-10
    A[2:, 0] = A[0, 2:] = 1e-4 * np.cos(np.arange(2.0, n))
    A[2:, 1] = A[1, 2:] = 1e-4
    analysis = frontal.analyze(sp.csc_array(A), kind="symmetric", ordering="natural", backend="cpu")
    assert analysis.n_fronts == 1
    factor = analysis.engine.factorize(sp.csc_array(A).data, None)
    assert factor.growth() <= 10
