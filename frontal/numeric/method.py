"""The methods: what each keeps of a front, how it seeks pivots, what is done to the matrix before.

A method is a constant of every numeric loop. The CPU's compiled code is specialized on it
(`frontal.cpu.constants`), kernels get ``-DLU=1`` from `Method.constants`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from ..machine.lockfree_property import cached_property


@dataclass(frozen=True)
class Method:
    """A way to factorize fronts.

    Attributes
    ----------
    name : str
        As users read it.
    panels : int
        Dense panels that stay of a front: 1 for [L11; L21] alone, 2 with U12.
    pivots : bool
        Rows are interchanged inside fronts, and columns without a sound pivot go to other fronts.
    scaling : bool
        Rows and columns are scaled before, alike for a method of one triangle.
    adjoint : bool
        With one triangle, the other factor is the adjoint of L, and not its transpose.
    """

    name: str
    panels: int
    pivots: bool
    scaling: bool
    adjoint: bool = True

    @cached_property
    def one_triangle(self) -> bool:
        """Only the lower triangle of A, of fronts and of contribution blocks is read and kept."""
        return self.panels == 1

    @cached_property
    def indefinite(self) -> bool:
        """A diagonal or 2x2 blocks D stand between L, which has ones on its diagonal, and L^H."""
        return self.one_triangle and self.pivots

    @property
    def transpose_is_conjugate(self) -> bool:
        """A is Hermitian: its plain transpose is its conjugate."""
        return self.one_triangle and self.adjoint

    @property
    def kind(self) -> str:
        """What users call the matrices that it is for."""
        return {"cholesky": "spd", "ldlt": "symmetric", "ldlh": "hermitian"}.get(
            self.name, "general"
        )

    def inertia(self, dtype: np.dtype) -> bool:
        """Whether the eigenvalues of D have the signs of those of A."""
        return self.indefinite and (self.adjoint or dtype.kind != "c")

    @property
    def constants(self) -> dict[str, int]:
        """Constants of kernels; what is not set is left out, so that few variants are compiled."""
        if self.panels == 2:
            return {"LU": 1}
        return {"LDL": 1, "ADJOINT": int(self.adjoint)} if self.pivots else {}


# Of pivots but Cholesky's, on every backend.
MAX_MULTIPLIER = 100  # entries of L: pivots are at least 1/MAX_MULTIPLIER of their columns
NULL = 16  # roundings of the scaled matrix: columns that have become smaller than this are null

CHOLESKY = Method("cholesky", panels=1, pivots=False, scaling=False)
LU = Method("lu", panels=2, pivots=True, scaling=True)
LDLT = Method("ldlt", panels=1, pivots=True, scaling=True, adjoint=False)
LDLH = Method("ldlh", panels=1, pivots=True, scaling=True)


@cache
def _eps(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)


def tiny_pivot(dtype: np.dtype, method: Method = LU) -> float:
    """What a GPU replaces pivots below, if columns of the scaled matrix go on in other rows."""
    eps = _eps(dtype)
    return eps**0.75 if method.indefinite else NULL * eps


def symmetric_method(dtype: np.dtype, hermitian: bool) -> Method:
    """LDL^H for complex Hermitian matrices, LDL^T for complex symmetric and all real ones."""
    return LDLH if hermitian and dtype.kind == "c" else LDLT
