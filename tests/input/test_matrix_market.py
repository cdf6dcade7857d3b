"""Matrix Market files: what they declare is compared with what they hold."""

from __future__ import annotations

import gzip
import io
import random

import numpy as np
import pytest
import scipy.io

from frontal.io import matrix_market, read_matrix, read_vector

BANNER = "%%MatrixMarket matrix coordinate "


def read(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
    return read_matrix(path).toarray().tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("real general\n2 2 2\n1 1 1\n", "ends after 1 of 2 entries"),
        ("real general\n2 2 1\n1 1 1\n2 2 1\n", "line 4: there are more entries than the 1"),
        ("real general\n2 2 1\n1 1\n", "line 3: the line has fewer than 3 numbers"),
        ("real general\n2 2 1\n1 1 1 7\n", "line 3: '7' follows the 3 numbers"),
        ("real general\n2 2 1\n1 1 1 % no\n", "line 3: '%' follows the 3 numbers"),
        ("pattern general\n2 2 1\n1 1 5\n", "line 3: '5' follows the 2 numbers"),
        ("complex general\n2 2 1\n1 1 5\n", "line 3: the line has fewer than 4 numbers"),
        ("real general\n2 2 1\n3 1 1\n", "line 3: there is no row '3' in a matrix of 2 rows"),
        ("real general\n2 2 1\n1 0 1\n", "line 3: there is no column '0'"),
        ("real general\n2 2 1\n1 -1 1\n", "line 3: '-1' is not the number of a row or column"),
        ("real general\n2 2 1\n1.0 1 1\n", "line 3: '1.0' is not the number"),
        ("real general\n2 2 1\n1 4294967297 1\n", "there is no column '4294967297'"),
        ("real general\n2 2 1\n1 18446744073709551617 1\n", "there is no column '18446744"),
        (
            "real general\n2 2 1\n1 1 2,5\n",
            "'2,5' is not a number; the decimal separator is a point",
        ),
        ("real general\n2 2\n1 1 1\n", "line 2: expected 3 sizes, not '2 2'"),
        ("real general\n2 2 99999999999999999999\n1 1 1\n", "expected 3 sizes, not"),
        ("real general\n2 2 9223372036854775807\n1 1 1\n", "9223372036854775807 numbers"),
        ("real general\n% note\n\n", "ends before its size line"),
        ("real symmetric\n2 3 1\n1 1 1\n", "a symmetric matrix must be square, not 2 by 3"),
        ("real symmetric\n2 2 2\n2 1 1\n1 2 1\n", "lines 3 and 4 are on opposite sides"),
        ("real skew-symmetric\n2 2 2\n1 1 7\n2 1 1\n", "line 3: '7' on the diagonal"),
        ("integer skew-symmetric\n1 1 1\n1 1 7\n", "line 3: '7' on the diagonal"),
        ("complex hermitian\n1 1 1\n1 1 2 5\n", "line 3: '5' on the diagonal"),
        ("pattern skew-symmetric\n2 2 1\n2 1\n", "has signed values, the field 'pattern' has none"),
        ("rational general\n1 1 1\n1 1 1\n", "the field 'rational' is not one of real"),
        ("real triangular\n1 1 1\n1 1 1\n", "the symmetry 'triangular' is not one of general"),
        ("real\n1 1 1\n1 1 1\n", "the banner has 4 words"),
        ("real general x\n1 1 1\n1 1 1\n", "the banner has 6 words"),
    ],
)
def test_declaration_that_contents_break_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=r"a\.mtx: .*" + message):
        read(tmp_path / "a.mtx", BANNER + text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("real general\n2 2\n1\n2\n3\n", "ends after 3 of 4 entries"),
        ("real general\n2 1\n1\n2\n3\n", "line 5: there are more entries than the 2"),
        ("real general\n2 1\n1 2\n", "line 3: '2' follows the 1 numbers"),
        ("complex hermitian\n1 1\n1 2\n", r"\(1\+2j\) on the diagonal, in column 1"),
        ("real symmetric\n1 2\n1\n2\n", "a symmetric matrix must be square"),
        ("pattern general\n1 1\n1\n", "an array stores values"),
    ],
)
def test_array_that_breaks_its_declaration_is_refused(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "a.mtx", "%%MatrixMarket matrix array " + text)


