"""Sparse systems that are solved: generated ones, those of packages, and Matrix Market files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse as sp

from benchmarks.harness import packaged
from benchmarks.harness.records import ROOT

MATRICES = ROOT.parent / "shared" / "matrices"  # larger real matrices, where present


def label(problem: str) -> str:
    """Return the name under which a problem is listed: its own, or the file's without suffixes."""
    return problem if not is_file(problem) else Path(problem).name.split(".mtx")[0]


def is_file(problem: str) -> bool:
    """Tell a Matrix Market file from a generated ``name:size``."""
    return problem.endswith((".mtx", ".mtx.gz"))


def files(folder: Path, smallest: int) -> list[str]:
    """Return the Matrix Market files of a folder with at least ``smallest`` rows, small first."""
    rows = {str(p): scipy.io.mminfo(p)[0] for p in folder.glob("*.mtx*")}
    return sorted((p for p in rows if rows[p] >= smallest), key=lambda p: (rows[p], p))


def read(problem: str) -> sp.csc_array:
    """Return the matrix of a generated problem, of a package or of a file."""
    if is_file(problem):
        return sp.csc_array(scipy.io.mmread(problem))
    matrix = packaged.read(problem)
    if matrix is not None:
        return matrix
    from frontal import problems

    return sp.csc_array(problems.from_name(problem))


def kind_of(A) -> str:
    """Return "spd" (Hermitian, positive diagonal), "symmetric" (complex ones too) or "general".

    A shifted Laplacian is told from a definite one by its smoothest vector.
    """
    if abs(A - A.conj().T).max() == 0 and min(A.diagonal().real.min(), A.sum().real) > 0:
        return "spd"
    return "symmetric" if abs(A - A.T).max() == 0 else "general"


def right_sides(A, count: int = 16) -> np.ndarray:
    """Return ``count`` random right-hand sides in A's dtype, in Fortran order; always the same."""
    B = np.random.default_rng(0).standard_normal((A.shape[0], count))
    return np.asfortranarray(B).astype(A.dtype)


def residual(A, x, b) -> float:
    """Return the normwise backward error ‖b - Ax‖ / (‖A‖ ‖x‖ + ‖b‖) in the infinity norm."""
    if not np.isfinite(x).all():
        return float("nan")
    norm = abs(A).sum(axis=1).max()
    return float(abs(b - A @ x).max() / (norm * abs(x).max() + abs(b).max()))
