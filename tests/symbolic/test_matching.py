"""Maximum-product matching against brute force: optimal, scaled, of full cardinality."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import maximum_bipartite_matching

from frontal.matrix.canonical import canonical
from frontal.numeric.method import LU
from frontal.symbolic.diagonal import mirrored_share
from frontal.symbolic.matching import maximum_product_matching
from frontal.symbolic.pairs import symmetric_pairs
from frontal.symbolic.preprocess import looks_at_values

EPS = np.finfo(float).eps


def check(A, matching, tolerance=1e3 * EPS):
    """The scaled entries are at most 1, the matched ones 1; rows and rank fit together."""
    n = A.shape[0]
    assert matching.rows.dtype == np.int32
    assert matching.rows.shape == matching.row_scale.shape == matching.col_scale.shape == (n,)
    cols = np.flatnonzero(matching.rows >= 0)
    rows = matching.rows[cols]
    assert matching.rank == cols.size == np.unique(rows).size
    for scale in (matching.row_scale, matching.col_scale):
        assert np.isfinite(scale).all()
        assert (scale > 0).all()
    S = sp.coo_array(A)
    scaled = np.abs(S.data) * matching.row_scale[S.coords[0]] * matching.col_scale[S.coords[1]]
    assert scaled.max(initial=0.0) <= 1 + tolerance
    on_matching = matching.rows[S.coords[1]] == S.coords[0]
    np.testing.assert_allclose(scaled[on_matching], 1, atol=tolerance)
    assert np.count_nonzero(on_matching) == matching.rank


def structural_rank(A):
    B = sp.csr_array(A)
    B.eliminate_zeros()
    return np.count_nonzero(maximum_bipartite_matching(B, perm_type="column") >= 0)


def random_matrix(seed, n, density, spread, kind):
    """Random entries over `spread` decades; kind: real, complex, ties or zeros (stored ones)."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, n)) < density, 10 ** (spread * rng.uniform(-1, 1, (n, n))), 0)
    if kind == "ties":
        A = np.sign(A)
    signs = np.exp(2j * np.pi * rng.random((n, n))) if kind == "complex" else rng.choice([-1, 1])
    S = sp.csc_array(A * signs)
    if kind == "zeros" and S.nnz:
        S.data[rng.random(S.nnz) < 0.3] = 0
    return S


SYSTEMS = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.sampled_from([0.1, 0.2, 0.4, 0.7, 1.0]),
    st.sampled_from([0.0, 1.0, 6.0]),
    st.sampled_from(["real", "complex", "ties", "zeros"]),
)


@given(SYSTEMS)
@settings(max_examples=300, deadline=None)
def test_against_brute_force(system):
    A = random_matrix(*system)
    matching = maximum_product_matching(A)
    check(A, matching)
    assert matching.rank == structural_rank(A)
    if matching.rank == A.shape[0]:
        size = np.abs(A.toarray())
        cost = -np.log(np.where(size > 0, size, 1e-300))
        rows, cols = linear_sum_assignment(cost)
        found = cost[matching.rows, np.arange(A.shape[0])].sum()
        assert found == pytest.approx(cost[rows, cols].sum(), abs=1e-10)


@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("density", [0.02, 0.1])
def test_larger_random(n, density):
    for kind in ("real", "ties"):
        A = random_matrix(n, n, density, 3.0, kind)
        matching = maximum_product_matching(A)
        check(A, matching)
        assert matching.rank == structural_rank(A)


def test_deficient_groups_that_reach_into_each_other():
    # columns 0-2 share row 0, columns 3-5 share rows 0 and 1 with entries of many sizes
    A = np.zeros((6, 6))
    A[0] = [1, 2, 3, 1e9, 1e5, 1e-5]
    A[1, 3:] = [1e-9, 1, 7]
    matching = maximum_product_matching(sp.csc_array(A))
    check(sp.csc_array(A), matching)
    assert matching.rank == 2


def test_deficient_groups_one_above_the_other():
    """What a group is shifted by shifts those before it too: columns reach into all their rows."""
    for seed in range(100):
        rng, A = np.random.default_rng(seed), np.zeros((40, 40))
        rows = column = 0
        for taken in rng.integers(1, 4, 14):
            rows = min(rows + taken, 40)
            for _ in range(taken + 1):
                if column < 40:
                    A[:rows, column] = 10 ** rng.uniform(-9, 9, rows) * (rng.random(rows) < 0.7)
                column += 1
        A = sp.csc_array(A[:, rng.permutation(40)])
        check(A, maximum_product_matching(A))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_empty(n):
    matching = maximum_product_matching(sp.csc_array((n, n)))
    check(sp.csc_array((n, n)), matching)
    assert matching.rows.tolist() == [-1] * n


def test_recovers_a_hidden_permutation():
    rng = np.random.default_rng(5)
    n = 400
    perm = rng.permutation(n)
    hidden = sp.diags_array(np.full(n, 10.0)).tocsr() + sp.random_array(
        (n, n), density=0.02, random_state=np.random.default_rng(5)
    )
    scaled = sp.diags_array(10.0 ** rng.uniform(-20, 20, n)) @ hidden
    A = sp.csc_array(sp.csr_array(scaled)[perm])
    matching = maximum_product_matching(A)
    check(A, matching)
    np.testing.assert_array_equal(perm[matching.rows], np.arange(n))


