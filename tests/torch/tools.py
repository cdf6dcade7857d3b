"""Patterns and random tensors of the tests of `frontal.torch`."""

import warnings

import pytest
import scipy.sparse as sp

from ..gradient_tools import system

torch = pytest.importorskip("torch")

from frontal import torch as adapter  # noqa: E402 - it imports PyTorch

warnings.filterwarnings("ignore", message="Sparse (CSR|CSC) tensor support is in beta")


def prepared(matrix="general", dtype="f8", **options):
    """A pattern, its values, a generator, and the matrix."""
    A, rng = system(matrix, dtype)
    csr = sp.csr_array(A)
    pattern = adapter.Pattern(torch.tensor(csr.indptr), torch.tensor(csr.indices), **options)
    return pattern, torch.tensor(csr.data), rng, csr


def random(rng, *shape, dtype="f8"):
    found = rng.standard_normal(shape)
    return torch.tensor(found + 1j * rng.standard_normal(shape) if dtype == "c16" else found)
