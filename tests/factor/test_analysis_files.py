"""Analyses in files: the same factors from them, and an error for whatever is not right in them."""

from __future__ import annotations

import errno
import os
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import frontal
from frontal import problems
from frontal.files import archive
from frontal.symbolic.serialize import FORMAT

from ..conftest import fronts_cost, scaled_residual
from ..matrices import zero_diagonal_system

POISSON = problems.poisson2d(6)


def amended():
    """A matrix some of whose columns its first fronts cannot eliminate, and its analysis."""
    A = zero_diagonal_system(frontal.numeric.method.LDLT, "f8", 120, 0.03, 3, zeros=0.9)
    with fronts_cost(-1.0), pytest.MonkeyPatch.context() as patch:
        patch.setattr("frontal.symbolic.phase.MAX_DELAYED_SHARE", 0.0)  # pairs in place of delays
        factor = frontal.factorize(A, kind="symmetric", ordering="natural", backend="cpu")
    assert factor.analysis.amendments == 1
    return A, factor.analysis


def of(A, **choices):
    return A, frontal.analyze(A, backend="cpu", **choices)


CASES = {
    "cholesky": lambda: of(POISSON),
    "single": lambda: of(POISSON.astype(np.float32), kind="spd", ordering="rcm"),
    "given": lambda: of(POISSON, ordering=np.arange(36)[::-1], reuse=7),
    "ldlt": lambda: of(problems.helmholtz2d(6)),
    "ldlh": lambda: of(problems.turned(problems.shifted_laplacian(6, offset=0.1))),
    "tiny": lambda: of(problems.kkt(40)),
    "amended": amended,
    "lu": lambda: of(problems.convdiff2d(6)),
    "matched": lambda: of(problems.permuted(problems.convdiff2d(6), symmetric=False)),
    "empty": lambda: of(sp.csc_array((0, 0))),
    "diagonal": lambda: of(sp.eye_array(3, format="csc")),
}  # fmt: skip


def arrays_of(x):
    """All arrays inside of an analysis, by name."""
    if isinstance(x, np.ndarray):
        return {"": x}
    names = x._fields if hasattr(x, "_fields") else getattr(x, "__dataclass_fields__", ())
    inner = {name: arrays_of(getattr(x, name)) for name in names}
    return {f"{name}.{key}": a for name, found in inner.items() for key, a in found.items()}


def rest_of(x):
    """All of an analysis but its arrays."""
    if isinstance(x, np.ndarray):
        return None
    names = x._fields if hasattr(x, "_fields") else getattr(x, "__dataclass_fields__", ())
    return {name: rest_of(getattr(x, name)) for name in names} if names else x


def assert_same(one, other):
    assert rest_of(one) == rest_of(other)
    mine, others = arrays_of(one), arrays_of(other)
    assert mine.keys() == others.keys()
    for name, array in mine.items():
        np.testing.assert_array_equal(array, others[name], strict=True, err_msg=name)


@pytest.mark.parametrize("case", CASES)
def test_round_trip(case, tmp_path):
    A, analysis = CASES[case]()
    path = tmp_path / "a file"
    analysis.save(path)
    twin = frontal.Analysis.load(path)
    assert type(twin) is frontal.Analysis
    assert_same(analysis, twin)
    assert [p.name for p in tmp_path.iterdir()] == ["a file"]
    panels = [one.factorize(A)._numbers.factor.panels for one in (analysis, twin)]
    np.testing.assert_array_equal(*panels)
    assert (case == "amended") == bool(analysis.paired)
    assert (case in ("matched", "amended")) == (analysis.matching is not None)
    assert (case in ("tiny", "amended")) == (analysis.tiny > 0)


def test_what_was_there_is_replaced_when_all_is_written(tmp_path, monkeypatch):
    path = tmp_path / "analysis"
    path.write_bytes(b"before")

    def full(*_):
        raise OSError(errno.ENOSPC, "no space left on device")

    analysis = frontal.analyze(POISSON)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            analysis.save(path)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"before"]
    analysis.save(path)
    assert frontal.Analysis.load(path).n == 36


# --- damage ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Files of the cases, written once."""
    folder = tmp_path_factory.mktemp("saved")
    with fronts_cost(-1.0):  # many small ones
        for case in ("amended", "matched", "lu", "given"):
            CASES[case]()[1].save(folder / case)
    return folder


def parts(path):
    with archive.Archive(path) as file:
        return dict(file.header), {name: np.load(path)[name] for name in file.names}


def with_change(saved, case, path, **changes):
    """The file of a case with a changed header or changed arrays."""
    header, arrays = parts(saved / case)
    for name, change in changes.items():
        if name in arrays:
            arrays[name] = change(arrays[name].copy())
        else:
            header[name] = change
    archive.write(path, header, {name: a for name, a in arrays.items() if a is not None})
    return path


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def swap(i, j):
    def change(array):
        array[[i, j]] = array[[j, i]]
        return array

    return change


