"""Batches as forests on a device: each system as if it were alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.backend.protocol import panel_offsets
from frontal.batch.device.scaling import BatchEquilibration
from frontal.batch.device.solve import _ForestSystem
from frontal.batch.forest import forest
from frontal.batch.systems import Systems
from frontal.cpu.host_system import HostSystem
from frontal.cpu.small.one_system import pattern_of
from frontal.errors import BatchError, NonFiniteInputError, PerformanceWarning
from frontal.numeric.method import LU
from frontal.problems import convdiff2d, poisson2d

from ..matrices import grid_matrices, scaled_values, with_values

pytestmark = pytest.mark.usefixtures("gpu_backend")

CASES = grid_matrices(7)
MOVED = {"general": convdiff2d(7) - 3 * sp.eye_array(49)}  # rows are interchanged,
_SMALL = sp.diags_array(0.02 + 0.05 * np.sin(3 * np.arange(49)))
MOVED["symmetric"] = poisson2d(7) - 4 * sp.eye_array(49) + _SMALL  # and pivots are of order 2


def test_forests_are_plans_of_block_diagonal_matrices():
    A = convdiff2d(4).tocsc()
    one = frontal.analyze(A, backend="cpu").symbolic
    many = forest(one, 3)
    block = sp.block_diag([A, A, A], format="csc")
    assert np.array_equal(many.indices, block.indices)
    assert np.array_equal(many.indptr, block.indptr)
    f = one.plan.parent.size
    roots = many.plan.parent < 0
    assert roots.sum() == 3 * (one.plan.parent < 0).sum()
    assert all((many.plan.parent[~roots] // f) == (np.flatnonzero(~roots) // f))
    row = many.row_perm[many.plan.start[np.repeat(np.arange(3 * f), np.diff(many.plan.start))]]
    assert row.size == 3 * A.shape[0]
    assert np.array_equal(np.sort(many.plan.source), np.arange(block.nnz))


@pytest.mark.parametrize("alike", [False, True])
def test_scalings_on_a_device(device, alike):
    A = (CASES["symmetric"] if alike else CASES["general"]).tocsc()
    size = 2.0 ** np.random.default_rng(0).integers(-30, 30, (3, 49))
    given = []
    for s, v in zip(size, scaled_values(A, 3), strict=True):
        one = sp.diags_array(s) @ with_values(A, v)
        given.append((one @ sp.diags_array(s) if alike else one).tocsc().data)
    given = np.stack(given)
    analysis = frontal.analyze(A, kind="symmetric" if alike else "general", backend="cpu")
    pattern = pattern_of(analysis.symbolic, analysis.matching, panel_offsets(analysis.plan, LU))
    made = BatchEquilibration(pattern, alike, device)
    assert made.fits
    row, column = (device.download(x) for x in made(device.upload(given)))
    for i in range(3):
        scaled = abs(sp.diags_array(row[i]) @ with_values(A, given[i]) @ sp.diags_array(column[i]))
        assert 0.35 < scaled.max(axis=1).toarray().min() <= scaled.max() < 3


@pytest.mark.parametrize("kind", CASES)
def test_solutions_on_a_device(kind):
    A = CASES[kind].tocsc()
    values = scaled_values(A, 5)
    b = np.random.default_rng(1).standard_normal((5, 49, 2))
    factors = frontal.factorize_batch(A, values, backend="gpu")
    for trans in "NT":
        x, info = factors.solve(b, trans, return_info=True)
        assert (info.backward_error < 1e-15).all()
        for i in range(5):
            M = with_values(A, values[i])
            M = M if trans == "N" else M.T
            assert abs(M @ x[i] - b[i]).max() < 1e-12 * abs(M).max() * abs(x[i]).max()
    host = frontal.factorize_batch(A, values, backend="cpu")
    for one, other in zip(factors.slogdet(), host.slogdet(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_allclose(factors[3].solve(b[3]), factors.solve(b)[3], rtol=1e-9)


@pytest.mark.parametrize("kind", CASES)
def test_bad_systems_on_a_device_harm_no_other(kind):
    A = CASES[kind].tocsc()
    values, b = scaled_values(A, 6), np.ones(49)
    x = frontal.solve_batch(A, values, b, kind=kind, backend="gpu")
    bad = values.copy()
    bad[1, 7], bad[2], bad[4] = np.nan, 0, (-1 if kind == "spd" else 0) * bad[4]
    with pytest.raises(BatchError) as error:
        frontal.factorize_batch(A, bad, kind=kind, backend="gpu")
    assert error.value.indices.tolist() == [1, 2, 4]
    factors = error.value.result
    good = factors.status == 0
    assert np.array_equal(factors.solve(b)[good], x[good])
    assert np.isnan(factors.solve(b)[~good]).all()
    factors.refactorize(values, where=~good)
    assert np.array_equal(factors.solve(b), x)


def test_weak_pivots_of_one_system_on_a_device(warned):
    A = CASES["general"].tocsc()
    values = scaled_values(A, 4)
    diagonal = A.indices == np.repeat(np.arange(49), np.diff(A.indptr))
    values[2, diagonal] *= 1e-9
    x = frontal.solve_batch(A, values, np.ones(49), backend="gpu")
    ((message, category),) = warned
    assert message.startswith("1 of 4")
    assert category is PerformanceWarning
    for i in range(4):
        assert abs(with_values(A, values[i]) @ x[i] - 1).max() < 1e-11 * abs(x[i]).max()


@pytest.mark.parametrize(
    ("kind", "dtype", "of"),
    [(kind, dtype, CASES) for kind in CASES for dtype in "fdFD"]
    + [(kind, "d", MOVED) for kind in MOVED],
    ids=lambda x: "moved" if x is MOVED else None if isinstance(x, str) else "plain",
)
@pytest.mark.filterwarnings("error")  # nothing is done once more on the host
def test_a_warp_solves_a_whole_system(device, kind, dtype, of, monkeypatch):
    A = of[kind].tocsc()
    rng = np.random.default_rng(2)
    count = 19 if device.cuda or (kind, dtype) == ("spd", "d") else 5
    values = scaled_values(A, count).astype(dtype)
    b = rng.standard_normal((count, 49, 3)).astype(dtype)
    if dtype in "FD":
        b += 1j * rng.standard_normal(b.shape)
        if kind == "general":
            values = values * np.exp(1j * rng.uniform(0, 0.3, values.shape))
        elif kind == "symmetric":
            values[:, A.indices == np.repeat(np.arange(49), np.diff(A.indptr))] += 0.3j
    values = values.astype(dtype)
    factors = frontal.factorize_batch(A, values, kind=kind, backend="gpu")
    for trans in "NTH" if dtype in "FD" else "NT":
        for few in (slice(0, 1), slice(0, 3)) if trans == "N" else (slice(0, 3),):
            found = []
            for least in (0, 1 << 20):
                monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees.MIN_SYSTEMS", least)
                found.append(factors.solve(b[..., few], trans, return_info=True))
            (x, info), (y, other) = found
            eps = np.finfo(dtype).eps
            scale = abs(y).max(axis=(1, 2)) * np.maximum(other.condition, 1)
            assert (abs(x - y).max(axis=(1, 2)) < 50 * eps * scale).all()
            assert (info.backward_error < 4 * eps).all()
            assert (info.refinement_steps <= 2).all()


@pytest.mark.parametrize("kind", ["spd", "general", "symmetric"])
@pytest.mark.filterwarnings("error")
def test_a_team_solves_as_a_warp_does(device, kind, monkeypatch):
    A = grid_matrices(11)[kind].tocsc()
    values, rng = scaled_values(A, 3), np.random.default_rng(3)
    b = rng.standard_normal((3, 121, 3))
    monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees.MIN_SYSTEMS", 0)
    monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees._MIN_WARP_FRONTS", 1)
    one = None
    for team in (1, 2) if kind == "symmetric" else (1, 3):
        monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees._TEAMS", (team,))
        factors = frontal.factorize_batch(A, values, kind=kind, backend="gpu")
        for trans in "NT" if kind == "general" else "N":
            x, info = factors.solve(b, trans, return_info=True)
            assert (info.backward_error < 4 * np.finfo(float).eps).all()
            assert info.refinement_steps.max() <= (kind == "symmetric")  # hide nothing
            if trans == "N":
                one = x if one is None else one
                np.testing.assert_allclose(x, one, rtol=1e-9, atol=1e-12 * abs(one).max())
        again = frontal.factorize_batch(A, values[1:], kind=kind, backend="gpu").solve(b[1:])
        np.testing.assert_array_equal(factors.solve(b)[1:], again)  # whatever else there is


@pytest.mark.parametrize("backend", ["cpu", "gpu"])
@pytest.mark.parametrize("least", [0, 1 << 20])
def test_right_hand_sides_that_are_no_numbers_are_named(backend, least, monkeypatch):
    monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees.MIN_SYSTEMS", least)
    A = CASES["spd"].tocsc()
    factors = frontal.factorize_batch(A, scaled_values(A, 4), kind="spd", backend=backend)
    for shape, index in (
        ((49,), (7,)),
        ((4, 49), (2, 7)),
        ((49, 3), (7, 1)),
        ((4, 49, 3), (3, 7, 1)),
    ):
        for bad in (np.nan, -np.inf):
            b = np.ones(shape)
            b[index] = bad
            with pytest.raises(NonFiniteInputError) as error:
                factors.solve(b)
            assert error.value.index == index


@pytest.fixture
def least(request, monkeypatch):
    """From how many systems on each is solved by a warp: always, or never."""
    monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees.MIN_SYSTEMS", request.param)


def engine_of(factors):
    return factors._groups[0].systems._engine


@pytest.mark.parametrize("least", [0, 1 << 20], ids=["trees", "sweeps"], indirect=True)
@pytest.mark.filterwarnings("error")
def test_one_system_is_refined_and_the_others_stay(device, least):
    A = CASES["spd"].tocsc()
    values, b = scaled_values(A, 5), np.random.default_rng(3).standard_normal((5, 49, 2))
    factors = frontal.factorize_batch(A, values, backend="gpu")
    x, info = factors.solve(b, return_info=True)
    moved = device.download(engine_of(factors).values)
    moved[2] *= 1 + 1e-7  # of which the factor knows nothing
    device.copy(moved, engine_of(factors).values)
    y, other = factors.solve(b, return_info=True)
    assert other.refinement_steps.tolist() == [0, 0, 1, 0, 0]
    assert (other.backward_error < 1e-15).all()
    rest = np.arange(5) != 2
    assert np.array_equal(y[rest], x[rest])
    assert np.array_equal(other.backward_error[rest], info.backward_error[rest])
    np.testing.assert_allclose(y[2] * (1 + 1e-7), x[2], rtol=1e-11)


@pytest.mark.parametrize("least", [0, 1 << 20], ids=["trees", "sweeps"], indirect=True)
@pytest.mark.filterwarnings("ignore::frontal.errors.IllConditionedWarning")
@pytest.mark.filterwarnings("ignore::frontal.errors.PerformanceWarning")
@pytest.mark.parametrize("above", [-1.9, 1.9])
def test_a_solution_of_no_digits_is_looked_at_alone(least, above, monkeypatch):
    """Signs alone tell whether the comparison matrix of an ill-conditioned system has a bound."""
    ones = np.ones(49)
    A = sp.diags_array([ones, ones[1:]], offsets=[0, 1], format="csc")
    is_above = A.indices != np.repeat(np.arange(49), np.diff(A.indptr))
    values = np.tile(A.data, (4, 1))
    values[:, is_above] = np.array([[0.5], [-0.5], [above], [0.25]])
    factors = frontal.factorize_batch(A, values, backend="gpu")
    assert (factors.status == 0).all()
    b = np.stack([with_values(A, one) @ ones for one in values])
    factor, alone = Systems.factor, []

    def looked_at(self, i):
        alone.append(i)
        return factor(self, i)

    monkeypatch.setattr(Systems, "factor", looked_at)
    x, info = factors.solve(b, return_info=True)
    assert alone == [2]
    assert info.condition[2] > 1e12
    assert (np.delete(info.condition, 2) < 1e3).all()
    np.testing.assert_allclose(np.delete(x, 2, axis=0), 1, rtol=1e-14)


@pytest.mark.parametrize("least", [0, 1 << 20], ids=["trees", "sweeps"], indirect=True)
@pytest.mark.filterwarnings("error")
def test_solution_of_own_condition_passes_on_a_device(least):
    """The inverse has entries of 2^48, which this right-hand side does not meet.

    Powers of two have no rounding errors, which the inverse would enlarge.
    """
    A = sp.diags_array([np.ones(49), np.full(48, -2.0)], offsets=[0, 1], format="csc")
    values, b = np.stack([A.data] * 3), np.eye(49)[0]
    factors = frontal.factorize_batch(A, values, kind="general", backend="gpu")
    x, info = factors.solve(b, return_info=True)
    np.testing.assert_array_equal(x, np.stack([b] * 3))
    assert (info.condition < 10).all()


def test_errors_of_sweeps_are_those_of_trees(device, monkeypatch):
    """Of vectors that are nearly zero in all columns of many rows, and no solutions."""
    A, rng = CASES["general"].tocsc(), np.random.default_rng(5)
    values = scaled_values(A, 5)
    part = engine_of(frontal.factorize_batch(A, values, backend="gpu"))._parts[0]
    x = rng.standard_normal((2, 245)) * np.where(rng.random(245) < 0.8, 1e-20, 1)
    b = x @ sp.block_diag([with_values(A, one) for one in values]).T * (1 + 1e-3 * rng.random(245))
    b += 1e-18 * rng.standard_normal((2, 245))
    (X, B, zero), found = (device.upload(V).T for V in (x, b, 0 * b)), []
    for least in (0, 1 << 20):
        monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees.MIN_SYSTEMS", least)
        of = _ForestSystem(part.factor, part._solver, "N", np.dtype(float), None)
        found.append(device.download(of.solved(zero, X, B).sizes))
    trees, sweeps = found
    np.testing.assert_allclose(trees[:, :4], sweeps[:, :4], rtol=1e-9)
    assert (trees[:, 4] > 0.1).all()  # componentwise errors, which are no less
    for s, one in enumerate(values):
        M, part = with_values(A, one), slice(49 * s, 49 * (s + 1))
        host = HostSystem.from_matrix(M, float(abs(M).sum(axis=1).max()), lambda R: R)
        wanted = host.measure(x[:, part].T, b[:, part].T)[1].rowwise
        np.testing.assert_allclose(sweeps[:, 4, s], wanted, rtol=1e-9)
        assert (wanted < 1e-3).all()
    x[:, :49] = np.nan  # of one system
    spoiled = device.download(of.solved(zero, device.upload(x).T, B).sizes)
    np.testing.assert_array_equal(spoiled[:, :, 1:], sweeps[:, :, 1:])


def test_unsymmetric_entry_beside_a_penalty_on_a_device(warned):
    A = CASES["spd"].tolil()
    A[20, 20] = 1e17
    A = A.tocsc()
    values = np.stack([A.data] * 3)
    values[1, A.indptr[20]] *= 0.5  # an entry beside the penalty
    factors, b = frontal.factorize_batch(A, values, backend="gpu"), np.ones(49)
    assert [text[:6] for text, _ in warned] == ["1 of 3"]
    for one, value in zip(factors.solve(b), values, strict=True):
        M = with_values(A, value)
        assert (abs(M @ one - b) <= 1e-14 * (abs(M) @ abs(one) + 1)).all()


@pytest.mark.parametrize("kind", CASES)
def test_nothing_of_sound_systems_comes_to_the_host(device, kind, monkeypatch):
    monkeypatch.setattr("frontal.gpu.sparse.batch.small_trees.MIN_SYSTEMS", 0)
    A = CASES[kind].tocsc()
    values, b = scaled_values(A, 5), device.upload(np.ones((5, 49)))
    factors = frontal.factorize_batch(A, values, backend="gpu")
    factors.solve(b)
    new, download, fetched = device.upload(3 * values), device.download, []

    def counted(array):
        fetched.append(array)
        return download(array)

    monkeypatch.setattr(device, "download", counted)
    for _ in range(3):  # launched, recorded, replayed
        factors.refactorize(new).solve(b)
    assert sum(array.size for array in fetched) == (0 if kind != "symmetric" else 3 * 5 * 49)
    X = engine_of(factors).solve("N", b[:, None], np.arange(5)).X
    part = engine_of(factors)._parts[0]
    for trans, axis in (("N", 1), ("T", 0)):
        norms = device.download(part._solver.norms(part.factor, trans))
        wanted = [abs(with_values(A, 3 * one)).sum(axis=axis).max() for one in values]
        np.testing.assert_allclose(norms, wanted, rtol=1e-14)
    x = device.download(X)[:, 0]
    for i in range(5):
        assert abs(3 * with_values(A, values[i]) @ x[i] - 1).max() < 1e-13 * abs(x[i]).max()


def test_values_of_the_caller_are_his(device):
    A = CASES["spd"].tocsc()
    values, b = device.upload(scaled_values(A, 3)), np.ones(49)
    factors = frontal.factorize_batch(A, values, backend="gpu")
    for _ in range(2):
        x = factors.solve(b)
        device.clear(values)
        assert np.array_equal(factors.solve(b), x)
        values = device.upload(2 * scaled_values(A, 3))
        factors.refactorize(values)
    np.testing.assert_allclose(factors[1].A.data, 2 * scaled_values(A, 3)[1])


@pytest.mark.parametrize("least", [0, 1 << 20], ids=["trees", "sweeps"], indirect=True)
def test_conditions_of_other_factors_are_forgotten(least):
    """Pairs that are nearly the same equation twice: x is as large, and far less certain."""
    A = sp.block_diag([np.array([[1, 0.5], [0.5, 1]])] * 5, format="csc")
    close = np.where(A.data == 1, 1, 1 - 1e-6)
    factors = frontal.factorize_batch(A, np.stack([A.data] * 3), backend="gpu")
    _, info = factors.solve(np.ones(10), return_info=True)
    assert (info.condition < 20).all()
    factors.refactorize(np.stack([A.data, close, A.data]))
    _, info = factors.solve(np.ones(10), return_info=True)
    assert (info.condition[[0, 2]] < 20).all()
    assert info.condition[1] > 1e5


def test_a_batch_in_parts_on_a_device(monkeypatch):
    A = CASES["spd"].tocsc()
    values, b = scaled_values(A, 5), np.random.default_rng(4).standard_normal((5, 49))
    x, info = frontal.factorize_batch(A, values, backend="gpu").solve(b, return_info=True)
    analysis = frontal.analyze(A, backend="gpu", reuse=100)
    size = int(panel_offsets(analysis.plan, analysis.symbolic.method)[-1])
    monkeypatch.setattr("frontal.batch.device.systems._MAX_FOREST_ENTRIES", 2 * size)
    values[2] = np.nan
    factors = frontal.factorize_batch(A, values, backend="gpu", check=False)
    assert engine_of(factors)._ends.tolist() == [0, 2, 3, 5]
    y, other = factors.solve(b, return_info=True)
    rest = np.arange(5) != 2
    assert np.array_equal(y[rest], x[rest])
    assert np.isnan(y[2]).all()
    for whole, part in zip(info, other, strict=True):
        assert np.array_equal(part[rest], whole[rest])
    assert np.isnan([other.backward_error[2], other.condition[2]]).all()
