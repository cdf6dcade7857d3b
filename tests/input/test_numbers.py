"""Decimal numbers: rounded as Python's float rounds, read to the end of their token or refused."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from frontal.io import read_vector
from frontal.io.numbers import decimal

HEADER = "%%MatrixMarket matrix array real general\n"


def read(path, tokens, field="real"):
    path.write_text(HEADER.replace("real", field) + "\n".join([f"{len(tokens)} 1", *tokens, ""]))
    return read_vector(path)


def any_float(rng):
    return struct.unpack("d", rng.randbytes(8))[0]


def decimals(rng, k):
    """Return a number of one of eight kinds, some of them next to a tie."""
    x = any_float(rng)
    x = 1.5 if not abs(x) < np.inf else x
    tie = 2 * (rng.getrandbits(53) | 1 << 52) + 1 << rng.randint(0, 40)
    small = struct.unpack("d", struct.pack("Q", rng.getrandbits(rng.randint(1, 53))))[0]
    return (
        repr(x),
        f"{x:.25e}",
        f"{rng.getrandbits(20)}.{rng.getrandbits(40)}e{rng.randint(-340, 300)}",
        f"{rng.getrandbits(rng.randint(1, 64))}e{rng.randint(-345, 288)}",
        str(tie),
        f"{tie + rng.randint(-1, 1)}.{'0' * rng.randint(0, 30)}{rng.randint(0, 1)}",
        f"{small:.{rng.randint(0, 25)}e}",
        f"{rng.gauss(0, 1):.{rng.randint(0, 30)}f}",
    )[k % 8]


def test_numbers_of_all_sizes_are_nearest_floats(tmp_path):
    rng = random.Random(7)
    tokens = [decimals(rng, k) for k in range(40_000)]
    expected = np.array([float(token) for token in tokens])
    np.testing.assert_array_equal(
        read(tmp_path / "x.mtx", tokens).view(np.int64), expected.view(np.int64)
    )


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("1.5D+03", 1500.0),
        ("-2.5d-02", -0.025),
        ("1.5Q3", 1500.0),
        ("1.5+03", 1500.0),
        ("0.5-100", 5e-101),
        ("+1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0", -0.0),
        ("1e-400", 0.0),
        ("0" * 40 + "2.5", 2.5),
        ("1" + "0" * 30, 1e30),
        ("0." + "0" * 400 + "1e402", 10.0),
        ("-Infinity", -np.inf),
        ("NaN", np.nan),
    ],
)
def test_number_in_fortran_form_has_its_value(tmp_path, token, value):
    x = read(tmp_path / "x.mtx", [token, "1"])[0]
    np.testing.assert_array_equal(x, value)
    assert np.signbit(x) == np.signbit(value)
    np.testing.assert_array_equal(decimal(token.encode()), value)


@pytest.mark.parametrize(
    "token",
    [
        *("2,5", "0x10", "3abc", "1/3", "1.5E", "1.5e+", ".", "+", "-+1", "1.2.3", "1_0", "infin"),
        *("1e5e5", "1D", "--1", "nan(1)", "1\0", "1\xa0", "e5"),
    ],
)
def test_odd_character_in_number_is_refused(tmp_path, token):
    with pytest.raises(ValueError, match=r"x\.mtx: line 4: '.*' is not a number"):
        read(tmp_path / "x.mtx", ["1", token])
    with pytest.raises(ValueError, match="is not a number"):
        decimal(token.encode("latin-1"))


@pytest.mark.parametrize("token", ["1e400", "-1" + "0" * 309, "1.8e308", "9" * 25 + "D+300"])
def test_number_beyond_float64_is_refused(tmp_path, token):
    with pytest.raises(ValueError, match=r"line 3: .* is too large"):
        read(tmp_path / "x.mtx", [token])


@pytest.mark.parametrize(
    ("field", "token", "message"),
    [
        ("integer", "2.75", "'2.75' is not an integer"),
        ("integer", "2.", "is not an integer"),
        ("integer", "1e3", "is not an integer"),
        ("integer", "-", "is not an integer"),
        ("integer", "9007199254740993", "beyond 2\\^53"),
        ("integer", "9223372036854775808", "is too large"),
        ("integer", "1" + "0" * 25, "is too large"),
        ("unsigned-integer", "-1", "is not an integer"),
        ("unsigned-integer", "18446744073709551615", "beyond 2\\^53"),
        ("unsigned-integer", "18446744073709551616", "is too large"),
    ],
)
def test_integer_that_is_inexact_is_refused(tmp_path, field, token, message):
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "x.mtx", [token], field)


def test_integer_that_is_exact_keeps_its_type(tmp_path):
    x = read(tmp_path / "x.mtx", ["-9007199254740992", "+3", "4611686018427387904"], "integer")
    assert x.dtype == np.int64
    assert x.tolist() == [-(2**53), 3, 2**62]
    assert read(tmp_path / "x.mtx", [str(2**63)], "unsigned-integer").tolist() == [2**63]
