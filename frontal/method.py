"""The methods: what each keeps of a front, how it seeks pivots, what is done to the matrix before.

A method is a constant of every numeric loop. The CPU's compiled code is specialized on it
(`frontal.cpu.constants`), kernels get ``-DLU=1`` from `Method.constants`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
        Rows are interchanged inside fronts, and tiny pivots replaced.
    scaling : bool
        Rows and columns are scaled before.
    inertia : bool
        The signs of the pivots are those of the eigenvalues, and not all alike.
    """

    name: str
    panels: int
    pivots: bool
    scaling: bool
    inertia: bool

    @property
    def one_triangle(self) -> bool:
        """Only the lower triangle of A, of fronts and of contribution blocks is read and kept."""
        return self.panels == 1

    @property
    def constants(self) -> dict[str, int]:
        """Constants of kernels; what is not set is left out, so that few variants are compiled."""
        return {"LU": 1} if self.panels == 2 else {}


def tiny_pivot(dtype: np.dtype) -> float:
    """What pivots are compared with, relative to their columns, before they are replaced."""
    return float(np.sqrt(np.finfo(dtype).eps))


CHOLESKY = Method("cholesky", panels=1, pivots=False, scaling=False, inertia=False)
LU = Method("lu", panels=2, pivots=True, scaling=True, inertia=False)
# LDLT will be Method("ldlt", panels=1, pivots=True, scaling=True, inertia=True)
