"""Harwell-Boeing files: fields by the formats that the header declares."""

from __future__ import annotations

import bz2
import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from frontal.io import read_matrix
from frontal.io.fortran_format import parse_format


def text_of(
    values,
    format_,
    kind="RUA",
    pointers=(1, 2, 3),
    rows=(1, 2),
    ending="\n",
    indices="(8I8)",
    extra=0,
    right_hand_sides=(),
):
    """Return a square matrix with these lines of values, diagonal and of order 2 by default."""
    n, skipped = len(pointers) - 1, len(right_hand_sides)
    counts = [2 + len(values) + skipped, 1, 1, len(values) + extra, skipped]
    lines = [
        f"{'a title':72}{'key':8}",
        "".join(f"{count:14d}" for count in counts),
        f"{kind:14}" + "".join(f"{count:14d}" for count in (n, n, len(rows), 0)),
        f"{indices:16}{'(8I8)':16}{format_:20}",
        *([f"{'F':14}{1:14d}{0:14d}"] if skipped else []),
        *("".join(f"{number:8d}" for number in section) for section in (pointers, rows)),
    ]
    return "\n".join([*lines, *values, *right_hand_sides]) + ending


def read(path, *arguments, **options):
    path.write_text(text_of(*arguments, **options))
    return read_matrix(path).diagonal().tolist()


LOWER = {"pointers": (1, 3, 4, 5), "rows": (1, 3, 2, 3)}  # of order 3
REAL = ["  0.20000000D+01 -0.45000000D+01", "  0.30000000D+01  0.50000000D+01"]
SKEW = ["                -0.45000000D+01", "                                "]
COMPLEX = [" 2.0 0.0-4.5 1.0", " 3.0 0.0 5.0 0.0"]  # fields that touch
FULL = [[2, 0, -4.5], [0, 3, 0], [-4.5, 0, 5]]
PACKED = {".gz": gzip.compress, ".bz2": bz2.compress}


@pytest.mark.parametrize(
    ("kind", "format_", "values", "expected"),
    [
        ("RSA", "(2D16.8)", REAL, FULL),
        ("rsa", "(1P,2E16.8)", REAL, FULL),
        ("RUA", "(1P2D16.8)", REAL, [[2, 0, 0], [0, 3, 0], [-4.5, 0, 5]]),
        ("RZA", "(2(1P,D16.8))", SKEW, [[0, 0, 4.5], [0, 0, 0], [-4.5, 0, 0]]),
        ("PSA", "", [], [[1, 0, 1], [0, 1, 0], [1, 0, 1]]),
        ("ISA", "(4I3)", ["  2 -4  3  5"], [[2, 0, -4], [0, 3, 0], [-4, 0, 5]]),
        ("CHA", "(4F4.1)", COMPLEX, [[2, 0, -4.5 - 1j], [0, 3, 0], [-4.5 + 1j, 0, 5]]),
        ("CSA", "(4F4.1)", COMPLEX, [[2, 0, -4.5 + 1j], [0, 3, 0], [-4.5 + 1j, 0, 5]]),
    ],
)
def test_matrix_of_each_type_is_completed(tmp_path, kind, format_, values, expected):
    text = text_of(values, format_, kind, **LOWER).encode()
    for ending in (".rb", ".rsa", ".hb.gz", ".cua.bz2"):
        path = tmp_path / f"a{ending}"
        path.write_bytes(PACKED.get(path.suffix, bytes)(text))
        np.testing.assert_array_equal(read_matrix(path).toarray(), expected)


def test_right_hand_sides_are_skipped(tmp_path):
    path, rest = tmp_path / "a.rsa", ["  1.0  1.0  1.0"] * 2
    path.write_text(text_of(REAL, "(2D16.8)", "RSA", right_hand_sides=rest, **LOWER))
    np.testing.assert_array_equal(read_matrix(path).toarray(), FULL)


