"""What a factor holds on the device: each thing once, and solves in memory of factorizations."""

from dataclasses import replace
from unittest import mock
from weakref import ref

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.gpu.runtime.limits import H200
from frontal.gpu.sparse import pattern
from frontal.gpu.sparse.factorize import entries
from frontal.gpu.sparse.factorize.entries import PatternEntries
from frontal.gpu.sparse.layout.subset_packing import packed_subset, worth_having
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.gpu.sparse.solve import messages
from frontal.gpu.sparse.tasks.list_bytes import index_bytes
from frontal.machine import resources

from ...emulation.compiling import COMPILER
from ...emulation.traffic import numeric, put
from ...matrices import grid_system
from .streamed_tools import device_bytes

pytestmark = pytest.mark.usefixtures("gpu_backend")

KINDS = ("spd", "symmetric", "general")


def shifted(kind):
    """A grid's matrix with values of its kind."""
    if kind == "general":
        return grid_system(kind, "f8", 12)
    return sp.csc_array(problems.poisson2d(12) - (0.3 if kind == "symmetric" else 0) * sp.eye(144))


@pytest.mark.parametrize("kind", KINDS)
def test_solves_lie_in_the_memory_of_factorizations(device, kind):
    """Between two factorizations; what these leave there is no message of a solve."""
    a, b = shifted(kind), np.random.default_rng(2).standard_normal((144, 3))
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    first = factor.solve(b)
    spare = numeric(factor).storage.spare.memory
    messages = numeric(factor).storage.solver._messages[-1]
    assert 0 < messages._among.nbytes <= spare.nbytes
    assert device.pointer(messages._among) == device.pointer(spare)
    for scale in (4, 16, 1):  # in a graph from the second on
        spare[...] = 0x5A  # as a large factorization would leave it
        factor.refactorize(scale * a)
        assert all((device.download(sent) == 0xFF).all() for sent in messages.sent)
        np.testing.assert_array_equal(factor.solve(scale * b), first)
    assert numeric(factor).storage.solver._messages[-1] is messages


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_values_are_held_once(device, kind):
    a, b = grid_system(kind, "f8"), np.ones(81)
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    of = numeric(factor)
    assert of.values is of.storage.values
    assert (of.storage.factorization.values is of.values) == (kind == "spd")
    given = put(device, 2 * a.data)
    factor.refactorize(given)
    of = numeric(factor)
    assert of.values is of.storage.values
    assert device.pointer(of.values) != device.pointer(given)
    twin = factor.copy()
    factor.refactorize(3 * a)
    given[...] = 0
    for one, scale in ((factor, 3), (twin, 2)):
        np.testing.assert_allclose(scale * a @ one.solve(b), b, rtol=1e-9)
        np.testing.assert_array_equal(one.A.toarray(), scale * a.toarray())
    twin.refactorize(5 * a)
    for one, scale in ((factor, 3), (twin, 5)):
        np.testing.assert_allclose(scale * a @ one.solve(b), b, rtol=1e-9)


def test_mixed_precision_keeps_the_values_in_double(device):
    a, b = grid_system("spd", "f8"), np.ones(81)
    factor = frontal.factorize(a, backend="gpu", precision="mixed")
    for scale in (1, 2, 3):
        factor.refactorize(scale * a)
        assert numeric(factor).values.dtype == "f8"
        assert numeric(factor).storage.panels.dtype == "f4"
        np.testing.assert_allclose(scale * a @ factor.solve(b), b, rtol=1e-12)


@pytest.mark.parametrize("symmetric", [True, False])
def test_rows_of_a_pattern(device, symmetric):
    """Those of a symmetric one are its columns, whose pointers and indices are not kept twice."""
    a = grid_system("general", "f8")
    if not symmetric:
        a = sp.csc_array(a + sp.diags_array(np.ones(81 - 13), offsets=13))
    symbolic = frontal.analyze(a, kind="general").symbolic
    there = PatternEntries(symbolic, DevicePattern(device, symbolic.plan, symbolic.method))
    *found, _ = there.by_rows(np.dtype("f8"))
    pointer, index, position = (device.download(x) for x in found)
    number = np.arange(symbolic.indices.size)
    wanted = sp.csc_array((number, symbolic.indices, symbolic.indptr), shape=a.shape).tocsr()
    np.testing.assert_array_equal(pointer, wanted.indptr)
    np.testing.assert_array_equal(index, wanted.indices)
    np.testing.assert_array_equal(position, wanted.data)
    assert (found[1] is there.index) == symmetric


