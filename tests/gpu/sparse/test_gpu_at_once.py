"""Solutions for one vector by one graph: the same bits, and only where nothing is to be said."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.factor.condition_bounds import references_of
from frontal.factor.solution import Solution
from frontal.gpu.sparse.solve import one_vector
from frontal.gpu.sparse.solve.messages import Messages
from frontal.numeric.condition import ESTIMATED, KNOWN

from ...emulation.borders import DTYPES, op, random
from ...emulation.traffic import forget, numeric, put
from ...matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend", "merged_by_work")

KINDS = ["spd", "general"]


def made(factor, trans="N"):
    return numeric(factor).storage.vector_solvers.get(trans)


def prepared(a, **options):
    """A factor that has solved once, so that it knows a condition number."""
    factor = frontal.factorize(a, backend="gpu", **options)
    for trans in "NT":
        factor.solve(np.ones(a.shape[0], a.dtype), trans)
    return factor


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_are_those_of_the_general_way(device, kind, dtype):
    a, rng = grid_system(kind, dtype), np.random.default_rng(3)
    factor = prepared(a, kind=kind)
    for trans in "NTH":
        b = random(rng, (81,), np.dtype(dtype))
        wanted, _ = factor.solve(b, trans, return_info=True)
        for _ in range(3):  # enqueued, recorded, replayed
            np.testing.assert_array_equal(factor.solve(b, trans), wanted)
            x = factor.solve(put(device, b), trans)
            assert device.holds(x) == device.cuda
            np.testing.assert_array_equal(device.download(x), wanted)
        if kind == "spd" or np.finfo(dtype).eps < 1e-10:  # else the condition number is large
            assert made(factor, factor._numbers.solver.equal_side(trans)) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_kept_while_values_change(device, kind):
    """A graph reads the values and the scaling where they are: it is made anew where they move."""
    a, b = grid_system(kind, "f8"), np.random.default_rng(1).standard_normal(81)
    factor = prepared(a, kind=kind)
    factor.solve(b)
    values = put(device, 3 * a.data)
    factor.refactorize(values).solve(b)
    kept = made(factor)
    for scale in (2, 5):
        changed = scale * a
        factor.refactorize(put(device, changed.data))
        np.testing.assert_allclose(changed @ factor.solve(b), b, rtol=1e-9)
        assert made(factor) is kept
    rows = sp.diags_array(np.linspace(1, 2, 81))
    changed = sp.csc_array(rows @ a @ rows)
    factor.refactorize(changed)
    np.testing.assert_allclose(changed @ factor.solve(b), b, rtol=1e-9)
    assert made(factor) is kept
    if kind == "general":  # a scaling that the host makes
        others = changed.indices != np.repeat(np.arange(81), np.diff(changed.indptr))
        changed.data[np.flatnonzero(others)[::20]] *= 2.0**-30
        changed[7, 7] *= 1e-12
        factor.refactorize(changed)
        for _ in range(2):  # the first one finds a condition number
            np.testing.assert_allclose(changed @ factor.solve(b), b, rtol=1e-9)
        assert made(factor) is not kept
    else:  # another scalar type
        changed = a.astype("f4")
        np.testing.assert_allclose(changed @ factor.refactorize(changed).solve(b), b, atol=1e-3)


def test_wider_solves_take_its_messages(device):
    a, b = grid_system("spd", "f8"), np.random.default_rng(1).standard_normal((81, 9))
    factor = prepared(a)
    for _ in range(3):
        x = factor.solve(b[:, 0])
    before = made(factor)
    factor.solve(np.asfortranarray(b))
    assert not before.alive
    np.testing.assert_array_equal(factor.solve(b[:, 0].copy()), x)
    assert made(factor) is not before


def test_little_is_done_for_a_solution(device, traffic):
    """Of a vector on the device five numbers come back; one on the host goes and comes itself."""
    a = grid_system("spd", "f8")
    factor = prepared(a)
    b = np.ones(81)
    for given, moved in ((put(device, b), []), (b, [81])):
        for _ in range(3):
            factor.solve(given)
        forget(traffic, factor)
        factor.solve(given)
        assert traffic["up"] == moved
        assert sorted(traffic["down"]) == [8] * (not device.cuda) + moved


def test_what_is_unusual_goes_the_general_way(device, monkeypatch):
    a, b = grid_system("spd", "f8"), np.ones(81)
    factor = prepared(a)
    wanted = factor.solve(b)
    for other in (np.repeat(b, 2)[::2], b.astype("f4"), b.astype("c16"), b.tolist(), b[:, None]):
        np.testing.assert_allclose(np.ravel(factor.solve(other)), wanted, rtol=1e-6)
    with pytest.raises(ValueError, match="b must be"):
        factor.solve(np.ones(80))
    with pytest.raises(ValueError, match="trans is"):
        factor.solve(b, "X")
    np.testing.assert_array_equal(factor.solve(b), wanted)
    assert numeric(factor)._hopeful
    bad = b.copy()
    bad[7] = np.nan
    with pytest.raises(frontal.NonFiniteInputError, match="7"):
        factor.solve(bad)
    assert not numeric(factor)._hopeful
    np.testing.assert_array_equal(factor.solve(b), wanted)
    monkeypatch.setattr(one_vector, "MAX_GRAPH_UNKNOWNS", 80)
    factor = prepared(a)
    factor.solve(b)
    assert made(factor) is None


def test_sizes_near_the_borders_go_the_general_way(device):
    """What the sweeps cannot hold is solved in other variables, as without a graph."""
    a = grid_system("spd", "f8")
    factor = prepared(a)
    for size in (1e-300, 1e300):
        b = size * np.ones(81)
        factor.refactorize(a).solve(np.ones(81))
        numeric(factor)._hopeful = True
        x = factor.solve(b)
        np.testing.assert_allclose(a @ x / size, 1, rtol=1e-9)
        assert not numeric(factor)._hopeful
    numeric(factor)._hopeful = True
    np.testing.assert_array_equal(factor.solve(np.zeros(81)), 0)


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_corrections_are_those_of_the_general_way(device, dtype):
    """Where factors are no longer those of the values, corrections follow, each by one graph."""
    a, rng = grid_system("general", dtype), np.random.default_rng(0)
    factor = prepared(a, kind="general")
    factor.solve(random(rng, (81,), np.dtype(dtype)))
    numeric(factor).storage.panels[...] *= 1 + 1e-7
    for trans in "NT":
        numeric(factor)._hopeful = True
        for _ in range(3):  # enqueued, recorded, replayed
            b = random(rng, (81,), np.dtype(dtype))
            wanted, info = factor.solve(b, trans, return_info=True)
            assert info.refinement_steps == 2
            np.testing.assert_array_equal(factor.solve(b, trans), wanted)
            x = factor.solve(put(device, b), trans)
            np.testing.assert_array_equal(device.download(x), wanted)
        assert numeric(factor)._hopeful


def test_a_bad_solution_is_not_returned(device):
    """Where corrections do not help, the general way tries more, or warns."""
    a = grid_system("spd", "f8")
    factor = prepared(a)
    b = np.random.default_rng(0).standard_normal(81)
    wanted = factor.solve(b)
    numeric(factor).storage.panels[...] *= 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = factor.solve(b)
    assert not numeric(factor)._hopeful
    np.testing.assert_allclose(x, wanted, rtol=1e-12)


def test_a_capture_is_left_to_the_general_way(device, monkeypatch):
    if device.cuda:
        pytest.skip("needs a device that only says that it captures")
    a, b = grid_system("spd", "f8"), np.ones(81)
    factor = prepared(a)
    for _ in range(3):
        factor.solve(b)
    run = made(factor)._runs[KNOWN].replayed
    runs = run.runs
    monkeypatch.setattr(device, "is_capturing", True, raising=False)
    assert numeric(factor).solve_fast(put(device, b), "N", False) is None
    assert run.runs == runs


def test_copies_have_their_own(device):
    a, b = grid_system("general", "f8"), np.ones(81)
    factor = prepared(a, kind="general")
    x = factor.solve(b)
    twin = factor.copy()
    twin.refactorize(2 * a)
    np.testing.assert_allclose(2 * twin.solve(b), x, rtol=1e-12)
    np.testing.assert_array_equal(factor.solve(b), x)
    factor.free()
    with pytest.raises(frontal.FactorFreedError):
        factor.solve(b)
    np.testing.assert_allclose(2 * twin.solve(b), x, rtol=1e-12)


@pytest.mark.parametrize("trans", "NTH")
def test_transposed_systems(device, trans):
    a = grid_system("general", "c16")
    factor = prepared(a, kind="general")
    b = random(np.random.default_rng(2), (81,), np.dtype("c16"))
    for _ in range(3):
        x = factor.solve(b, trans)
    np.testing.assert_allclose(op(a, trans) @ x, b, rtol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_begun_is_of_its_values_alone(device, kind, monkeypatch):
    """An interrupt leaves a factorization at work behind, which nobody takes for another one."""
    a, b = grid_system(kind, "f8"), np.ones(81)
    factor = prepared(a, kind=kind)
    factor.refactorize(put(device, a.data))  # all is prepared from now on
    launched = []
    run = type(numeric(factor).storage.factorization).__call__
    monkeypatch.setattr(
        "frontal.gpu.sparse.factorize.launches.Factorization.__call__",
        lambda *of: launched.append(of) or run(*of),
    )
    factor.refactorize(put(device, 2 * a.data))
    assert len(launched) == 1
    np.testing.assert_allclose(2 * a @ factor.solve(b), b, rtol=1e-9)
    with monkeypatch.context() as patch:
        patch.setattr("frontal.factor.state.factorize", None)
        with pytest.raises(TypeError):
            factor.refactorize(put(device, 3 * a.data))
    assert len(launched) == 2
    with pytest.raises(frontal.FactorInvalidError):
        factor.solve(b)
    for values in (put(device, 4 * a.data), 5 * a.data):
        factor.refactorize(values)
        changed = sp.csc_array((np.asarray(device.download(values)), a.indices, a.indptr))
        np.testing.assert_allclose(changed @ factor.solve(b), b, rtol=1e-9)
    factor.refactorize(put(device, 3 * a.data.astype("f4")))
    assert factor.dtype == "f4"
    np.testing.assert_allclose(3 * a @ factor.solve(b), b, atol=1e-3)


@pytest.mark.parametrize("kind", ["spd", "symmetric", "general"])
def test_condition_numbers_come_with_solutions(device, kind, monkeypatch):
    """Without a certificate one graph solves and estimates, to what the general way finds."""
    a, b = grid_system(kind, "f8"), np.ones(81)
    factor, other = (frontal.factorize(a, kind=kind, backend="gpu") for _ in range(2))
    for scale in (1, 3, 5, 7):  # enqueued, recorded, replayed
        values = put(device, scale * a.data)
        verdicts = [f.refactorize(values)._numbers.solver.verdict for f in (factor, other)]
        for verdict in verdicts:
            verdict.certifies = False
        monkeypatch.setattr(numeric(other), "_hopeful", False)
        x, y = factor.solve(b), other.solve(b)
        np.testing.assert_allclose(x, y, rtol=1e-13)
        found, wanted = (list(verdict.conditions.values()) for verdict in verdicts)
        assert len(found) == len(wanted) == 1
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        run = made(factor)._runs[ESTIMATED]
        bound = run.estimate.weighed.bound_by(run.estimate.first.host)
        dense = np.abs(np.linalg.inv(scale * a.toarray())) @ np.abs(scale * a.toarray()).sum(axis=1)
        assert dense.max() <= bound
        np.testing.assert_allclose(run.estimate.norm(0), dense.max(), rtol=0.8)
    assert run.replayed.runs == 4


@pytest.mark.parametrize("certifies", [True, False])
def test_sweeps_after_a_replayed_graph_find_no_messages(device, monkeypatch, certifies):
    """Graphs leave solutions where others have messages, which wait for numbers with no bit set."""
    a = sp.csc_array(frontal.problems.poisson3d(8))
    n, b, seen = a.shape[0], np.random.default_rng(2).standard_normal(a.shape[0]), []
    factor = frontal.factorize(a, backend="gpu")
    assert numeric(factor).pattern.solve_tasks(np.dtype("f8")).messages > n

    def make_way(self, width, graph=False):
        own(self, width, graph)
        if not graph:
            between = self.sent[1][self._end(width) : self._last(width)]
            seen.append((device.download(between) == 0xFF).all())

    own = Messages.make_way
    monkeypatch.setattr(Messages, "make_way", make_way)
    for scale in range(1, 7):
        values = put(device, scale * a.data)
        for _ in range(2):
            factor.refactorize(values)._numbers.solver.verdict.certifies = certifies
            x = factor.solve(b)  # with a condition number, as one graph
            y = factor.solve(b, refine=1)  # by sweeps for one vector
            for found in (x, y):
                residual = np.abs(scale * (a @ found) - b).max()
                assert residual <= 64 * np.finfo(float).eps * np.abs(b).max()
    assert len(seen) > 6
    assert all(seen)


def in_uneven_units(exponent):
    """A matrix whose columns differ in size: some solutions are far better known than others."""
    a, units = grid_system("general", "f8"), np.ones(81)
    units[40:] = 2.0**-exponent
    return sp.csc_array(a @ sp.diags_array(units))


@pytest.mark.parametrize("case", ["rows", "last", "corrected"])
def test_weights_are_compared_beside_solutions(device, monkeypatch, case):
    """A solution is judged by row sums or by an earlier one, by a graph that follows its own."""
    changed, count = 1e-7 * (case == "corrected"), 1 if case == "rows" else 2
    a, rng = in_uneven_units(27 if case == "rows" else 50), np.random.default_rng(0)
    factor = frontal.factorize(a, kind="general", backend="gpu")
    for scale in 1, 3:
        factor.refactorize(put(device, scale * a.data)).solve(rng.standard_normal(81))
        numeric(factor).storage.panels[...] *= 1 + changed  # then solutions are corrected
        verdict = factor._numbers.solver.verdict
        for _ in range(3):  # enqueued, recorded, replayed
            b = rng.standard_normal(81)
            wanted, info = factor.solve(b, return_info=True)
            assert info.refinement_steps == 2 or not changed
            with monkeypatch.context() as patch:
                patch.setattr(type(verdict), "estimated", None)
                np.testing.assert_array_equal(factor.solve(b), wanted)
                x = factor.solve(put(device, b))
            np.testing.assert_array_equal(device.download(x), wanted)
        compared = made(factor)._weighings[count].ratios()
        assert compared == ratios(device, factor, x, b)
        assert compared[0][0] < compared[-1][1]
    for key, last in verdict.weighed.items():
        verdict.weighed[key] = last._replace(weights=2 * last.weights)
        factor.solve(b)
        assert made(factor)._weighings[count].ratios() == ratios(device, factor, x, b)


def ratios(device, factor, x, b):
    """The ratios of a solution's weights to row sums, and to the weights of an earlier one."""
    X, B = (v.reshape(81, 1) for v in (x, put(device, b)))
    last = factor._numbers.solver.verdict.last_weighed("N", np.dtype("f8"))
    system = numeric(factor).system("N", np.dtype("f8"))
    solution = Solution(numeric(factor), "N", X, B, system.measure(X, B)[1])
    return system.ratios(solution.weights, references_of(last))


def test_a_solution_far_worse_known_is_told(device):
    """Its weights are not bounded by those of the solutions before."""
    a, rng = in_uneven_units(50), np.random.default_rng(0)
    factor = frontal.factorize(a, kind="general", backend="gpu")
    for _ in range(4):
        factor.solve(rng.standard_normal(81))
    assert 2 in made(factor)._weighings
    with pytest.warns(frontal.IllConditionedWarning):
        factor.solve(a[:, [0]].toarray()[:, 0])
