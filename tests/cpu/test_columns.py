"""LU by columns: the same answers and verdicts as by fronts, at the cost of thin matrices."""

from __future__ import annotations

import sys
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal.cpu.columns import backend as column_backend
from frontal.cpu.columns.arrays import ColumnInput
from frontal.cpu.columns.factor import ColumnFactor
from frontal.cpu.columns.factorize import FACTORIZED, FILLED, factorize
from frontal.symbolic.block_triangular import block_form

from ..conftest import TYPES, scaled_residual
from ..matrices import with_values

TRANS = {"N": lambda A: A, "T": lambda A: A.T, "H": lambda A: A.conj().T}


@pytest.fixture(autouse=True)
def always(monkeypatch):
    """LU of any matrix that may be factorized by columns is."""
    monkeypatch.setattr("frontal.symbolic.columns.MIN_COLUMNS", 0)
    monkeypatch.setattr("frontal.symbolic.phase.is_faster", lambda *_: True)


@pytest.fixture
def often(monkeypatch):
    """Solutions of plain vectors take one compiled call."""
    monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 0)


def system(n, density, seed, dtype="f8", *, blocks=1, zeros=0.0, diagonal=0.1):
    """A regular matrix, reducible if there are blocks, with rows and columns permuted."""
    rng = np.random.default_rng(seed)
    B = sp.random_array((n, n), density=density, rng=rng, format="csc")
    B = with_values(B, rng.standard_normal(B.nnz))
    if np.dtype(dtype).kind == "c":
        B = B + 1j * with_values(B, rng.standard_normal(B.nnz))
    i, j = B.tocoo().coords
    keep = (i * blocks) // n <= (j * blocks) // n
    keep &= (i != j) | (rng.random(B.nnz) >= zeros)
    B = sp.coo_array((B.tocoo().data[keep], (i[keep], j[keep])), shape=(n, n))
    B = (B + sp.diags_array(rng.choice([-1.0, 1.0], n) * (diagonal + rng.random(n)))).tocsc()
    return sp.csc_array(B[rng.permutation(n)][:, rng.permutation(n)]).astype(dtype)


def interchanging(n, seed, dtype="f8"):
    """A matrix of symmetric pattern, so that no rows are matched, with a small diagonal."""
    A = abs(system(n, 0.03, seed))
    A = sp.csc_array(A + A.T)
    A = with_values(A, np.random.default_rng(seed).standard_normal(A.nnz)).tolil()
    A.setdiag(np.random.default_rng(1).choice([-0.02, 0.02], n))
    return A.tocsc().astype(dtype)


def by_columns(A, **options):
    """A factor by columns."""
    factor = frontal.analyze(A, kind="general", backend="cpu").factorize(A, **options)
    assert isinstance(factor._numbers.factor, ColumnFactor)
    return factor


def product_error(factor, A):
    """Largest error of L U, in roundings of |L||U|."""
    n = A.shape[0]
    rows = sp.csc_array((np.ones(n), (factor.perm_r, np.arange(n))), shape=(n, n))
    columns = sp.csc_array((np.ones(n), (np.arange(n), factor.perm_c)), shape=(n, n))
    L, U = factor.L, factor.U
    assert not sp.triu(L, 1).nnz
    assert not sp.tril(U, -1).nnz
    assert (L.diagonal() == 1).all()
    size = (abs(L) @ abs(U)).toarray()
    error = abs(rows @ A @ columns - L @ U).toarray()
    return float((error / np.where(size > 0, size, 1)).max()) / np.finfo(A.dtype).eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("blocks", [1, 9])
