"""Solves with parts of the factors: every system is that of the public L, D, U, perm_r, perm_c."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal.factor.replaced_pivots import InverseInaccurateError
from frontal.numeric.method import LDLT

from ..conftest import fronts_cost
from ..matrices import zero_diagonal_system
from .test_gradients import thin_matrix
from .test_selected_inverse import APART, METHODS, random_matrix

KINDS = "spd", "symmetric", "hermitian", "general"
DTYPES = "f4", "f8", "c8", "c16"
FOR_LU = "A", "LU", "U", "L", "P", "Pt", "Q", "Qt"
MAX_ROUNDINGS = 20.0  # backward error of a system


def in_bad_units(A, kind, seed=0):
    """Return A with rows, and columns of a symmetric matrix, in units that vary by 2^24."""
    units = sp.diags_array(2.0 ** np.random.default_rng(seed).integers(-12, 12, A.shape[0]))
    scaled = units @ A @ units if kind != "general" else units @ A
    return sp.csc_array(scaled.astype(A.dtype))


def vectors(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    b = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.standard_normal(shape)
    return b.astype(dtype)


def matrices_of_systems(factor):
    """Return the factors of the matrix of each system, from the public properties."""
    n, method = factor.shape[0], factor.info["method"]
    Pr, Pc = np.zeros((n, n)), np.zeros((n, n))
    Pr[factor.perm_r, np.arange(n)] = 1
    Pc[np.arange(n), factor.perm_c] = 1
    L = factor.L.toarray()
    permutations = {"P": (Pr.T,), "Pt": (Pr,), "Q": (Pc.T,), "Qt": (Pc,)}
    if method == "lu":
        U = factor.U.toarray()
        return {"L": (L,), "U": (U,), "LU": (L, U), **permutations}
    D = np.eye(n, dtype=L.dtype) if method == "cholesky" else factor.D.toarray()
    Lt = L.T if method == "ldlt" else L.conj().T
    systems = {"L": (L,), "D": (D,), "Lt": (Lt,), "LD": (L, D), "DLt": (D, Lt)}
    return {**systems, "LDLt": (L, D, Lt), "U": (D, Lt), "LU": (L, D, Lt), **permutations}


def error(factors, x, b):
    """Return the backward error in roundings, by rows, relative to the product of moduli."""
    M = np.linalg.multi_dot([*factors, np.eye(len(b))])
    size = np.linalg.multi_dot([*(np.abs(a).astype("f8") for a in factors), np.abs(x)])
    return float((np.abs(M @ x - b) / (size + np.abs(b))).max(initial=0.0) / np.finfo(x.dtype).eps)


def composed(factor, b):
    """Return the solution by all parts, one after another."""
    names = ("P", "L", "U", "Q") if factor.info["method"] == "lu" else ("P", "L", "D", "Lt", "Pt")
    for name in names:
        b = factor.solve(b, system=name)
    return b


def check(factor, b, exact=True):
    for name, factors in matrices_of_systems(factor).items():
        x = factor.solve(b, system=name)
        assert x.shape == b.shape
        assert x.dtype == np.result_type(b, factor.dtype)
        assert error(factors, x, b) < MAX_ROUNDINGS, name
    x, whole = composed(factor, b), factor.solve(b, refine=0)
    if exact:
        np.testing.assert_array_equal(x, whole)
    else:
        np.testing.assert_allclose(x, whole, rtol=0, atol=1e-10 * np.abs(whole).max())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_those_of_the_public_factors(kind, dtype, with_fronts):
    for n, density in ((1, 1.0), (40, 0.1), (200, 1.0), (150, 0.02)):
        A = in_bad_units(random_matrix(kind, dtype, n, density, 3), kind)
        factor = frontal.factorize(A, kind=kind)
        check(factor, vectors((n, 3), dtype))
        if kind in ("symmetric", "hermitian") and n == 200:
            assert factor.has_pairs


@given(st.sampled_from(KINDS), st.integers(1, 60), st.floats(0.0, 4.0), st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_parts_of_random_patterns_are_public(kind, n, degree, seed):
    A = random_matrix(kind, "c16", n, min(1.0, degree / n), seed)
    if np.linalg.cond(A.toarray()) < 1e4:
        factor = frontal.factorize(A, kind=kind)
        check(factor, vectors((n, 2), "c16", seed), not factor.analysis.by_columns)


@pytest.mark.parametrize("kind", METHODS)
def test_parts_after_delayed_columns_are_public(kind, with_fronts):
    A = zero_diagonal_system(METHODS[kind], "c16", 120, 0.03, 3, zeros=0.9)
    with fronts_cost(APART):
        factor = frontal.factorize(A, kind=kind, ordering="natural", backend="cpu")
    assert factor.analysis.amendments == 1 or kind == "general"
    check(factor, vectors((120, 2), "c16"))


def test_parts_by_columns_are_public():
    A, _ = thin_matrix()
    A = in_bad_units(A, "general")
    factor = frontal.factorize(A, kind="general")
    assert factor.analysis.by_columns
    for dtype in ("f8", "c16"):
        check(factor, vectors((400, 5), dtype), exact=False)
    check(factor, vectors((400, 1), "f8"), exact=False)


def test_wide_blocks_and_layouts_give_the_same_solutions():
    A = frontal.problems.poisson2d(40)
    factor, B = frontal.factorize(A, kind="spd"), vectors((1600, 70), "f8")
    L = factor.L
    X = factor.solve(B, system="Lt")
    assert abs(L.T @ X - B).max() < 1e-12
    for same in (np.asfortranarray(B), np.repeat(B, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(factor.solve(same, system="Lt"), X)
    for column in (B[:, 3], B[:, 3].tolist()):
        x = factor.solve(column, system="Lt")
        assert x.shape == (1600,)
        np.testing.assert_allclose(x, X[:, 3], rtol=0, atol=1e-13 * abs(X).max())
    sparse = sp.random_array((1600, 3), density=0.01, rng=np.random.default_rng(0), format="csc")
    found = factor.solve(sparse, system="L")
    assert sp.issparse(found)
    assert abs(L @ found - sparse).max() < 1e-13
    assert factor.solve(np.empty((1600, 0)), system="L").shape == (1600, 0)


def test_types_of_vectors_and_factors_are_combined():
    single = frontal.factorize(random_matrix("symmetric", "f4", 30, 0.2, 1), kind="symmetric")
    for dtype in ("i8", "f8", "c8", "c16"):
        b = (10 * vectors((30, 2), "f8" if dtype == "i8" else dtype)).astype(dtype)
        expected = np.result_type("f4", np.float64 if dtype == "i8" else dtype)
        x = single.solve(b, system="LDLt")
        assert x.dtype == expected
        L, D = single.L.toarray(), single.D.toarray()
        assert error((L, D, L.T), x.astype("c8"), b) < 100


def test_no_unknowns_give_no_solution():
    for kind in ("spd", "symmetric", "general"):
        factor = frontal.factorize(sp.csc_array((0, 0)), kind=kind)
        for name in FOR_LU[1:]:
            assert factor.solve(np.empty(0), system=name).shape == (0,)


def test_parts_follow_new_values_copies_and_pickles():
    A = in_bad_units(random_matrix("symmetric", "f8", 40, 0.2, 2), "symmetric")
    factor, b = frontal.factorize(A, kind="symmetric"), vectors((40, 2), "f8")
    x = factor.solve(b, system="D")
    for twin in (factor.copy(), pickle.loads(pickle.dumps(factor)), factor.to_cpu()):
        np.testing.assert_array_equal(twin.solve(b, system="D"), x)
    factor.refactorize(4 * A)
    np.testing.assert_allclose(factor.solve(b, system="D"), x / 4, rtol=1e-12)
    check(factor, b)
    factor.free()
    with pytest.raises(frontal.FactorFreedError):
        factor.solve(b, system="D")


def test_mixed_precision_solves_parts_in_double():
    A = frontal.problems.poisson2d(20)
    factor = frontal.factorize(A, kind="spd", precision="mixed")
    b = vectors((400, 1), "f8")
    x = factor.solve(b, system="L")
    assert factor.dtype == np.float64
    assert error((factor.L.toarray(),), x, b) < MAX_ROUNDINGS


@pytest.mark.parametrize("unit", [1e-30, 1e30])
def test_small_vectors_do_not_underflow_with_scaling(unit):
    """In single precision the scaling of such a matrix times such a vector underflows."""
    A = sp.csc_array((random_matrix("symmetric", "f8", 20, 0.3, 1) / unit).astype("f4"))
    factor = frontal.factorize(A, kind="symmetric")
    b = (vectors((20, 1), "f8") * np.array([1e-30])).astype("f4")
    for name in ("L", "Lt"):
        x = factor.solve(b, system=name)
        L = factor.L.toarray() if name == "L" else factor.L.toarray().T
        np.testing.assert_allclose(L.astype("f8") @ x, b, rtol=0, atol=1e-5 * abs(b).max())


def test_parts_that_a_method_lacks_are_refused():
    lu = frontal.factorize(frontal.problems.convdiff2d(5))
    b = np.ones(25)
    for name in ("Lt", "LDLt", "D", "LD", "DLt"):
        with pytest.raises(ValueError, match="Try: 'U' for 'Lt'"):
            lu.solve(b, system=name)
    spd = frontal.factorize(frontal.problems.poisson2d(5))
    for name in ("lt", "", None, "M"):
        with pytest.raises(ValueError, match="choose one of"):
            spd.solve(b, system=name)
    for named in ({"trans": "T"}, {"refine": 2}, {"return_info": True}):
        with pytest.raises(ValueError, match="no transpose, refinement"):
            spd.solve(b, system="L", **named)
    np.testing.assert_array_equal(spd.solve(b, system="A"), spd.solve(b))


def test_vectors_of_parts_are_checked():
    factor = frontal.factorize(frontal.problems.poisson2d(5))
    with pytest.raises(frontal.NonFiniteInputError):
        factor.solve(np.full(25, np.nan), system="L")
    with pytest.raises(ValueError, match="b has shape"):
        factor.solve(np.ones(24), system="P")
    with pytest.raises(TypeError):
        factor.solve(np.array([object()] * 25), system="P")
    small = frontal.factorize(sp.csc_array(sp.diags_array([1e-300, 1.0])), kind="spd")
    with pytest.raises(frontal.SolutionOverflowError):
        small.solve([1e300, 1.0], system="L")


def test_parts_of_replaced_pivots_are_refused():
    A = sp.csc_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    for kind in ("symmetric", "general"):
        factor = frontal.factorize(A, kind=kind, singular="allow")
        with pytest.raises(InverseInaccurateError, match="no solves with parts"):
            factor.solve(np.ones(3), system="L")
        np.testing.assert_array_equal(
            factor.solve(factor.solve([1.0, 2.0, 3.0], system="P"), system="Pt"), [1.0, 2.0, 3.0]
        )


@pytest.mark.parametrize("kind", ["spd", "symmetric", "general"])
def test_factor_on_gpu_solves_with_its_parts(gpu_backend, device, kind):
    A = in_bad_units(random_matrix(kind, "f8", 70, 0.1, 3), kind)
    factor = frontal.factorize(A, kind=kind, backend="gpu")
    assert factor.info["backend"] == "gpu"
    b = vectors((70, 2), "f8")
    for name, factors in matrices_of_systems(factor).items():
        x = factor.solve(b, system=name)
        assert error(factors, x, b) < MAX_ROUNDINGS, name
        on_device = factor.solve(device.xp.asarray(b), system=name)
        np.testing.assert_array_equal(device.download(on_device), x)
    exact = factor.solve(b)
    np.testing.assert_allclose(composed(factor, b), exact, rtol=0, atol=1e-9 * abs(exact).max())


def test_ldlt_of_complex_symmetric_matrix_has_no_conjugate():
    A = random_matrix("symmetric", "c16", 30, 0.3, 4)
    factor, b = frontal.factorize(A, kind="symmetric"), vectors((30, 1), "c16")
    assert factor.analysis.symbolic.method is LDLT
    assert error((factor.L.toarray().T,), factor.solve(b, system="Lt"), b) < MAX_ROUNDINGS
