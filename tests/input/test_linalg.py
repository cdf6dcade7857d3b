"""The drop-ins of scipy.sparse.linalg, side by side with SciPy."""

from __future__ import annotations

import inspect
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as theirs

from frontal import linalg as ours

N = 30
rng = np.random.default_rng(11)
UNSYMMETRIC = sp.random_array((N, N), density=0.1, random_state=rng, format="csc") + sp.diags_array(
    4 + rng.random(N)
)
MATRICES = {
    "lu": sp.csc_array(UNSYMMETRIC),
    "cholesky": sp.csc_array(UNSYMMETRIC + UNSYMMETRIC.T + 4 * sp.eye_array(N)),
}
BLOCK = rng.standard_normal((N, 3))
SINGULAR = {
    "by its values": sp.csc_array(np.ones((4, 4))),
    "by its pattern": sp.csc_array(np.diag([1.0, 2, 0, 3])),
    "zero": sp.csc_array((4, 4)),
}


def outcome(function, *arguments, **keywords):
    """Result of a call, or its error, and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = function(*arguments, **keywords)
        except Exception as error:
            result = error
    return result, [w.category for w in caught]


def assert_same(result, reference, tolerance=1e-12):
    """The same type, shape and scalar type, and nearly the same values."""
    assert type(result) is type(reference)
    assert result.shape == reference.shape
    assert result.dtype == reference.dtype
    if sp.issparse(result):
        result, reference = result.toarray(), reference.toarray()
    np.testing.assert_allclose(result, reference, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["spsolve", "splu", "factorized"])
def test_signatures(name):
    parameters = [
        [
            (p.name, p.default, p.kind)
            for p in inspect.signature(f).parameters.values()
            if p.name != "singular"
        ]
        for f in (getattr(ours, name), getattr(theirs, name))
    ]
    assert parameters[0] == parameters[1]


# --- spsolve ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", MATRICES)
@pytest.mark.parametrize("make", [sp.csc_array, sp.csr_array, sp.csc_matrix, sp.csr_matrix])
@pytest.mark.parametrize(
    "b",
    [
        BLOCK[:, 0],
        BLOCK[:, :1],
        BLOCK,
        np.asfortranarray(BLOCK),
        BLOCK[:, ::2],
        BLOCK[:, :0],
        list(BLOCK[:, 0]),
        BLOCK[:, 1] > 0,
        np.arange(N),
        BLOCK.astype(np.float32),
        BLOCK[:, 0] * (1 + 2j),
        (BLOCK * 1j).astype(np.complex64),
        np.full(N, np.nan),
    ],
    ids=lambda b: f"{np.asarray(b).dtype}{np.shape(b)}",
)
def test_spsolve_dense(method, make, b):
    A = make(MATRICES[method])
    result, caught = outcome(ours.spsolve, A, b)
    assert_same(result, theirs.spsolve(A, b))
    assert caught == []


@pytest.mark.parametrize("make", [sp.csc_array, sp.csr_array, sp.csc_matrix, sp.csr_matrix])
@pytest.mark.parametrize("shape", [(N, 1), (N, 3)])
def test_spsolve_sparse(make, shape):
    A = make(MATRICES["lu"])
    for b in (
        sp.random_array(shape, density=0.3, random_state=rng, format="csc"),
        sp.csc_matrix(shape),
    ):
        assert_same(ours.spsolve(A, b), outcome(theirs.spsolve, A, b)[0])
    vector = sp.coo_array(BLOCK[:, 0])
    assert_same(ours.spsolve(A, vector), theirs.spsolve(A, vector))


@pytest.mark.parametrize("first", [np.float32, np.float64, np.complex64, np.complex128, np.int64])
@pytest.mark.parametrize("second", [np.float32, np.float64, np.complex64, np.complex128, np.int64])
def test_scalar_types_mix(first, second):
    A = sp.csc_array((MATRICES["lu"] * 8).astype(first))
    b = (BLOCK * 8).astype(second)
    result, reference = ours.spsolve(A, b), theirs.spsolve(A, b)
    assert_same(result, reference, 1000 * np.finfo(reference.dtype).eps)


@pytest.mark.parametrize("form", ["coo", "lil", "dok", "dia", "bsr", "dense", "list"])
@pytest.mark.parametrize("name", ["spsolve", "splu", "factorized"])
def test_other_formats_warn_once(form, name):
    A = {"dense": sp.csc_array.toarray, "list": lambda A: A.toarray().tolist()}.get(
        form, lambda A: A.asformat(form)
    )(MATRICES["lu"])
    arguments = (A, BLOCK[:, 0]) if name == "spsolve" else (A,)
    caught = outcome(getattr(ours, name), *arguments)[1]
    assert caught == outcome(getattr(theirs, name), *arguments)[1] == [sp.SparseEfficiencyWarning]


@pytest.mark.parametrize("why", SINGULAR)
def test_singular(why):
    A, b = SINGULAR[why], np.ones(4)
    for rhs in (b, b[:, None], np.ones((4, 2)), np.ones((4, 2), np.complex64)):
        result, caught = outcome(ours.spsolve, A, rhs)
        reference, warned = outcome(theirs.spsolve, A, rhs)
        assert_same(result, reference)
        assert np.isnan(result).all()
        assert caught == warned == [theirs.MatrixRankWarning]
    for function in (ours.splu, ours.factorized):
        with pytest.raises(RuntimeError, match="Factor is exactly singular"):
            function(A)
    with pytest.raises(RuntimeError, match="singular"):
        ours.spsolve(A, sp.csc_array(np.eye(4)))


def test_nan_in_the_matrix():
    A = MATRICES["lu"].copy()
    A.data[5] = np.nan
    result, caught = outcome(ours.spsolve, A, BLOCK)
    assert_same(result, outcome(theirs.spsolve, A, BLOCK)[0])
    assert caught == [theirs.MatrixRankWarning]
    with pytest.warns(theirs.MatrixRankWarning) as caught:
        ours.spsolve(A, BLOCK[:, 0])
    text = str(caught[0].message)
    assert text.startswith("Matrix is not finite, all of x is NaN: A[")
    assert "] is nan. Likely causes: (a) a division by zero" in text
    assert "singular" not in text
    assert "check_finite" not in text


@pytest.mark.parametrize("trans", "NTH")
def test_nan_in_b_leaves_the_other_columns_alone(trans):
    """SuperLU spoils all columns of a block; solutions of the others are those without it."""
    A, b = sp.csc_array(MATRICES["lu"] * (1 + 0.3j * np.arange(N))), BLOCK.copy()
    b[3, 1] = np.nan
    x = ours.splu(A).solve(b, trans)
    assert np.isnan(x[:, 1]).all()
    wanted = theirs.splu(A).solve(BLOCK.astype(complex), trans)
    np.testing.assert_allclose(x[:, ::2], wanted[:, ::2], rtol=1e-10)
    assert np.isnan(ours.splu(A).solve(b[:, 1], trans)).all()


@pytest.mark.parametrize(
    ("A", "b"),
    [
        (sp.csc_array((3, 4)), np.ones(3)),
        (MATRICES["lu"], np.ones(N + 1)),
        (MATRICES["lu"], np.ones((1, N))),
        (MATRICES["lu"], np.ones((N, 2, 2))),
        (sp.csc_array(MATRICES["lu"].astype(np.longdouble)), np.ones(N)),
        (MATRICES["lu"], np.ones(N, np.longdouble)),
    ],
)
def test_refusals_are_scipys(A, b):
    result, reference = outcome(ours.spsolve, A, b)[0], outcome(theirs.spsolve, A, b)[0]
    assert isinstance(reference, ValueError | TypeError)
    assert isinstance(result, type(reference))


def test_smallest():
    for n in (0, 1):
        A, b = sp.csc_array(2 * np.eye(n)), np.ones(n)
        assert_same(ours.spsolve(A, b), theirs.spsolve(A, b))
        assert_same(ours.splu(A).solve(b), theirs.splu(A).solve(b))
        assert ours.splu(A).shape == (n, n)


@pytest.mark.parametrize("spec", ["NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD", "colamd", 0, 3])
def test_column_orderings(spec):
    for A in MATRICES.values():
        x = theirs.spsolve(A, BLOCK)
        assert_same(ours.spsolve(A, BLOCK, permc_spec=spec), x)
        lu = ours.splu(A, permc_spec=spec)
        assert_same(lu.solve(BLOCK), x)
        assert_same(ours.splu(A, options={"ColPerm": spec, "Equil": False}).solve(BLOCK), x)
        if spec in ("NATURAL", 0):
            assert lu.factor.analysis.ordering.method == "natural"


def test_unknown_options():
    for name, arguments in (("spsolve", (BLOCK,)), ("splu", ())):
        with pytest.raises(ValueError, match="invalid value for 'ColPerm' parameter"):
            getattr(ours, name)(MATRICES["lu"], *arguments, permc_spec="BEST")
    with pytest.raises(TypeError, match="'Speed' is not a SuperLU option"):
        ours.splu(MATRICES["lu"], options={"Speed": 11})


# --- splu ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("method", MATRICES)
def test_factors(method, dtype):
    A = sp.csc_array(MATRICES[method].astype(dtype))
    if np.issubdtype(dtype, np.complexfloating):
        skew = sp.triu(A, 1) * 0.5j
        A = sp.csc_array(A + (skew + skew.conj().T if method == "cholesky" else skew))
    lu, reference = ours.splu(A), theirs.splu(A)
    assert lu.factor.analysis.method == method
    assert lu.shape == reference.shape
    for triangle in ("L", "U"):
        mine, other = getattr(lu, triangle), getattr(reference, triangle)
        assert type(mine) is type(other)
        assert mine.dtype == other.dtype
    assert sp.triu(lu.L, 1).nnz == sp.tril(lu.U, -1).nnz == 0
    np.testing.assert_allclose(lu.L.diagonal(), 1, rtol=1e-6)
    assert lu.L.nnz + lu.U.nnz <= lu.nnz
    Pr = np.eye(N)[np.argsort(lu.perm_r)]
    Pc = np.eye(N)[:, np.argsort(lu.perm_c)]
    assert lu.perm_r.dtype == lu.perm_c.dtype == np.int32
    gap = np.abs(Pr @ A.toarray() @ Pc - (lu.L @ lu.U).toarray()).max()
    assert gap <= 50 * np.finfo(dtype).eps * np.abs(A).max()


def test_nnz_counts_both_diagonals():
    A = sp.eye_array(3, format="csc")
    assert ours.splu(A).nnz == theirs.splu(A).nnz == 6


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("method", MATRICES)
@pytest.mark.parametrize("b", [BLOCK[:, 0], BLOCK[:, :1], BLOCK, BLOCK[::-1], np.arange(N)])
def test_solutions(method, trans, b):
    A = sp.csc_array(MATRICES[method] * (1 + 0.1j) if trans == "H" else MATRICES[method])
    assert_same(ours.splu(A).solve(b, trans), theirs.splu(A).solve(b, trans))
    assert_same(ours.splu(A).solve(rhs=b, trans=trans), theirs.splu(A).solve(b, trans))


def test_more_than_scipy_is_accepted():
    lu = ours.splu(MATRICES["lu"])
    x = lu.solve(BLOCK[:, 0] * 1j)
    assert x.dtype == np.complex128
    np.testing.assert_allclose(MATRICES["lu"] @ x, BLOCK[:, 0] * 1j, atol=1e-13)
    assert sp.issparse(lu.solve(sp.csc_array(BLOCK)))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lu)).solve(BLOCK), lu.solve(BLOCK))
    assert "SparseLU" in repr(lu)


def test_wrong_transposition():
    for module in (ours, theirs):
        with pytest.raises(ValueError, match="trans"):
            module.splu(MATRICES["lu"]).solve(BLOCK, "X")


def test_factorized():
    for b in (BLOCK[:, 0], BLOCK[:, :1], BLOCK):
        assert_same(ours.factorized(MATRICES["lu"])(b), theirs.factorized(MATRICES["lu"])(b))


def test_the_input_is_left_alone():
    A = MATRICES["lu"].copy()
    A.indices, A.data = A.indices[::-1].copy(), A.data[::-1].copy()  # columns not sorted
    A.indptr = (A.nnz - A.indptr[::-1]).astype(np.int32)
    before = A.data.copy(), A.indices.copy(), A.indptr.copy()
    ours.spsolve(A, BLOCK)
    ours.splu(A)
    for kept, now in zip(before, (A.data, A.indices, A.indptr), strict=True):
        np.testing.assert_array_equal(kept, now)
