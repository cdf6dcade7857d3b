"""Write the Matrix Market files of this folder and their table: `python matrices/generate.py`.

One small matrix for each kind and for each way to fail. The last column of the table is what
`frontal.solve(A, b)` makes of it: a solution with a backward error of rounding size, or an error.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from frontal import problems

HERE = Path(__file__).resolve().parent
SINGULAR = "SingularMatrixError"
README = """# Small matrices

One for each kind of matrix and for each way to fail, in Matrix Market format: made and listed by
`python matrices/generate.py`, tested by `tests/repository/test_matrices.py`. Larger ones come by
name and size from `frontal.problems`. *Expected* is what `frontal.solve(A, b)` makes of it:
*solved* means a scaled residual of rounding size.

| name | n | nnz | kind | what | expected |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass(frozen=True)
class Entry:
    """A file: its matrix, what there is to know about it, and what solving it must give."""

    name: str
    kind: str
    what: str
    matrix: Any
    expected: str = "solved"
    field: str | None = None  # as Matrix Market calls it, where the values do not tell

    @property
    def row(self) -> str:
        cells = (self.matrix.shape[0], self.matrix.nnz, self.kind, self.what, self.expected)
        return f"| `{self.name}` | {' | '.join(map(str, cells))} |"


def random(n: int, seed: int) -> sp.csr_array:
    """Three random entries of modulus below 1 in each row, and a diagonal of 4."""
    rng = np.random.default_rng(seed)
    cols = (np.arange(n)[:, None] + rng.integers(1, n, (n, 3))) % n
    values = np.round(rng.uniform(-1, 1, 3 * n), 3)
    off = sp.coo_array((values, (np.repeat(np.arange(n), 3), cols.ravel())), shape=(n, n))
    return sp.csr_array(off + 4 * sp.eye_array(n))


def path(n: int, last: float = 1.0) -> sp.csr_array:
    """Laplacian of a path: singular, with integer pivots, unless its last entry is not 1."""
    middle = sp.diags_array(np.array([1.0, *[2.0] * (n - 2), last]))
    return sp.csr_array(middle - sp.eye_array(n, k=1) - sp.eye_array(n, k=-1))


def symmetric_kinds() -> list[Entry]:
    """A matrix of each symmetry."""
    n = 40
    A = random(n, seed=1)
    hermitian = A + A.T + 0.5j * (A - A.T)
    ring = sp.eye_array(31, k=1) + sp.eye_array(31, k=30)
    laplacian = problems.graph_laplacian(ring + ring.T).astype(np.int64)
    skew = sp.kron(path(20, last=3.0), sp.coo_array([[0.0, 1.0], [-1.0, 0.0]]), format="coo")
    plane, block, flow = problems.poisson2d(9), problems.elasticity3d(3), problems.stokes2d(5)
    waves, shifted = problems.helmholtz2d(9), hermitian - 7.5 * sp.eye_array(n)
    return [
        Entry("spd_poisson", "real SPD", "5-point Laplacian", plane),
        Entry("spd_elasticity", "real SPD", "clamped elastic block", block),
        Entry("integer", "integer SPD", "Laplacian of a ring, plus 1", laplacian),
        Entry("hermitian_pd", "complex Hermitian PD", "random", hermitian),
        Entry("hermitian_indefinite", "complex Hermitian", "eigenvalues of both signs", shifted),
        Entry("symmetric_indefinite", "real symmetric", "Stokes flow: a saddle point", flow),
        Entry("complex_symmetric", "complex symmetric", "waves in an absorbing box", waves),
        Entry("skew_symmetric", "real skew-symmetric", "all diagonal entries zero", skew),
    ]


def general_kinds() -> list[Entry]:
    """Matrices without symmetry."""
    n = 40
    A = random(n, seed=1)
    complex_ = A + 1j * sp.diags_array(np.arange(1.0, n + 1))
    ones = sp.tril(abs(A) > 0).astype(np.float64)
    transport = problems.convdiff2d(8)
    return [
        Entry("unsymmetric", "real general", "convection: pattern symmetric", transport),
        Entry("unsymmetric_pattern", "real general", "random: pattern unsymmetric", A),
        Entry("complex_general", "complex general", "random", complex_),
        Entry("pattern", "pattern", "unit triangular, no values stored", ones, field="pattern"),
    ]