def test_extreme_values_keep_finite_scalings():
    A = sp.diags_array([5e-324, 1e308, 1.0, 1e-160]).tocsc()
    matching = maximum_product_matching(A)
    assert np.isfinite(matching.row_scale).all()
    assert np.isfinite(matching.col_scale).all()
    assert matching.rank == 4


def test_other_formats_and_duplicates():
    A = sp.coo_array(([1.0, 1.0, 3.0, 2.0], ([0, 0, 0, 1], [0, 0, 1, 0])), shape=(2, 2))
    assert maximum_product_matching(A).rows.tolist() == [1, 0]
    with pytest.raises(ValueError, match="square"):
        maximum_product_matching(sp.csc_array((2, 3)))


def test_non_finite_entries_are_not_matched():
    A = sp.csc_array(np.array([[np.nan, 1.0], [1.0, np.inf]]))
    assert maximum_product_matching(A).rows.tolist() == [1, 0]


NAMES = ("bayer10", "c-62", "cavity14", "gemat12", "kkt_CVXQP1_L_eq", "mhd1280b", "ngs_stokes_2d")


@pytest.mark.parametrize("name", NAMES)
def test_shared_matrices(shared_matrix, name):
    A = shared_matrix(name)
    matching = maximum_product_matching(A)
    check(A, matching)
    assert matching.rank == A.shape[0]


def test_shared_structurally_singular(shared_matrix):
    A = shared_matrix("test_FW_2500")
    matching = maximum_product_matching(A)
    check(A, matching)
    assert matching.rank == 2009


def symmetry(A):
    """The share of entries whose mirror image is stored."""
    return mirrored_share(A.indptr.astype(np.int64), A.indices)


def needs_matching(A):
    """Whether LU permutes rows by a matching, or at least looks for one."""
    return looks_at_values(canonical(A, kind="general"), LU)


def test_pattern_symmetry():
    rng = np.random.default_rng(0)
    A = rng.random((30, 30)) < 0.2
    np.fill_diagonal(A, True)
    off = A & ~np.eye(30, dtype=bool)
    expected = np.count_nonzero(off & off.T) / np.count_nonzero(off)
    assert symmetry(sp.csc_array(A * 2.0)) == pytest.approx(expected)
    assert symmetry(sp.eye_array(3).tocsc()) == 1
    assert symmetry(sp.csc_array((0, 0))) == 1


@pytest.mark.parametrize(
    ("A", "expected"),
    [
        ([[2.0, 1.0], [1.0, 2.0]], False),
        ([[2.0, 1.0], [1.0, 0.0]], True),
        ([[2.0, 1.0], [1.0, 1e-12]], True),
        ([[2e12, 1e6], [1e6, 1.0]], False),  # badly scaled, not badly conditioned
        ([[1.0, 1e9], [1.0, 2e9]], False),  # by its column an entry is large
        ([[1.0, 1.0], [1e9, 2e9]], False),  # and by its row
        ([[2.0, 1.0], [0.0, 2.0]], True),  # unsymmetric pattern
        ([[2j, 1.0], [1.0, 2.0]], False),
        ([[0.0]], True),
    ],
)
def test_rule(A, expected):
    assert needs_matching(sp.csc_array(A)) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("bayer10", True), ("west0479", True), ("cavity14", True), ("sherman5", False)],
)
def test_rule_on_shared_matrices(shared_matrix, name, expected):
    assert needs_matching(shared_matrix(name)) is expected


def cycle(n, diagonal):
    """A symmetric ring: its matching may be one cycle of length n where the diagonal is small."""
    A = np.diag(np.asarray(diagonal, float))
    k = np.arange(n)
    A[k, (k + 1) % n] = A[(k + 1) % n, k] = 1
    return sp.csc_array(A)


def check_pairs(A, partner):
    n = A.shape[0]
    assert partner.dtype == np.int32
    np.testing.assert_array_equal(partner[partner], np.arange(n))
    i, j = sp.coo_array(A).coords
    neighbours = np.count_nonzero((i != j) & (partner[i] == j))
    assert neighbours == np.count_nonzero(partner != np.arange(n))


@pytest.mark.parametrize("n", [3, 5, 9])
def test_odd_cycle_leaves_out_the_largest_diagonal(n):
    diagonal = np.zeros(n)
    diagonal[n // 2] = 1e-3
    A = cycle(n, diagonal)
    partner = symmetric_pairs(maximum_product_matching(A), A)
    check_pairs(A, partner)
    assert np.flatnonzero(partner == np.arange(n)).tolist() == [n // 2]


def test_sound_diagonals_stay_alone():
    A = cycle(6, np.full(6, 0.9))
    assert symmetric_pairs(maximum_product_matching(A), A).tolist() == list(range(6))


@given(st.integers(0, 2**32 - 1), st.integers(1, 25))
@settings(max_examples=100, deadline=None)
def test_pairs_of_random_saddle_points(seed, n):
    rng = np.random.default_rng(seed)
    B = sp.random_array((n, 2 * n), density=0.2, random_state=rng)
    K = sp.diags_array(10.0 ** rng.uniform(-12, 3, 2 * n))
    A = sp.csc_array(sp.block_array([[K, B.T], [B, None]]))
    check_pairs(A, symmetric_pairs(maximum_product_matching(A), A))


def test_each_zero_diagonal_has_a_partner(shared_matrix):
    A = shared_matrix("kkt_CVXQP1_L_eq")
    partner = symmetric_pairs(maximum_product_matching(A), A)
    check_pairs(A, partner)
    zero = np.flatnonzero(A.diagonal() == 0)
    assert np.all(partner[zero] != zero)