def emptied(pointer):
    """Fronts without any update rows: the matrix has entries between them."""
    return np.zeros_like(pointer)


DAMAGE = [
    ("indptr", put(3, 10**12), "indptr decreases after 3"),
    ("indptr", put(0, -1), "indptr goes from -1"),
    ("indptr", put(-1, 10**12), "indptr goes from 0 to 1000000000000"),
    ("indptr", lambda a: a[:-1], "indptr has 36 entries, not 37"),
    ("indptr", lambda a: a.astype(np.int32), "indptr is int32"),
    ("indices", put(5, 36), "indices is outside of 0 to 35 at 5"),
    ("indices", put(5, -1), "indices is outside of 0 to 35 at 5"),
    ("indices", swap(0, 1), "indices is not ascending at 1"),
    ("indices", put(1, 0), "indices is not ascending at 1|no place for an entry"),
    ("indices", lambda a: a[:-1], "indptr goes from 0"),
    ("indices", lambda a: a.reshape(1, -1), "not a vector of int32"),
    ("indices", lambda a: None, "it has no vector indices"),
    ("indices", lambda a: np.array([None]), "Object arrays cannot|is object|is \\|O|not a vector"),
    ("order", put(0, 2**30), "order is not a permutation"),
    ("perm", put(0, -5), "perm is not a permutation"),
    ("perm", swap(0, 35), "no place for an entry of column"),
    ("perm", lambda a: a[1:], "perm has 35 entries, not 36"),
    ("row_perm", put(7, 2**31 - 1), "row_perm is not a permutation"),
    ("start", put(1, 10**9), "start decreases after 1"),
    ("start", lambda a: a[[0, 0, *range(2, a.size)]], "start does not increase at front 0"),
    ("start", put(-1, 40), "start goes from 0 to 40, not from 0 to 36"),
    ("parent", put(0, 0), "parent is not a later front, at front 0"),
    ("parent", put(0, 10**9), "parent is not a later front, at front 0"),
    ("parent", put(0, -2), "parent is not a later front, at front 0"),
    ("parent", put(0, -1), "rows has entries for root front 0"),
    ("pointer", put(1, -1), "pointer decreases after 0"),
    ("pointer", put(-1, 2**62), "pointer goes from 0"),
    ("pointer", emptied, "pointer goes from 0 to 0"),
    ("rows", put(0, 36), "rows is outside of 0 to 35 at 0"),
    ("rows", put(0, 0), "rows is not ascending at 0"),
    ("rows", lambda a: a[:-1], "pointer goes from 0"),
    ("matched_rows", put(2, 99), "matched_rows is not a permutation"),
    ("row_scale", put(2, np.nan), "scaling"),
    ("col_scale", put(2, -1.0), "scaling"),
    ("col_scale", lambda a: a[1:], "scaling"),
]


@pytest.mark.parametrize(("name", "change", "message"), DAMAGE)
def test_damaged_arrays_are_named(saved, tmp_path, name, change, message):
    path = with_change(saved, "matched", tmp_path / "damaged", **{name: change})
    with pytest.raises(ValueError, match=f"damaged: .*({message})"):
        frontal.Analysis.load(path)


def test_damage_that_only_the_tree_tells(tmp_path):
    """Two chains of fronts, the first of which is not all of it below its root."""
    A = sp.block_diag([sp.diags_array([1.0, 4, 1], offsets=[-1, 0, 1], shape=(4, 4))] * 2)
    path = tmp_path / "good"
    with fronts_cost(-1.0):
        frontal.analyze(A, kind="spd", ordering="natural").save(path)
    header, arrays = parts(path)
    assert arrays["parent"].tolist() == [1, 2, -1, 4, 5, -1]  # the last of a chain has two columns
    assert arrays["rows"].tolist() == [1, 2, 5, 6]
    for change, message in (
        ({"parent": [2, 2, -1, 4, 5, -1]}, "rows has entries that the parent lacks, at front 0"),
        ({"rows": [3, 2, 5, 6]}, "rows has entries that the parent lacks, at front 0"),
        ({"rows": [2, 3, 5, 6]}, "rows has entries that the parent lacks, at front 0"),
        ({"parent": [1, 2, -1, 4, -1, -1]}, "rows has entries for root front 4"),
        ({"parent": [3, 2, -1, 4, 5, -1]}, "parent is not in postorder, at front 0"),
    ):
        change = {name: np.array(values, np.int32) for name, values in change.items()}
        archive.write(path, header, arrays | change)
        with pytest.raises(ValueError, match=message):
            frontal.Analysis.load(path)
    none = {"rows": np.empty(0, np.int32), "pointer": np.zeros(7, np.int64)}
    archive.write(path, header, arrays | none)
    with pytest.raises(ValueError, match="no place for an entry of column 0"):
        frontal.Analysis.load(path)


