"""Files: what is written is read back to the last bit, and what is malformed is named."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pytest
import scipy.io
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


@pytest.mark.parametrize(
    ("header", "entries", "dense"),
    [
        ("real symmetric", ["1 1 4", "2 1 -1.5"], [[4, -1.5], [-1.5, 0]]),
        ("complex hermitian", ["1 1 4 0", "2 1 1 2"], [[4, 1 - 2j], [1 + 2j, 0]]),
        ("real skew-symmetric", ["2 1 3"], [[0, -3], [3, 0]]),
        ("integer general", ["1 2 7"], [[0, 7], [0, 0]]),
        ("pattern symmetric", ["1 1", "2 1"], [[1, 1], [1, 0]]),
        ("real general", ["1 1 1e-3", "1 1 2"], [[2.001, 0], [0, 0]]),
    ],
)
def test_the_kinds_of_matrix_market(tmp_path, header, entries, dense):
    path = tmp_path / "a.mtx"
    lines = [f"%%MatrixMarket matrix coordinate {header}", "% a comment", f"2 2 {len(entries)}"]
    path.write_text("\n".join([*lines, *entries]) + "\n")
    np.testing.assert_allclose(read_matrix(path).toarray(), dense, rtol=1e-15)


def test_a_dense_file_becomes_sparse(tmp_path):
    path = tmp_path / "a.mtx"
    path.write_text("%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n2\n")
    assert read_matrix(path).nnz == 2


# --- Harwell-Boeing --------------------------------------------------------------------------


def harwell_boeing(kind, formats, pointers, rows, values=(), n=3, right_hand_sides=0):
    """The text of a file; each section is a list of lines."""
    sections = [pointers, rows, list(values)]
    counts = [sum(map(len, sections)) + right_hand_sides, *map(len, sections), right_hand_sides]
    nnz = sum(len(line.split()) for line in rows)
    lines = [
        f"{'a title':72}{'key':8}",
        "".join(f"{count:14d}" for count in counts),
        f"{kind:14}" + "".join(f"{x:14d}" for x in (n, n, nnz, 0)),
        "{:16}{:16}{:20}".format(*formats),
    ]
    if right_hand_sides:
        lines.append(f"{'F':14}{1:14d}{0:14d}")
    return "\n".join(lines + pointers + rows + list(values)) + "\n"


LOWER = [[2, 0, -4.5], [0, 3, 0], [-4.5, 0, 5]]
SKEW = ["                -0.45000000D+01", "                                "]
REAL = ["  0.20000000D+01 -0.45000000D+01", "  0.30000000D+01  0.50000000D+01"]
POINTERS, ROWS = ["   1   3   4   5"], ["   1   3   2   3"]


@pytest.mark.parametrize(
    ("kind", "formats", "values", "expected"),
    [
        ("RSA", ("(4I4)", "(4I4)", "(2D16.8)"), REAL, LOWER),
        ("rsa", ("(4I4)", "(4I4)", "(1P,2E16.8)"), REAL, LOWER),
        ("RUA", ("(4I4)", "(4I4)", "(1P2D16.8)"), REAL, [[2, 0, 0], [0, 3, 0], [-4.5, 0, 5]]),
        ("RZA", ("(4I4)", "(4I4)", "(2(1P,D16.8))"), SKEW, [[0, 0, 4.5], [0, 0, 0], [-4.5, 0, 0]]),
        ("PSA", ("(4I4)", "(4I4)", ""), [], [[1, 0, 1], [0, 1, 0], [1, 0, 1]]),
        ("ISA", ("(4I4)", "(4I4)", "(4I3)"), ["  2 -4  3  5"], [[2, 0, -4], [0, 3, 0], [-4, 0, 5]]),
        (
            "CHA",
            ("(4I4)", "(4I4)", "(4F4.1)"),
            [" 2.0 0.0-4.5 1.0", " 3.0 0.0 5.0 0.0"],  # fields that touch
            [[2, 0, -4.5 - 1j], [0, 3, 0], [-4.5 + 1j, 0, 5]],
        ),
        (
            "CSA",
            ("(4I4)", "(4I4)", "(4F4.1)"),
            [" 2.0 0.0-4.5 1.0", " 3.0 0.0 5.0 0.0"],
            [[2, 0, -4.5 + 1j], [0, 3, 0], [-4.5 + 1j, 0, 5]],
        ),
    ],
)
@pytest.mark.parametrize("ending", [".rb", ".rsa", ".hb.gz", ".cua.bz2"])
def test_harwell_boeing(tmp_path, kind, formats, values, expected, ending):
    text = harwell_boeing(kind, formats, POINTERS, ROWS, values).encode()
    packed = {".gz": gzip.compress, ".bz2": bz2.compress}
    path = tmp_path / f"a{ending}"
    path.write_bytes(packed.get(path.suffix, bytes)(text))
    np.testing.assert_array_equal(read_matrix(path).toarray(), expected)


def test_harwell_boeing_of_scipy_and_with_right_hand_sides(tmp_path):
    path = tmp_path / "a.rua"
    scipy.io.hb_write(path, sp.csc_matrix(A))
    np.testing.assert_array_equal(read_matrix(path).toarray(), scipy.io.hb_read(path).toarray())
    formats = ("(4I4)", "(4I4)", "(2D16.8)")
    text = harwell_boeing("RSA", formats, POINTERS, ROWS, REAL, right_hand_sides=2)
    path.write_text(text + 2 * "  1.0  1.0  1.0\n")
    np.testing.assert_array_equal(read_matrix(path).toarray(), LOWER)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("RSA", "RSE"), "'RSE' is not assembled"),
        (lambda text: text.replace("RSA", "XSA"), "unknown matrix type 'XSA'"),
        (lambda text: "a title\n", "fewer than four lines"),
        (lambda text: text.rsplit("\n", 2)[0], "the file ends before 4 numbers"),
        (lambda text: text.replace("  0.3", "  0.x"), "line 8: '0.x0000000D\\+01' is not a number"),
        (
            lambda text: text.replace(" -0.4", "-0.4").replace("(2D16.8)", "(1X)"),
            r"format '\(1X\)'",
        ),
        (lambda text: text.replace("   1   3   2   3", "   1   3   2   9"), "indices"),
    ],
)
def test_malformed_harwell_boeing(tmp_path, change, message):
    path = tmp_path / "a.rsa"
    formats = ("(4I4)", "(4I4)", "(2D16.8)")
    path.write_text(change(harwell_boeing("RSA", formats, POINTERS, ROWS, REAL)))
    with pytest.raises(ValueError, match=f"a.rsa: .*{message}"):
        read_matrix(path)


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


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no matrix\n",
        b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n",
        b"%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1\n",
        b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n",
    ],
)
@pytest.mark.parametrize("name", ["a.mtx", "a.npz"])
def test_malformed_files_are_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=name):
        read_matrix(path)
    vector = tmp_path / name.replace("npz", "npy")
    vector.write_bytes(content)
    with pytest.raises(ValueError, match=vector.name):
        read_vector(vector)


def test_a_damaged_archive_is_named(tmp_path):
    path = tmp_path / "a.mtx.gz"
    path.write_bytes(gzip.compress(b"%%MatrixMarket matrix array real general\n1 1\n1\n" * 9)[:-9])
    with pytest.raises((ValueError, OSError), match=r"a\.mtx\.gz"):
        read_matrix(path)


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
