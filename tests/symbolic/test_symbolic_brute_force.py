"""Choices of the symbolic phase against brute force: every order, every pair, every block."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import problems
from frontal.cpu import backend as cpu
from frontal.cpu.layout import HostLayout
from frontal.factor.analysis import Analysis
from frontal.matrix.canonical import canonical
from frontal.numeric.method import LU
from frontal.ordering import order
from frontal.ordering.components import Components
from frontal.ordering.etree import EliminationTree
from frontal.ordering.graph import adjacency
from frontal.symbolic.matching import Matching
from frontal.symbolic.pairs import symmetric_pairs
from frontal.symbolic.phase import SymbolicOptions
from frontal.symbolic.postorder import arrange_fronts
from frontal.symbolic.preprocess import match_rows
from frontal.symbolic.supernodes import Merged

from ..conftest import fronts_cost

# --- the stack of contribution blocks --------------------------------------------------------


def stack_peak(parent, updates, order) -> int:
    """Largest sum of the contribution blocks that live at once."""
    alive, peak = 0, 0
    below = {s: [c for c in order if parent[c] == s] for s in order}
    for s in order:
        alive += updates[s] ** 2
        peak = max(peak, alive)
        alive -= sum(updates[c] ** 2 for c in below[s])
    return peak


def postorders(parent, node=-1):
    """All orders of the subtrees below a node in which each is visited whole."""
    children = [s for s in range(len(parent)) if parent[s] == node]
    for turn in permutations(children):
        for parts in product(*([[*o, c] for o in postorders(parent, c)] for c in turn)):
            yield [s for part in parts for s in part]


def check_order(parent, updates):
    n = len(parent)
    own = np.arange(n + 1, dtype=np.int32)
    ones, none = np.ones(n, np.int32), np.zeros(n, np.bool_)
    found = Merged(own[:-1], np.array(parent, np.int32), ones, updates.astype(np.int32), none)
    turn, back, start, tree, sizes = arrange_fronts(own, found, own[:-1])
    assert np.array_equal(turn[back], own[:-1])
    assert np.array_equal(start, own)
    assert np.array_equal(sizes, updates[turn])
    assert np.array_equal(np.where(tree >= 0, turn[tree], -1), np.array(parent)[turn])
    best = min(stack_peak(parent, updates, order) for order in postorders(parent))
    assert stack_peak(parent, updates, turn.tolist()) == best


@settings(deadline=None, max_examples=100)
@given(n=st.integers(1, 7), seed=st.integers(0, 10**6))
def test_no_order_of_children_needs_less(n, seed):
    rng = np.random.default_rng(seed)
    parent = [*(int(rng.integers(s + 1, n)) for s in range(n - 1)), -1]
    check_order(parent, rng.integers(0, 12, n))


def test_what_waits_counts_one_level_above():
    check_order([1, 4, 3, 4, 7, 6, 7, -1], np.array([4, 6, 5, 5, 2, 8, 4, 5]))


def test_the_arena_of_one_thread_is_the_peak_of_the_stack():
    """But for the holes that first fit leaves."""
    analysis = frontal.analyze(problems.poisson2d(40), ordering="amd")
    plan = analysis.plan
    peak = stack_peak(plan.parent, np.diff(plan.pointer), range(plan.parent.size))
    assert peak <= HostLayout.for_plan(plan, analysis.symbolic.method, 1).shared <= 1.35 * peak


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kind", ["spd", "general"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.usefixtures("with_fronts")
def test_memory_is_what_a_factorization_takes(monkeypatch, threads, kind, dtype):
    class EnoughError(Exception):
        """Nothing has to be computed."""

    def noted(*given):
        taken.extend(storage(*given))
        raise EnoughError

    taken, storage = [], cpu._storage
    monkeypatch.setattr(cpu, "_INLINE_FLOPS", 0)
    monkeypatch.setattr(cpu, "_storage", noted)
    monkeypatch.setenv("FRONTAL_NUM_THREADS", str(threads))
    A = problems.poisson2d(60).astype(dtype)
    analysis = frontal.analyze(A, kind=kind, backend="cpu")
    assert (
        HostLayout.for_plan(analysis.plan, analysis.symbolic.method, threads).per_thread > 0
    ) == (threads > 1)
    with pytest.raises(EnoughError):
        analysis.factorize(A)
    panels, arena = taken
    memory = analysis.memory_for(dtype, threads)
    assert memory == analysis.memory
    spd, n, lu = kind == "spd", analysis.n, kind == "general"
    beside = A.data.nbytes + n * A.dtype.itemsize + lu * 20 * n  # the matrix and vectors
    room = panels.nbytes + beside - memory["factor"]  # which only delayed columns touch
    assert room == 0 if spd else room > 0
    changed = lu * (A.data.nbytes + 20 * analysis.n_fronts)
    assert memory["contribution"] == arena.nbytes + changed
    index = (*analysis.plan, analysis.symbolic.indptr, analysis.symbolic.indices)
    places = HostLayout.for_plan(analysis.plan, analysis.symbolic.method, threads)
    index += tuple(x for x in vars(places).values() if isinstance(x, np.ndarray))
    others = places.panel.nbytes + 12 * n  # of the backend, and orders of columns and rows
    assert memory["index"] == sum(array.nbytes for array in index) + others


# --- graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [2, 128, 256])
def test_entries_that_are_stored_many_times_are_one_edge(times):
    """256 ones of one byte add up to zero, and a symmetric pattern is not looked at twice."""
    once = sp.csc_array(np.array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]]))
    often = np.repeat(np.arange(once.nnz), times)
    A = sp.csc_array((once.data[often], once.indices[often], once.indptr * times), shape=(3, 3))
    one_sided = sp.csc_array((np.ones(times), np.full(times, 2), [0, times, times, times]))
    for matrix in (A, A.tocsr()):
        graph = adjacency(matrix)
        assert graph.indptr.tolist() == [0, 1, 3, 4]
        assert graph.indices.tolist() == [1, 0, 2, 1]
    assert adjacency(one_sided).indices.tolist() == [2, 0]


def test_dense_nodes_come_last_by_their_degrees():
    n, hubs = 900, {40: 0.9, 7: 0.4, 500: 0.6}
    rng = np.random.default_rng(0)
    A = sp.lil_array(sp.diags_array([1.0, 1.0], offsets=[-1, 1], shape=(n, n)))
    for hub, share in hubs.items():
        A[hub, np.flatnonzero(rng.random(n) < share)] = 1
    components = Components(adjacency(A))
    wanted = sorted(hubs, key=lambda hub: components.graph.degree[hub])
    assert components.dense.tolist() == wanted == [7, 500, 40]
    parts = [np.arange(part.graph.n, dtype=np.int32) for part in components.compressed]
    assert components.assemble(parts)[-3:].tolist() == wanted


def test_equal_nodes_stay_together_whatever_their_numbers():
    """Distinct nodes stand for one to four nodes each."""
    rng = np.random.default_rng(2)
    times = rng.integers(1, 5, 400)
    grid = problems.poisson2d(20)
    twins = rng.permutation(np.repeat(np.arange(400), times))
    (part,) = Components(adjacency(sp.csr_array(grid)[twins][:, twins])).compressed
    assert sorted(part.weights) == sorted(times)
    perm = rng.permutation(400).astype(np.int32)
    members = part.expand(perm)
    assert np.array_equal(np.sort(members), np.arange(twins.size))
    ends = np.cumsum(part.weights[perm])
    assert np.array_equal(np.flatnonzero(np.diff(twins[members])) + 1, ends[:-1])


# --- pairs -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(half=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_of_an_even_cycle_the_pairs_of_the_smaller_diagonal_stay(half, seed):
    n, rng = 2 * half, np.random.default_rng(seed)
    cycle = rng.permutation(n)
    diagonal = 0.09 * rng.random(n)
    around = np.roll(cycle, -1)
    A = sp.lil_array(np.diag(diagonal))
    A[cycle, around] = A[around, cycle] = 1
    rows = np.empty(n, np.int32)
    rows[cycle] = around
    partner = symmetric_pairs(Matching(rows, np.ones(n), np.ones(n), n), sp.csc_array(A))
    ways = [[(int(cycle[k]), int(around[k])) for k in range(s, n, 2)] for s in (0, 1)]
    best = min(ways, key=lambda way: sum(diagonal[a] * diagonal[b] for a, b in way))
    assert partner[[a for a, _ in best]].tolist() == [b for _, b in best]
    assert np.array_equal(partner[partner], np.arange(n))


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_fronts_that_are_not_merged_cost_what_the_ordering_says(kind):
    with fronts_cost():
        analysis = frontal.analyze(problems.poisson2d(15), kind=kind, backend="cpu")
    cost, halves = analysis.ordering.cost, 1 if kind == "spd" else 2
    assert analysis.nnz_factor == halves * cost.nnz - (halves - 1) * analysis.n
    assert analysis.flops == halves * cost.flops
    assert analysis.levels <= cost.height
    tree = EliminationTree.from_graph(_adjacency(analysis), analysis.perm)
    assert cost.height == len(longest_path(tree.parent))


def _adjacency(analysis):
    ones = np.ones(analysis.symbolic.indices.size)
    return adjacency(sp.csc_array((ones, analysis.symbolic.indices, analysis.symbolic.indptr)))


def longest_path(parent):
    """Nodes of the longest way from a leaf to a root."""
    paths = []
    for j in range(parent.size):
        path = [j]
        while parent[path[-1]] >= 0:
            path.append(int(parent[path[-1]]))
        paths.append(path)
    return max(paths, key=len)


@pytest.mark.parametrize("A", [problems.stokes2d(12), problems.kkt(600)], ids=["stokes", "kkt"])
def test_pairs_cost_little_fill(A):
    """A pair is a node of the graph that is ordered, and its columns are of one front."""
    with fronts_cost():
        analysis = Analysis.from_matrix(
            canonical(A), LU, SymbolicOptions("amd", pairs="all"), backend="cpu"
        )
    assert analysis.paired
    plain = order(A, "amd").cost
    assert analysis.ordering.cost.nnz <= 2 * plain.nnz
    lower = (analysis.nnz_factor + analysis.n) // 2
    assert analysis.ordering.cost.nnz <= lower <= 1.6 * analysis.ordering.cost.nnz
    partner = match_rows(canonical(A), LU, "all").partner
    front_of = np.repeat(np.arange(analysis.n_fronts), analysis.front_sizes()[0])
    place = np.argsort(analysis.perm)
    assert np.array_equal(front_of[place], front_of[place[partner]])
    zero = np.flatnonzero(A.diagonal() == 0)
    assert zero.size > 100
    assert (partner[zero] != zero).mean() > 0.99