def test_file_of_scipy_is_read(tmp_path):
    A = sp.random_array((9, 9), density=0.4, format="csc", random_state=np.random.default_rng(5))
    scipy.io.hb_write(tmp_path / "a.rua", sp.csc_matrix(A))
    found = read_matrix(tmp_path / "a.rua").toarray()
    np.testing.assert_array_equal(found, scipy.io.hb_read(tmp_path / "a.rua").toarray())


@pytest.mark.parametrize(
    ("format_", "values", "expected"),
    [
        ("(1X,2E15.9)", [" 0.425000000E+010.350000000E+01"], [4.25, 3.5]),
        ("(T2,2E15.9)", ["x0.425000000E+010.350000000E+01"], [4.25, 3.5]),
        ("(TR2,TL1,2E15.9)", [" 0.425000000E+010.350000000E+01"], [4.25, 3.5]),
        ("(2E20.12)", ["  0.500000000000-100  0.500000000000+100"], [5e-101, 5e99]),
        ("(2D10.2)", ["    1.0Q+1    2.0D+0"], [10, 2]),
        ("(2E10.2)", ["   1.0E+0          "], [1, 0]),  # a blank field is 0
        ("(2F10.2)", ["       100       250"], [1, 2.5]),  # implied decimals
        ("(2F4.2)", ["100 250 "], [1, 2.5]),
        ("(2PF8.2,F8.2)", ["  150.00   1E+00"], [1.5, 0.01]),
        ("(2P,2F8.2)", ["  150.00 2.0E+00"], [1.5, 2]),
        ("( 2 E 12.5 )", ["-1.00000E+00-2.00000E+00"], [-1, -2]),
        ("(F8.2)", ["    1.00", "    2.00"], [1, 2]),
        ("(F8.2/F9.2)", ["    1.00", "     2.00"], [1, 2]),
        ("(I4,F8.2)", ["   1    2.00"], [1, 2]),
        ("(2I4)", ["   1  -2"], [1, -2]),
        ("(F7.1)", ["     1.00", "    2.00"], [1, 2]),  # wider than their format
        (
            "(2F30.1)",  # next to a tie, and a tie
            [f"{'9007199254740993.00000000001':>30}{'9007199254740993.00000000000':>30}"],
            [9007199254740994, 9007199254740992],
        ),
        ("(3E25.16)", [f"  {1.5:.16E} {-2.5:.16E}"], [1.5, -2.5]),  # as SciPy writes them
    ],
)
def test_field_is_read_by_its_format(tmp_path, format_, values, expected):
    assert read(tmp_path / "a.rua", values, format_) == expected


@pytest.mark.parametrize(
    ("format_", "values", "message"),
    [
        ("(2F8.1)", ["     1.0     2.x"], "line 7: '2.x' is not a number"),
        ("(2F8.1)", ["     1.0   2 0.0"], "line 7: '2 0.0' is not a number"),
        ("(2F8.1)", ["     1.0     2.0     3.0"], "line 7: '3.0' follows the last field"),
        ("(F7.1)", ["     1.0 0", "    2.00"], "'0 0' follows the last field"),
        ("(2I8)", ["       1     2.0"], "line 7: '2.0' is not an integer"),
        ("(2F8.1)", ["     1.0   1E999"], "line 7: '1E999' is too large"),
        ("(F8.1)", ["     1.0"], "1 lines end before 2 numbers were read, starting at line 7"),
        ("(2A8)", ["     1.0     2.0"], r"Fortran format '\(2A8\)' cannot be read"),
        ("(1X)", ["     1.0     2.0"], "its repeated part has no field"),
        ("2F8.1", ["     1.0     2.0"], r"does not begin with '\('"),
        ("(2F8.1", ["     1.0     2.0"], "its closing parenthesis is missing"),
        ("(2F8.1)F", ["     1.0     2.0"], "'F' follows its closing parenthesis"),
        ("(BZ,2F8.1)", ["     1.0     2.0"], "'BZ,2F8.1\\)' is not an item"),
        ("(999999999F8.1)", ["     1.0     2.0"], "more than 1000 columns"),
        ("(99999(T1,F8.1))", ["     1.0     2.0"], "too large"),
        ("(2F0.1)", ["     1.0     2.0"], "a field has width 0"),
    ],
)
def test_field_against_its_format_is_refused(tmp_path, format_, values, message):
    with pytest.raises(ValueError, match=r"a\.rua: .*" + message):
        read(tmp_path / "a.rua", values, format_)


