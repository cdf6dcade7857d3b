"""Elimination trees and counts by threads over parts of the columns: the same for any parts."""

from __future__ import annotations

import os
from functools import partial
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from frontal.machine import threads as parallel
from frontal.ordering import order
from frontal.ordering.amd import amd
from frontal.ordering.etree import EliminationTree
from frontal.ordering.graph import Graph, adjacency
from frontal.problems import poisson2d, poisson3d

from ..matrices import star

THREADS = (1, 2, 3, 7)


def tree(graph: Graph, perm: np.ndarray, threads: int, least: int = 1) -> EliminationTree:
    """The tree of an order, by as many parts as there are threads."""
    setting = mock.patch.dict(os.environ, FRONTAL_NUM_THREADS=str(threads))
    with setting, mock.patch.object(parallel, "MIN_PARALLEL_ENTRIES", least):
        return EliminationTree.from_graph(graph, perm)


def compare(graph: Graph, perm: np.ndarray) -> None:
    whole = tree(graph, perm, 1, 1 << 20)
    for threads in THREADS:
        for found, expected in zip(tree(graph, perm, threads), whole, strict=True):
            assert found.dtype == expected.dtype
            assert np.array_equal(found, expected)


@settings(deadline=None, max_examples=150)
@given(
    n=st.integers(0, 60),
    density=st.sampled_from([0.0, 0.01, 0.03, 0.1, 0.4]),
    seed=st.integers(0, 999),
    hubs=st.integers(0, 2),
    by_degree=st.booleans(),
)
def test_any_parts_give_the_same_tree(n, density, seed, hubs, by_degree):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, random_state=rng).tolil()
    for hub in rng.integers(0, max(n, 1), hubs) if n else []:
        A[hub, :] = 1.0
    graph = adjacency(sp.csc_array(A))
    given_order = amd(graph.indptr, graph.indices) if by_degree else rng.permutation(n)
    compare(graph, given_order.astype(np.int32))


def chain(n: int) -> sp.csc_array:
    return sp.csc_array(sp.diags_array([1.0], offsets=[1], shape=(n, n)))


row_star = partial(star, symmetric=False)
SHAPES = {
    "chain": chain(50),
    "star": row_star(50),
    "chains": sp.csc_array(sp.block_diag([chain(9)] * 7)),
    "stars": sp.csc_array(sp.block_diag([row_star(5), row_star(20), chain(3), row_star(8)])),
    "plane": poisson2d(13),
    "solid": poisson3d(6),
    "no edges": sp.csc_array((30, 30)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", ["natural", "backwards", "rcm", "amd", "dissection"])
def test_shapes_and_orders(shape, method):
    graph = adjacency(SHAPES[shape])
    if method == "backwards":
        compare(graph, np.arange(graph.n, dtype=np.int32)[::-1])
    else:
        compare(graph, order(graph, method).perm)


def test_groups_of_equal_nodes_count_by_their_weights():
    A = sp.csc_array(sp.kron(poisson2d(9), np.ones((3, 3))))
    graph = adjacency(A)
    with (
        mock.patch.object(parallel, "MIN_PARALLEL_ENTRIES", 1),
        mock.patch.dict(os.environ, FRONTAL_NUM_THREADS="5"),
    ):
        found = order(graph, "dissection")
    whole = tree(graph, found.perm, 1, 1 << 20)
    assert found.cost.nnz == whole.counts.sum()