@pytest.mark.parametrize(
    ("text", "dense"),
    [
        ("real symmetric\n2 2 2\n1 2 3\n2 2 1\n", [[0, 3], [3, 1]]),  # the upper triangle
        ("real skew-symmetric\n2 2 2\n1 1 0\n2 1 1\n", [[0, -1], [1, 0]]),
        ("complex hermitian\n2 2 2\n1 1 2 0\n2 1 0 1\n", [[2, -1j], [1j, 0]]),
        ("integer hermitian\n2 2 2\n1 1 2\n2 1 3\n", [[2, 3], [3, 0]]),
        ("real general\n1 1 3\n1 1 1\n1 1 2\n1 1 4\n", [[7]]),  # entries of one place add up
        ("double general\n1 1 1\n+1 1 +3\n", [[3]]),
        ("real general\n\n% a\n1 1 1\n\n  % b\n \t1\t1  3 \r\n%c", [[3]]),
        ("real general\n0 0 0\n", []),
        ("integer general\n2 2 1\n1 2 7\n", [[0, 7], [0, 0]]),
        ("pattern symmetric\n2 2 2\n1 1\n2 1\n", [[1, 1], [1, 0]]),
    ],
)
def test_coordinate_file_in_usual_variants_is_read(tmp_path, text, dense):
    assert read(tmp_path / "a.mtx", BANNER + text) == dense


@pytest.mark.parametrize(
    ("text", "dense"),
    [
        ("real general\n2 2\n1\n2\n3\n4\n", [[1, 3], [2, 4]]),
        ("real symmetric\n2 2\n1\n2\n3\n", [[1, 2], [2, 3]]),
        ("integer skew-symmetric\n3 3\n1\n2\n3\n", [[0, -1, -2], [1, 0, -3], [2, 3, 0]]),
        ("complex hermitian\n2 2\n1 0\n2 5\n3 0\n", [[1, 2 - 5j], [2 + 5j, 3]]),
    ],
)
def test_array_of_each_symmetry_is_completed(tmp_path, text, dense):
    assert read(tmp_path / "a.mtx", "%%MatrixMarket matrix array " + text) == dense


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: b" " + text,
        bytes.lower,
        bytes.upper,
        lambda text: text.replace(b"\n", b"\r\n"),
        bytes.strip,
        gzip.compress,  # the name does not say so
    ],
)
def test_banner_in_usual_variants_is_read(tmp_path, change):
    text = (BANNER + "real general\n1 1 1\n1 1 3\n").encode()
    assert read(tmp_path / "a.mtx", change(text)) == [[3]]


def test_vector_of_both_formats_is_read(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text("%%MatrixMarket vector array real general\n2\n2\n1\n")
    assert read_vector(path).tolist() == [2, 1]
    path.write_text("%%MatrixMarket vector coordinate real general\n3 1\n2 5\n")
    assert read_vector(path).tolist() == [0, 5, 0]


def test_sparse_matrix_as_vector_is_refused(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text(BANNER + "real general\n1000000 1000000 1\n1 1 1\n")
    with pytest.raises(ValueError, match="not right-hand sides"):
        read_vector(path)


@pytest.mark.parametrize("field", ["real", "integer", "complex", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_small_blocks_change_no_bit(tmp_path, monkeypatch, field, symmetry):
    """Blocks and chunks cut the text in all places; SciPy reads the sound file alike."""
    rng = random.Random(3)
    value = {"pattern": lambda: "", "integer": lambda: str(rng.randint(-9, 9))}.get(
        field, lambda: f"{rng.gauss(0, 1)!r}"
    )
    lines = [f"{rng.randint(5, 9)} {rng.randint(1, 5)} {value()}" for _ in range(99)]
    lines = [line + f" {value()}" * (field == "complex") for line in lines]
    text = BANNER + f"{field} {symmetry}\n9 9 99\n" + "\n".join(lines) + "\n"
    expected = scipy.io.mmread(io.BytesIO(text.encode()))
    path = tmp_path / "a.mtx"
    path.write_text(text)
    monkeypatch.setattr(matrix_market, "_BLOCK_BYTES", 101)
    monkeypatch.setattr(matrix_market, "_CHUNK_BYTES", 7)
    A = matrix_market.read_matrix_market(path)
    assert A.dtype == expected.dtype
    for ours, theirs in zip((A.row, A.col, A.data), (expected.row, expected.col, expected.data),
                            strict=True):  # fmt: skip
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    lines[50] = lines[50].replace(" ", " x", 1)
    path.write_text(BANNER + f"{field} {symmetry}\n9 9 99\n" + "\n".join(lines))
    with pytest.raises(ValueError, match="line 53: 'x"):
        read_matrix(path)


def test_line_without_end_is_refused(tmp_path):
    with pytest.raises(ValueError, match="the line after line 2 has more than 1048576 bytes"):
        read(tmp_path / "a.mtx", BANNER + "real general\n9 9 9\n" + "1 " * 2**20)