def test_rows_of_a_method_of_one_triangle_and_amendments(saved, tmp_path):
    for change, message in (
        ({"row_perm": swap(0, 1)}, "row_perm differs from perm"),
        ({"first_rows": put(0, 120)}, "rows is outside"),
        ({"first_perm": put(0, 120)}, "first_perm is not a permutation"),
        ({"amendments": 0}, "amendments and first_backend disagree"),
    ):
        with pytest.raises(ValueError, match=message):
            frontal.Analysis.load(with_change(saved, "amended", tmp_path / "d", **change))
    with pytest.raises(ValueError, match="chosen_perm is not a permutation"):
        frontal.Analysis.load(with_change(saved, "given", tmp_path / "d", chosen_perm=put(0, -1)))


HEADERS = {
    "n": (-1, 2**40, 35, "36", True),
    "method": ("qr", None, ["lu"], "cholesky"),
    "dtype": ("object", "int32", 3),
    "tiny": (-1, 0.5),
    "matched": (1, None, "yes"),
    "ordering": ("best", 0),
    "seconds": ([], {"plan": "long"}, {"plan": -1.0}),
    "cost": ([1, 2], [1, 2, None], None),
    "tried": ({"amd": 3},),
    "reuse": (float("nan"), "often"),
    "pairs": ("some",),
    "chosen": ("given", "any"),
    "amendments": (3, None),
    "backend": ("tpu", None),
}


@pytest.mark.parametrize("name", HEADERS)
def test_damaged_headers_are_refused(saved, tmp_path, name):
    for value in HEADERS[name]:
        path = with_change(saved, "matched", tmp_path / "damaged", **{name: value})
        with pytest.raises(ValueError, match="damaged: "):
            frontal.Analysis.load(path)


def test_what_is_no_analysis(saved, tmp_path):
    whole = (saved / "lu").read_bytes()
    contents = [b"", b"PK\3\4" + bytes(99), b"%%MatrixMarket", bytes(4000)]
    contents += [whole[: len(whole) * k // 7] for k in range(7)] + [whole[:-1]]
    at = whole.index(b"indices.npy") + 300  # inside of the numbers: their checksum is wrong
    contents.append(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    for content in contents:
        (tmp_path / "no").write_bytes(content)
        with pytest.raises(ValueError, match="/no: "):
            frontal.Analysis.load(tmp_path / "no")
    sp.save_npz(tmp_path / "no.npz", POISSON)
    with pytest.raises(ValueError, match=r"no.npz: the file was not written by Analysis\.save"):
        frontal.Analysis.load(tmp_path / "no.npz")
    with pytest.raises(ValueError, match=r"the file contains no analysis\. Try: a file"):
        frontal.Analysis.load(with_change(saved, "lu", tmp_path / "kind", kind="factor"))
    with pytest.raises(FileNotFoundError):
        frontal.Analysis.load(tmp_path / "absent")


def test_other_versions_are_refused(saved, tmp_path):
    path = with_change(saved, "lu", tmp_path / "new", format=FORMAT + 1, version="9.1")
    with pytest.raises(ValueError, match=rf"has format {FORMAT + 1}, saved by frontal 9.1, .*"
                       rf"reads format {FORMAT}. Try: analyze the matrix again"):  # fmt: skip
        frontal.Analysis.load(path)


def test_no_memory_is_taken_for_what_the_file_cannot_hold(saved, tmp_path):
    path = tmp_path / "grows"
    with zipfile.ZipFile(saved / "lu") as old, zipfile.ZipFile(path, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == "rows.npy":
                size = f"({(len(content) - 128) // 4},)".encode()
                assert size in content
                content = content.replace(size, b"(%d,)" % 2**60)
            new.writestr(info.filename, content)
    with pytest.raises(ValueError, match=r"rows: header says|Cannot parse|invalid"):
        frontal.Analysis.load(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("header.npy", bytes(10**6))
    with pytest.raises(ValueError, match="is compressed"):
        frontal.Analysis.load(path)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_one_wrong_number_is_an_error_or_no_matter(saved, tmp_path_factory, data):
    """Either it is refused, or matrices are factorized and solved all the same."""
    case = data.draw(st.sampled_from(["amended", "matched", "lu"]))
    header, arrays = parts(saved / case)
    name = data.draw(st.sampled_from(sorted(name for name in arrays if arrays[name].size)))
    place = data.draw(st.integers(0, arrays[name].size - 1))
    near = st.integers(-2, 130) if arrays[name].dtype.kind == "i" else st.floats(-1, 1e9)
    arrays[name][place] = data.draw(near)
    path = tmp_path_factory.mktemp("one") / "wrong"
    archive.write(path, header, arrays)
    A = amended()[0] if case == "amended" else CASES[case]()[0]
    try:
        analysis = frontal.Analysis.load(path)
        factor = analysis.factorize(A)
    except ValueError:
        return
    b = np.ones(A.shape[0])
    assert scaled_residual(A, factor.solve(b), b) < 1e-14
