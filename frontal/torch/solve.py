"""`solve` and `logdet` for sparse tensors, whose gradients have their indices."""

from __future__ import annotations

import torch

from .._typing import Untyped
from ..batch.recent import RecentPatterns
from .pattern import Pattern
from .structure import COMPRESSED, Structure, ValuesFunction

_recent: RecentPatterns[Pattern] = RecentPatterns()


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
        ``ordering`` and ``backend`` of `frontal.factorize`.

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
    structure, pattern, values = _taken_apart(A, {"kind": kind, **options})
    if structure.layout != torch.sparse_csc:
        return pattern.solve(values, b, trans)
    # the pattern is that of the transpose
    if trans == "H":
        return pattern.solve(values, b.conj(), "N").conj()
    return pattern.solve(values, b, {"N": "T", "T": "N"}.get(trans, trans))


def logdet(A: torch.Tensor, *, kind: str = "auto", **options: Untyped) -> torch.Tensor:
    """Return the natural logarithm of det A for a sparse tensor, with derivatives of first order.

    Parameters
    ----------
    A, kind, **options
        As for `solve`.

    Returns
    -------
    logarithm : real scalar tensor

    Raises
    ------
    ValueError, TypeError
        If the determinant is not positive, or shape or layout do not fit.
    frontal.FrontalError
        As `frontal.factorize`.

    Examples
    --------
    >>> import torch, frontal.torch
    >>> A = torch.tensor([[2.0, 1.0], [1.0, 4.0]]).to_sparse_csr().requires_grad_()
    >>> frontal.torch.logdet(A).backward()
    >>> A.grad.to_dense().inverse().round(decimals=4).tolist()
    [[2.0, 1.0], [1.0, 4.0]]
    """
    _, pattern, values = _taken_apart(A, {"kind": kind, **options})
    return pattern.logdet(values)


def _taken_apart(
    A: torch.Tensor, options: dict[str, Untyped]
) -> tuple[Structure, Pattern, torch.Tensor]:
    """Return structure, pattern and values of a sparse tensor."""
    if A.dim() != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(
            f"A has shape {tuple(A.shape)}, but one square matrix is needed. Try: Pattern for a "
            "batch of matrices"
        )
    if A.layout not in COMPRESSED and A.layout != torch.sparse_coo:
        raise TypeError(f"A has layout {A.layout}. Try: A.to_sparse_csr()")
    structure, pattern = _recent.pattern_of(Structure(A), options)
    return structure, pattern, ValuesFunction.apply(A, structure)
