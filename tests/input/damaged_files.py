"""Files of all formats damaged at random, read, and compared with slow readers.

    python -m tests.input.damaged_files [--count N] [--seed S]

A damaged file is refused by ValueError or OSError, or read to the matrix that a reference reads in
it. Nothing but this package reads the files.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import random
import sys
import tempfile
from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from frontal.io import read_matrix, read_vector
from tests.input.reference_fortran import harwell_boeing
from tests.input.reference_reader import RefusedError, matrix_market, vector_npy

ALPHABET = b"0123456789" * 3 + b"  ++--..eEdDQ,%\n\n\r\tnaif()XTIP/:*\x00\xff"
PACK = {".gz": gzip.compress, ".bz2": bz2.compress}
FIELDS = "real", "integer", "complex", "pattern", "unsigned-integer"
SYMMETRIES = "general", "symmetric", "skew-symmetric", "hermitian"
FORMATS = "(1P,3E20.12)", "(1X,4F16.8)", "(2(D24.16))", "(T3,5E15.7)", "(3E12.4/2E12.4)", "(20I4)"


def written(rng, field):
    """Return a number in one of the ways in which programs write it."""
    if field == "integer":
        return str(rng.choice([rng.randint(-9, 9), rng.randint(-(10**12), 10**12)]))
    if field == "unsigned-integer":
        return str(rng.randint(0, 10**6))
    x = rng.gauss(0, 1) * 10.0 ** rng.choice([0, 0, 0, 3, -8, 120, -310])
    text = rng.choice([f"{x!r}", f"{x:.3e}", f"{x:+.16E}", f"{x:.25e}", str(rng.randint(0, 9))])
    return text.replace("e", rng.choice("eEdD")) if rng.random() < 0.3 else text


def matrix_market_file(rng):
    """Return the text of a sound file."""
    dense, field, symmetry = rng.random() < 0.3, rng.choice(FIELDS), rng.choice(SYMMETRIES)
    field = "real" if dense and field == "pattern" else field
    if symmetry == "skew-symmetric" and field in ("pattern", "unsigned-integer"):
        symmetry = "symmetric"
    m = rng.randint(1, 4)
    n = m if symmetry != "general" else rng.randint(1, 4)
    start = 1 if symmetry == "skew-symmetric" else 0
    places = [(i, j) for j in range(n) for i in range(0 if symmetry == "general" else j + start, m)]
    if not dense:
        places = rng.choices(places, k=rng.randint(0, 6)) if places else []
    lines = [f"%%MatrixMarket matrix {'array' if dense else 'coordinate'} {field} {symmetry}"]
    lines += ["% a comment"] * rng.randint(0, 1)
    lines.append(f"{m} {n}" if dense else f"{m} {n} {len(places)}")
    for i, j in places:
        words = [] if dense else [str(i + 1), str(j + 1)]
        words += [] if field == "pattern" else [written(rng, field)]
        words += [written(rng, "real")] if field == "complex" else []
        if symmetry == "hermitian" and i == j and field == "complex":
            words[-1] = "0"
        lines.append(rng.choice([" ", "  ", "\t"]).join(words))
    return rng.choice(["\n", "\r\n"]).join([*lines, ""]).encode()


def section(numbers, format_, per_line):
    """Return lines of numbers that are laid out by a function of an index within a line."""
    return [
        "".join(format_(k, x) for k, x in enumerate(numbers[first : first + per_line]))
        for first in range(0, len(numbers), per_line)
    ]


def harwell_boeing_file(rng):
    """Return the text of a sound file."""
    kind = rng.choice("RRCIP") + rng.choice("USHZR")
    kind = "PSA" if kind == "PZ" else kind + "A"
    n = rng.randint(1, 4)
    low = {"S": 0, "H": 0, "Z": 1}.get(kind[1])
    columns = [
        sorted(rng.sample(range(0 if low is None else min(j + low, n), n),
                          k=rng.randint(0, n if low is None else max(n - j - low, 0))))
        for j in range(n)
    ]  # fmt: skip
    rows = [i + 1 for column in columns for i in column]
    values = [round(rng.gauss(0, 9), 3) for _ in rows]
    if kind[0] == "C":
        places = [(i, j) for j, column in enumerate(columns) for i in column]
        zero = [kind[1] == "H" and i == j for i, j in places]
        values = [x for v, z in zip(values, zero, strict=True) for x in (v, 0.0 if z else -v)]
    format_ = "(20I4)" if kind[0] == "I" else rng.choice(FORMATS[:-1])
    pick = {
        "(1P,3E20.12)": (lambda k, x: f"{x:20.12E}", 3),
        "(1X,4F16.8)": (lambda k, x: " " * (k == 0) + f"{x:16.8f}", 4),
        "(2(D24.16))": (lambda k, x: f"{x:24.16E}".replace("E", "D"), 2),
        "(T3,5E15.7)": (lambda k, x: "  " * (k == 0) + f"{x:15.7E}", 5),
        "(3E12.4/2E12.4)": (lambda k, x: f"{x:12.4E}", 3),
        "(20I4)": (lambda k, x: f"{round(x):4d}", 20),
    }[format_]
    format_ = "(3E12.4)" if "/" in format_ else format_
    pointers = np.cumsum([1, *map(len, columns)]).tolist()
    parts = [section(pointers, lambda k, x: f"{x:8d}", 3), section(rows, lambda k, x: f"{x:4d}", 5)]
    parts.append([] if kind[0] == "P" else section(values, *pick))
    counts = [sum(map(len, parts)), *map(len, parts), 0]
    lines = ["a title", "".join(f"{x:14d}" for x in counts)]
    lines.append(f"{kind:14}" + "".join(f"{x:14d}" for x in (n, n, len(rows), 0)))
    lines.append(f"{'(3I8)':16}{'(5I4)':16}{format_:20}")
    return "\n".join(lines + parts[0] + parts[1] + parts[2] + [""]).encode()


def archive(rng):
    """Return an .npz and its matrix."""
    A = sp.random_array((4, 4), density=0.5, random_state=rng.randint(0, 10**9))
    stream = BytesIO()
    sp.save_npz(stream, A.asformat(rng.choice(["csc", "csr", "coo", "dia", "bsr"])))
    return stream.getvalue(), A.toarray()


def vector(rng):
    """Return an .npy."""
    stream = BytesIO()
    np.save(stream, np.random.default_rng(rng.randint(0, 99)).standard_normal((3, 2)))
    return stream.getvalue()


def damage(rng, data):
    """Return a file with one to three faults."""
    for _ in range(rng.randint(1, 3)):
        k, what = rng.randint(0, max(len(data) - 1, 0)), rng.randint(0, 7)
        if what <= 2:
            data = data[:k] + bytes([rng.choice(ALPHABET)]) + data[k + (what > 0) :]
        elif what == 3:
            data = data[:k] + data[k + 1 :]
        elif what == 4:
            data = data[:k]
        else:
            lines = data.split(b"\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            if what == 5:
                lines.insert(i, lines[j])
            elif what == 6:
                del lines[i]
            else:
                words = lines[i].split(b" ")
                words.insert(rng.randint(0, len(words)), rng.choice(WORDS))
                lines[i] = b" ".join(words)
            data = b"\n".join(lines)
    return data


WORDS = [b"1", b"0", b"-1", b"1.5D+03", b"nan", b"% x", b"99999999999999999999", b"1e999", b"2,5"]


def case(rng):
    """Return ending and content of a damaged file, its reference, and whether it is packed."""
    kind = rng.randint(0, 9)
    if kind <= 6:
        sound, reader, ending = (
            (matrix_market_file, matrix_market, ".mtx")
            if kind <= 3
            else (harwell_boeing_file, harwell_boeing, ".rua")
        )
        data = damage(rng, sound(rng)) if rng.random() < 0.97 else sound(rng)
        if rng.random() < 0.1:
            suffix = rng.choice(sorted(PACK))
            return ending + suffix, PACK[suffix](data), lambda data=data: reader(data), True
        return ending, data, lambda: reader(data), False
    if kind == 7:
        sound = matrix_market_file(rng)
        suffix = rng.choice(sorted(PACK))
        data = damage(rng, PACK[suffix](sound))
        return ".mtx" + suffix, data, lambda: matrix_market(sound), True
    if kind == 8:
        data, A = archive(rng)
        return ".npz", damage(rng, data), lambda: A, True
    data = damage(rng, vector(rng))
    return ".npy", data, lambda: vector_npy(data), True


def outcome(path, reference, packed):
    """Return what became of one file: refused, same, or what is wrong."""
    try:
        read = read_vector(path) if path.suffix == ".npy" else read_matrix(path).toarray()
    except (ValueError, OSError) as error:
        if str(path) not in str(error):
            return f"unnamed: {error!r}"
        try:
            reference()
        except Exception:  # the reference of .npy files is NumPy's dtype
            return "refused"
        return "refused" if packed else "refused alone"
    except Exception as error:
        return f"crash: {error!r}"
    try:
        expected = reference()
    except RefusedError:
        return "accepted"
    expected = np.asarray(expected)
    return "same" if same(read, expected) else "changed"


def same(a, b):
    """Whether two arrays have the same numbers."""
    return a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def run(count, seed, folder):
    """Return how many files came to what, and the first file of each outcome."""
    outcomes, examples = Counter(), {}
    for k in range(count):
        rng = random.Random(f"{seed} {k}")
        ending, data, reference, packed = case(rng)
        path = Path(folder) / f"damaged{ending}"
        path.write_bytes(data)
        found = outcome(path, reference, packed)
        outcomes[found] += 1
        examples.setdefault(found, (k, ending, data))
    return outcomes, examples


def main():
    """Run as the command line asks; 1 if a file came to anything but an error or the same."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcomes, examples = run(asked.count, asked.seed, folder)
    for found, number in outcomes.most_common():
        sys.stdout.write(f"{number:8} {found}\n")
        if found not in ("refused", "same"):
            sys.stdout.write(f"         {examples[found]}\n")
    return int(not outcomes.keys() <= {"refused", "same"})


if __name__ == "__main__":
    sys.exit(main())
