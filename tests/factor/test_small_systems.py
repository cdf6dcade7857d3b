"""Small systems: what a call must not do, since it would take longer than all arithmetic."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.cpu.blas_limit import single_threaded_blas
from frontal.cpu.small import factorize

from ..matrices import tridiagonal


@pytest.fixture(autouse=True)
def from_the_first_call(monkeypatch):
    """What is done at once is, however few calls there were."""
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 0)


def counts(monkeypatch, run):
    """How many of SciPy's matrices are made, and limits of BLAS set, by `run`."""
    made = {"matrices": 0, "limits": 0}

    def counted(name, function):
        def counting(*arguments, **named):
            made[name] += 1
            return function(*arguments, **named)

        return counting

    compressed = sp.csc_array.__mro__[1]
    with monkeypatch.context() as patch:
        patch.setattr(compressed, "__init__", counted("matrices", compressed.__init__))
        enter = single_threaded_blas.__enter__
        patch.setattr(single_threaded_blas, "__enter__", counted("limits", enter))
        run()
        found = dict(made)
        sp.csc_array((1, 1))
        assert made["matrices"] > found["matrices"]  # they are counted
    return found


@pytest.mark.parametrize("above", [-1.0, -0.5], ids=["cholesky", "lu"])
def test_no_matrix_of_scipy_and_no_limit_of_blas_is_made(monkeypatch, above):
    A = tridiagonal(200, -1.0, 2.1, above)
    b = np.ones(200)
    factor = frontal.factorize(A, backend="cpu")
    factor.solve(b)
    solved = counts(monkeypatch, lambda: factor.solve(b))
    assert solved == {"matrices": 0, "limits": 0}
    factor.refactorize(A.data)  # makes the map of mirrored places
    again = counts(monkeypatch, lambda: factor.refactorize(2 * A.data))
    assert again == {"matrices": 0, "limits": 0}
    whole = counts(monkeypatch, lambda: frontal.factorize(A, backend="cpu").solve(b))
    assert whole == {"matrices": 0, "limits": 0}  # by an analysis that was kept
    np.testing.assert_allclose(2 * A @ factor.solve(b), b, rtol=1e-12)


noted_by_all = []  # compiled code has but their addresses


def noting(routines, called):
    """The same routines, which note that they were called."""

    def noted(name, address, count):
        kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)
        original = kind(address)

        def note(*arguments):
            called.append(name)
            original(*arguments)

        return kind(note)

    names = {"gemm": 13, "herk": 10, "trsm": 11, "potrf": 5, "gemv": 11, "trsv": 8, "getrf": 6}
    counts = [*names.items(), ("laswp", 7)]
    made = [noted(n, int(a), c) for a, (n, c) in zip(routines.table[:8], counts, strict=True)]
    noted_by_all.extend(made)
    table = [ctypes.cast(function, ctypes.c_void_p).value for function in made]
    return routines._replace(table=np.array([*table, routines.table[8]], np.int64))


