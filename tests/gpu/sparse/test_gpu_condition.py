"""Condition numbers that are estimated on the device: those of the host, and little moves."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.cpu.probes import begin
from frontal.factor import condition

from ...emulation.borders import DTYPES, eps, random
from ...emulation.traffic import put
from ...matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend")


@pytest.fixture
def only_there(monkeypatch):
    """The host estimates nothing."""
    monkeypatch.setattr(condition, "_scaled_estimate", None)


def on_host(solution):
    """The estimate that the host would have made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(condition, "_unscaled_estimate", lambda *_: None)
        return condition.solution_condition(solution)


@pytest.mark.parametrize("kind", ["spd", "general"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_estimates_are_those_of_the_host(device, kind, dtype):
    """Of one column and of several, one of them zero, and of a rough solution."""
    a, rng = grid_system(kind, dtype), np.random.default_rng(7)
    factor = frontal.factorize(a, kind=kind, backend="gpu")._numbers.factor
    wide = np.dtype(dtype).char.replace("f", "d").replace("F", "D")
    for trans, k, work in [("N", 1, dtype), ("T", 3, dtype), ("H", 1, wide), ("N", 3, wide)]:
        system = factor.system(trans, np.dtype(work))
        b = random(rng, (81, k), work)
        b[:, 1:2] = 0
        B = factor.upload(np.asfortranarray(b))
        X = system.solve(B)
        errors = system.measure(X, B)[1]
        errors = replace(errors, residual=1e-3 * errors.norm * errors.solution)
        of = condition.Solution(factor, trans, X, B, errors)
        wanted = on_host(of).condition
        found = condition._unscaled_estimate(of, 0.0)
        assert found is not None
        assert found[0] == pytest.approx(wanted, rel=1e4 * eps(dtype))


def test_columns_of_a_nearly_singular_matrix(device, only_there):
    """They are named in the user's numbering, by a vector that was found on the device."""
    rng, n = np.random.default_rng(0), 120
    a = sp.random_array((n, n), density=0.05, random_state=rng) + sp.diags_array(np.full(n, 4.0))
    a = sp.lil_array(a)
    a[:, [77]] = a[:, [31]]
    a[5, 77] += 1e-9
    a = sp.csc_array(sp.diags_array(2.0 ** rng.integers(-9, 9, n)) @ a)
    factor = frontal.factorize(a, kind="general", backend="gpu")
    numeric = factor._numbers.factor
    system = numeric.system("N", np.dtype("f8"))
    B = numeric.upload(np.asfortranarray(rng.standard_normal((n, 1))))
    X = system.solve(B)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(condition, "hides", lambda _: False)
        of = condition.Solution(numeric, "N", X, B, system.measure(X, B)[1])
        found = condition.solution_condition(of)
    assert set(found.columns) == {31, 77}
    assert found.condition > 1e8


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_signs_of_the_smallest_numbers(device, dtype):
    """Their moduli have no reciprocals."""
    factor = frontal.factorize(grid_system("general", dtype), kind="general", backend="gpu")
    factor = factor._numbers.factor
    b = np.asfortranarray(np.ones((81, 1), dtype))
    system, B = factor.system("N", np.dtype(dtype)), factor.upload(b)
    probes = system.probes(system.weights(B, B, np.ones(1), 1.0), 1)
    weights = np.abs(factor.download(probes.signs(factor.upload(np.zeros((81, 2), dtype)))[1]))
    tiny = np.full((81, 2), 3e-310 + (4e-310j if dtype == "c16" else 0), order="F")
    S = factor.download(probes.signs(factor.upload(tiny))[1])
    np.testing.assert_allclose(np.abs(S), weights)


def test_a_first_solution_moves_numbers_of_blocks(device, only_there, monkeypatch):
    factor = frontal.factorize(grid_system("spd", "f8", 40), kind="spd", backend="gpu")
    moved, download = [], device.download
    monkeypatch.setattr(device, "download", lambda a: (moved.append(a.size), download(a))[1])
    b = np.ones(1600)
    factor.solve(b)
    assert sum(moved) < 1.1 * b.size  # the solution is one of them


def first_vectors(n):
    """The probes of condition.cu: vectors with three kinds of signs, whose sizes are hashes."""
    i, big = np.arange(n, dtype=np.uint64), (1 << 64) - 1
    out = np.empty((n, 3))
    for c in range(3):
        start = np.uint64(c * 0xD1B54A32D192ED03 & big)
        h = (i + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) + start
        h = (h ^ h >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        h = (h ^ h >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        h ^= h >> np.uint64(31)
        size = (0.5 + (h >> np.uint64(11)) * 2.0**-53) / (1.5 * n)
        negative = (h & np.uint64(1), i & np.uint64(1))[c - 1] if c else np.zeros(n)
        out[:, c] = np.where(negative != 0, -size, size)
    return out


@pytest.mark.parametrize("n", [5, 6, 1000])
def test_the_host_begins_with_the_first_two(n):
    X = np.empty((2, n))
    begin(X)
    np.testing.assert_array_equal(X.T, first_vectors(n)[:, :2])


def in_two_turns(M):
    """A bound of the 1-norm of M, and estimates of it in one turn and two."""
    n = M.shape[0]
    Y = M @ first_vectors(n)
    sums = np.abs(Y).sum(axis=0)
    gains = np.abs(M.conj().T @ (Y / np.abs(Y))).max(axis=1)
    one = max(sums.max(), gains.max())
    rows = np.argsort(-gains, kind="stable")[:3]
    return 3 * n * sums.max(), one, max(one, np.abs(M[:, rows]).sum(axis=0).max())


@pytest.mark.parametrize("kind", ["spd", "general", "symmetric", "hermitian"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_few_steps_lead_to_the_norm(device, kind, dtype):
    """The very numbers of a dense computation, for one column and for several."""
    a, rng = grid_system("spd" if kind != "general" else kind, dtype), np.random.default_rng(8)
    a = sp.csc_array(a - (0 if kind in ("spd", "general") else 0.7) * sp.eye_array(81))
    if kind == "symmetric":
        lower = sp.tril(a, -1)
        a = lower + lower.T + sp.diags_array(a.diagonal() * (1 + 0.1j if dtype[0] == "c" else 1))
    a = sp.csc_array(a.astype(dtype))
    factor = frontal.factorize(a, kind=kind, backend="gpu")._numbers.factor
    for trans, k in [("N", 1), ("T", 3), ("H", 1), ("N", 3)]:
        system, dense = factor.system(trans, np.dtype(dtype)), a.toarray().astype("c16")
        op = {"N": dense, "T": dense.T, "H": dense.conj().T}[trans]
        b = np.asfortranarray(random(rng, (81, k), dtype))
        B = factor.upload(b)
        X, R, errors = system.solved(B, probing=k == 1)
        np.testing.assert_array_equal(factor.download(X), factor.download(system.solve(B)))
        x, r = factor.download(X), factor.download(R)
        error = 1e-3
        w = (np.abs(op) @ np.abs(x) + np.abs(b) + np.abs(r) / error) / np.abs(x).max(axis=0)
        M = w.max(axis=1)[:, None] * np.linalg.inv(op).conj().T
        bound, one, two = in_two_turns(M)
        true, close = np.abs(M).sum(axis=0).max(), {"rel": 3e3 * eps(dtype)}
        assert 0.7 * true <= two <= (1 + 1e-9) * true <= bound

        weights = system.weights(X, B, errors.solution, error)

        def found(small, decided=np.inf, system=system, weights=weights):
            estimate = system.estimated(weights, small, decided)
            return estimate.value, factor.download(estimate.near_null())[:, 0]

        assert found(np.inf)[0] == pytest.approx(bound, **close)
        assert found(0.99 * bound)[0] == pytest.approx(one, **close)
        assert found(0.99 * one)[0] == pytest.approx(two, **close)
        value, v = found(0)
        assert value == pytest.approx(two, **close)
        assert (1 - close["rel"]) * two <= np.abs(v).max() <= (1 + close["rel"]) * true
        for small in (0, 0.5 * one):
            value, v = found(small, 0.99 * one)
            assert value == pytest.approx(one, **close)
            assert np.abs(v).max() <= (1 + close["rel"]) * true
            np.testing.assert_array_less(np.abs(op @ v), (1 + close["rel"]) * w.max(axis=1))


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_sweeps_between_leave_no_trace(device, kind):
    """What an estimate begins with is made anew if a correction has taken its place."""
    a = grid_system(kind, "f8")
    factor = frontal.factorize(a, kind=kind, backend="gpu")._numbers.factor
    system = factor.system("N", np.dtype("f8"))
    B = factor.upload(np.ones((81, 1), order="F"))
    X, R, errors = system.solved(B, probing=True)
    weights = system.weights(X, B, errors.solution, 1e-3)

    def estimated(small):
        return system.estimated(weights, small, np.inf).value

    wanted = system.bounded(0), [estimated(small) for small in (0, np.inf)]
    for _ in range(2):
        X, R, _ = system.solved(B, probing=True)
        system.corrected(X, R)
        assert system.bounded(0) == wanted[0]
        for small, estimate in zip((0, np.inf), wanted[1], strict=True):
            X, R, _ = system.solved(B, probing=True)
            system.corrected(X, R)
            assert estimated(small) == estimate
    assert estimated(0) == wanted[1][0]


def test_what_is_no_number_is_no_estimate(device):
    a = grid_system("spd", "f8")
    factor = frontal.factorize(a, backend="gpu")._numbers.factor
    system = factor.system("N", np.dtype("f8"))
    B = factor.upload(np.ones((81, 1), order="F"))
    X, _, errors = system.solved(B)
    weights = system.weights(X, B, errors.solution, 1e-3)
    factor.storage.panels[...] = np.inf
    for small in (0, 1e300):
        assert system.estimated(weights, small, 1e300) is None
    zero = factor.upload(np.zeros((81, 1), order="F"))
    assert system.weights(zero, zero, np.zeros(1), 1e-3) is None


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_without_memory_for_probes_there_are_none(device, kind, monkeypatch):
    """Solutions and their condition come by narrower sweeps."""
    from frontal.gpu.sparse.solve.messages import Messages

    made = Messages.__init__

    def narrow(self, pattern, dtype, width, spare, **options):
        if width > 1:
            raise MemoryError
        made(self, pattern, dtype, width, spare, **options)

    a, b = grid_system(kind, "f8"), np.ones(81)
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    wanted, told = factor.copy().solve(b, return_info=True)
    monkeypatch.setattr(Messages, "__init__", narrow)
    x, info = factor.solve(b, return_info=True)
    np.testing.assert_array_equal(x, wanted)
    assert info.condition == pytest.approx(told.condition, rel=0.5)


@pytest.mark.parametrize("n", [1, 5, 900])
def test_ratios_of_weights(device, n):
    """Of weights of zero rows they are no numbers, and decide nothing."""
    a = sp.csc_array(sp.diags_array(np.arange(1.0, n + 1)))
    system = frontal.factorize(a, backend="gpu")._numbers.factor.system("N", np.dtype("f8"))
    w, v = (random(np.random.default_rng(k), (n,), np.dtype("f8")) ** 2 for k in (1, 2))
    found = system.ratios(put(device, w), [None, put(device, v)])
    wanted = [w / np.arange(1.0, n + 1), w / v]
    assert found == [(ratio.min(), ratio.max()) for ratio in wanted]
    for place in {0, n // 2, n - 1}:
        zero = [np.where(np.arange(n) == place, 0, x) for x in (w, v)]
        found = system.ratios(put(device, zero[0]), [put(device, zero[1])])
        assert np.isnan(found).all()