def test_columns_solve_and_multiply_to_the_matrix(dtype, blocks):
    A = system(90, 0.04, 1, dtype, blocks=blocks, zeros=0.3, diagonal=2.0)
    factor, rng = by_columns(A), np.random.default_rng(0)
    assert (factor.analysis.symbolic.columns.first.size > 9) == (blocks > 1)
    assert product_error(factor, A) < 20
    x = rng.standard_normal((90, 6)).astype(dtype)
    eps = np.finfo(dtype).eps
    for trans, op in TRANS.items():
        B = op(A) @ x
        X = factor.solve(B, trans)
        assert scaled_residual(op(A), X, B) < 4 * eps
        assert scaled_residual(op(A), factor.solve(B, trans, refine=0), B) < 40 * eps
        one_by_one = np.stack([factor.solve(B[:, k].copy(), trans) for k in range(6)], axis=1)
        np.testing.assert_array_equal(X, one_by_one)
        for k in (2, 3, 5):  # not all groups of four are full
            np.testing.assert_array_equal(factor.solve(B[:, :k].copy(), trans), X[:, :k])
    sign, logdet = factor.slogdet()
    expected = np.linalg.slogdet(A.toarray().astype(np.result_type(dtype, np.float64)))
    assert abs(sign - expected[0]) < 1000 * eps
    assert abs(logdet - expected[1]) < 1000 * eps * abs(expected[1])
    assert factor.diag().size == 90


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 24), st.floats(0.02, 0.5), st.integers(0, 10**6), st.integers(1, 5),
    st.sampled_from([0.0, 0.5, 1.0]),
)  # fmt: skip
def test_columns_and_fronts_agree(n, density, seed, blocks, zeros):
    A = system(n, density, seed, blocks=blocks, zeros=zeros)
    if seed % 3 == 0 and A.nnz > n:  # often singular, by pattern or values
        A = sp.csc_array(A[:, np.random.default_rng(seed).integers(0, n, n)])
    outcomes = []
    for way in ("columns", "fronts"):
        try:
            analysis = frontal.analyze(A, kind="general", backend="cpu")
            factor = (analysis if way == "columns" else analysis.frontal).factorize(A)
            outcomes.append((factor.rcond(), *factor.slogdet()))
        except frontal.SingularMatrixError as error:
            outcomes.append((error.rank, None, None))
    columns, fronts = outcomes
    if fronts[2] is None or columns[2] is None:
        assert columns == fronts
    else:
        np.testing.assert_allclose(columns, fronts, rtol=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.floats(0.0, 0.3), st.integers(0, 10**6))
def test_blocks_are_strong_components_in_order(n, density, seed):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, rng=rng, format="csc") + sp.eye_array(n)
    A = sp.csc_array(A)
    form = block_form(A.indptr.astype(np.int64), A.indices.astype(np.int32))
    reach = np.linalg.matrix_power(A.toarray() != 0, n)
    both = reach & reach.T
    if form is None:
        assert both.all()
        return
    i, j = A.tocoo().coords
    assert (form.block[i] <= form.block[j]).all()
    assert ((form.block[:, None] == form.block) == both).all()
    assert form.between == np.count_nonzero(form.block[i] != form.block[j])
    assert (form.sizes == np.bincount(form.block)).all()


def test_components_in_any_order_are_sorted(monkeypatch):
    number = np.array([4, 1, 3, 0, 2], np.int32)  # neither ascending nor descending
    A = sp.csc_array(sp.eye_array(5) + sp.diags_array([1.0] * 4, offsets=1, shape=(5, 5)))
    monkeypatch.setattr("scipy.sparse.csgraph.connected_components", lambda *_, **__: (5, number))
    form = block_form(A.indptr.astype(np.int64), A.indices.astype(np.int32))
    assert form.block.tolist() == [0, 1, 2, 3, 4]


def changed(A, factor, position, factor_of_pivot):
    """A with the entry that is the pivot at a position in elimination order multiplied."""
    row, column = np.argsort(factor.perm_r)[position], np.argsort(factor.perm_c)[position]
    values = A.data.copy()
    place = np.flatnonzero(A.indices[A.indptr[column] : A.indptr[column + 1]] == row)
    values[A.indptr[column] + place] *= factor_of_pivot
    return with_values(A, values)


@pytest.mark.parametrize("dtype", TYPES)
def test_refactorization_keeps_pivots_while_they_are_good(dtype):
    A = interchanging(80, 5, dtype)
    factor, rng = by_columns(A), np.random.default_rng(1)
    pattern = factor._numbers.factor.pattern
    assert np.count_nonzero(pattern.position != np.arange(80)) > 5
    assert product_error(factor, A) < 30
    for _ in range(2):
        new = with_values(A, A.data * (1 + 0.2 * rng.random(A.nnz)).astype(A.real.dtype))
        factor.refactorize(new)
        assert factor._numbers.factor.pattern is pattern
        assert product_error(factor, new) < 30
    twin = factor.copy()
    twin.refactorize(A)
    assert product_error(factor, new) < 30


def test_refactorization_chooses_small_pivots_anew():
    A = system(60, 0.1, 2)
    factor = by_columns(A)
    old = factor._numbers.factor.pattern
    first = int(np.argmax(np.diff(old.lower_start) > 0))
    b = A @ np.ones(60)
    factor.refactorize(changed(A, factor, first, 3e-3))  # which refinement corrects
    assert factor._numbers.factor.pattern is old
    assert scaled_residual(factor.A, factor.solve(b), b) < 1e-15
    B = changed(A, factor, first, 1e-7)
    factor.refactorize(B)
    new = factor._numbers.factor
    assert isinstance(new, ColumnFactor)
    assert new.pattern is not old
    assert factor.growth < 1e3
    fresh = factor.analysis.factorize(B)._numbers.factor
    np.testing.assert_array_equal(new.values.upper, fresh.values.upper)
    factor.refactorize(A)  # from the other pattern
    assert product_error(factor, A) < 30