def hard() -> list[Entry]:
    """Regular matrices that a careless method gets wrong."""
    n = 30
    rng = np.random.default_rng(2)
    A = random(n, seed=3)
    indefinite = problems.poisson2d(6) - sp.eye_array(36)
    rows, cols = (sp.diags_array(10.0 ** rng.integers(-12, 13, n)) for _ in range(2))
    zeros = sp.coo_array(A, copy=True)
    zeros.data[(zeros.coords[0] != zeros.coords[1]) & (np.arange(zeros.nnz) % 2 == 0)] = 0
    C = sp.coo_array(A)
    twice = tuple(np.concatenate([index, index[::-1]]) for index in C.coords)
    halves = sp.coo_array((np.concatenate([C.data / 4, C.data[::-1] * 0.75]), twice), shape=(n, n))
    blocks = sp.block_diag([path(k, last=3.0) for k in range(2, 12)])
    tiny = sp.block_diag([np.array([[1e-20, 1.0], [1.0, 1.0]])] * 10)
    first = sp.coo_array((np.ones(n), (np.zeros(n, int), np.arange(n))), shape=(n, n))
    arrow = first + first.T + sp.diags_array(np.arange(n) + 30.0)
    both = "solved; NotPositiveDefiniteError with kind='spd'"
    ill = "IllConditionedWarning"
    shuffled = A[np.roll(np.arange(n), 1)][:, rng.permutation(n)]
    return [
        Entry("not_positive_definite", "real symmetric", "positive diagonal", indefinite, both),
        Entry("zero_diagonal", "real general", "its rows must be permuted", shuffled),
        Entry("tiny_pivots", "real symmetric", "1e-20 on the diagonal beside 1", tiny),
        Entry("badly_scaled", "real general", "over 24 decades each way", rows @ A @ cols, ill),
        Entry("explicit_zeros", "real general", "stored zeros", zeros),
        Entry("duplicates", "real general", "each entry in two parts, to be summed", halves),
        Entry("disconnected", "real SPD", "ten components", blocks),
        Entry("dense_row", "real SPD", "first row and column full", arrow),
        Entry("one", "real SPD", "one row", 2.0 * sp.eye_array(1)),
    ]


def failures() -> list[Entry]:
    """What cannot be solved, or not well."""
    A = random(30, seed=5).toarray()
    equal, narrow, empty, poisoned = (A.copy() for _ in range(4))
    equal[7] = equal[19]
    narrow[[3, 8, 21]] = 0
    narrow[[3, 8, 21], 4:6] = [[1, 2], [1, 3], [1, 5]]
    empty[11] = 0
    poisoned[6, 6] = np.nan
    nearly = path(30, last=1 + 2.0**-50)
    either = f"solved, IllConditionedWarning or {SINGULAR}"

    def general(name: str, what: str, dense: np.ndarray, expected: str) -> Entry:
        return Entry(name, "real general", what, sp.coo_array(dense), expected)

    return [
        general("singular", "two equal rows", equal, SINGULAR),
        Entry("singular_laplacian", "real symmetric", "null space: constants", path(30), SINGULAR),
        general("structurally_singular", "three rows in two columns", narrow, SINGULAR),
        general("empty_row", "row 11 is empty", empty, SINGULAR),
        Entry("nearly_singular", "real SPD", "condition about 1e17", nearly, either),
        general("nan", "one entry is NaN", poisoned, "NonFiniteInputError"),
        general("rectangular", "30 rows, 28 columns", A[:, :28], "ValueError"),
    ]


def entries() -> list[Entry]:
    """Return all files in the order of the table."""
    return [*symmetric_kinds(), *general_kinds(), *hard(), *failures()]


def write(folder: Path) -> None:
    """Write the files and their table into a folder."""
    for entry in entries():
        scipy.io.mmwrite(
            folder / f"{entry.name}.mtx", sp.coo_array(entry.matrix), field=entry.field
        )
    table = "\n".join(entry.row for entry in entries())
    (folder / "README.md").write_text(README + table + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--folder", type=Path, default=HERE)
    write(parser.parse_args().folder)
