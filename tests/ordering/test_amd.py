"""Minimum degree: permutations, orders without fill, fill against SuiteSparse, constraints."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from frontal.ordering.amd import amd, amd_tree
from frontal.ordering.etree import EliminationTree
from frontal.ordering.graph import Graph, adjacency

from ..matrices import stencil

# Entries of L under amd_order of SuiteSparse 5.12 (AMD 2.4.6), default settings.
SUITESPARSE = {
    "bcsstk14": 109078,
    "c-21": 34688,
    "memplus": 71955,
    "case9241pegase_J": 116166,
    "kkt_AUG2DC_eq": 257245,
    "aft01": 289180,
    "epb1": 483196,
    "bcsstk16": 812183,
    "ngs_stokes_2d": 1906430,
    "kkt_CVXQP1_L_eq": 3733612,
    "ngs_elasticity_p1": 8084185,
}


def graph_of(n: int, rows, cols) -> Graph:
    return adjacency(sp.coo_array((np.ones(len(rows)), (rows, cols)), shape=(n, n)))


def fill(graph: Graph, **options) -> int:
    """Entries of L in the order of `amd`, which is checked to be a permutation."""
    perm = amd(graph.indptr, graph.indices, **options)
    assert perm.dtype == np.int32
    assert np.array_equal(np.sort(perm), np.arange(graph.n))
    return EliminationTree.from_graph(graph, perm).cost().nnz


def dissection(*shape: int, depth: int) -> np.ndarray:
    """Classes of a geometric nested dissection: halves first, then the plane between them."""
    where = np.indices(shape).reshape(len(shape), -1)
    classes = np.zeros(where.shape[1], np.int64)

    def cut(nodes, depth, number):
        if depth > 0:
            x = where[:, nodes]
            x = x[np.argmax(np.ptp(x, axis=1))]
            middle = (x.min() + x.max()) // 2
            number = cut(nodes[x < middle], depth - 1, number)
            number = cut(nodes[x > middle], depth - 1, number)
            nodes = nodes[x == middle]
        classes[nodes] = number
        return number + 1

    cut(np.arange(classes.size), depth, 0)
    return classes


@settings(max_examples=100, deadline=None)
@given(
    n=st.integers(0, 70),
    degree=st.floats(0, 30),
    hubs=st.integers(0, 3),
    classes=st.integers(0, 5),
    dense=st.sampled_from([-1.0, 0.0, 1.0, 10.0]),
    aggressive=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_graph_gives_a_permutation_that_keeps_the_classes(
    n, degree, hubs, classes, dense, aggressive, seed
):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (2, int(n * degree / 2))) if n else np.zeros((2, 0), int)
    hub = np.repeat(np.arange(min(hubs, n)), n)
    rows, cols = np.append(edges[0], hub), np.append(edges[1], np.tile(np.arange(n), min(hubs, n)))
    graph = graph_of(n, rows, cols)
    constraint = rng.integers(-2, classes - 1, n) if classes else None
    options = {"constraint": constraint, "dense": dense, "aggressive": aggressive}
    perm = amd(graph.indptr, graph.indices, **options)
    assert np.array_equal(np.sort(perm), np.arange(n))
    assert np.array_equal(perm, amd(graph.indptr, graph.indices, **options))
    if constraint is not None:
        assert (np.diff(constraint[perm]) >= 0).all()


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 60),
    degree=st.floats(0, 20),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_elimination_tells_the_counts_of_columns(n, degree, weighted, seed):
    rng = np.random.default_rng(seed)
    graph = graph_of(n, *rng.integers(0, max(n, 1), (2, int(n * degree / 2))))
    weights = rng.integers(1, 4, n) if weighted else np.ones(n, int)
    perm, tree = amd_tree(graph.indptr, graph.indices, weights if weighted else None, -1.0)
    assert np.array_equal(perm, amd(graph.indptr, graph.indices, weights=weights, dense=-1.0))
    group = np.repeat(np.arange(n), weights)
    first = np.cumsum(weights) - weights
    given = np.concatenate([first[i] + np.arange(weights[i]) for i in perm] or [first])
    expected = EliminationTree.from_groups(graph, weights, group.astype(np.int32), given)
    parent, counts = tree
    assert np.array_equal(counts[np.argsort(given)], expected.counts[expected.iperm])
    below = np.flatnonzero(parent >= 0)
    assert (parent[below] > below).all()
    assert (counts[parent[below]] >= counts[below] - 1).all()
    assert (counts[parent < 0] == 1).all()


def test_dense_nodes_leave_no_tree():
    graph = adjacency(stencil(30, 30))
    assert amd_tree(graph.indptr, graph.indices, None, 10.0)[1] is not None
    hub = graph_of(900, np.zeros(900, int), np.arange(900))
    assert amd_tree(hub.indptr, hub.indices, None, 10.0)[1] is None


@pytest.mark.parametrize("n", [0, 1, 9])
def test_no_edges(n):
    assert fill(graph_of(n, [], [])) == n
    assert fill(graph_of(n, [], []), constraint=np.arange(n) % 2) == n


def test_trees_get_no_fill():
    rng = np.random.default_rng(1)
    for n in (2, 50, 5000):
        child = np.arange(1, n)
        assert fill(graph_of(n, child, child - 1)) == 2 * n - 1  # path
        assert fill(graph_of(n, child, 0 * child)) == 2 * n - 1  # star, dense if n is large
        assert fill(graph_of(n, child, rng.integers(0, child))) == 2 * n - 1  # random tree


def test_cycle_and_band_and_arrow():
    n, k = 1000, 7
    i = np.arange(n)
    assert fill(graph_of(n, i, (i + 1) % n)) == 2 * n + n - 3  # a cycle is triangulated
    tip = np.repeat(np.arange(k), n)
    least = n * (k + 1) - k * (k + 1) // 2
    # The tip, one variable of weight k, may go before the last k nodes: its degree is external.
    assert least <= fill(graph_of(n, tip, np.tile(i, k)), dense=-1) <= least + k * (k - 1) // 2
    band = sp.diags_array(np.ones((2 * k + 1, 1)), offsets=np.arange(-k, k + 1), shape=(n, n))
    assert least <= fill(adjacency(band)) <= 1.03 * least


@pytest.mark.parametrize("dense", [-1, 10])
def test_complete_graph(dense):
    n = 300
    assert fill(adjacency(sp.csr_array(np.ones((n, n)))), dense=dense) == n * (n + 1) // 2


def test_dense_nodes_end_their_class():
    n = 4000
    i = np.arange(1, n)
    hubs = np.array([17, 1234, 3999])
    rows, cols = np.append(i, np.repeat(hubs, n)), np.append(i - 1, np.tile(np.arange(n), 3))
    graph = graph_of(n, rows, cols)
    assert set(amd(graph.indptr, graph.indices)[-3:]) == set(hubs)
    path = (n - 3) + (n - 3 - 3)  # the hubs leave three pieces of a path
    assert fill(graph) == path + 3 * (n - 3) + 6
    classes = (np.arange(n) >= n // 2).astype(int)
    perm = amd(graph.indptr, graph.indices, constraint=classes)
    assert set(perm[n // 2 - 2 : n // 2]) == {17, 1234}
    assert perm[-1] == 3999


@pytest.mark.parametrize(
    ("shape", "box", "expected"),
    [((60, 60), False, 59765), ((300, 300), False, 2928059), ((30, 30, 30), False, 5605774)],
)
def test_fill_of_grids(shape, box, expected):
    assert fill(adjacency(stencil(*shape, box=box))) == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("name", SUITESPARSE)
def test_fill_of_matrices(shared_matrix, name):
    graph = adjacency(shared_matrix(name))
    assert fill(graph) <= 1.03 * SUITESPARSE[name]


def test_dense_rows_do_not_spoil_the_degrees(shared_matrix):
    # SuiteSparse counts dense neighbours in the first degrees: 37177 entries.
    assert fill(adjacency(shared_matrix("CRESC132"))) <= 1.03 * 22580


@pytest.mark.parametrize(
    ("shape", "depth", "expected"), [((60, 60), 4, 64610), ((30, 30, 30), 7, 5947168)]
)
def test_nested_dissection_with_minimum_degree_inside(shape, depth, expected):
    """The expected numbers are those of SuiteSparse's camd_order with the same classes."""
    classes = dissection(*shape, depth=depth)
    graph = adjacency(stencil(*shape))
    perm = amd(graph.indptr, graph.indices, constraint=classes)
    assert (np.diff(classes[perm]) >= 0).all()
    assert EliminationTree.from_graph(graph, perm).cost().nnz == pytest.approx(expected, rel=0.03)