@pytest.mark.parametrize("above", [-1.0, -0.5], ids=["cholesky", "lu"])
def test_blas_is_called_only_where_it_has_a_limit(monkeypatch, above):
    """Bands, full ones among them: fronts of sizes around those whose products are loops."""
    called, limited = [], []
    original = factorize.routines
    monkeypatch.setattr(factorize, "routines", lambda dtype: noting(original(dtype), called))
    for n in (*range(1, 30), 60, 200):
        for width in (1, 2, 3, 5, n):
            below = (np.tri(n, k=-1) - np.tri(n, k=-1 - width)) / width
            A = sp.csc_array(4 * np.eye(n) - below + above * below.T)
            called.clear()
            made = counts(monkeypatch, lambda A=A: frontal.factorize(A, backend="cpu"))
            assert not called or made["limits"], (n, width, called)
            limited.append(made["limits"])
    assert 0 < sum(limited) < len(limited)


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("kind", ["auto", "general"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_many_small_fronts_and_right_hand_sides(dtype, kind, trans):
    """Odd widths, and strided and read-only vectors, through fronts that call no BLAS."""
    rng = np.random.default_rng(0)
    T = sp.random_array((150, 150), density=0.01, random_state=rng, dtype=np.float64)
    A = (T + T.T + 8 * sp.eye_array(150)).astype(dtype).tocsc()
    if dtype == np.complex128:
        S = sp.random_array((150, 150), density=0.01, random_state=rng)
        A = (A + 1j * (S - S.T)).tocsc()
    op = {"N": A, "T": A.T, "H": A.conj().T}[trans]
    factor = frontal.factorize(A, kind=kind, backend="cpu")
    B = rng.standard_normal((150, 10)).astype(dtype)[:, ::3]
    B.flags.writeable = False
    for b in (B, B[:, 1]):
        x = factor.solve(b, trans)
        np.testing.assert_allclose(op @ x, b, atol=1e-13)


# --- analyses of small patterns ------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["auto", "cpu"])
def test_small_patterns_are_analyzed_once(backend):
    A, cache = frontal.problems.convdiff2d(12), frontal.api._analyses
    first, other = (frontal.factorize(s * A, backend=backend) for s in (1, 3))
    assert other.analysis is first.analysis
    b, made = A @ np.ones(144), cache.misses
    np.testing.assert_allclose(frontal.solve(3 * A, b, backend=backend), 1 / 3, rtol=1e-12)
    assert cache.misses == made
    np.testing.assert_allclose(first.solve(b), 1, rtol=1e-12)
    np.testing.assert_allclose(other.solve(b), 1 / 3, rtol=1e-12)
    kept = len(frontal.api._analyses)
    for choice in ({"ordering": "natural"}, {"reuse": 9}, {"progress": lambda *_: None}):
        choice["backend"] = backend
        assert frontal.factorize(A, **choice).analysis is not first.analysis
    assert frontal.analyze(A) is not first.analysis
    assert len(frontal.api._analyses) == kept
    name = {"auto": "cpu", "cpu": "auto"}[backend]
    assert frontal.factorize(A, backend=name).analysis.backend == name


def test_values_are_copied_of_a_pattern_that_comes_again():
    A = tridiagonal(30, -1.0, 2.1, -0.5)
    frontal.factorize(A)
    factor, before = frontal.factorize(A), A.copy()
    A.data[:] = np.nan
    assert not (before != factor.A).nnz


def test_what_is_asked_for_decides_which_analysis_is_taken():
    """A guess goes on as LDL^H, and a promise does not, whichever comes first."""
    A = tridiagonal(50, -1.0, 2.1, -1.0)
    bad = A.copy()
    bad[0, 0] = 1e-3  # positive, but A is not
    for _ in range(2):
        with pytest.raises(frontal.errors.NotPositiveDefiniteError):
            frontal.factorize(bad, kind="spd")
        assert frontal.factorize(bad).info["method"] == "ldlt"
        assert frontal.factorize(A).info["method"] == "cholesky"
        assert frontal.factorize(A, kind="general").info["method"] == "lu"


def test_large_patterns_are_not_kept():
    A = frontal.problems.poisson2d(45)
    assert frontal.factorize(A).analysis is not frontal.factorize(A).analysis


@pytest.mark.parametrize("changed", ["strided", "float32", "read-only", "list"])
def test_values_that_are_not_as_the_factor_has_them(changed):
    A = tridiagonal(50, -1.0, 2.0, -0.5)
    factor, values = frontal.factorize(A, backend="cpu"), 4 * A.data
    if changed == "strided":
        values = np.repeat(values, 2)[::2]
    elif changed == "float32":
        values = values.astype(np.float32)
    elif changed == "read-only":
        values.flags.writeable = False
    factor.refactorize(list(values) if changed == "list" else values)
    np.testing.assert_allclose(factor.solve(4 * A @ np.ones(50)), 1, rtol=1e-12)
    wrong = np.ones(A.nnz + 1)
    with pytest.raises(ValueError, match="values given"):
        factor.refactorize(wrong)
    own = 4 * A.data
    factor.refactorize(own)
    own[:] = np.nan  # a copy was taken
    np.testing.assert_allclose(factor.solve(4 * A @ np.ones(50)), 1, rtol=1e-12)
