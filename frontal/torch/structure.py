"""The structure of a sparse tensor, and its values as a function that autograd knows.

The gradient for a sparse tensor has its indices. It is a CSR tensor for a CSR tensor, else a COO
tensor: PyTorch does not add up gradients in CSC.
"""

from __future__ import annotations

import torch

from .._typing import Untyped
from .pattern import Pattern

COMPRESSED = torch.sparse_csr, torch.sparse_csc


class Structure:
    """Layout, shape and index tensors of a sparse tensor.

    Attributes
    ----------
    indices : two int tensors
        Of CSR and CSC the extents and the indices in them, of COO rows and columns.
    """

    def __init__(self, A: torch.Tensor) -> None:
        A = A.detach()
        self.layout, self.shape = A.layout, A.shape
        if A.layout == torch.sparse_csr:
            self.indices = A.crow_indices(), A.col_indices()
        elif A.layout == torch.sparse_csc:
            self.indices = A.ccol_indices(), A.row_indices()
        else:
            self.indices = A._indices()[0], A._indices()[1]
        self._shares: torch.Tensor | None = None

    def keep(self) -> None:
        """Copy the indices, which the user may change."""
        first, second = self.indices
        self.indices = first.clone(), second.clone()

    def has_indices_of(self, other: Structure) -> bool:
        """Return whether another tensor has the same indices in the same layout."""
        if self.layout != other.layout or self.shape != other.shape:
            return False
        pairs = zip(self.indices, other.indices, strict=True)
        return all(a.shape == b.shape and torch.equal(a, b) for a, b in pairs)

    def coordinates(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return row and column of each value."""
        first, second = self.indices
        if self.layout in COMPRESSED:
            numbers = torch.arange(self.shape[0], device=first.device)
            first = numbers.repeat_interleave(first.diff())
        return (second, first) if self.layout == torch.sparse_csc else (first, second)

    def pattern(self, options: dict[str, Untyped]) -> Pattern:
        """Return the pattern of the tensor, or for CSC that of its transpose."""
        if self.layout in COMPRESSED:
            return Pattern(*self.indices, **options)
        return Pattern.from_coordinates(self.shape[0], *self.indices, **options)

    def gradient(self, values: torch.Tensor) -> torch.Tensor:
        """Return the sparse gradient whose entries have these values, each shared by repeats."""
        values = values * self.shares(values.dtype)
        unchecked = {"size": self.shape, "check_invariants": False}  # these are those of A
        if self.layout == torch.sparse_csr:
            return torch.sparse_csr_tensor(*self.indices, values, **unchecked)
        return torch.sparse_coo_tensor(torch.stack(self.coordinates()), values, **unchecked)

    def shares(self, dtype: torch.dtype) -> torch.Tensor:
        """Return 1 over the number of values that belong to the same entry."""
        shares = self._shares
        if shares is None:
            keys = self._keys(*self.coordinates())
            _, place, counts = torch.unique(keys, return_inverse=True, return_counts=True)
            shares = self._shares = 1.0 / counts[place]
        return shares.to(dtype)

    def _keys(self, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        return rows.to(torch.int64) * self.shape[1] + columns

    def entries_of(self, G: torch.Tensor) -> torch.Tensor:
        """Return the entries of any matrix at the coordinates of this one."""
        rows, columns = self.coordinates()
        if G.layout == torch.strided:
            return G[rows, columns]
        other = Structure(G)
        keys, place = torch.unique(other._keys(*other.coordinates()), return_inverse=True)
        given = G._values() if G.layout == torch.sparse_coo else G.values()
        sums = torch.zeros(keys.numel(), dtype=given.dtype, device=given.device)
        sums = sums.index_add(0, place, given)
        wanted = self._keys(rows, columns)
        found = torch.searchsorted(keys, wanted).clamp(max=max(keys.numel() - 1, 0))
        if not keys.numel():
            return torch.zeros(wanted.numel(), dtype=given.dtype, device=given.device)
        return torch.where(keys[found] == wanted, sums[found], torch.zeros_like(sums[found]))


class ValuesFunction(torch.autograd.Function):
    """The values of a sparse tensor; the gradient for the tensor has its indices."""

    @staticmethod
    def forward(ctx: Untyped, A: torch.Tensor, structure: Structure) -> torch.Tensor:
        """Return a copy of the values."""
        ctx.structure = structure
        A = A.detach()
        return (A._values() if A.layout == torch.sparse_coo else A.values()).clone()

    @staticmethod
    def backward(ctx: Untyped, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient for the tensor."""
        return _GradientFunction.apply(*gradients, ctx.structure), None


class _GradientFunction(torch.autograd.Function):
    """The sparse gradient of values, which second derivatives take apart again."""

    @staticmethod
    def forward(ctx: Untyped, values: torch.Tensor, structure: Structure) -> torch.Tensor:
        ctx.structure = structure
        return structure.gradient(values.detach())

    @staticmethod
    def backward(ctx: Untyped, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        (G,), structure = gradients, ctx.structure
        return structure.entries_of(G) * structure.shares(G.dtype), None