def test_refactorize_to_a_singular_block_and_back():
    A = sp.csc_array(sp.block_diag([system(8, 0.5, k) for k in range(6)], "csc"))
    A[1, 20] = 0.5  # between blocks
    factor, n = by_columns(A), 48
    x, values = factor.solve(np.ones(n)), A.data.copy()
    column = np.repeat(np.arange(n), np.diff(A.indptr))
    values[column == 18] = 0.0
    for _ in range(2):
        with pytest.raises(frontal.SingularMatrixError):
            factor.refactorize(values)
        with pytest.raises(frontal.FactorInvalidError):
            factor.solve(np.ones(n))
        factor.refactorize(A.data)
        assert factor.analysis.by_columns
        np.testing.assert_allclose(factor.solve(np.ones(n)), x, rtol=1e-10)


def test_an_interrupt_leaves_no_factor_and_the_next_is_whole(monkeypatch):
    A = system(60, 0.05, 3)
    factor, b = by_columns(A), np.ones(60)
    x, run = factor.solve(b), column_backend.refactorize

    def interrupted(*args):
        run(*args)  # the values are overwritten
        raise KeyboardInterrupt

    monkeypatch.setattr(column_backend, "refactorize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        factor.refactorize(3 * A.data)
    with pytest.raises(frontal.FactorInvalidError):
        factor.solve(b)
    monkeypatch.setattr(column_backend, "refactorize", run)
    np.testing.assert_array_equal(factor.refactorize(A.data).solve(b), x)


def test_splu_has_the_factors_of_scipy(often):
    A = system(60, 0.05, 3, blocks=4)
    lu = frontal.linalg.splu(A)
    n, b = 60, np.ones(60)
    rows = sp.csc_array((np.ones(n), (lu.perm_r, np.arange(n))), shape=(n, n))
    columns = sp.csc_array((np.ones(n), (np.arange(n), lu.perm_c)), shape=(n, n))
    assert abs(rows.T @ (lu.L @ lu.U) @ columns.T - A).max() < 1e-13
    for trans, op in TRANS.items():
        assert scaled_residual(op(A), lu.solve(b, trans), b) < 1e-15


def test_null_vectors_are_those_of_fronts():
    A = sp.csc_array(sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(40, 40)))
    A[0, 0] = A[39, 39] = 1.0
    with pytest.raises(frontal.SingularMatrixError, match="rank is 39 of 40"):
        frontal.factorize(A, kind="general", backend="cpu")
    factor = frontal.factorize(A, kind="general", backend="cpu", singular="allow")
    assert not factor.analysis.by_columns
    np.testing.assert_allclose(factor.null_space(), np.ones((40, 1)), rtol=1e-12)
    b = A @ np.arange(40.0)
    assert abs(A @ factor.solve(b) - b).max() < 1e-12


def test_too_much_fill_continues_with_fronts(monkeypatch):
    A = system(60, 0.08, 3)
    monkeypatch.setattr(column_backend, "MAX_FILL_RATIO", -100)
    factor = frontal.factorize(A, kind="general", backend="cpu")
    assert not factor.analysis.by_columns
    b = A @ np.ones(60)
    assert scaled_residual(A, factor.solve(b), b) < 1e-15