def test_last_field_cut_off_is_refused(tmp_path):
    whole = "     1.0   2.125"
    assert read(tmp_path / "a.rua", [whole], "(2F8.1)", ending="") == [1, 2.125]
    for cut in range(1, len(whole)):
        with pytest.raises(
            ValueError, match=r"truncated|is not a number|header declares|lines end"
        ):
            read(tmp_path / "a.rua", [whole[:-cut]], "(2F8.1)", ending="")


def test_empty_file_is_refused(tmp_path):
    (tmp_path / "a.rua").write_bytes(b"")
    with pytest.raises(ValueError, match=r"a\.rua: the header has fewer than four lines"):
        read_matrix(tmp_path / "a.rua")


def test_line_beyond_the_header_is_refused(tmp_path):
    with pytest.raises(ValueError, match="line 8 follows the lines that the header declares"):
        read(tmp_path / "a.rua", ["     1.0     2.0", "     9.0"], "(2F8.1)", extra=-1)


def test_missing_lines_are_refused(tmp_path):
    with pytest.raises(ValueError, match="the file has 7 lines, but its header declares 8"):
        read(tmp_path / "a.rua", ["     1.0     2.0"], "(2F8.1)", extra=1)


def test_pointers_in_a_real_format_are_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r"format '\(8F8.0\)' of pointers is not an integer format"
    ):
        read(tmp_path / "a.rua", ["     1.0     2.0"], "(2F8.1)", indices="(8F8.0)")


def test_both_triangles_in_a_file_are_refused(tmp_path):
    text = text_of(["     1.0     2.0"], "(2F8.1)", kind="RSA")
    path = tmp_path / "a.rsa"
    path.write_text(text.replace("       1       2\n", "       2       1\n"))
    with pytest.raises(ValueError, match=r"entries \(2, 1\) and \(1, 2\) are on opposite sides"):
        read_matrix(path)


def test_format_with_groups_repeats_its_last_group():
    format_ = parse_format("(I4,2(1P,E8.1)/(2F6.2))")
    assert [len(line) for line in format_.lines] == [3, 2, 2]
    assert format_.revert == 2
    assert [field.scale for field in format_.lines[1]] == [1, 1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (f"{'RUA':14}", f"{'RZA':14}", r"1.0 on the diagonal, in column 1, contradicts"),
        (f"{'RUA':14}{2:14d}", f"{'RZA':14}{3:14d}", "type 'RZA' must be square, not 3 by 2"),
        (f"{2:14d}{0:14d}\n", f"{2:14d}{5:14d}\n", "type 'RUA' is not assembled"),
        ("RUA", "RUE", "'RUE' is not assembled"),
        ("RUA", "XUA", "unknown matrix type 'XUA'"),
        ("       1       2\n", "       1       9\n", "indices"),
        (
            "       1       2       3",
            "       1       2       2",
            "the last column pointer is 2, not one",
        ),
    ],
)
def test_header_against_its_matrix_is_refused(tmp_path, old, new, message):
    text = text_of(["     1.0     2.0"], "(2F8.1)")
    assert text.count(old) == 1
    (tmp_path / "a.rua").write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=message):
        read_matrix(tmp_path / "a.rua")


def test_tab_to_the_left_ends_at_the_first_column():
    fields = parse_format("(TR1,TL9,2F8.1)").lines[0]
    assert [field.start for field in fields] == [0, 8]
