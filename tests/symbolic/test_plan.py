"""Fronts and index maps: every structure checked against its definition."""

from __future__ import annotations

from contextlib import nullcontext

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import problems
from frontal.api import analyzed as analyzed_by
from frontal.backend.protocol import panel_offsets
from frontal.cpu.layout import HostLayout
from frontal.ordering import order
from frontal.ordering.graph import adjacency
from frontal.ordering.model import pace_of
from frontal.symbolic.plan import front_flops
from frontal.symbolic.subtrees import split_subtrees

from ..conftest import fronts_cost
from ..ordering.test_etree import eliminated


def random_matrix(n: int, density: float, seed: int, symmetric: bool) -> sp.csc_array:
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, random_state=rng)
    A = A + A.T if symmetric else A
    return sp.csc_array(A + n * sp.eye_array(n))


systems = given(
    n=st.integers(1, 40),
    density=st.sampled_from([0.0, 0.03, 0.1, 0.4]),
    seed=st.integers(0, 50),
    symmetric=st.booleans(),
    ordering=st.sampled_from(["amd", "natural"]),
    merging=st.sampled_from(["none", "cost", "path"]),
)
PATH = {"latency": 8e-6, "pivot": 4e-7, "width": 256, "share": 0.125}  # of fronts that wait


def analyzed(A, ordering, merging):
    """An analysis; of so small matrices merging leaves hardly more than one front."""
    with nullcontext() if merging == "cost" else fronts_cost(**PATH if merging == "path" else {}):
        return frontal.analyze(A, ordering=ordering, backend="cpu")


def rows_of(plan, s):
    """All rows of a front: pivots, then update rows."""
    updates = plan.rows[plan.pointer[s] : plan.pointer[s + 1]]
    return np.r_[plan.start[s] : plan.start[s + 1], updates]


@settings(deadline=None, max_examples=50)
@systems
def test_fronts_cover_the_factor(n, density, seed, symmetric, ordering, merging):
    A = random_matrix(n, density, seed, symmetric)
    analysis = analyzed(A, ordering, merging)
    plan = analysis.plan
    assert sorted(analysis.perm) == list(range(n))
    L = eliminated(adjacency(A), analysis.perm)
    for s in range(analysis.n_fronts):
        columns = np.arange(plan.start[s], plan.start[s + 1])
        rows = plan.rows[plan.pointer[s] : plan.pointer[s + 1]]
        assert np.all(np.diff(rows) > 0)
        assert rows.size == 0 or rows[0] > columns[-1]
        needed = np.flatnonzero(L[:, columns].any(axis=1))
        assert set(needed) <= set(columns) | set(rows)
        parent = plan.parent[s]
        assert (parent < 0) == (rows.size == 0)
        if parent >= 0:
            above = rows_of(plan, parent)
            relative = plan.relative[plan.pointer[s] : plan.pointer[s + 1]]
            assert np.array_equal(above[relative], rows)
            if ordering != "amd":  # which makes an element that another covers its child
                assert relative[0] < plan.start[parent + 1] - plan.start[parent]


@pytest.mark.parametrize("ordering", ["amd", "dissection"])
@pytest.mark.parametrize("shape", [(70, 70), (14, 14, 14)])
def test_rows_of_many_fronts_are_those_of_their_children_and_ascending(shape, ordering):
    grid = problems.poisson2d if len(shape) == 2 else problems.poisson3d
    A = grid(shape)
    plan = analyzed(A, ordering, True).plan
    assert len(plan.parent) > 100
    for s, above in enumerate(plan.parent):
        rows = rows_of(plan, s)
        assert (np.diff(rows) > 0).all()
        if above >= 0:
            assert np.isin(rows[plan.start[s + 1] - plan.start[s] :], rows_of(plan, above)).all()