def test_arrays_that_grow_hold_the_same_factors():
    A = system(70, 0.2, 4)
    columns = by_columns(A).analysis.symbolic.columns
    matrix = ColumnInput(columns.first, columns.start, columns.place, columns.row, A.data.copy())
    small, large = (factorize(matrix, 1e-14, room, 10**6) for room in (0, 10**4))
    assert small[0] == FACTORIZED
    for one, other in zip((*small[2], *small[3]), (*large[2], *large[3]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert factorize(matrix, 1e-14, 0, 100)[0] == FILLED


@pytest.mark.parametrize("permuted", [False, True])
def test_triangular_matrices_cost_a_substitution(permuted):
    rng, n = np.random.default_rng(0), 1500
    T = sp.triu(sp.random_array((n, n), density=6 / n, rng=rng), 1) * 0.1 + sp.eye_array(n)
    if permuted:
        T = sp.csr_array(T)[rng.permutation(n)][:, rng.permutation(n)]
    A = sp.csc_array(T)
    factor = by_columns(A)
    assert factor.nnz == A.nnz
    assert factor.analysis.flops <= 2 * n
    assert factor._numbers.factor.values.lower.size == 0
    for trans, op in TRANS.items():
        b = op(A) @ np.ones(n)
        assert scaled_residual(op(A), factor.solve(b, trans, refine=0), b) < 1e-15


@pytest.mark.parametrize("dtype", TYPES)
def test_fast_solutions_have_the_bits_and_conditions_of_others(dtype, often, monkeypatch):
    A = system(64, 0.06, 8, dtype, blocks=3, diagonal=3.0)
    b, fast = np.ones(64, dtype), by_columns(A)
    for trans in TRANS:
        x = fast.solve(b, trans)
        x = fast._numbers.solver.solve_fast(b, trans)
        assert x is not None
        known = fast._numbers.solver.verdict.condition_known(trans, np.dtype(dtype))
        monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", sys.maxsize)
        slow = by_columns(A)
        np.testing.assert_array_equal(x, slow.solve(b, trans))
        np.testing.assert_array_equal(
            fast.solve(b, trans, refine=0), slow.solve(b, trans, refine=0)
        )
        other = slow._numbers.solver.verdict.condition(trans, np.dtype(dtype))
        assert known.value == pytest.approx(other.value, rel=1e-3)
        monkeypatch.setattr("frontal.cpu.small.warmup.MIN_CALLS", 0)


def test_threads_share_a_factor_and_get_the_same_bits(often):
    A = system(300, 0.01, 6, blocks=20)
    factor, rng = by_columns(A), np.random.default_rng(0)
    B = rng.standard_normal((300, 16))
    expected, found = factor.solve(B), {}

    def work(k):
        for _ in range(20):
            found[k] = factor.solve(B[:, k].copy())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(16):
        np.testing.assert_array_equal(found[k], expected[:, k])
    np.testing.assert_array_equal(by_columns(A).solve(B), expected)


def test_gpus_and_batches_have_fronts():
    A = system(60, 0.05, 3, blocks=4)
    analysis = frontal.analyze(A, kind="general", backend="cpu")
    assert analysis.by_columns
    assert analysis.on("gpu").n_fronts > 0
    assert analysis.frontal is analysis.frontal
    assert not frontal.analyze(A, kind="general", backend="gpu").by_columns
    assert not frontal.analyze(A, kind="general", ordering="amd", backend="cpu").by_columns
    values = A.data * np.array([[1.0], [2.0]])
    X = frontal.solve_batch(A, values, np.ones(60), kind="general", backend="cpu")
    np.testing.assert_allclose(X[1], analysis.factorize(2 * A).solve(np.ones(60)), rtol=1e-9)


def test_memory_is_refused_before_it_is_taken():
    A = system(60, 0.05, 3)
    analysis = frontal.analyze(A, kind="general", backend="cpu")
    required = analysis.memory["total"]
    analysis.factorize(A, memory=required)
    with pytest.raises(frontal.FactorMemoryError) as caught:
        analysis.factorize(A, memory=required - 1)
    assert caught.value.required == required


@pytest.mark.parametrize("n", [0, 1, 2])
def test_smallest_matrices(n):
    A = sp.csc_array(np.triu(np.ones((n, n))))
    factor = by_columns(A)
    np.testing.assert_array_equal(A @ factor.solve(np.ones(n)), np.ones(n))
    assert factor.refactorize(2 * A.data).slogdet()[1] == pytest.approx(n * np.log(2))


NAMES = ["west0479", "gemat12", "young1c", "memplus", "bayer10"]


@pytest.mark.parametrize("name", NAMES)
def test_shared_matrices_get_the_answers_of_fronts(name, shared_matrix, often):
    A = shared_matrix(name)
    analysis = frontal.analyze(A, backend="cpu")
    assert analysis.by_columns
    factor, fronts = analysis.factorize(A), analysis.frontal.factorize(A)
    b = A @ np.ones(A.shape[0])
    for trans in "NTH":
        with warnings.catch_warnings(record=True) as one:
            x = factor.solve(b, trans)
        with warnings.catch_warnings(record=True) as other:
            y = fronts.solve(b, trans)
        assert [w.category for w in one] == [w.category for w in other]
        for solution in (x, y):
            assert scaled_residual(TRANS[trans](A), solution, b) < 1e-15
    (sign, value), (expected_sign, expected) = factor.slogdet(), fronts.slogdet()
    assert abs(sign - expected_sign) < 1e-8
    assert value == pytest.approx(expected, rel=1e-10)
    factor.refactorize(1.5 * A.data)
    assert scaled_residual(1.5 * A, factor.solve(b), b) < 1e-15
