"""Nested dissection: separators that separate, the same order on any threads, and an end."""

from __future__ import annotations

import importlib
import signal
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from frontal.errors import OrderingTimeout
from frontal.ordering import adjacency, order
from frontal.ordering.components import Components
from frontal.ordering.dissection import NestedDissection
from frontal.ordering.dissection.bisect import with_levels
from frontal.ordering.dissection.graph import SEPARATOR, Levels, Weighted, level
from frontal.ordering.dissection.split import LEAF, split
from frontal.ordering.graph import Graph, induced

from ..conftest import no_thread_stays
from ..matrices import star, stencil
from .test_ordering import is_permutation, patterns

module = importlib.import_module("frontal.ordering.dissection.dissect")
team = importlib.import_module("frontal.ordering.dissection.team")
levels = importlib.import_module("frontal.ordering.dissection.levels")


GO_ON = np.zeros(1, np.int32)


def levels_of(graph: Graph, weights: np.ndarray) -> Levels:
    """The graph with these weights of its nodes, and coarser ones."""
    edges = np.ones(graph.nnz, np.int32)
    return with_levels(Weighted(graph.indptr, graph.indices, edges, weights), 0, 1, GO_ON)


GRAPHS = {
    "grid": stencil(50, 40),
    "solid": stencil(14, 13, 12),
    "two grids": sp.block_diag([stencil(30, 30), stencil(25, 20)]),
    "chain": stencil(3000),
    "star": star(3000),
    "clique": sp.csc_array(np.ones((450, 450))),
    "no edges": sp.csc_array((900, 900)),
    "wheel": stencil(2500) + star(2500),
}


@pytest.mark.parametrize("A", GRAPHS.values(), ids=GRAPHS.keys())
def test_no_edge_joins_the_sides_of_a_separator(A):
    graph = adjacency(A)
    names = np.arange(graph.n, dtype=np.int32)[::-1].copy() + 7
    weights = np.random.default_rng(0).integers(1, 4, graph.n).astype(np.int32)
    levels = levels_of(graph, weights)
    zero, zero_names, one, one_names, separator = split(levels, names, 0, 3, GO_ON)
    assert np.array_equal(
        np.sort(np.concatenate([zero_names, one_names, separator])), np.sort(names)
    )
    where = np.full(graph.n, SEPARATOR)
    where[graph.n + 6 - zero_names], where[graph.n + 6 - one_names] = 0, 1
    rows = np.repeat(np.arange(graph.n), graph.degree)
    assert set(where[rows] + 3 * where[graph.indices]) <= {0, 4, 8, 2, 5, 6, 7}  # not 1, 3
    for side, part in ((0, zero), (1, one)):
        inside = np.flatnonzero(where == side)
        expected, found = induced(graph, inside), level(part, 0)
        assert np.array_equal(found.begin, expected.indptr)
        assert np.array_equal(found.near[: expected.nnz], expected.indices)
        assert np.array_equal(found.weight, weights[inside])
        check_coarser(part)


def check_coarser(levels: Levels) -> None:
    """A coarse node weighs what its nodes weigh, and is next to what they are next to."""
    for k in range(levels.first.size - 2):
        fine, coarse = level(levels, k), level(levels, k + 1)
        coarse_of = levels.coarse_of[levels.first[k] : levels.first[k + 1]]
        assert np.array_equal(np.bincount(coarse_of, fine.weight), coarse.weight)
        rows = np.repeat(coarse_of, np.diff(fine.begin))
        columns = coarse_of[fine.near[fine.begin[0] : fine.begin[-1]]]
        n = coarse.weight.size
        there = n * np.repeat(np.arange(n), np.diff(coarse.begin))
        there += coarse.near[coarse.begin[0] : coarse.begin[-1]]
        assert np.isin((n * rows + columns)[rows != columns], there).all()


@pytest.mark.parametrize(("A", "most"), [(stencil(60, 60), 60), (stencil(15, 15, 15), 225)])
def test_separators_of_grids_are_as_small_as_a_layer(A, most):
    graph = adjacency(A)
    unit = levels_of(graph, np.ones(graph.n, np.int32))
    found = [
        split(unit, np.arange(graph.n, dtype=np.int32), 0, seed, GO_ON) for seed in range(1, 6)
    ]
    assert max(max(len(one[1]), len(one[3])) for one in found) <= 0.6 * graph.n
    assert min(len(one[4]) for one in found) <= most
    assert max(len(one[4]) for one in found) <= 1.5 * most


def test_sides_of_heavy_separators_are_even():
    """In an expander the lightest separator is what one side leaves, the other being nothing."""
    rng = np.random.default_rng(0)
    A = sp.coo_array((np.ones(9000), rng.integers(0, 3000, (2, 9000))), shape=(3000, 3000))
    graph = adjacency(A)
    unit = levels_of(graph, np.ones(graph.n, np.int32))
    for seed in range(1, 4):
        _, zero, _, one, _ = split(unit, np.arange(graph.n, dtype=np.int32), 0, seed, GO_ON)
        assert max(zero.size, one.size) <= 0.6 * (zero.size + one.size)
        assert zero.size + one.size >= 0.5 * graph.n


def check_threads(graph: Graph, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_SERIAL_NODES", 100)  # many parts
        patch.setattr(module, "MIN_RANGE_EDGES", 40)  # of which most are cut by several threads
        patch.setattr(module, "MIN_EDGES_PER_THREAD", 40)
        patch.setattr(team, "MIN_RANGE_EDGES", 40)
        patch.setattr(levels, "MIN_SHARED_EDGES", 100)
        patch.setattr(levels, "TILE", 20)
        runs = [NestedDissection(Components(graph), seed, threads) for threads in (1, 2, 7)]
        found = [run.result() for run in runs]
    assert is_permutation(found[0], graph.n)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@given(patterns(), st.integers(1, 2**31))
@settings(max_examples=15, deadline=None)
def test_threads_change_nothing(A, seed):
    check_threads(adjacency(A), seed)


@pytest.mark.parametrize("A", GRAPHS.values(), ids=GRAPHS.keys())
def test_ranges_of_large_graphs_change_nothing(A):
    check_threads(adjacency(A), 5)


def test_small_parts_are_ordered_with_regard_to_what_is_around_them(monkeypatch):
    """Leaves that know nothing of the separators around them cost a quarter more."""
    graph = adjacency(stencil(40, 40, box=True))
    at_once = order(graph, "dissection").cost.flops
    monkeypatch.setattr(module, "MAX_SERIAL_NODES", LEAF)
    assert order(graph, "dissection").cost.flops <= 1.1 * at_once


def test_ends_in_time_and_by_an_interrupt(interruptible):
    graph, large = adjacency(stencil(40, 40, 40)), adjacency(stencil(400, 400))
    main = threading.main_thread().ident
    with no_thread_stays():
        for method in ("dissection", "layers"):
            with pytest.raises(OrderingTimeout, match="time limit"):
                order(graph, method, time_limit=0.0)
        alarm = threading.Timer(0.1, signal.pthread_kill, (main, signal.SIGINT))
        alarm.start()
        with pytest.raises(KeyboardInterrupt):
            order(large, "dissection")
        alarm.join()
    assert order(graph, reuse=1e6, time_limit=0.0).method == "amd"
