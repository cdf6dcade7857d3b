"""Sparse solves and determinants in PyTorch, with derivatives: ``pip install 'frontal[torch]'``.

>>> # import torch, frontal.torch
>>> # x = frontal.torch.solve(A, b)        # A: a sparse CSR, CSC or COO tensor
>>> # x.sum().backward()                   # A.grad has A's pattern and layout

`solve` and `logdet` take sparse tensors. `Pattern` takes the values of a sparse matrix as a dense
tensor, for many matrices of one pattern, for batches, and for the transforms of `torch.func`.
"""

from .pattern import Pattern
from .solve import logdet, solve

__all__ = ["Pattern", "logdet", "solve"]
