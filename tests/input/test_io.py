"""Files: what is written is read back to the last bit, and what is malformed is named."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from frontal.io import read_matrix, read_vector, write_matrix, write_vector

rng = np.random.default_rng(5)
A = sp.csc_array(np.where(rng.random((9, 9)) < 0.4, rng.standard_normal((9, 9)), 0))


# --- matrices --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.mtx.bz2", "a.b.MTX", "a.npz"])
@pytest.mark.parametrize("values", [A, A + 1j * A.T, (A * 10).astype(int), A + A.T])
def test_matrices_come_back(tmp_path, name, values):
    path = tmp_path / name
    write_matrix(path, values)
    B = read_matrix(path)
    assert isinstance(B, sp.csc_array)
    np.testing.assert_array_equal(B.toarray(), values.toarray())
    np.testing.assert_array_equal(read_matrix(str(path)).toarray(), values.toarray())


def test_zeros_of_a_dense_file_are_not_stored(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n2\n")
    assert read_matrix(path).nnz == 2


# --- vectors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz", "x.npy", "x.txt"])
@pytest.mark.parametrize("shape", [(6,), (6, 3)])
def test_vectors_come_back(tmp_path, name, shape):
    x = rng.standard_normal(shape)
    write_vector(tmp_path / name, x)
    y = read_vector(tmp_path / name)
    assert y.shape == shape
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("name", ["x.mtx", "x.npy"])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_vectors_of_other_types(tmp_path, name, dtype):
    x = rng.standard_normal(5).astype(dtype)
    if np.iscomplexobj(x):
        x = x * dtype(3 - 0.1j)
    write_vector(tmp_path / name, x)
    np.testing.assert_array_equal(read_vector(tmp_path / name).astype(dtype), x)


def test_a_sparse_vector(tmp_path):
    write_matrix(tmp_path / "x.mtx", sp.coo_array(([2.0], ([1], [0])), shape=(3, 1)))
    np.testing.assert_array_equal(read_vector(tmp_path / "x.mtx"), [0, 2, 0])


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.mtx", "a.mtx.gz", "a.npz", "a.rsa"])
def test_files_that_are_not_there(tmp_path, name):
    with pytest.raises(OSError, match=name):
        read_matrix(tmp_path / name)


@pytest.mark.parametrize("name", ["a", "a.xyz", "a.gz", "a.mtx.zip"])
def test_unknown_endings(tmp_path, name):
    for action in (
        lambda path: read_matrix(path),
        lambda path: read_vector(path),
        lambda path: write_matrix(path, A),
        lambda path: write_vector(path, np.ones(3)),
    ):
        with pytest.raises(ValueError, match=r"unknown file extension; known extensions: .mtx"):
            action(tmp_path / name)


@pytest.mark.parametrize("content", [b"", b"no matrix\n", b"%%MatrixMarket matrix array real\n"])
@pytest.mark.parametrize("name", ["a.mtx", "a.npz", "a.npy"])
def test_malformed_files_are_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    for read in (read_matrix, read_vector):
        with pytest.raises(ValueError, match=name):
            read(path)


@pytest.mark.parametrize("shape", [(6,), (2, 3, 4)])
def test_archive_of_other_dimensions_is_refused(tmp_path, shape):
    path = tmp_path / "a.npz"
    coords = [[0, 1]] * len(shape)
    np.savez(path, format=b"coo", shape=shape, data=[1.0, 2.0], coords=coords, _is_array=True)
    with pytest.raises(
        ValueError, match=rf"a\.npz: the file contains an array of {len(shape)} dimensions"
    ):
        read_matrix(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": [0, 1, 9]}, "indices has 9, outside of 0 to 2"),
        ({"indptr": [0, 1, 2, 7]}, "indptr ends with 7"),
        ({"indptr": [1, 1, 2, 3]}, "indptr begins with 1"),
        ({"indices": [[0, 1, 2]]}, r"indices is int64 \(1, 3\), not a vector of integers"),
        ({"data": ["a", "b", "c"]}, "data is <U1"),
        ({"data": np.ones((3, 1))}, "numbers in 1 dimension"),
        ({"shape": (3.0, 3.0)}, "shape is float64"),
        ({"format": b"dia"}, "contains no array 'offsets'"),
        ({"format": b"dia", "offsets": [0.5]}, "offsets is float64"),
        ({"format": b"coo", "coords": [[0, 1, 2]]}, r"coords has shape \(1, 3\)"),
    ],
)
def test_archive_with_wrong_arrays_is_refused(tmp_path, change, message):
    arrays = {"format": b"csc", "shape": (3, 3), "data": np.ones(3)}
    arrays |= {"indices": [0, 1, 2], "indptr": [0, 1, 2, 3]}
    path = tmp_path / "a.npz"
    np.savez(path, **(arrays | change))
    with pytest.raises(ValueError, match=r"a\.npz: .*" + message):
        read_matrix(path)


@pytest.mark.parametrize(
    ("name", "x"),
    [("x.npy", np.float64(3)), ("x.npy", np.ones((2, 2, 2))), ("x.npy", np.array(["1", "2"]))],
)
def test_array_that_is_no_vector_is_refused(tmp_path, name, x):
    np.save(tmp_path / name, x)
    with pytest.raises(ValueError, match=r"x\.npy: the file contains an array"):
        read_vector(tmp_path / name)


@pytest.mark.filterwarnings("ignore:loadtxt")
def test_text_without_numbers_is_refused(tmp_path):
    (tmp_path / "x.txt").write_text("# nothing\n")
    with pytest.raises(ValueError, match=r"x\.txt: the file contains no numbers"):
        read_vector(tmp_path / "x.txt")
