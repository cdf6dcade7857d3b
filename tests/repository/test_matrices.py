"""The files of matrices/ are what their table says, and solving them gives what it says."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import frontal
from frontal import errors
from frontal.symbolic.diagonal import mirrored_share, tiny_diagonal
from frontal.symbolic.matching import maximum_product_matching

from ..conftest import scaled_residual

FOLDER = Path(__file__).resolve().parents[2] / "matrices"
TABLE = {
    cells[1].strip("` "): [cell.strip() for cell in cells[2:-1]]
    for cells in (
        line.split("|") for line in (FOLDER / "README.md").read_text("utf-8").splitlines()
    )
    if len(cells) == 8 and cells[1].startswith(" `")
}
each = pytest.mark.parametrize("name", TABLE)


def read(name):
    return sp.csc_array(scipy.io.mmread(FOLDER / f"{name}.mtx"))


def eigenvalues(name):
    return np.linalg.eigvalsh(read(name).toarray())


def test_the_table_lists_the_files():
    assert set(TABLE) == {path.stem for path in FOLDER.glob("*.mtx")}


def test_the_generator_writes_them(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER))
    import generate

    generate.write(tmp_path)
    assert (tmp_path / "README.md").read_text("utf-8") == (FOLDER / "README.md").read_text("utf-8")
    for name in TABLE:
        A, B = read(name), sp.csc_array(scipy.io.mmread(tmp_path / f"{name}.mtx"))
        np.testing.assert_array_equal(A.indices, B.indices)
        np.testing.assert_allclose(A.data, B.data, rtol=1e-12)


@each
def test_size(name):
    n, nnz, *_ = TABLE[name]
    rows, _, entries, *_ = scipy.io.mminfo(FOLDER / f"{name}.mtx")
    A = scipy.io.mmread(FOLDER / f"{name}.mtx")
    assert (A.shape[0], A.nnz) == (int(n), int(nnz))
    assert rows == A.shape[0] <= 100
    assert entries <= A.nnz


@each
def test_kind(name):
    kind = TABLE[name][2]
    _, _, _, _, field, symmetry = scipy.io.mminfo(FOLDER / f"{name}.mtx")
    A = read(name).toarray()
    stored = {"hermitian": "Hermitian", "skew-symmetric": "skew-symmetric"}.get(symmetry, symmetry)
    if symmetry != "general":
        assert stored in kind or "SPD" in kind
    assert field == kind.split()[0]
    assert np.iscomplexobj(A) == kind.startswith("complex")
    if re.search("SPD|PD|Hermitian|real symmetric", kind):
        np.testing.assert_array_equal(A, A.conj().T)
        values = np.linalg.eigvalsh(A)
        definite = values[0] > (-1e-12 if "PSD" in kind or name.startswith("nearly") else 1e-12)
        assert definite == ("SPD" in kind or "PD" in kind or "PSD" in kind)


def test_symmetric_properties():
    A = read("complex_symmetric")
    assert abs(A - A.T).max() == 0
    assert abs(A - A.conj().T).max() > 0
    K = read("skew_symmetric")
    assert abs(K + K.T).max() == 0
    for name in ("hermitian_indefinite", "symmetric_indefinite", "not_positive_definite"):
        assert eigenvalues(name)[0] < -0.05 < 0.05 < eigenvalues(name)[-1]
    assert read("not_positive_definite").diagonal().min() > 0
    assert np.count_nonzero(read("symmetric_indefinite").diagonal()) == 40


def test_general_properties():
    patterns = [read(name) for name in ("unsymmetric", "unsymmetric_pattern")]
    full, small = (mirrored_share(A.indptr.astype(np.int64), A.indices) for A in patterns)
    assert full == 1
    assert small < 0.2
    assert tiny_diagonal(read("zero_diagonal")).any()
    assert not read("zero_diagonal").diagonal().all()
    assert np.count_nonzero(read("explicit_zeros").data == 0) > 20
    duplicates = scipy.io.mmread(FOLDER / "duplicates.mtx")
    assert duplicates.nnz == 2 * sp.csc_array(duplicates).nnz
    scaled = abs(read("badly_scaled")).data
    assert scaled.max() / scaled.min() > 1e24
    dense = read("dense_row")
    assert dense[[0]].nnz == dense[:, [0]].nnz == 30
    assert sp.csgraph.connected_components(read("disconnected"))[0] == 10
    assert read("tiny_pivots").diagonal().min() == 1e-20


def test_failure_properties():
    for name in ("singular", "singular_laplacian"):
        A = read(name)
        assert maximum_product_matching(A).rank == 30
        assert np.linalg.matrix_rank(A.toarray()) == 29
    for name in ("structurally_singular", "empty_row"):
        assert maximum_product_matching(read(name)).rank == 29
    assert np.diff(sp.csr_array(read("structurally_singular")).indptr).min() > 0
    assert np.diff(sp.csr_array(read("empty_row")).indptr)[11] == 0
    assert (
        np.linalg.cond(read("nearly_singular").toarray()) > 1e15
    )  # as far as rounding lets it be seen
    assert np.count_nonzero(np.isnan(read("nan").data)) == 1
    assert read("rectangular").shape == (30, 28)


@each
def test_solving_it(name):
    A = read(name)
    expected = re.split(r", | or ", TABLE[name][4].partition(";")[0])
    b = A @ np.ones(A.shape[1]) if name != "nan" else np.ones(30)
    outcome = "solved"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", errors.IllConditionedWarning)
            x = frontal.solve(A, b)
        assert scaled_residual(A, x, b) < 1e-14
    except (errors.FrontalError, errors.IllConditionedWarning, ValueError) as error:
        outcome = type(error).__name__
    assert outcome in expected


def test_a_promise_that_does_not_hold():
    A = read("not_positive_definite")
    with pytest.raises(errors.NotPositiveDefiniteError):
        frontal.factorize(A, kind="spd")
