"""Dense Schur complements onto chosen unknowns, and the halves of a solve around them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal.problems import convdiff2d, poisson2d

DTYPES = np.float32, np.float64, np.complex64, np.complex128
KINDS = "spd", "symmetric", "hermitian", "quasidefinite", "general"


def random_matrix(n, kind, dtype=np.float64, seed=0, density=0.2):
    """Return a sparse matrix of a kind with moderate condition numbers of its parts."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, rng=rng).toarray().astype(dtype)
    if A.dtype.kind == "c":
        A = A + 1j * sp.random_array((n, n), density=density, rng=rng).toarray()
    mirrored = A.T if kind == "symmetric" else A.conj().T
    A = A if kind == "general" else A + mirrored
    sign = rng.choice([-1.0, 1.0], n) if kind in ("symmetric", "hermitian") else np.ones(n)
    if kind == "quasidefinite":
        half = n // 2
        A[half:, half:] *= -1
        sign[half:] = -1
    A[np.diag_indices(n)] = sign * (1 + np.abs(A).sum(axis=1).real)
    return sp.csc_array(A).astype(dtype)


def dense_schur(A, index):
    """Return S, A11^-1 and the remaining indices by dense arithmetic in double precision."""
    D = A.toarray().astype(np.result_type(A.dtype, np.float64))
    rest = np.delete(np.arange(len(D)), index)
    inverse = np.linalg.inv(D[np.ix_(rest, rest)])
    below = D[np.ix_(index, rest)] @ inverse
    return D[np.ix_(index, index)] - below @ D[np.ix_(rest, index)], below, rest


def error(x, y, dtype):
    """Return the largest difference in roundings of a type, over the largest entry of y."""
    size = np.abs(y).max(initial=1e-300)
    return np.abs(x - y).max(initial=0.0) / size / np.finfo(dtype).eps


def check(factor, A, index, bound=200.0):
    """Compare all queries of a Schur complement with dense arithmetic; return S."""
    n, dtype = A.shape[0], A.dtype
    S, (expected, below, rest) = factor.schur(), dense_schur(A, index)
    assert (S.shape, S.dtype) == (expected.shape, dtype)
    assert error(S, expected, dtype) <= bound
    rng = np.random.default_rng(n)
    for b in (rng.standard_normal(n), rng.standard_normal((n, 3))):
        b = np.asfortranarray(b.astype(dtype)) + (0.5j * b[::-1] if dtype.kind == "c" else 0)
        b = b.astype(dtype)
        g = factor.schur_condense(b)
        assert g.dtype == dtype
        assert error(g, b[index] - below @ b[rest], dtype) <= bound
        xs = np.linalg.solve(expected, b[index] - below @ b[rest]).astype(dtype)
        x, whole = factor.schur_expand(xs, b), factor.solve(b)
        assert x.shape == b.shape
        np.testing.assert_array_equal(x[index], xs)
        assert error(x, whole, dtype) <= bound
    return S


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_schur_of_all_kinds_is_dense_one(kind, dtype):
    A = random_matrix(60, kind, dtype)
    index = np.random.default_rng(1).permutation(60)[:7]
    factor = frontal.factorize(A, kind=kind, schur=index)
    S = check(factor, A, index)
    if kind != "general":
        np.testing.assert_array_equal(S, S.T if kind == "symmetric" else S.conj().T)
    shifted = A + sp.diags_array(A.diagonal() / 2).astype(dtype).tocsc()
    check(factor.refactorize(shifted), shifted, index)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_schur_of_random_patterns_is_dense_one(data):
    n = data.draw(st.integers(1, 40))
    k = data.draw(st.integers(0, n))
    kind = data.draw(st.sampled_from(KINDS))
    seed = data.draw(st.integers(0, 1000))
    density = data.draw(st.sampled_from([0.0, 0.02, 0.1, 0.5]))
    A = random_matrix(n, kind, seed=seed, density=density)
    index = np.random.default_rng(seed).permutation(n)[:k]
    check(frontal.factorize(A, kind=kind, schur=index), A, index)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 64])
@pytest.mark.parametrize("matrix", [poisson2d, convdiff2d])
def test_schur_of_large_and_empty_index(matrix, k):
    A = sp.csc_array(matrix(8))
    check(frontal.factorize(A, schur=np.arange(64)[::-1][:k]), A, np.arange(64)[::-1][:k])


