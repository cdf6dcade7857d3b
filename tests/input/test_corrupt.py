"""Corrupt matrices and files: an error, and never the end of the process.

All cases run in a process of their own, so that a crash is a failed test.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.lib import format as npy

import frontal
from frontal import linalg
from frontal.io import read_matrix, write_matrix, write_vector
from frontal.ordering import order
from frontal.symbolic.matching import maximum_product_matching

from ..matrices import tridiagonal

try:
    import resource
except ImportError:  # not on Windows
    resource = None

ROOT = Path(__file__).resolve().parents[2]
HUGE = 10**8
N = 6
GOOD = tridiagonal(N, -1.0, 2.5, -1.0)


def changed(A, **arrays):
    """A copy with some of its arrays replaced, as nobody should."""
    A = A.copy()
    for name, change in arrays.items():
        setattr(A, name, change(getattr(A, name)))
    return A


def put(place, value):
    """Replace one entry of an array."""

    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def wide(change):
    return lambda array: change(array.astype(np.int64))


def compressed(A):
    """Ways to damage CSC, CSR and BSR."""
    yield "index too large", changed(A, indices=put(1, HUGE))
    yield "index equal to the size", changed(A, indices=put(-1, N))
    yield "index beyond 32 bits", changed(A, indices=wide(put(1, 2**32 + 1)))
    yield "negative index", changed(A, indices=put(1, -1))
    yield "very negative index", changed(A, indices=put(1, -HUGE))
    yield "indices of floats", changed(A, indices=lambda i: np.where(i < 1, np.nan, i))
    yield "matrix of indices", changed(A, indices=lambda i: i.reshape(-1, 1))
    yield "no indices", changed(A, indices=lambda i: i[:0])
    yield "short indices", changed(A, indices=lambda i: i[:-1])
    yield "short data", changed(A, data=lambda d: d[:-1])
    yield "no data", changed(A, data=lambda d: d[:0])
    yield "data of one dimension more", changed(A, data=lambda d: d[..., None])
    yield "indptr begins late", changed(A, indptr=put(0, 1))
    yield "indptr begins below zero", changed(A, indptr=put(0, -1))
    yield "indptr falls", changed(A, indptr=put(1, A.indptr[-1]))
    yield "indptr dives", changed(A, indptr=put(1, -HUGE))
    yield "indptr soars", changed(A, indptr=put(1, HUGE))
    yield "indptr ends far out", changed(A, indptr=put(-1, HUGE))
    yield "indptr ends below zero", changed(A, indptr=put(-1, -1))
    yield "indptr ends with 0", changed(A, indptr=put(-1, 0))
    yield "short indptr", changed(A, indptr=lambda i: i[:-1])
    yield "long indptr", changed(A, indptr=lambda i: np.append(i, i[-1]))
    yield "no indptr", changed(A, indptr=lambda i: i[:0])
    yield "indptr of floats", changed(A, indptr=lambda i: np.where(i > 3, np.nan, i))


def coordinates(A):
    """Ways to damage COO."""
    for axis in (0, 1):
        for value in (HUGE, N, -1, -HUGE, 2**32 + 1):
            coords = list(A.coords)
            coords[axis] = wide(put(1, value))(coords[axis])
            yield f"coords[{axis}] with {value}", changed(A, coords=lambda _, c=coords: tuple(c))
    yield "short row", changed(A, coords=lambda c: (c[0][:-1], c[1]))
    yield "short column", changed(A, coords=lambda c: (c[0], c[1][:-1]))
    yield "no column", changed(A, coords=lambda c: c[:1])
    yield "coords of floats", changed(A, coords=lambda c: (c[0] * np.nan, c[1]))
    yield "short data", changed(A, data=lambda d: d[:-1])


def diagonals(A):
    """Ways to damage DIA."""
    yield "short offsets", changed(A, offsets=lambda o: o[:-1])
    yield "long offsets", changed(A, offsets=lambda o: np.append(o, [3, 4]))
    yield "offsets beyond 32 bits", changed(A, offsets=wide(put(0, 2**32 + 2)))
    yield "the least offset of 64 bits", changed(A, offsets=wide(put(0, -(2**63))))
    yield "the least offset", changed(A, offsets=put(0, -(2**31)))
    yield "one offset twice", changed(A, offsets=put(0, 0))
    yield "offsets of floats", changed(A, offsets=lambda o: o * np.nan)
    yield "data of one dimension", changed(A, data=lambda d: d[0])


def lists(A):
    """Ways to damage LIL and DOK."""
    B = A.tolil()
    for value in (HUGE, N, -1, 2**40, np.nan):
        C = B.copy()
        C.rows[1] = [value, *C.rows[1][1:]]
        yield f"lists with {value}", C
        D = A.todok()
        D._dict[(1, value)] = 1.0
        yield f"dictionary with {value}", D
    C = B.copy()
    C.data[1] = C.data[1] * 10**4
    yield "long list of values", C
    C = B.copy()
    C.rows[1] = 7
    yield "no list", C
    yield "short rows", changed(B, rows=lambda r: r[:-1])


def matrices(kind=float):
    A = GOOD.astype(kind)
    yield from ((f"csc, {case}", B) for case, B in compressed(A))
    yield from ((f"csr, {case}", B) for case, B in compressed(A.tocsr()))
    yield from ((f"bsr, {case}", B) for case, B in compressed(A.tobsr((1, 1))))
    yield from ((f"bsr of blocks, {case}", B) for case, B in compressed(A.tobsr((2, 3))))
    yield from ((f"coo, {case}", B) for case, B in coordinates(A.tocoo()))
    yield from ((f"dia, {case}", B) for case, B in diagonals(A.todia()))
    yield from lists(A)


def each(function, *kinds):
    for kind in kinds or (float,):
        yield from ((f"{case}, {kind}", lambda A=A: function(A)) for case, A in matrices(kind))


def read(A):
    """Read what SciPy writes for a matrix, or what it would write."""
    if A.format not in ("csc", "csr", "bsr", "coo", "dia"):
        raise ValueError(".npz has no such format")
    names = {"coo": ("row", "col", "data"), "dia": ("offsets", "data")}
    names = names.get(A.format, ("indptr", "indices", "data"))
    if A.format == "coo" and len(A.coords) == 1:
        names = ("data",)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.npz"
        arrays = {name: getattr(A, name) for name in names}
        np.savez(path, format=A.format.encode(), shape=A.shape, **arrays)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            read_matrix(path)
    raise ValueError("as it should")


b = np.ones(N)
GROUPS = {
    "solve": lambda: each(lambda A: frontal.solve(A, b), float, bool, np.int8, complex),
    "right-hand sides": lambda: each(lambda B: frontal.solve(GOOD, B)),
    "spsolve": lambda: [*each(lambda A: linalg.spsolve(A, b)),
                        *each(lambda B: linalg.spsolve(GOOD, B[:, :1] if B.format == "?" else B))],
    "read": lambda: each(read),
    "write": lambda: each(lambda A: write_matrix(Path(tempfile.gettempdir()) / "no.npz", A)),
    "order": lambda: [*each(order), *each(maximum_product_matching)],
}  # fmt: skip


def run():
    """Print each case before it runs, and what came of it."""
    for group, cases in GROUPS.items():
        for case, action in cases():
            sys.stdout.write(f"{group}, {case}: ")
            sys.stdout.flush()
            try:
                action()
                outcome = "nothing was raised"
            except ValueError:
                outcome = "ValueError"
            except BaseException as error:  # pytest's are not of Exception
                outcome = repr(error)
            sys.stdout.write(outcome + "\n")


def test_corrupt_matrices():
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        "from tests.input.test_corrupt import run; run()",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr)
    assert len(lines) > 1000
    assert [line for line in lines if not line.endswith(": ValueError")] == []


def saved(**changes):
    """The content of an .npz of GOOD with some arrays replaced; None leaves one out."""
    arrays = {"format": b"csc", "shape": (N, N), "data": GOOD.data}
    arrays |= {"indices": GOOD.indices, "indptr": GOOD.indptr, **changes}
    stream = BytesIO()
    np.savez(stream, **{name: array for name, array in arrays.items() if array is not None})
    return stream.getvalue()


def promising(shape):
    """An .npz whose data claim this shape."""
    stream, whole = BytesIO(), BytesIO(saved())
    npy.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": shape})
    changed = BytesIO()
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            new.writestr(name, stream.getvalue() if name == "data.npy" else old.read(name))
    return changed.getvalue()


def packed(**arrays):
    stream = BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def matrix_market(form, sizes, body="1 1 1.0\n"):
    return f"%%MatrixMarket matrix {form} real general\n{sizes}\n{body}".encode()


def harwell_boeing(kind="RUA", rows=2, indptr="1 2 3", indices="1 2", nnz=2, first="(3I8)"):
    counts = f"{3:14d}{1:14d}{1:14d}{1:14d}{0:14d}"
    head = f"{kind:14s}{rows:14d}{2:14d}{nnz:14d}{0:14d}"
    formats = f"{first:16s}(2I8)           (2F8.1)             "
    lines = [
        "".join(f"{word:>8}" for word in part.split()) for part in (indptr, indices, "4.0 5.0")
    ]
    return "\n".join(["A title", counts, head, formats, *lines]).encode()


FILES = {
    "cut.npz": saved()[:-30],
    "half.npz": saved()[: len(saved()) // 2],
    "empty.npz": b"",
    "garbage.npz": b"PK\3\4" + bytes(range(200)),
    "no_shape.npz": saved(shape=None),
    "no_data.npz": saved(data=None),
    "no_format.npz": saved(format=None),
    "unknown_format.npz": saved(format=b"lil"),
    "two_formats.npz": saved(format=[b"csc", b"csr"]),
    "shape_nan.npz": saved(shape=(np.nan, N)),
    "shape_below_zero.npz": saved(shape=(-N, N)),
    "shape_of_one.npz": saved(shape=(N,)),
    "shape_of_three.npz": saved(shape=(N, N, N)),
    "shape_huge.npz": saved(shape=(N, 2**62)),
    "floats.npz": saved(indices=GOOD.indices + 0.5),
    "objects.npz": saved(data=np.array([None] * GOOD.nnz)),
    "nan.rua": harwell_boeing(indices="1 NaN"),
    "fraction.rua": harwell_boeing(indices="1 1.5"),
    "far.rua": harwell_boeing(indices="1 1E8"),
    "wrapped.rua": harwell_boeing(indices="1 1E30"),
    "zero.rua": harwell_boeing(indices="0 1"),
    "falls.rua": harwell_boeing(indptr="1 3 1"),
    "late.rua": harwell_boeing(indptr="2 2 3"),
    "oblong.rsa": harwell_boeing(kind="RSA", rows=3),
    "rows_below_zero.rua": harwell_boeing(rows=-2),
    "garbage.mtx.gz": b"no gzip at all",
    "cut.mtx.gz": gzip.compress(b"%%MatrixMarket matrix coordinate real general\n1 1 1\n")[:-9],
    "garbage.rua.bz2": b"no bzip2 at all",
    "far.mtx": b"%%MatrixMarket matrix coordinate real general\n2 2 1\n100000000 1 3.0\n",
    "no_banner.mtx": b"1 1 1\n1 1 1.0\n",
    "no_sizes.mtx": matrix_market("coordinate", "one one one"),
    "rows.mtx": matrix_market("coordinate", "1000000000 1000000000 1"),
    "entries.mtx": matrix_market("coordinate", "9 9 1000000000"),
    "entries.mtx.gz": gzip.compress(matrix_market("coordinate", "9 9 1000000000")),
    "dense.mtx": matrix_market("array", "1000000000 1", "1.0\n"),
    "comments.mtx.gz": gzip.compress(
        b"%%MatrixMarket matrix array real general\n" + b"%\n" * 2**24
    ),
    "blanks.rua.bz2": bz2.compress(harwell_boeing() + b" " * 2**25),
    "wide.rua": harwell_boeing(indptr="10 20 30 ", first="(1I999999999)"),
    "rows.rua": harwell_boeing(rows=10**9),
    "entries.rua": harwell_boeing(nnz=10**9),
    "shape.npz": saved(shape=(10**9, N)),
    "promises.npz": promising((10**10,)),
    "overflow.npz": promising((2**40, 2**40)),
    "zeros.npz": packed(data=np.zeros(2**23)),
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_named(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_matrix(path)


def read_all(folder):
    """Print how many megabytes all damaged files took beyond a sound one, and the most seconds."""
    (Path(folder) / "sound.npz").write_bytes(saved())
    for name, content in FILES.items():
        (Path(folder) / name).write_bytes(content)
    read_matrix(Path(folder) / "sound.npz")
    before, slowest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0
    for name in FILES:
        began = time.process_time()
        with contextlib.suppress(ValueError):
            read_matrix(Path(folder) / name)
        slowest = max(slowest, time.process_time() - began)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    sys.stdout.write(f"{taken / 1e3} {slowest}")


def fill_disk(folder):
    """Write to files that may hold 2000 bytes, and print what is in the folder afterwards."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    writers = [(write_matrix, sp.random_array((99, 99), density=0.5, random_state=0), ".mtx .npz"),
               (write_vector, np.arange(999) * np.pi, ".mtx .mtx.gz .npy .txt")]  # fmt: skip
    for write, content, endings in writers:
        for ending in endings.split():
            path = Path(folder) / f"{write.__name__}{ending}"
            path.write_bytes(b"old")
            with contextlib.suppress(OSError):
                write(path, content)
                sys.stdout.write(f"no error of {ending} ")
    sys.stdout.write(str({path.read_bytes() for path in Path(folder).iterdir()}))
    sys.stdout.write(str(len(list(Path(folder).iterdir()))))


