"""Factors by columns in pickles, in single precision, and their analyses in files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import frontal
from frontal.files import archive

from ..conftest import scaled_residual
from .test_columns import always as always
from .test_columns import by_columns, system


def test_pickles_and_files_give_the_same_bits(tmp_path):
    A = system(70, 0.05, 7, blocks=5)
    factor, b = by_columns(A), np.ones(70)
    x = factor.solve(b)
    again = pickle.loads(pickle.dumps(factor))
    np.testing.assert_array_equal(again.solve(b), x)
    again.refactorize(A.data)
    factor.analysis.save(tmp_path / "columns")
    loaded = frontal.Analysis.load(tmp_path / "columns")
    assert loaded.by_columns
    assert loaded.n_fronts == 0
    for one, other in zip(loaded.symbolic.columns, factor.analysis.symbolic.columns, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(loaded.factorize(A).solve(b), x)
    assert loaded.frontal.n_fronts > 0
    np.testing.assert_allclose(loaded.frontal.factorize(A).solve(b), x, rtol=1e-9)


def test_analyses_in_a_folder_give_the_same_bits(tmp_path, monkeypatch):
    A = system(70, 0.05, 7, blocks=5)
    x = by_columns(A).solve(np.ones(70))
    monkeypatch.setattr("frontal.symbolic.disk_cache.MIN_CACHED_COLUMNS", 30)
    monkeypatch.setenv("FRONTAL_ANALYSIS_CACHE", str(tmp_path))
    for _ in range(2):
        np.testing.assert_array_equal(by_columns(A).solve(np.ones(70)), x)
        assert len(list(tmp_path.iterdir())) == 1


DAMAGES = {
    "no block": {"first": np.empty(0, np.int32)},
    "one end": {"first": np.zeros(1, np.int32)},
    "too long": {"first": np.array([0, 71], np.int32)},
    "falling": {"first": np.array([0, 40, 30, 70], np.int32)},
    "entries below": {"first": np.arange(71, dtype=np.int32)},
    "no permutation": {"perm": np.zeros(70, np.int32)},
    "outside": {"row_perm": np.arange(1, 71, dtype=np.int32)},
    "entries": {"column_entries": -1},
    "many entries": {"column_entries": 10**30},
    "flops": {"column_flops": float("nan")},
    "method": {"method": "ldlt"},
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_files_are_refused(name, tmp_path):
    A = system(70, 0.08, 9)
    path = tmp_path / "columns"
    by_columns(A).analysis.save(path)
    with archive.Archive(path) as stored:
        header = dict(stored.header)
        names = [entry[:-4] for entry in stored._zip.namelist() if entry != "header.npy"]
        types = {"indptr": np.int64}
        for scale in ("row_scale", "col_scale"):
            types[scale] = np.float64
        arrays = {entry: stored.vector(entry, types.get(entry, np.int32)) for entry in names}
    for key, value in DAMAGES[name].items():
        (header if key in header else arrays)[key] = value
    archive.write(path, header, arrays)
    try:
        analysis = frontal.Analysis.load(path)
    except ValueError:
        return
    assert name == "many entries"
    with pytest.raises(frontal.FactorMemoryError):
        analysis.factorize(A)


def test_mixed_precision_is_refined():
    A = system(60, 0.05, 3)
    factor = by_columns(A, precision="mixed")
    assert factor.dtype == np.float32
    b = np.ones(60)
    assert scaled_residual(A, factor.solve(b), b) < 1e-15
    assert scaled_residual(A, factor.solve(1j * b), 1j * b) < 1e-15
