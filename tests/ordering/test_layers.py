"""Dissection by layers: separators that separate, the same order on any threads, and an end."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.spatial import Delaunay

from frontal.ordering import adjacency, auto, order
from frontal.ordering.dissection import Layers
from frontal.ordering.dissection.layers import MARKS, Marked, cut
from frontal.ordering.graph import Graph
from frontal.ordering.model import pace_of

from ..matrices import star, stencil, thinned
from .test_dissection import GO_ON, GRAPHS
from .test_ordering import is_permutation, patterns

layered = importlib.import_module("frontal.ordering.dissection.layered")


def separated(graph: Graph, names: np.ndarray, weights: np.ndarray, begin: int, above: int = 0):
    """What `cut` returns, and the marks that it leaves."""
    mark = np.full(graph.n, -1, np.int32)
    mark[names] = MARKS * begin
    marked = Marked(graph.indptr, graph.indices, weights, mark, np.empty(graph.n, np.int32))
    return *cut(marked, begin, names, int(names[0]), above, GO_ON), mark


@pytest.mark.parametrize("A", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("above", [0, 10**6])
def test_no_edge_joins_the_sides_of_a_separator(A, above):
    graph, rng = adjacency(A), np.random.default_rng(0)
    weights = rng.integers(1, 4, graph.n).astype(np.int32)
    names = rng.permutation(graph.n)[: graph.n - 20].astype(np.int32)  # others are of other parts
    found, zero, one, weight, mark = separated(graph, names, weights, 7, above)
    assert np.array_equal(np.sort(found), np.sort(names))
    if zero == 0:
        assert one == weight == 0
        return
    sides = np.split(found, [zero, zero + one])
    assert weight == weights[sides[2]].sum()
    assert weights[sides[0]].sum() <= 0.9 * weights[names].sum()
    assert weights[sides[1]].sum() <= 0.9 * weights[names].sum()
    for nodes, expected in zip(sides, (MARKS * 7, MARKS * (7 + zero), -1), strict=True):
        assert (mark[nodes] == expected).all()
    where = np.full(graph.n, 2)
    where[sides[0]], where[sides[1]] = 0, 1
    rows = np.repeat(np.arange(graph.n), graph.degree)
    assert not (where[rows] + where[graph.indices] == 1).any()


@pytest.mark.parametrize(
    ("A", "most"),
    [
        (stencil(60, 60), 60),
        (stencil(60, 60, box=True), 60),
        (stencil(100, 30), 30),
        (stencil(15, 15, 15), 225),
    ],
)
@pytest.mark.parametrize("shuffled", [False, True])
def test_separators_of_grids_are_as_small_as_a_layer(A, most, shuffled):
    if shuffled:
        p = np.random.default_rng(1).permutation(A.shape[0])
        A = A[p][:, p]
    graph = adjacency(A)
    names, ones = np.arange(graph.n, dtype=np.int32), np.ones(graph.n, np.int32)
    _, zero, one, weight, _ = separated(graph, names, ones, 0)
    assert min(zero, one) >= 0.35 * graph.n
    assert weight <= 1.5 * most


def check_threads(graph: Graph) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layered, "MIN_CUT_NODES", 30)  # many parts
        patch.setattr(layered, "MIN_LEAVES", 1000)
        found = [Layers(graph, threads=threads).result() for threads in (1, 2, 7)]
    if found[0] is None:
        assert found[1] is None
        assert found[2] is None
        return
    assert is_permutation(found[0][0], graph.n)
    for one, two, seven in zip(*found, strict=True):
        assert np.array_equal(one, two)
        assert np.array_equal(one, seven)


@given(patterns())
@settings(max_examples=15, deadline=None)
def test_threads_change_nothing(A):
    check_threads(adjacency(A))


@pytest.mark.parametrize("A", GRAPHS.values(), ids=GRAPHS.keys())
def test_threads_change_nothing_of_graphs(A):
    check_threads(adjacency(A))


def factor_rows(A) -> np.ndarray:
    """Which entries the Cholesky factor has, by elimination of a dense pattern."""
    L = np.tril(A.toarray() != 0)
    for j in range(L.shape[0]):
        rows = np.flatnonzero(L[j + 1 :, j]) + j + 1
        L[np.ix_(rows, rows)] |= np.tri(rows.size, dtype=bool)
    return L


@given(patterns(), st.sampled_from([2, 5, 1000]), st.booleans())
@settings(max_examples=60, deadline=None)
def test_tree_is_that_of_the_order(A, parts, weighted):
    graph, rng = adjacency(A), np.random.default_rng(A.nnz)
    weights = rng.integers(1, 4 if weighted else 2, graph.n).astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layered, "MIN_CUT_NODES", 4)
        patch.setattr(layered, "MIN_LEAVES", parts)
        found = Layers(graph, weights).result()
    assume(found is not None)
    nodes, parent, counts = found
    columns = np.repeat(nodes, weights[nodes])
    pattern = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=A.shape)
    L = factor_rows((pattern + sp.eye_array(graph.n)).tocsr()[columns][:, columns])
    assert np.array_equal(counts, L.sum(axis=0))
    for j, above in enumerate(parent):
        rows = np.flatnonzero(L[:, j])[1:]
        if above < 0:
            assert not rows.size
        else:  # its rows are pivots or rows of the parent
            assert above > j
            assert L[rows[rows >= above], above].all()
            assert (rows >= above).all()


EXPANDER = sp.random_array((3000, 3000), density=2e-2, random_state=np.random.default_rng(0))


def test_what_is_no_mesh_is_left_to_minimum_degree():
    found = order(sp.csc_array(EXPANDER), "layers")
    assert found.method == "amd"
    assert np.array_equal(found.perm, order(sp.csc_array(EXPANDER), "amd").perm)


def test_nodes_with_very_many_neighbours_come_last():
    A = stencil(70, 60)
    found = order(sp.csr_array(A + star(4200)), "layers")
    assert found.method == "layers"
    assert found.perm[-1] == 0


def triangles(n: int) -> sp.csc_array:
    """A plane mesh of triangles between n random points, but for long ones at the rim."""
    points = np.random.default_rng(0).random((n, 2))
    corners = Delaunay(points).simplices
    i, j = np.repeat(corners, 3, axis=1).ravel(), np.tile(corners, (1, 3)).ravel()
    short = np.linalg.norm(points[i] - points[j], axis=1) < 4 / n**0.5
    return sp.csc_array((np.ones(short.sum()), (i[short], j[short])), shape=(n, n))


def hubs(n: int) -> sp.csc_array:
    """A circuit: each node has two older neighbours, rather those that have many already."""
    rng = np.random.default_rng(0)
    older = (rng.random((2, n - 1)) ** 3 * np.arange(1, n)).astype(int)
    i, j = np.tile(np.arange(1, n), 2), older.ravel()
    return sp.csc_array((np.ones(i.size), (i, j)), shape=(n, n))


def test_auto_cuts_grids(monkeypatch):
    monkeypatch.setattr(auto, "MIN_LAYERS_PLANE_NODES", 2500)
    plane, many = adjacency(stencil(60, 60)), {"threads": auto.MIN_BESIDE_THREADS}
    found = order(plane, **many)
    assert list(found.tried) == ["layers"]
    assert np.array_equal(found.perm, order(plane, "layers").perm)
    assert "layers" not in order(plane, threads=auto.MIN_BESIDE_THREADS - 1).tried
    assert order(plane, time_limit=0.0, **many).method == "amd"
    assert "dissection" in order(plane, reuse=1e6, **many).tried
    assert "layers" not in order(sp.csc_array(EXPANDER), **many).tried
    assert "layers" not in order(triangles(4000), **many).tried
    assert "layers" not in order(hubs(4000), **many).tried
    solid = stencil(20, 20, 20)
    assert "layers" not in order(thinned(solid), **many).tried
    for threads in (1, 2, 16):
        assert list(order(solid, threads=threads).tried) == ["layers"]
    gpu = pace_of("gpu", 1)
    assert list(order(solid, threads=1, **gpu).tried) == ["amd"]  # which is done sooner
    equal = sp.csc_array(np.ones((3100, 3100)))  # nodes, of which one is left
    assert "layers" not in order(equal, **many).tried


def test_a_crowded_grid_is_not_dissected_twice():
    solid = adjacency(stencil(20, 20, 20))
    assert list(order(solid, threads=1, room=1.0).tried) == ["layers"]


@pytest.mark.parametrize("shape", [(11, 11, 11), (16, 8, 8)])
def test_layers_of_boxes_are_parallel_to_faces(shape):
    graph = adjacency(stencil(*shape, box=True))
    names, ones = np.arange(graph.n, dtype=np.int32), np.ones(graph.n, np.int32)
    _, zero, one, weight, _ = separated(graph, names, ones, 0)
    assert weight == shape[1] * shape[2]
    assert min(zero, one) >= 0.4 * graph.n
