"""Slow readers of files in plain Python, which know one way to read a file and refuse the rest.

They share no code with the package, and serve as its reference: small matrices only.
"""

from __future__ import annotations

import ast
import re

import numpy as np

NUMBER = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)(?:[edqEDQ]([+-]?\d+)|([+-]\d+))?", re.ASCII)
SPECIAL = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
FIELDS = "real", "double", "integer", "unsigned-integer", "complex", "pattern"


class RefusedError(Exception):
    """The file is damaged."""


def require(condition, message="damaged"):
    """Raise RefusedError unless a condition holds."""
    if not condition:
        raise RefusedError(message)


def number(token, decimals=0, scale=0):
    """Return the float64 that a token means in Fortran."""
    if SPECIAL.fullmatch(token):
        return float(token)
    match = NUMBER.fullmatch(token)
    require(match, token)
    sign, digits, exponent, bare = match.groups()
    power = int(exponent or bare or -scale)
    value = float(f"{sign}{digits}e{power - decimals * ('.' not in digits)}")
    require(abs(value) != np.inf, token)
    return value


def integer(token, field="integer"):
    """Return an integer that is exact in float64."""
    require(re.fullmatch(r"[+-]?\d+" if field == "integer" else r"\+?\d+", token, re.ASCII), token)
    value = int(token)
    low, high = (-(2**63) + 1, 2**63) if field == "integer" else (0, 2**64)
    require(low <= value < high and int(float(value)) == value, token)
    return value


def index(token, count):
    """Return a zero-based row or column."""
    require(re.fullmatch(r"\+?\d+", token, re.ASCII) and 1 <= int(token) <= count, token)
    return int(token) - 1


def tokens(line):
    """Return the tokens of a line between blanks."""
    return [word for word in re.split(r"[ \t\r]+", line) if word]


def mirrored(A, symmetry):
    """Return both triangles of a matrix that has one."""
    n = len(A)
    require(A.shape == (n, n))
    lower, upper = np.tril(np.ones((n, n)), -1) > 0, np.triu(np.ones((n, n)), 1) > 0
    other = {"symmetric": A.T, "skew-symmetric": -A.T, "hermitian": A.T.conj()}[symmetry]
    return np.where(lower | upper, A + other, A)


def matrix_market(data):
    """Return the dense matrix of a file."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode("latin-1").split("\n")
    words = lines[0].lower().split()
    require(len(words) == 5 and words[0] == "%%matrixmarket")
    kind, form, field, symmetry = words[1:]
    require(kind in ("matrix", "vector") and form in ("coordinate", "array") and field in FIELDS)
    require(symmetry in ("general", "symmetric", "skew-symmetric", "hermitian"))
    require(not (form == "array" and field == "pattern"))
    require(not (symmetry == "skew-symmetric" and field in ("pattern", "unsigned-integer")))
    require(symmetry == "general" or kind == "matrix")
    rest = [tokens(line) for line in lines[1:] if not line.lstrip(" \t\r\v\f").startswith("%")]
    rest = [line for line in rest if line]
    require(rest)
    sizes = rest.pop(0)
    require(len(sizes) == 1 + (kind == "matrix") + (form == "coordinate"))
    require(all(re.fullmatch(r"\d{1,19}", word, re.ASCII) for word in sizes))
    sizes = [int(word) for word in sizes]
    rows, columns = sizes[0], sizes[1] if kind == "matrix" else 1
    require(symmetry == "general" or rows == columns)
    require(max(rows, columns) <= 1000, "too large for here")
    places = []
    if form == "array":
        first = {"general": 0, "skew-symmetric": 1}
        start = first.get(symmetry, 0) if symmetry != "general" else None
        for j in range(columns):
            places += [(i, j) for i in range(0 if start is None else j + start, rows)]
        require(len(places) == len(rest))
    else:
        require(sizes[-1] == len(rest))
    A = np.zeros((rows, columns), {"complex": complex, "integer": object}.get(field, float))
    A = A.astype(object) if field == "unsigned-integer" else A
    sides = set()
    for k, line in enumerate(rest):
        count = 0 if form == "array" else 1 if kind == "vector" else 2
        extents = (rows, columns)[:count]
        require(len(line) >= count)
        place = [index(word, extent) for word, extent in zip(line, extents, strict=False)]
        i, j = places[k] if form == "array" else [*place, 0][:2]
        values = line[count:]
        require(len(values) == {"pattern": 0, "complex": 2}.get(field, 1))
        value = entry(values, field)
        if symmetry == "skew-symmetric" and i == j:
            require(value == 0)
        if symmetry == "hermitian" and i == j:
            require(value.imag == 0)
        sides.add(np.sign(i - j))
        A[i, j] += value
    require(symmetry == "general" or len(sides - {0}) < 2)
    A = A if symmetry == "general" else mirrored(A, symmetry)
    return A.astype(float) if A.dtype == object else A


def entry(values, field):
    """Return the value of an entry from its tokens."""
    if field == "pattern":
        return 1.0
    if field == "complex":
        return complex(number(values[0]), number(values[1]))
    return number(values[0]) if field in ("real", "double") else integer(values[0], field)


def vector_npy(data):
    """Return the array of a .npy file, by its header and bytes."""
    require(data[:6] == b"\x93NUMPY" and data[6:8] in (b"\1\0", b"\2\0"))
    wide = data[6] == 2
    length = int.from_bytes(data[8 : 12 if wide else 10], "little")
    begin = 12 if wide else 10
    words = data[begin : begin + length].decode("latin-1").split()
    header = ast.literal_eval(" ".join(words))
    dtype = np.dtype(header["descr"])
    count = int(np.prod(header["shape"], dtype=object))
    x = np.frombuffer(data[begin + length :], dtype, count)
    return x.reshape(header["shape"], order="F" if header["fortran_order"] else "C")