def test_constraints_at_their_limits():
    graph = adjacency(stencil(40, 40))
    free = amd(graph.indptr, graph.indices)
    same = amd(graph.indptr, graph.indices, constraint=np.full(graph.n, 7))
    assert np.array_equal(free, same)
    order = np.random.default_rng(2).permutation(graph.n)
    assert np.array_equal(amd(graph.indptr, graph.indices, constraint=np.argsort(order)), order)


def test_nodes_without_neighbours_survive_the_compaction_of_the_workspace():
    inner, isolated = adjacency(stencil(100, 100)), 50
    indptr = np.append(inner.indptr, np.full(isolated, inner.indptr[-1]))
    graph = Graph(indptr, inner.indices, inner.n + isolated)
    last = np.arange(graph.n) >= inner.n
    assert fill(graph, constraint=last.astype(int)) == fill(inner) + isolated
    assert fill(graph) == fill(inner) + isolated


def test_aggressive_absorption_changes_little():
    graph = adjacency(stencil(20, 20, 20, box=True))
    assert fill(graph, aggressive=False) == pytest.approx(fill(graph), rel=0.05)


def test_index_types_and_a_diagonal_do_not_matter():
    A = adjacency(stencil(20, 20))
    free = amd(A.indptr, A.indices)
    assert np.array_equal(free, amd(A.indptr.astype(np.int32), A.indices.astype(np.int64)))
    pattern = sp.csr_array((np.ones(A.indices.size), A.indices, A.indptr), shape=(A.n, A.n))
    loops = sp.csr_array(pattern + sp.eye_array(A.n))
    assert np.array_equal(free, amd(loops.indptr, loops.indices))


def test_bad_input_is_refused():
    indptr, indices = np.array([0, 1, 2]), np.array([1, 0])
    for wrong in (np.array([1, 2]), np.array([-1, 0]), np.array([1])):
        with pytest.raises(ValueError, match="from 0 to 1"):
            amd(indptr, wrong)
    with pytest.raises(ValueError, match="each of the 2 nodes"):
        amd(indptr, indices, constraint=np.array([0, 1, 2]))
