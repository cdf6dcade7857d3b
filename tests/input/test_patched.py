"""SciPy's functions replaced, and put back; analyses kept for those that replace them."""

from __future__ import annotations

import sys
import threading
import types

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as theirs
from scipy.integrate import solve_ivp

from frontal import linalg as ours
from frontal.analysis_cache import AnalysisCache
from frontal.problems import convdiff2d, poisson2d

A = sp.csc_array([[4.0, 1.0], [2.0, 3.0]])
SCIPYS = {name: getattr(theirs, name) for name in ("spsolve", "splu", "factorized")}


@pytest.fixture
def program(monkeypatch):
    """A module that imports by name, with a submodule that does."""

    def made(name):
        module = types.ModuleType(name)
        exec("from scipy.sparse.linalg import splu as factor, spilu", module.__dict__)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    made("program.part")
    return made("program")


def is_ours(function):
    return isinstance(function(A), ours.SparseLU)


def assert_scipys():
    assert {name: getattr(theirs, name) for name in SCIPYS} == SCIPYS


def test_everywhere_and_back(program):
    spilu, seen = program.spilu, []

    @ours.patched()
    def failing():
        seen.extend([program.factor, theirs.splu, sys.modules["program.part"].factor])
        assert all(is_ours(function) for function in seen)
        assert program.spilu is spilu
        assert ours.splu is not theirs.splu
        late = types.ModuleType("late")
        exec("from scipy.sparse.linalg import splu", late.__dict__)
        sys.modules["late"] = late
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert sys.modules.pop("late").splu is program.factor is SCIPYS["splu"]
    assert_scipys()
    assert not any(is_ours(function) for function in seen)  # those that were kept
    assert is_ours(ours.splu)


def test_named_modules_alone(program, monkeypatch):
    other = types.ModuleType("programs")
    other.splu = SCIPYS["splu"]
    monkeypatch.setitem(sys.modules, "programs", other)
    for name in ("program", program):
        with ours.patched(name):
            assert is_ours(program.factor)
            assert is_ours(sys.modules["program.part"].factor)
            assert other.splu is SCIPYS["splu"]
            assert_scipys()
    assert program.factor is SCIPYS["splu"]
    with pytest.raises(ImportError), ours.patched("a_module_that_is_not_there"):
        pass
    with ours.patched("program.part"):
        assert program.factor is SCIPYS["splu"]


@pytest.mark.parametrize("order", ["as entered", "crossed"])
def test_nested_blocks_end_in_any_order(program, order):
    first, second = ours.patched(), ours.patched("program")
    first.__enter__()
    second.__enter__()
    for block in (first, second) if order == "crossed" else (second, first):
        assert is_ours(program.factor)
        block.__exit__(None, None, None)
    assert program.factor is SCIPYS["splu"]
    assert_scipys()
    with ours.patched(), ours.patched("program"):
        pass
    assert_scipys()


def test_implicit_methods_of_solve_ivp_take_it():
    """Their modules have imported splu by name."""
    B = -100 * poisson2d(10)
    problem = (lambda t, y: B @ y, (0, 1), np.ones(100))
    options = {"jac": B, "method": "BDF", "rtol": 1e-6}
    wanted, before = solve_ivp(*problem, **options), ours.analyses.misses + ours.analyses.hits
    with ours.patched():
        found = solve_ivp(*problem, **options)
    assert ours.analyses.misses + ours.analyses.hits - before == found.nlu >= 5
    np.testing.assert_allclose(found.y[:, -1], wanted.y[:, -1], atol=1e-8)


# --- analyses that are kept ----------------------------------------------------------------------


def test_patterns_are_analyzed_once_and_factors_are_their_own():
    ours.analyses.clear()
    B = convdiff2d(12)
    before = ours.analyses.misses
    first, other = ours.splu(B), ours.splu(2 * B)
    ours.spsolve(B.tocsr(), np.ones(144))
    assert ours.analyses.misses == before + 1
    assert first.factor.analysis is other.factor.analysis
    b = B @ np.ones(144)
    np.testing.assert_allclose(first.solve(b), 1, rtol=1e-12)
    np.testing.assert_allclose(other.solve(b), 0.5, rtol=1e-12)
    first.factor.refactorize(4 * B)
    np.testing.assert_allclose(other.solve(b), 0.5, rtol=1e-12)


def test_analyses_are_those_that_would_be_made_now():
    """Other values, types, orderings and methods of a pattern do not share one."""
    cache, made = AnalysisCache(), []
    B = sp.csc_array(convdiff2d(8))
    B.data[:] = np.random.default_rng(0).random(B.nnz) + 1
    symmetric = (B + B.T).tocsc()
    positive = (symmetric + 10 * sp.eye_array(64)).tocsc()
    symmetric.setdiag(-symmetric.diagonal())
    for matrix in (B, symmetric, positive, positive.astype(np.float32)):
        made.append(cache.get(ours.to_canonical(matrix, None)))
    made.append(cache.get(ours.to_canonical(B, None), "natural"))
    assert [one.method for one in made] == ["lu", "ldlt", "cholesky", "cholesky", "lu"]
    assert (cache.hits, cache.misses) == (0, 5)
    moved = B.copy()
    moved.data[:] = 1e-30  # needs a matching, which is of these values
    moved.data[B.indptr[:-1]] = 1.0
    assert cache.get(ours.to_canonical(moved, None)) is not cache.get(
        ours.to_canonical(moved, None)
    )
    changed = B.copy()
    found = cache.get(ours.to_canonical(changed, None))
    assert found is made[0]
    changed.indices[[0, 1]], changed.indices[-1] = [0, 2], 62
    assert cache.get(ours.to_canonical(changed, None, check_finite=False)) is not found


def test_few_analyses_are_kept():
    cache = AnalysisCache(most=2)
    matrices = [ours.to_canonical(poisson2d(k), None) for k in (3, 4, 5)]
    first, second, third = (cache.get(matrix) for matrix in matrices)
    assert cache.get(matrices[1]) is second
    assert cache.get(matrices[2]) is third
    assert len(cache) == 2
    assert cache.get(matrices[0]) is not first
    assert len(AnalysisCache(most_bytes=1000)._entries) == 0
    small = AnalysisCache(most_bytes=1000)
    small.get(matrices[2])
    assert len(small) == 0


def test_threads_share_the_analyses():
    cache = AnalysisCache(most=3)
    matrices = [ours.to_canonical(poisson2d(k), None) for k in range(3, 8)]
    wrong = []

    def work(seed):
        for k in np.random.default_rng(seed).integers(5, size=200):
            wrong.extend([k] * (cache.get(matrices[k]).n != matrices[k].n))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(cache) <= 3