@pytest.mark.parametrize("kind", ["symmetric", "hermitian"])
def test_inertia_is_that_of_both_blocks(kind):
    """Haynsworth: the inertia of A is that of A11 plus that of S."""
    dtype = np.float64 if kind == "symmetric" else np.complex128
    A = random_matrix(80, kind, dtype, density=0.05)
    index = np.random.default_rng(2).permutation(80)[:20]
    factor = frontal.factorize(A, kind=kind, schur=index)
    rest = np.delete(np.arange(80), index)
    inner = frontal.factorize(A[rest][:, rest], kind=kind).inertia
    values = np.linalg.eigvalsh(factor.schur())
    assert factor.inertia.positive == inner.positive + (values > 0).sum()
    assert factor.inertia.negative == inner.negative + (values < 0).sum()


def test_index_forms_and_halves_agree():
    A = sp.csc_array(poisson2d(9))
    mask = np.zeros(81, np.bool_)
    mask[[70, 3, 41]] = True
    S = frontal.factorize(A, schur=mask).schur()
    other = frontal.factorize(A, schur=[41, 70, 3]).schur()
    np.testing.assert_allclose(S[np.ix_([1, 2, 0], [1, 2, 0])], other, rtol=1e-14)
    half = frontal.factorize(sp.csc_array(sp.tril(A)), schur=[41, 70, 3], kind="spd",
                             triangle="lower")  # fmt: skip
    np.testing.assert_array_equal(half.schur(), other)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        ([1, 2, 1], ValueError, "index 1 more than once"),
        ([1, 9], ValueError, r"schur\[1\] is 9"),
        ([-1], ValueError, r"schur\[0\] is -1"),
        ([1.0], TypeError, "float64"),
        ([[1]], ValueError, "vector"),
        (np.ones(5, np.bool_), ValueError, "mask"),
    ],
)
def test_wrong_index_is_refused(index, error, message):
    with pytest.raises(error, match=message):
        frontal.analyze(poisson2d(3), schur=index)


def test_other_misuse_is_refused():
    A = poisson2d(3)
    plain, factor = frontal.factorize(A), frontal.factorize(A, schur=[1, 2])
    for query in (plain.schur, lambda: plain.schur_condense(np.ones(9))):
        with pytest.raises(ValueError, match="no Schur complement"):
            query()
    with pytest.raises(ValueError, match="on the CPU"):
        frontal.analyze(A, schur=[1], backend="gpu")
    with pytest.raises(ValueError, match="on the CPU"):
        frontal.analyze(A, schur=[1]).on("gpu")
    with pytest.raises(ValueError, match="another `schur`"):
        frontal.factorize(A, frontal.analyze(A, schur=[1]), schur=[2])
    with pytest.raises(ValueError, match=r"xs has shape \(3,\)"):
        factor.schur_expand(np.ones(3), np.ones(9))
    with pytest.raises(ValueError, match=r"xs has shape \(2,\)"):
        factor.schur_expand(np.ones(2), np.ones((9, 2)))
    with pytest.raises(frontal.NonFiniteInputError, match="xs"):
        factor.schur_expand([1, np.nan], np.ones(9))


def saddle(n, m, seed=0):
    """Return [H B^T; B 0] with a regular H, and the numbers of the multipliers."""
    rng = np.random.default_rng(seed)
    H = sp.diags_array([0.2, 1.0, 0.2], offsets=[-1, 0, 1], shape=(n, n))
    H = H + sp.diags_array(rng.uniform(1, 2, n))
    B = sp.random_array((m, n), density=0.1, rng=rng) + sp.eye_array(m, n)
    return sp.csc_array(sp.block_array([[H, B.T], [B, None]])), np.arange(n, n + m)


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_multipliers_inside_and_outside(kind):
    A, multipliers = saddle(100, 20)
    rng = np.random.default_rng(3)
    check(frontal.factorize(A, kind=kind, schur=multipliers), A, multipliers, 1e4)
    index = rng.permutation(100)[:10]  # the multipliers are delayed inside A11
    factor = frontal.factorize(A, kind=kind, schur=index)
    check(factor, A, index, 1e5)
    check(factor.refactorize(2 * A), 2 * A, index, 1e5)


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_pivots_small_beside_the_cut_are_accepted(kind):
    """Columns of A11 whose large entries are in A21 have pivots inside A11 only."""
    A = sp.lil_array((8, 8))
    A.setdiag([1e-4, 2e-4, 0, 0, 1, 1, 1, 1])
    A[2, 3] = A[3, 2] = 1e-3
    for i in range(4):
        A[i, 4 + i] = A[4 + i, i] = 1.0
    A = sp.csc_array(A)
    check(frontal.factorize(A, kind=kind, schur=[4, 5, 6, 7]), A, np.arange(4, 8), 1e5)