def in_a_process(function, folder):
    call = f"from tests.input.test_corrupt import {function}; {function}({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", call], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(resource is None, reason="nobody counts memory here")
def test_damaged_files_take_neither_memory_nor_time(tmp_path):
    megabytes, seconds = map(float, in_a_process("read_all", tmp_path).split())
    assert megabytes < 200
    assert seconds < 1


@pytest.mark.skipif(resource is None, reason="nobody bounds files here")
def test_a_full_disk_leaves_the_old_files(tmp_path):
    assert in_a_process("fill_disk", tmp_path) == "{b'old'}6"


def test_sound_files_of_the_same_making_are_read(tmp_path):
    (tmp_path / "sound.npz").write_bytes(saved())
    (tmp_path / "sound.rua").write_bytes(harwell_boeing())
    np.testing.assert_array_equal(read_matrix(tmp_path / "sound.npz").toarray(), GOOD.toarray())
    assert read_matrix(tmp_path / "sound.rua").toarray().tolist() == [[4, 0], [0, 5]]
    for form in ("csr", "bsr", "coo", "dia"):
        for make in (sp.csc_array, sp.csc_matrix):
            sp.save_npz(tmp_path / "sound.npz", make(GOOD).asformat(form))
            twin = read_matrix(tmp_path / "sound.npz")
            np.testing.assert_array_equal(twin.toarray(), GOOD.toarray())


def test_what_a_message_says():
    with pytest.raises(ValueError, match=r"of A are corrupt: indices has 6, outside of 0 to 5"):
        frontal.solve(changed(GOOD, indices=put(3, N)), b)
    with pytest.raises(ValueError, match=r"of b are corrupt: coords\[0\] has -1"):
        frontal.solve(GOOD, changed(GOOD.tocoo(), coords=lambda c: (c[0] - 1, c[1])))


def test_diagonals_beyond_the_shape_are_empty():
    A = sp.dia_array((np.ones((2, 3)), [0, 7]), shape=(3, 3))
    assert frontal.solve(A, np.arange(3.0)).tolist() == [0, 1, 2]