@settings(deadline=None, max_examples=50)
@systems
def test_every_entry_has_its_own_place(n, density, seed, symmetric, ordering, merging):
    A = random_matrix(n, density, seed, symmetric)
    analysis = analyzed(A, ordering, merging)
    plan, rank = analysis.plan, np.argsort(analysis.perm)
    row, column = np.argsort(analysis.row_perm)[A.indices], rank[A.tocoo().col]
    found = []
    for s in range(analysis.n_fronts):
        k, rows = plan.start[s + 1] - plan.start[s], rows_of(plan, s)
        part = slice(plan.entry_pointer[s], plan.entry_pointer[s + 1])
        assert (np.minimum(plan.row[part], plan.column[part]) < k).all()
        source = plan.source[part]
        assert rows[plan.row[part]].tolist() == row[source].tolist()
        assert rows[plan.column[part]].tolist() == column[source].tolist()
        found += source.tolist()
    kept = row >= column if analysis.symbolic.method.one_triangle else np.full(A.nnz, True)
    assert sorted(found) == np.flatnonzero(kept).tolist()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_contribution_blocks_never_overlap(threads):
    A = frontal.problems.poisson3d(9)
    analysis = frontal.analyze(A)
    plan = analysis.plan
    layout = HostLayout.for_plan(plan, analysis.symbolic.method, threads)
    m = np.diff(plan.pointer)
    visits = [(np.arange(a, b), True) for a, b in zip(layout.low, layout.root, strict=True)]
    visits.append((np.r_[layout.root, layout.top], False))
    for sequence, local in visits:
        live: dict[int, tuple[int, int]] = {}
        for s in sequence:
            mine = (layout.block[s], layout.block[s] + m[s] ** 2)
            assert layout.local[s] == local
            assert mine[1] <= (layout.per_thread if local else layout.shared)
            assert all(mine[0] >= b or a >= mine[1] for a, b in live.values() if b > a)
            for c in plan.children[plan.child_pointer[s] : plan.child_pointer[s + 1]]:
                live.pop(c, None)
            live[s] = mine


def test_subtrees_partition_the_tree():
    plan = frontal.analyze(frontal.problems.poisson2d(60)).plan
    flops = front_flops(plan.start, plan.pointer)
    low, root, top = split_subtrees(plan.parent, flops, 16)
    covered = np.concatenate([np.arange(a, b + 1) for a, b in zip(low, root, strict=True)])
    assert sorted(np.r_[covered, top]) == list(range(plan.parent.size))
    assert set(plan.parent[root]) <= {*top, -1}
    weights = [flops[a : b + 1].sum() for a, b in zip(low, root, strict=True)]
    assert weights == sorted(weights, reverse=True)


@pytest.mark.usefixtures("with_fronts")
def test_figures_of_an_analysis():
    A = frontal.problems.poisson2d(20)
    analysis = frontal.analyze(A, kind="general")
    k, m = (x.astype(np.int64) for x in analysis.front_sizes())
    assert k.sum() == analysis.n == 400
    assert analysis.nnz_factor == (k * k + 2 * k * m).sum()
    tree = analysis.to_networkx()
    assert nx.is_directed_acyclic_graph(tree)
    assert tree.number_of_nodes() == analysis.n_fronts
    assert nx.dag_longest_path_length(tree) + 1 == analysis.levels
    assert sum(f for _, f in tree.nodes(data="flops")) * 2 == pytest.approx(analysis.flops)
    memory = analysis.memory
    assert memory["total"] == memory["factor"] + memory["contribution"] + memory["index"]
    vectors = 8 * 400 + 4 * 400 + 16 * 400  # the diagonal, rows that are interchanged, scales
    panels = 8 * panel_offsets(analysis.plan, analysis.symbolic.method)[-1]
    assert memory["factor"] == panels + A.data.nbytes + vectors


def test_ten_thousand_children_of_one_root():
    n = 10_000
    star = sp.csc_array(sp.eye_array(n + 1) * n) + sp.coo_array(
        (np.ones(n), (np.full(n, n), np.arange(n))), shape=(n + 1, n + 1)
    )
    A = sp.csc_array((star + star.T) / 2 + sp.eye_array(n + 1) * n)
    x = np.arange(n + 1.0)
    assert np.allclose(frontal.solve(A, A @ x), x)