@pytest.mark.parametrize("kind", ["symmetric", "general"])
@pytest.mark.parametrize("values", [[0.0, 1.0], [1.0, 1.0], [1.0, 1.0 + 1e-13]])
def test_columns_without_pivots_are_named(kind, values):
    """A is regular, but A11, of unknowns 2 and 3, is not: the columns must not move into S."""
    A = np.eye(5)
    A[3, 3], A[2, 2] = values
    A[2, 3] = A[3, 2] = 0.0 if values[0] == 0 else 1.0
    A[0, 3] = A[3, 0] = A[1, 2] = A[2, 1] = 3.0
    A = sp.csc_array(A)
    with pytest.raises(
        frontal.SingularMatrixError, match=r"`schur`.*(column 3|column 2)"
    ) as caught:
        frontal.factorize(A, kind=kind, schur=[0, 1])
    assert caught.value.column in (2, 3)
    assert np.isfinite(frontal.factorize(A, kind=kind).solve(np.ones(5))).all()


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_singular_schur_is_available(kind):
    A = sp.csc_array([[2.0, 1.0, 1.0], [1.0, 2.0, 0.5], [1.0, 0.5, 0.5]])
    with pytest.raises(frontal.SingularMatrixError):
        frontal.factorize(A, kind=kind, schur=[1, 2, 0][1:])
    factor = frontal.factorize(A, kind=kind, schur=[2], singular="allow")
    np.testing.assert_allclose(factor.schur(), 0, atol=1e-15)


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_null_column_before_schur_is_refused(kind):
    """The singular part is not connected to the unknowns of S."""
    A = sp.csc_array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(frontal.SingularMatrixError, match="rows and columns of `schur`"):
        frontal.factorize(A, kind=kind, schur=[2], singular="allow")


def test_structurally_singular_block_names_columns():
    A = sp.csc_array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    with pytest.raises(frontal.SingularMatrixError, match="column 1 cannot be matched"):
        frontal.factorize(A, kind="general", schur=[0])


def test_replaced_pivots_refuse_the_schur_complement():
    A = sp.csc_array(np.diag([1.0, -1.0, 2.0]) + np.diag([0.5, 0.5], 1) + np.diag([0.5, 0.5], -1))
    factor = frontal.factorize(A, kind="quasidefinite", signs=[1, -1, 1], schur=[2])
    check(factor, A, np.array([2]))
    wrong = frontal.factorize(A, kind="quasidefinite", signs=[-1, -1, 1], schur=[2])
    with pytest.raises(frontal.SingularMatrixError, match="regularize=False"):
        wrong.schur()


def test_rows_moved_by_a_matching_stay_in_their_block():
    rng = np.random.default_rng(5)
    A = random_matrix(40, "general", seed=6).toarray()
    A = A[rng.permutation(40)]  # large entries far from the diagonal
    A = sp.csc_array(np.where(abs(A) > 0.3, A, 0.0))
    index = np.array([7, 31, 3, 12])
    factor = frontal.factorize(A, kind="general", schur=index)
    assert factor.analysis.matching is not None
    check(factor, A, index, 1e5)


def test_scaling_does_not_enter_the_schur_complement():
    A = random_matrix(50, "general", seed=7)
    left, right = (2.0 ** np.random.default_rng(s).integers(-20, 20, 50) for s in (1, 2))
    index = np.array([3, 40, 11])
    S = frontal.factorize(A, kind="general", schur=index).schur()
    scaled = sp.csc_array(sp.diags_array(left) @ A @ sp.diags_array(right))
    T = frontal.factorize(scaled, kind="general", schur=index).schur()
    assert error(T / left[index][:, None] / right[index], S, np.float64) <= 1e3


def test_saved_analyses_and_copies_have_the_schur_complement(tmp_path):
    A, _ = saddle(60, 10)
    index = np.array([5, 2, 33])
    factor = frontal.factorize(A, kind="symmetric", schur=index)
    S = factor.schur()
    factor.analysis.save(tmp_path / "a")
    loaded = frontal.Analysis.load(tmp_path / "a")
    np.testing.assert_allclose(loaded.factorize(A).schur(), S, rtol=1e-12, atol=1e-13)
    for twin in (factor.copy(), factor.to_cpu(), pickle.loads(pickle.dumps(factor))):
        np.testing.assert_array_equal(twin.schur(), S)


def test_mixed_precision_gives_the_schur_complement_in_double():
    A = sp.csc_array(poisson2d(10))
    index = np.array([50, 3])
    check(frontal.factorize(A, schur=index, precision="mixed"), A, index)


