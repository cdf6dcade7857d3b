"""A refactorize that fails leaves no factor, and one that could not begin leaves it as it was."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import errors
from frontal.cpu import backend as cpu
from frontal.factor.solve import FactorSolver
from frontal.gpu.sparse.backend import GpuBackend

from ..emulation.traffic import put
from ..matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend")

B = np.random.default_rng(0).standard_normal((81, 2))
both = pytest.mark.parametrize("where", ["cpu", "gpu"])
kinds = pytest.mark.parametrize("kind", ["spd", "general"])
BACKENDS = {"cpu": cpu.CpuBackend, "gpu": GpuBackend}


def refuses(factor, device):
    """Every question to the factor is answered by the error."""
    uses = (
        lambda: factor.solve(B),
        lambda: factor.solve(B, "T", refine=0),
        lambda: factor.solve(put(device, B)),
        lambda: factor.as_linear_operator() @ B,
        factor.slogdet,
        factor.logdet,
        lambda: factor.L,
        lambda: factor.U,
        lambda: factor.perm_r,
        lambda: factor.A,
        lambda: factor.info,
        lambda: factor.growth,
        factor.profile,
        factor.copy,
        factor.to_cpu,
        lambda: copy.deepcopy(factor),
        lambda: pickle.dumps(factor),
        factor.__enter__,
    )
    for use in uses:
        with pytest.raises(errors.FactorInvalidError, match="refactorize again"):
            use()
    assert repr(factor).endswith("invalid>")
    assert factor.shape == (81, 81)


def check(factor, a):
    np.testing.assert_allclose(a @ factor.solve(B), B, atol=1e-9)
    expected = np.linalg.slogdet(a.toarray())
    np.testing.assert_allclose(factor.slogdet(), expected, rtol=1e-10)
    np.testing.assert_array_equal(factor.A.toarray(), a.toarray())


def faults(kind):
    """New values without a factor, by the errors that say so."""
    a = grid_system(kind, "f8")
    bad: dict = {frontal.NonFiniteInputError: np.where(np.arange(a.nnz) == 7, np.nan, a.data)}
    if kind == "spd":
        diagonal = a.indices == np.repeat(np.arange(81), np.diff(a.indptr))
        bad[frontal.NotPositiveDefiniteError] = np.where(diagonal, 1.0, a.data)
        bad[ValueError] = a.data * np.random.default_rng(0).uniform(0.9, 1, a.nnz)
    else:
        bad[frontal.SingularMatrixError] = a.data * (a.indices != 17)
    return a, bad


@both
@kinds
@pytest.mark.parametrize("there", [False, True])
def test_values_without_a_factor_leave_none(device, where, kind, there):
    if there and where == "cpu":
        pytest.skip("values on the device want a factor there")
    a, bad = faults(kind)
    factor = frontal.factorize(a, kind=kind, backend=where)
    analysis = factor.analysis
    factor.growth, factor.A, factor.solve(B)
    for error, data in bad.items():
        for _ in range(2):
            with pytest.raises(error):
                factor.refactorize(put(device, data) if there else data)
            refuses(factor, device)
        assert factor.analysis is analysis
        check(factor.refactorize(put(device, 2 * a.data) if there else 2 * a.data), 2 * a)
        check(factor.refactorize(a), a)


@both
@kinds
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_leaves_none(device, monkeypatch, where, kind, after):
    """It may come before the numbers are complete, or after that, before they are judged."""
    a = grid_system(kind, "f8")
    rows = sp.diags_array(4.0 ** np.random.default_rng(0).integers(-3, 4, 81))
    other = sp.csc_array(rows @ a) if kind == "general" else sp.csc_array(rows @ a @ rows)
    factor = frontal.factorize(a, kind=kind, backend=where)
    twin = factor.copy()
    factorize = BACKENDS[where].factorize

    def interrupted(self, *arguments, **options):
        if after:
            factorize(self, *arguments, **options)
        raise KeyboardInterrupt

    for first in (other, a):
        with monkeypatch.context() as patch:
            patch.setattr(BACKENDS[where], "factorize", interrupted)
            with pytest.raises(KeyboardInterrupt):
                factor.refactorize(first)
        refuses(factor, device)
        if where == "gpu":  # scaled as the last factor was, not as the matrix in between
            check(factor.refactorize(put(device, 3 * a.data)), 3 * a)
        check(factor.refactorize(2 * other), 2 * other)
    check(twin, a)


@both
def test_an_interrupt_while_the_factor_is_judged(device, monkeypatch, where):
    a = grid_system("general", "f8")
    factor = frontal.factorize(a, kind="general", backend=where)

    def interrupted(solver, before):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FactorSolver, "examine", interrupted)
        with pytest.raises(KeyboardInterrupt):
            factor.refactorize(2 * a)
    refuses(factor, device)
    check(factor.refactorize(a.data), a)


@both
@kinds
def test_what_could_not_begin_changes_nothing(device, where, kind):
    a = grid_system(kind, "f8")
    factor = frontal.factorize(a, kind=kind, backend=where)
    wider = sp.csc_array(a + sp.eye_array(81, k=40))
    wrong = [a.data[:-1], wider, sp.eye_array(5), sp.csc_array(a[:, :80]), np.ones((3, 3, 3))]
    wrong += [a.data.astype(object), a.astype("g"), "matrix", None]
    wrong += [put(device, a.data[:-1])] if where == "gpu" else []
    wider.data[0] = np.nan
    for given in wrong:
        with pytest.raises((ValueError, TypeError)) as caught:
            factor.refactorize(given)
        assert not isinstance(caught.value, frontal.NonFiniteInputError)
        check(factor, a)
    check(factor.refactorize(a.data), a)


@both
def test_the_method_is_that_of_before(device, where):
    """Cholesky went on with LU, which found the matrix singular."""
    a = grid_system("spd", "f8")
    factor = frontal.factorize(a, backend=where)
    singular = a.copy()
    singular.data[a.indices == 17] = 0
    singular.data[np.repeat(np.arange(81), np.diff(a.indptr)) == 17] = 0
    with pytest.raises(frontal.SingularMatrixError):
        factor.refactorize(singular)
    refuses(factor, device)
    check(factor.refactorize(2 * a), 2 * a)
    assert factor.info["method"] == "cholesky"
    assert factor.info["backend"] == where


@both
@pytest.mark.parametrize("least", [1 << 60, 0], ids=["as_always", "at_once"])
def test_memory_is_given_back_and_used_again(device, where, least, monkeypatch):
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", least)
    a = grid_system("spd", "f8")
    factor = frontal.factorize(a, kind="spd", backend=where)
    numeric: Any = factor._numbers.factor
    panels = numeric.storage.panels if where == "gpu" else numeric.storage
    with pytest.raises(frontal.NotPositiveDefiniteError):
        factor.refactorize(-a)
    factor.refactorize(a)
    numeric = factor._numbers.factor
    assert (numeric.storage.panels if where == "gpu" else numeric.storage) is panels
    assert where == "gpu" or np.shares_memory(numeric.panels, panels)
    with pytest.raises(frontal.NotPositiveDefiniteError):
        factor.refactorize(-a)
    numeric = factor._numbers.last().solver.factor
    factor.free()
    assert repr(factor).endswith("freed>")
    if where == "gpu":
        assert numeric.storage.panels.size == 0
    for use in (lambda: factor.solve(B), lambda: factor.refactorize(a), factor.copy):
        with pytest.raises(frontal.FactorFreedError):
            use()


def test_the_end_of_a_block_frees_what_is_left():
    a = grid_system("spd", "f8")
    failed = pytest.raises(frontal.NotPositiveDefiniteError)
    with frontal.factorize(a, kind="spd") as factor, failed:
        factor.refactorize(-a)
    with pytest.raises(frontal.FactorFreedError):
        factor.solve(B)


def test_the_error_says_what_to_do_in_another_process():
    twin = pickle.loads(pickle.dumps(errors.FactorInvalidError()))
    assert isinstance(twin, frontal.FrontalError)
    assert isinstance(twin, ValueError)
    assert "copy() of the factor" in str(twin)