@pytest.mark.usefixtures("merged_by_work")
def test_each_backend_merges_fronts_by_its_own_cost():
    """A GPU takes fronts of up to 64 rows whole, so few are a little larger than that."""
    A = frontal.problems.poisson2d(120)
    shares, b = {}, np.ones(A.shape[0])
    for backend in ("cpu", "gpu"):
        analysis = frontal.analyze(A, kind="spd", ordering="amd", backend=backend)
        plan = analysis.plan
        rows = np.diff(plan.start) + np.diff(plan.pointer)
        shares[backend] = ((rows > 64) & (rows <= 96)).sum() / (rows > 32).sum()
        x = analysis.on("cpu").factorize(A).solve(b)
        assert np.abs(A @ x - b).max() <= 1e-12 * np.abs(x).max()
    assert shares["gpu"] < 0.8 * shares["cpu"]


def fronts_by_path(A, **changed):
    """Fronts of A in its own order, where merged ones wait less for each other."""
    with fronts_cost(**PATH | changed):
        analysis = frontal.analyze(A, kind="spd", ordering="natural", backend="cpu")
    return analysis.n_fronts, analysis.levels


def test_fronts_that_wait_for_one_child_are_merged_with_it():
    """Not where others end as late, nor where the machine has enough of them."""
    n = 255
    arrow = sp.eye_array(n, format="lil") * n
    arrow[-1] = arrow[:, -1] = 1  # all wait for none
    assert fronts_by_path(arrow.tocsc()) == (n, 2)
    path = sp.diags_array([1.0, n, 1.0], offsets=[-1, 0, 1], shape=(n, n), format="csc")
    alone = fronts_by_path(path, share=0.0)
    assert fronts_by_path(path, width=0) == alone
    assert fronts_by_path(path)[1] <= alone[1] / 8
    tree = sp.eye_array(n, format="lil") * n
    for j in range(n - 1):  # a balanced binary tree, leaves first
        parent = n - 1 - (n - 2 - j) // 2
        tree[parent, j] = tree[j, parent] = 1
    assert fronts_by_path(tree.tocsc()) == (n, 8)


def test_fronts_of_many_systems_are_merged_by_their_work(monkeypatch):
    """A machine that works on many systems waits for the fronts of none."""
    n, seen = 255, []
    path = sp.diags_array([1.0, n, 1.0], offsets=[-1, 0, 1], shape=(n, n), format="csc")
    merged = fronts_by_path(path)[0]

    def noted(A, options):
        seen.append(analyzed_by(A, options))
        return seen[-1]

    monkeypatch.setattr("frontal.batch.api.analyzed", noted)
    with fronts_cost(**PATH):
        factors = frontal.factorize_batch(path, np.tile(path.data, (2, 1)), backend="cpu")
    assert seen[0].n_fronts > 8 * merged
    assert np.allclose(path @ factors.solve(np.ones((2, n)))[1], 1)


def test_the_pace_is_that_of_the_backend(monkeypatch):
    seen = []

    def noted(graph, method, **options):
        seen.append(options)
        return order(graph, method, **options)

    monkeypatch.setattr(frontal.symbolic.preprocess, "order", noted)
    for backend, kind, work in (("cpu", "spd", 1), ("gpu", "spd", 1), ("gpu", "general", 2)):
        frontal.analyze(frontal.problems.poisson2d(5), kind=kind, backend=backend)
        options = seen.pop()
        assert {x: options[x] for x in pace_of(backend, work)} == pace_of(backend, work)
        assert options["reuse"] == 1


def test_a_small_analysis_does_not_look_for_a_gpu(monkeypatch):
    monkeypatch.setattr(frontal.backend.choose, "_has_gpu", lambda: pytest.fail("looked for a GPU"))
    analysis = frontal.analyze(frontal.problems.poisson2d(20))
    assert analysis.flops < frontal.backend.choose.GPU_FLOPS