def test_complex_vectors_with_a_real_factor():
    A, index = sp.csc_array(poisson2d(6)), np.array([30, 4])
    factor, rng = frontal.factorize(A, schur=index), np.random.default_rng(0)
    b = rng.standard_normal(36) + 1j * rng.standard_normal(36)
    x = factor.schur_expand(np.linalg.solve(factor.schur(), factor.schur_condense(b)), b)
    assert error(x, factor.solve(b), np.float64) <= 100


def test_large_schur_root_on_threads_has_the_same_bits(monkeypatch):
    A, index = sp.csc_array(poisson2d(60)), np.arange(0, 3600, 5)
    S = []
    for threads in ("1", "2"):
        monkeypatch.setenv("FRONTAL_NUM_THREADS", threads)
        S.append(frontal.factorize(A, schur=index).schur())
    np.testing.assert_array_equal(*S)
    expected, _, _ = dense_schur(A, index)
    assert error(S[0], expected, np.float64) <= 200


def test_fallbacks_keep_the_schur_complement():
    """Cholesky is followed by LDL^T, and for unsymmetric values of the pattern by LU."""
    A, index = sp.csc_array(poisson2d(10)), np.array([17, 80, 2])
    analysis = frontal.analyze(A, schur=index)
    indefinite = sp.csc_array(A - 2.3 * sp.eye_array(100))
    factor = analysis.factorize(indefinite)
    assert factor.analysis.method == "ldlt"
    check(factor, indefinite, index, 1e4)
    upwind = sp.csc_array((A.data * np.where(A.data < 0, 1.0, 1.2), A.indices, A.indptr))
    upwind.data[1] *= 0.5
    factor = analysis.factorize(upwind)
    assert factor.analysis.method == "lu"
    check(factor, upwind, index)


def test_given_order_is_that_of_the_other_unknowns():
    A, index = sp.csc_array(poisson2d(6)), np.array([0, 20])
    perm = np.random.default_rng(0).permutation(36)
    factor = frontal.factorize(A, schur=index, ordering=perm)
    check(factor, A, index)
    np.testing.assert_array_equal(factor.analysis.perm[-2:], index)


def test_index_of_disconnected_parts():
    A = sp.csc_array(sp.block_diag([poisson2d(4), poisson2d(5), sp.eye_array(3)]))
    index = np.array([43, 30, 2, 17, 7])
    check(frontal.factorize(A, schur=index), A, index)


def test_cache_folder_tells_schur_complements_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("FRONTAL_ANALYSIS_CACHE", str(tmp_path))
    A = sp.csc_array(poisson2d(46))
    for index in (np.array([5, 900]), np.array([900, 5]), np.array([5, 900])):
        S = frontal.factorize(A, schur=index).schur()
        assert error(S, dense_schur(A, index)[0], np.float64) <= 200
    assert frontal.analyze(A).symbolic.schur is None


@pytest.mark.parametrize("kind", KINDS)
def test_inaccurate_schur_complement_warns(kind):
    A = random_matrix(30, kind)
    for singular in ("raise", "allow"):
        factor = frontal.factorize(A, kind=kind, schur=[3, 8], singular=singular)
        numbers = factor._numbers.factor
        numbers.schur = numbers.schur._replace(values=1.05 * numbers.schur.values)
        if singular == "raise":
            with pytest.warns(frontal.IllConditionedWarning, match="fewer than two correct digits"):
                factor.schur()
        else:
            factor.schur()  # warnings are errors


@pytest.mark.parametrize("singular", ["raise", "warn", "allow"])
def test_growth_in_the_factors_warns_and_solves_are_refined(singular):
    """Pivots of a quasidefinite kind are not exchanged: its factors grow by 7e14 here."""
    A = np.diag([1e-7, -1e-15, 1e-7, -1e-14])
    for i, j, value in ((0, 1, 1.5), (0, 3, 1.3), (1, 2, -0.8), (2, 3, 1.8)):
        A[i, j] = A[j, i] = value
    factor = frontal.factorize(
        sp.csc_array(A), kind="quasidefinite", schur=[2, 3], singular=singular
    )
    b, xs = np.ones(4), np.array([1.0, 1.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        g, x, _ = factor.schur_condense(b), factor.schur_expand(xs, b), factor.schur()
    assert len(caught) == (0 if singular == "allow" else 3)
    assert all("Factor.growth is 7e+14" in str(one.message) for one in caught)
    inner = np.linalg.inv(A[:2, :2])
    np.testing.assert_allclose(g, b[2:] - A[2:, :2] @ inner @ b[:2], rtol=1e-14)
    np.testing.assert_allclose(x[:2], inner @ (b[:2] - A[:2, 2:] @ xs), rtol=1e-14)