@pytest.mark.parametrize("symmetric", [True, False])
def test_places_of_entries_are_as_wide_as_they_must_be(device, symmetric, monkeypatch):
    """Those of a matrix of more than 2^31 entries take 64 bits, and change nothing else."""
    a, b = grid_system("general", "f8"), np.random.default_rng(2).standard_normal((81, 3))
    if not symmetric:
        a = sp.csc_array(a + sp.diags_array(np.ones(81 - 13), offsets=13))
    found = []
    for narrow, kind in ((1 << 20, np.int32), (0, np.int64)):
        monkeypatch.setattr(entries, "_MAX_INT32_POSITION", narrow)
        factor = frontal.factorize(a, kind="general", backend="gpu")
        twice = sp.coo_array((np.repeat(a.data, 2) / 2, np.repeat(a.tocoo().coords, 2, axis=1)))
        factor.refactorize(put(device, a.data))
        x, many = factor.solve(b[:, 0], trans="T"), factor.solve(b)
        factor.refactorize(twice)
        of = numeric(factor)
        *rows, _ = of.entries.by_rows(a.dtype)
        assert {x.dtype for x in (of.entries.pointer, rows[0], rows[2])} == {np.dtype(kind)}
        found.append((x, many, factor.solve(b), factor.growth))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_values_on_a_device_are_known_to_be_symmetric(device):
    """Their rows are then read as columns, and no list of them is made."""
    a = grid_system("spd", "c16")
    factor = frontal.factorize(a, backend="gpu")
    factor.refactorize(put(device, 2 * a.data))
    assert numeric(factor).hermitian
    factor.solve(put(device, np.ones(81, complex)))
    assert numeric(factor).entries._by_rows is None
    other = 2 * a.data
    p = np.flatnonzero(a.indices == 1)[0]
    other[p] = np.nextafter(other[p].real, 9) + 1j * other[p].imag
    factor.refactorize(put(device, other))
    assert factor.analysis.method == "cholesky"
    assert not numeric(factor).hermitian


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_right_hand_sides_lie_where_solutions_come(device, kind, monkeypatch):
    """In whole blocks of them, whatever was solved for before; nothing of them is kept."""
    a, rng = shifted(kind), np.random.default_rng(2)
    factor, beside = (frontal.factorize(a, kind=kind, backend="gpu") for _ in range(2))
    solver = numeric(factor).storage.solver_of(numeric(factor).pattern)
    for columns in (16, 11, 1, 16, 8, 3, 12):
        b = put(device, np.asfortranarray(rng.standard_normal((144, columns))))
        monkeypatch.setattr(messages, "_MIN_LENT_BYTES", 1 << 30)
        wanted = device.download(beside.solve(b))
        monkeypatch.setattr(messages, "_MIN_LENT_BYTES", 0)
        for refine in (None, 0, 0):
            found = factor.solve(b, refine=refine)
            np.testing.assert_array_equal(device.download(found), wanted)
        lent = [sweeps for (*_, there), sweeps in solver._sweeps.items() if there]
        assert lent
        whole = ref(found if found.base is None else found.base)
        del found
        assert whole() is None
    assert not any(width == 8 for width in solver._messages[-1]._vectors)


