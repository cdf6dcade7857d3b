"""The methods: their panels, pivoting and scaling.

A method is a constant of every numeric loop. The CPU's compiled code is specialized on it
(`frontal.cpu.constants`), GPU kernels are compiled with `Method.constants`, such as ``-DLU=1``.
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
        Name in user interfaces.
    panels : int
        Dense panels of a front in the factor: 1 for [L11; L21] alone, 2 with U12.
    pivots : bool
        Rows are interchanged inside fronts, and columns without an acceptable pivot are delayed.
    scaling : bool
        Rows and columns are scaled before, by equal factors for a method of one triangle.
    adjoint : bool
        With one triangle, the other factor is the adjoint of L, not its transpose.
    signed : bool
        D is diagonal and the signs of its entries are known: pivots are neither searched nor
        delayed, but replaced if they lack their sign (Vanderbei, "Symmetric quasidefinite
        matrices", SIAM J. Optim. 5, 1995).
    """

    name: str
    panels: int
    pivots: bool
    scaling: bool
    adjoint: bool = True
    signed: bool = False

    @cached_property
    def one_triangle(self) -> bool:
        """Return whether only lower triangles of A, fronts and contribution blocks are stored."""
        return self.panels == 1

    @cached_property
    def indefinite(self) -> bool:
        """Return whether A = L D L^H or L D L^T: unit diagonal in L, 1x1 and 2x2 blocks in D."""
        return self.one_triangle and (self.pivots or self.signed)

    @cached_property
    def square_root(self) -> bool:
        """Return whether A = L L^H: the squares of the diagonal of L are the pivots."""
        return self.one_triangle and not self.indefinite

    @cached_property
    def unit(self) -> bool:
        """Return whether the diagonal of L is one and not stored."""
        return self.pivots or self.signed

    @property
    def transpose_is_conjugate(self) -> bool:
        """Return whether A is Hermitian, so that its plain transpose is its conjugate."""
        return self.one_triangle and self.adjoint

    @property
    def kind(self) -> str:
        """The kind of the matrices that this method factorizes."""
        return {
            "cholesky": "spd",
            "ldlt": "symmetric",
            "ldlh": "hermitian",
            "signed_ldlh": "quasidefinite",
        }.get(self.name, "general")

    def inertia(self, dtype: np.dtype) -> bool:
        """Return whether D has the inertia of A."""
        return self.indefinite and (self.adjoint or dtype.kind != "c")

    @property
    def constants(self) -> dict[str, int]:
        """Macros of the kernels; unset ones are omitted, so that fewer variants are compiled."""
        if self.panels == 2:
            return {"LU": 1}
        if not self.indefinite:
            return {}
        signed = {"SIGNED": 1} if self.signed else {}
        return {"LDL": 1, "ADJOINT": int(self.adjoint), **signed}


# Pivot limits of all methods except Cholesky, on every backend.
MAX_MULTIPLIER = 100  # largest entry of L: pivots are at least 1/MAX_MULTIPLIER of their columns
NULL = 16  # roundings of the scaled matrix below which a column is a null column

CHOLESKY = Method("cholesky", panels=1, pivots=False, scaling=False)
LU = Method("lu", panels=2, pivots=True, scaling=True)
LDLT = Method("ldlt", panels=1, pivots=True, scaling=True, adjoint=False)
LDLH = Method("ldlh", panels=1, pivots=True, scaling=True)
SIGNED_LDLH = Method("signed_ldlh", panels=1, pivots=False, scaling=False, signed=True)


@cache
def _eps(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps)


def tiny_pivot(dtype: np.dtype, method: Method = LU) -> float:
    """Return the modulus below which a GPU replaces pivots of scaled columns with update rows."""
    if method.signed:
        return 0.0
    eps = _eps(dtype)
    return eps**0.75 if method.indefinite else NULL * eps


def symmetric_method(dtype: np.dtype, hermitian: bool) -> Method:
    """Return LDL^H for complex Hermitian matrices, LDL^T for complex symmetric and real ones."""
    return LDLH if hermitian and dtype.kind == "c" else LDLT
