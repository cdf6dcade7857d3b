"""Orderings: permutations always, good ones where it counts, and METIS kept on a lead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal.errors import FrontalError
from frontal.ordering import METHODS, MetisNotFoundError, adjacency, auto, candidates, metis, order
from frontal.ordering.candidates import Candidates
from frontal.ordering.components import MAX_AMD_NODES, Components
from frontal.ordering.etree import Cost, EliminationTree
from frontal.ordering.graph import components, dense_limit, indistinguishable, induced
from frontal.ordering.model import CostModel, dissected, dissection_seconds, metis_seconds, pace_of
from frontal.ordering.nested_dissection import separator_classes
from frontal.problems import circuit

from ..matrices import stencil, thinned

needs_metis = pytest.mark.skipif(not metis.available(), reason="pymetis is not installed")
SEARCHED = [m for m in METHODS if m != "given"]


@st.composite
def patterns(draw) -> sp.csc_array:
    """Blocks of random graphs, with isolated nodes, twins and a few dense rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(0, 90), max_size=4))
    large = draw(st.sampled_from([0, MAX_AMD_NODES + 60]))
    parts = [sp.random_array((k, k), density=3 / max(k, 3), random_state=rng) for k in sizes]
    parts += [stencil(large // 13, 13, unknowns=draw(st.integers(1, 2)))] if large else []
    A = sp.block_diag([*parts, sp.csc_array((1, 1))], format="csc")
    n = A.shape[0]
    dense = draw(st.integers(0, 2))
    rows = sp.random_array((dense, n), density=0.7, random_state=rng)
    shuffle = rng.permutation(n + dense)
    A = sp.block_array([[A, None], [rows, sp.eye_array(dense)]], format="csc") if dense else A
    return sp.csc_array(A[shuffle][:, shuffle] if dense else A)


def is_permutation(perm: np.ndarray, n: int) -> bool:
    return perm.dtype == np.int32 and np.array_equal(np.sort(perm), np.arange(n))


@given(patterns())
@settings(max_examples=40, deadline=None)
def test_adjacency_is_the_symmetric_pattern(A):
    n = A.shape[0]
    dense = A.toarray() != 0
    expected = (dense | dense.T) & ~np.eye(n, dtype=bool)
    B = A.tocoo()
    B = sp.coo_array((np.tile(B.data, 2), np.tile(np.stack(B.coords), 2)), shape=(n, n))
    for form in (A, A.tocsr(), B, sp.csc_matrix(A), A[::-1][::-1]):
        graph = adjacency(form)
        rows = np.repeat(np.arange(n), graph.degree)
        assert (graph.indptr.dtype, graph.indices.dtype) == (np.int64, np.int32)
        assert np.array_equal(np.stack([rows, graph.indices]), np.stack(np.nonzero(expected)))


def test_adjacency_counts_stored_zeros_and_wants_a_square():
    A = sp.csc_array((np.zeros(2), ([0, 1], [1, 1])), shape=(2, 2))
    assert adjacency(A).indices.tolist() == [1, 0]
    with pytest.raises(ValueError, match="square"):
        adjacency(sp.csc_array((2, 3)))


@given(patterns())
@settings(max_examples=25, deadline=None)
def test_indistinguishable_nodes_have_equal_closed_neighbourhoods(A):
    graph = adjacency(A)
    closed = np.eye(graph.n, dtype=bool)
    closed[np.repeat(np.arange(graph.n), graph.degree), graph.indices] = True
    _, first, inverse = np.unique(closed, axis=0, return_index=True, return_inverse=True)
    assert np.array_equal(indistinguishable(graph), first[inverse.ravel()])


@given(patterns(), st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_induced_subgraph(A, seed):
    graph = adjacency(A)
    nodes = np.flatnonzero(np.random.default_rng(seed).random(graph.n) < 0.5)
    expected = adjacency(sp.csc_array(A)[nodes][:, nodes])
    part = induced(graph, nodes)
    assert np.array_equal(part.indptr, expected.indptr)
    assert np.array_equal(part.indices, expected.indices)


def assert_best(found, **pace):
    seconds = CostModel(**pace).seconds  # what costs least by the model is taken
    assert seconds(found.cost) == min(map(seconds, found.tried.values()))


def check_counts(found, expected: EliminationTree) -> None:
    """The tree of an order has the counts of its columns, though perhaps in another postorder."""
    tree, cost = found.tree, expected.cost()
    assert np.array_equal(tree.perm[tree.iperm], np.arange(tree.perm.size))
    np.testing.assert_array_equal(tree.counts[tree.iperm], expected.counts[expected.iperm])
    assert (found.cost.nnz, found.cost.flops) == (cost.nnz, cost.flops)
    if found.method not in (
        "amd",
        "layers",
    ):  # where elements that another one covers are its children
        assert found.cost.height == cost.height


@pytest.mark.parametrize("method", SEARCHED)
@given(A=patterns())
@settings(max_examples=15, deadline=None)
def test_every_method_gives_a_permutation(method, A):
    if method in ("metis", "nesdis") and not metis.available():
        pytest.skip("pymetis is not installed")
    n = A.shape[0]
    found = order(A, method, reuse=1e6)
    assert is_permutation(found.perm, n)
    check_counts(found, EliminationTree.from_graph(adjacency(A), found.perm))
    assert found.method in METHODS
    assert_best(found, reuse=1e6)


@pytest.mark.parametrize("method", SEARCHED)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_graphs_without_edges(method, n):
    if method in ("metis", "nesdis") and not metis.available():
        pytest.skip("pymetis is not installed")
    found = order(sp.csc_array((n, n)), method)
    assert is_permutation(found.perm, n)
    assert found.cost.nnz == n


def test_given_orders_are_checked():
    A = stencil(4, 4)
    perm = np.random.default_rng(0).permutation(16)
    assert np.array_equal(order(A, perm=perm).perm, perm)
    assert order(A, "given", perm=perm.tolist()).method == "given"
    for wrong in (perm[:-1], perm.astype(float), perm * 0, perm - 1, perm + 1, perm[None]):
        with pytest.raises(ValueError, match="perm"):
            order(A, perm=wrong)
    with pytest.raises(ValueError, match="perm"):
        order(A, "given")
    with pytest.raises(ValueError, match="perm"):
        order(A, "amd", perm=perm)
    with pytest.raises(ValueError, match="choose one of auto, amd"):
        order(A, "colamd")


@needs_metis
@pytest.mark.parametrize(
    "A",
    [stencil(20, 20, 20), stencil(12, 12, 12, box=True), stencil(9, 9, 9, box=True, unknowns=3)],
    ids=["7-point", "27-point", "27-point x 3"],
)
def test_dissection_beats_minimum_degree_in_three_dimensions(A):
    found = order(A, "nesdis")
    amd, plain = order(A, "amd").cost.flops, found.tried["metis"].flops
    assert found.cost.flops <= plain
    assert found.tried["nesdis"].flops <= 1.03 * plain
    assert found.cost.flops < 0.8 * amd


@pytest.mark.parametrize(
    ("A", "shares"),
    [
        (stencil(120, 120), {"dissection": 1.05, "layers": 0.9}),
        (stencil(20, 20, 20), {"dissection": 0.9, "layers": 0.6}),
        (stencil(12, 12, 12, box=True, unknowns=3), {"dissection": 0.85, "layers": 0.9}),
    ],
    ids=["plane", "solid", "three unknowns a node"],
)
def test_dissections_cost_a_share_of_minimum_degree(A, shares):
    amd = order(A, "amd").cost.flops
    for method, share in shares.items():
        found = order(A, method)
        assert found.method == method
        assert found.cost.flops <= share * amd


@pytest.mark.parametrize("method", ["amd", "dissection", "rcm"])
def test_equal_nodes_are_counted_together(method):
    graph = adjacency(stencil(6, 6, 6, box=True, unknowns=3))
    twins = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr))
    chosen = np.random.default_rng(0).permutation(graph.n)[: graph.n - 40]  # unequal weights
    graph = adjacency(twins[chosen][:, chosen])
    found = order(graph, method)
    expected = EliminationTree.from_graph(graph, found.perm)
    assert found.tree.perm.size == graph.n
    check_counts(found, expected)


@needs_metis
def test_merging_equal_nodes_keeps_the_quality(monkeypatch):
    graph = adjacency(stencil(9, 9, 9, box=True, unknowns=3))
    (part,) = Components(graph).compressed
    assert part.graph.n == 9**3
    assert (part.weights == 3).all()
    merged = order(graph, "metis").cost.flops
    monkeypatch.setattr("frontal.ordering.components.MAX_DISTINCT_SHARE", 0.0)
    assert Components(graph).compressed[0].graph.n == graph.n
    assert merged <= 1.1 * order(graph, "metis").cost.flops


def test_dense_rows_and_components_are_ordered_apart():
    rng = np.random.default_rng(1)
    grid, small = stencil(30, 30), stencil(5, 5)
    A = sp.block_diag([small, grid, small, grid], format="csr")
    hub = sp.random_array((1, A.shape[0]), density=0.9, random_state=rng)
    graph = adjacency(sp.block_array([[A, hub.T], [hub, None]]))
    parts = Components(graph)
    assert parts.dense.tolist() == [graph.n - 1]
    assert [part.graph.n for part in parts.compressed] == [900, 900]
    perm = parts.assemble([np.arange(900, dtype=np.int32)] * 2)
    assert is_permutation(perm, graph.n)
    assert perm[-1] == graph.n - 1


def test_hanging_trees_are_eliminated_first_and_make_no_fill():
    rng = np.random.default_rng(2)
    grid, n = stencil(20, 20), 600
    above = np.array([rng.integers(0, k) for k in range(400, n)])  # a forest on the grid
    edges = sp.coo_array((np.ones(n - 400), (np.arange(400, n), above)), shape=(n, n))
    shuffle = rng.permutation(n)
    A = sp.csr_array(sp.block_diag([grid, sp.csr_array((200, 200))]) + edges + edges.T)
    graph = adjacency(A[shuffle][:, shuffle])
    parts = Components(graph)
    assert set(parts.hanging) == set(np.flatnonzero(shuffle >= 400))
    assert [part.graph.n for part in parts.compressed] == [400]
    for method in ("dissection", "amd"):
        found = order(graph, method).tree
        assert is_permutation(found.perm, n)
        inside = [v for v in shuffle[found.perm] if v < 400]
        alone = EliminationTree.from_graph(adjacency(grid), np.array(inside, np.int32))
        assert found.cost().nnz == alone.cost().nnz + 2 * 200


@pytest.mark.parametrize("parent", [np.zeros(3000, int), np.arange(3000) // 2])
def test_of_a_tree_nothing_is_left_to_dissect(parent):
    n = parent.size + 1
    tree = sp.coo_array((np.ones(n - 1), (np.arange(1, n), parent)), shape=(n, n))
    graph = adjacency(tree)
    parts = Components(graph)
    assert parts.hanging.size + parts.dense.size >= n - 1
    found = order(graph, "dissection")
    assert is_permutation(found.perm, n)
    assert found.cost.nnz == 2 * n - 1


def test_many_rows_of_moderate_density_are_dense_too():
    rows = sp.random_array((20, 22_500), density=0.02, random_state=np.random.default_rng(0))
    A = sp.block_array([[stencil(150, 150), rows.T], [rows, None]])
    graph = adjacency(A)
    assert np.count_nonzero(graph.degree > dense_limit(graph)) == 20
    assert set(order(graph, "amd").perm[-20:]) == set(range(22_500, 22_520))


def test_many_tiny_components_cost_no_metis_call(monkeypatch):
    graph = adjacency(sp.kron(sp.eye_array(500), stencil(4, 4)))
    assert components(graph)[0] == 500
    monkeypatch.setattr(metis._Worker, "order", None)
    monkeypatch.setattr(metis, "available", lambda: True)
    assert is_permutation(order(graph, "metis").perm, graph.n)


def test_separator_classes_end_in_the_top_separator():
    graph = adjacency(stencil(41, 20))
    columns = np.arange(820).reshape(41, 20)
    left, right, middle = columns[:20].ravel(), columns[21:].ravel(), columns[20]
    tree = EliminationTree.from_graph(graph, np.concatenate([left, right, middle]))
    classes = separator_classes(tree, 400)
    assert np.unique(classes).tolist() == [0, 1, 2]
    assert [np.unique(classes[part]).size for part in (left, right, middle)] == [1, 1, 1]
    assert classes[middle[0]] == 2
    deep = separator_classes(tree, 100)
    assert sum(np.unique(deep[part]).size for part in (left, right, middle)) == np.unique(deep).size


def test_model_takes_dissection_where_it_pays():
    model = CostModel(rate=4e10)
    plane, solid = adjacency(stencil(60, 60)), adjacency(stencil(16, 16, 16))
    assert metis_seconds(Components(solid)) > metis_seconds(Components(plane)) > 0
    one, two, many = (dissection_seconds(Components(solid), p) for p in (1, 2, 1000))
    assert one > two > many > one / 4
    flat = dissected(Cost(44_000_000, 1.82e10, 2900), 1_000_000)
    deep = dissected(Cost(62_000_000, 1.76e11, 9000), 125_000)
    assert 1.2 < 1.82e10 / flat.flops < 1.6
    assert 2.0 < 1.76e11 / deep.flops < 4.5
    assert model.seconds(deep) == pytest.approx(deep.flops / 4e10 + deep.nnz * 16e-9)
    assert CostModel(reuse=3.0).seconds(deep) == pytest.approx(3 * model.seconds(deep))


def test_the_best_order_is_kept():
    found = Candidates(adjacency(stencil(20, 20)), CostModel())
    found.add_amd()
    found.add("natural", np.arange(400, dtype=np.int32))
    assert (found.method, list(found.tried)) == ("amd", ["amd", "natural"])
    assert found.cost == found.tried["amd"]
    assert np.array_equal(found.perm, order(found.graph, "amd").perm)


def test_auto_weighs_the_time_of_a_dissection_against_its_gain():
    graph = adjacency(thinned(stencil(24, 24, 24)))
    gpu = pace_of("gpu", 1)
    once, often = order(graph, **gpu), order(graph, reuse=1000)
    assert (once.method, list(once.tried)) == ("amd", ["amd"])
    assert often.method in ("dissection", "metis", "nesdis")
    assert {"amd", "dissection", "dissection 4"} <= set(often.tried)
    assert ("metis" in often.tried) == metis.available()
    assert often.cost.flops < 0.8 * once.cost.flops
    assert_best(often, reuse=1000)
    assert order(graph, reuse=10, **gpu).method == "amd"
    assert order(graph, reuse=1e6, **gpu).method in ("dissection", "metis", "nesdis")


def test_auto_dissects_no_circuits(monkeypatch):
    """Of a graph without separators METIS's order is the only one that may be better."""
    monkeypatch.setattr(auto, "MIN_DISSECTION_FLOPS", 0.0)
    graph = adjacency(circuit(8000))
    tried = order(graph, reuse=1e9).tried
    assert "dissection" not in tried
    assert ("metis" in tried) == metis.available()


def test_auto_dissects_a_mesh_with_hubs(monkeypatch):
    monkeypatch.setattr("frontal.ordering.shape.BALL_NODES", 20)  # of a graph that is small
    mesh = thinned(stencil(14, 14, 14, box=True))
    hubs = sp.random_array((5, mesh.shape[0]), density=0.1, random_state=np.random.default_rng(0))
    graph = adjacency(sp.block_array([[mesh, hubs.T], [hubs, None]]))
    assert not candidates.Candidates(graph, CostModel()).is_mesh
    found = order(graph, reuse=1e4, threads=1)
    assert "dissection" in found.tried
    assert found.cost.flops < 0.9 * found.tried["amd"].flops


def test_auto_dissects_where_memory_is_short():
    graph = adjacency(thinned(stencil(24, 24, 24)))
    spacious, short = (order(graph, **pace_of("gpu", 1) | {"room": x}) for x in (1e12, 1e6))
    assert spacious.method == "amd"
    assert short.method in ("dissection", "metis", "nesdis")
    assert short.cost.nnz < spacious.cost.nnz


def test_auto_where_no_part_is_large():
    equal = adjacency(sp.csc_array(np.ones((3100, 3100))))
    assert order(equal, threads=2).cost.nnz == 3100 * 3101 // 2


def test_without_pymetis(monkeypatch):
    monkeypatch.setattr(metis, "available", lambda: False)
    graph = adjacency(thinned(stencil(24, 24, 24)))
    assert order(graph, reuse=1e6).method == "dissection"
    with pytest.raises(MetisNotFoundError, match="pip install pymetis") as caught:
        order(graph, "metis")
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, FrontalError)


def test_a_dissection_that_is_sooner_done_spares_minimum_degree(monkeypatch):
    graph, many = adjacency(thinned(stencil(16, 16, 16, box=True))), {"threads": 8}
    assert "amd" in order(graph, reuse=1e9, **many).tried
    monkeypatch.setattr(auto, "MIN_BESIDE_NODES", 1000)
    monkeypatch.setattr(candidates, "AMD_ENTRY_SECONDS", 1.0)
    monkeypatch.setattr(metis, "available", lambda: False)  # may be better by chance
    found = order(graph, reuse=1e9, **many)
    assert "dissection" in found.tried
    assert "amd" not in found.tried
    assert "amd" not in order(graph, reuse=1e9, threads=1).tried
    plane = adjacency(stencil(50, 50, box=True))
    assert plane.nnz > auto.PLANE_NEIGHBOURS * plane.n
    assert "amd" in order(plane, reuse=1e9, threads=1).tried
    assert order(graph, time_limit=0.0, **many).method == "amd"
    monkeypatch.setattr(auto, "MAX_MESH_HEIGHT", 0.0)  # no separators: minimum degree may win
    assert "amd" in order(graph, reuse=1e9, **many).tried
    assert "amd" not in order(graph, **many).tried  # but there is not much to be won


@pytest.mark.parametrize("method", SEARCHED)
def test_every_method_is_documented(method):
    guide = Path(__file__).resolve().parents[2] / "docs" / "guide" / "orderings.md"
    assert f'| `"{method}"` |' in guide.read_text(encoding="utf-8")
    for function in (order, frontal.solve):
        assert f'``"{method}"``' in (function.__doc__ or "")
