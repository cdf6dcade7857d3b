"""`solve` for sparse tensors, whose gradients have their pattern and layout."""

from __future__ import annotations

import threading

import torch

from .._typing import Untyped
from .pattern import Pattern
from .structure import COMPRESSED, Structure, ValuesFunction

_MAX_PATTERNS = 8  # patterns whose analyses and factors are kept


class _RecentPatterns:
    """The last patterns by their index tensors and options, the last used one at the end."""

    def __init__(self) -> None:
        self._known: list[tuple[Structure, dict[str, Untyped], Pattern]] = []
        self._lock = threading.Lock()

    def pattern_of(
        self, structure: Structure, options: dict[str, Untyped]
    ) -> tuple[Structure, Pattern]:
        """Return a structure with the same indices that is kept, and its pattern."""
        with self._lock:
            for k in reversed(range(len(self._known))):
                known, known_options, pattern = self._known[k]
                if known_options == options and known.equals(structure):
                    self._known.append(self._known.pop(k))
                    return known, pattern
            structure.keep()
            pattern = structure.pattern(options)
            self._known.append((structure, options, pattern))
            del self._known[:-_MAX_PATTERNS]
            return structure, pattern


_recent = _RecentPatterns()


def solve(
    A: torch.Tensor, b: torch.Tensor, trans: str = "N", *, kind: str = "auto", **options: Untyped
) -> torch.Tensor:
    """Solve op(A) x = b for a sparse tensor; x can be differentiated for A and b.

    Analyses and factors of the last patterns are kept, and found again by their indices and values:
    a gradient needs a solve, and no factorization.

    Parameters
    ----------
    A : sparse CSR, CSC or COO tensor (n, n)
        Indices in any order, perhaps repeated.
    b : tensor (n,) or (n, k)
        Of the type and on the device of A.
    trans : {"N", "T", "H"}
        op(A): the matrix, its transpose or its adjoint.
    kind : str
        As for `frontal.factorize`; see `Pattern`.
    **options
        Of `Pattern`.

    Returns
    -------
    x : tensor of b's shape

    Raises
    ------
    ValueError, TypeError
        If shapes, layouts, types or devices do not fit.
    frontal.FrontalError
        As `frontal.factorize` and `Factor.solve`.

    Examples
    --------
    >>> import torch, frontal.torch
    >>> A = torch.tensor([[2.0, 1.0], [0.0, 4.0]]).to_sparse_csr().requires_grad_()
    >>> x = frontal.torch.solve(A, torch.ones(2))
    >>> x.sum().backward()
    >>> A.grad.values().tolist()
    [-0.1875, -0.125, -0.03125]
    """
    if A.dim() != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(
            f"A has shape {tuple(A.shape)}, but one square matrix is needed. Try: Pattern.solve "
            "for a batch of matrices"
        )
    if A.layout not in COMPRESSED and A.layout != torch.sparse_coo:
        raise TypeError(f"A has layout {A.layout}. Try: A.to_sparse_csr()")
    structure, pattern = _recent.pattern_of(Structure(A), {"kind": kind, **options})
    values = ValuesFunction.apply(A, structure)
    if A.layout != torch.sparse_csc:
        return pattern.solve(values, b, trans)
    # the pattern is that of the transpose
    if trans == "H":
        return pattern.solve(values, b.conj(), "N").conj()
    return pattern.solve(values, b, {"N": "T", "T": "N"}.get(trans, trans))