@pytest.mark.usefixtures("merged_by_work")
def test_vectors_of_narrow_solves_lie_behind_their_messages(device, monkeypatch):
    """Where wider ones, whose vectors are lent, send messages: they find none there."""
    monkeypatch.setattr(messages, "_MIN_LENT_BYTES", 0)
    factor = frontal.factorize(problems.poisson3d(8), backend="gpu")
    b = put(device, np.asfortranarray(np.random.default_rng(2).standard_normal((512, 16))))
    wanted = device.download(factor.solve(b, refine=0))
    last = numeric(factor).storage.solver._messages[-1]
    beyond = last.of_rows[b.nbytes // 2 :]  # what a solution of 8 does not take
    assert beyond.nbytes
    begin, end = device.pointer(last.of_rows), device.pointer(last.of_rows) + last.of_rows.nbytes
    for columns in (1, 2, 3):  # the last ones as four
        vectors = last.vectors_of(columns + columns // 3)
        assert begin < device.pointer(vectors) <= end - vectors.nbytes
        found = device.download(factor.solve(b[:, :columns]))
        np.testing.assert_allclose(found, wanted[:, :columns], rtol=1e-9)
        last.make_way(8)
        assert (device.download(beyond) == 0xFF).all()
        np.testing.assert_array_equal(device.download(factor.solve(b, refine=0)), wanted)
    assert not last._vectors


def test_what_fits():
    assert packed_subset([], 100) == ([], 0)
    assert packed_subset([300, 600, 100], 1023) == ([None, 0, None], 768)
    assert packed_subset([300, 600, 100], 1024) == ([None, 0, 768], 1024)
    assert packed_subset([300, 600, 100], 4096) == ([0, 512, 1280], 1536)
    assert packed_subset([300, 600], 0) == ([None, None], 0)


def test_a_little_more_where_much_more_fits():
    sizes = [4096, 8192, 6144]
    assert worth_having(sizes, 8192, 1024) == 0  # all of it is in use
    assert worth_having(sizes, 9984, 256) == 256  # 4096 and 6144 in place of 8192
    assert worth_having(sizes, 9984, 255) == 0
    assert worth_having(sizes, 9216, 1024) == 0  # as much fits, less twice what is added
    assert worth_having(sizes, 1 << 20, 1 << 20) == 0


@pytest.mark.parametrize(("rhs", "lent"), [(1, 1 << 23), (16, 1 << 23), (16, 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_is_what_is_taken(kind, rhs, lent):
    if COMPILER is None:
        pytest.skip("no C++ compiler to emulate kernels with")
    most, told, *_ = device_bytes(kind, 11, rhs, lent=lent, limits=H200)
    parts = ("factor", "contribution", "index", "solve")
    assert told["device"] == told["total"] == sum(told[name] for name in parts)
    assert told["host"] == 0
    assert 0.97 * told["total"] <= most <= 1.01 * told["total"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["cube", "grid"])
def test_lists_are_counted_without_being_made(device, kind, name):
    a = problems.poisson3d(9) if name == "cube" else problems.poisson2d(40)
    symbolic = frontal.analyze(a, kind=kind).symbolic
    of, f8 = DevicePattern(device, symbolic.plan, symbolic.method), np.dtype("f8")
    found = list(of.arrays.values()) + list(of.placed(f8).values())
    small = [of.small_tasks(f8)] if of.schedule.small.any() else []
    for lists in (of.tasks, *small, of.solve_tasks(f8)):
        found += [x for x in vars(lists).values() if isinstance(x, device.xp.ndarray)]
    assert index_bytes(of) == sum(x.nbytes for x in found)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_lie_in_one_piece(device, kind, monkeypatch):
    """All that a factorization reads, which fill it, and the columns of the matrix."""
    a, b = problems.poisson3d(9), np.ones(729)
    apart = frontal.factorize(a, kind=kind, backend="gpu").solve(b)
    monkeypatch.setattr(pattern, "_MIN_SLAB_BYTES", 0)
    monkeypatch.setattr(pattern, "_MIN_THREADED_ENTRIES", 0)
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    np.testing.assert_array_equal(factor.solve(b), apart)
    of, f8 = numeric(factor).pattern, np.dtype("f8")
    rest = of.piece._free
    assert rest.nbytes < 512 * 32 < index_bytes(of)
    whole = rest.base.nbytes
    begin = device.pointer(rest) + rest.nbytes - whole
    found = [*of.arrays.values(), *of.placed(f8).values(), numeric(factor).entries.perm]
    for lists in (of.tasks, of.small_tasks(f8)):
        found += [x for x in vars(lists).values() if isinstance(x, device.xp.ndarray)]
    assert all(begin <= device.pointer(x) <= begin + whole - x.nbytes for x in found if x.size)
    single = factor.analysis.factorize(a.astype("f4"))  # there is no room left for its lists
    np.testing.assert_allclose(single.solve(b.astype("f4")), apart, rtol=1e-2)


def test_a_price_of_memory_merges_fewer_fronts():
    """Fewer zeros are stored, and no more is computed."""
    a, found = problems.poisson2d(90), []
    for price in (0.0, resources.H200.fronts.stored, 1e-9):
        fronts = resources.H200.fronts._replace(stored=price)
        changed = {"gpu": replace(resources.H200, fronts=fronts)}
        with mock.patch.dict(resources.MACHINES, changed):
            found.append(frontal.analyze(a, backend="gpu", ordering="amd"))
    entries = [one.nnz_factor for one in found]
    assert entries[0] > entries[1] > entries[2]
    assert found[0].flops > found[1].flops
