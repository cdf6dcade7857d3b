"""Elimination tree, postorder and counts against elimination on a dense boolean matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal.ordering import etree
from frontal.ordering.etree import EliminationTree, depths, inverse
from frontal.ordering.graph import adjacency
from frontal.problems import from_name


def random_graph(n: int, density: float, seed: int):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, random_state=rng)
    return adjacency(A), rng.permutation(n).astype(np.int32)


def eliminated(graph, perm) -> np.ndarray:
    """Boolean pattern of the Cholesky factor, by elimination."""
    n = graph.n
    M = np.eye(n, dtype=bool)
    for j in range(n):
        M[j, graph.indices[graph.indptr[j] : graph.indptr[j + 1]]] = True
    M = M[np.ix_(perm, perm)]
    for k in range(n):
        below = np.flatnonzero(M[k + 1 :, k]) + k + 1
        M[np.ix_(below, below)] = True
    return np.tril(M)


graphs = given(
    n=st.integers(1, 25), density=st.sampled_from([0.0, 0.05, 0.15, 0.5]), seed=st.integers(0, 99)
)


@settings(deadline=None, max_examples=60)
@graphs
def test_cost_is_that_of_elimination(n, density, seed):
    graph, perm = random_graph(n, density, seed)
    counts = eliminated(graph, perm).sum(axis=0)
    cost = EliminationTree.from_graph(graph, perm).cost()
    assert cost.nnz == counts.sum()
    assert cost.flops == (counts.astype(float) ** 2).sum()


@settings(deadline=None, max_examples=60)
@graphs
def test_postordered_tree(n, density, seed):
    graph, perm = random_graph(n, density, seed)
    post, rank, parent, count = EliminationTree.from_graph(graph, perm)
    L = eliminated(graph, post)
    assert np.array_equal(inverse(post), rank)
    assert np.array_equal(count, L.sum(axis=0))
    for j in range(n):
        below = np.flatnonzero(L[j + 1 :, j]) + j + 1
        assert parent[j] == (below[0] if below.size else -1)
    # in a postorder every subtree is contiguous and ends at its root
    first = np.arange(n)
    for j in range(n):
        if parent[j] >= 0:
            first[parent[j]] = min(first[parent[j]], first[j])
    size = np.ones(n, int)
    for j in range(n):
        if parent[j] >= 0:
            size[parent[j]] += size[j]
    assert np.array_equal(first, np.arange(n) - size + 1)


def test_depths_of_a_chain_and_a_star():
    assert depths(np.array([1, 2, 3, -1], np.int32)).tolist() == [4, 3, 2, 1]
    assert depths(np.array([3, 3, 3, -1], np.int32)).tolist() == [2, 2, 2, 1]


def test_empty_graph():
    cost = EliminationTree.from_graph(adjacency(sp.csc_array((0, 0))), np.empty(0, np.int32)).cost()
    assert (cost.nnz, cost.flops, cost.height) == (0, 0.0, 0)


@pytest.mark.parametrize(
    ("system", "ordering", "trees"),
    [("poisson2d:12", "rcm", 1), ("stokes2d:6", "rcm", 1), ("poisson2d:12", "amd", 0)],
)
def test_an_analysis_makes_the_tree_of_an_order_once(monkeypatch, system, ordering, trees):
    made = []
    compute = etree.postordered_tree
    monkeypatch.setattr(etree, "postordered_tree", lambda *a: made.append(a) or compute(*a))
    analysis = frontal.analyze(from_name(system), ordering=ordering)
    assert len(made) == trees
    assert analysis.ordering.tree is None  # the plan has taken its place
