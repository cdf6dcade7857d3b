"""Dense linear algebra on batches of matrices on the GPU: see `frontal.gpu.dense.batched`."""

from __future__ import annotations

from .dense.batched import (
    cho_solve,
    cholesky,
    gemm,
    gemv,
    herk,
    inv,
    lu_factor,
    lu_solve,
    solve_triangular,
)
from .dense.batched_lstsq import lstsq, pinv
from .dense.batched_solve import solve
from .dense.batched_svd import bidiagonalize, qr, svd, svdvals
from .dense.lists import Batch

__all__ = [
    "Batch",
    "bidiagonalize",
    "cho_solve",
    "cholesky",
    "gemm",
    "gemv",
    "herk",
    "inv",
    "lstsq",
    "lu_factor",
    "lu_solve",
    "pinv",
    "qr",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
]
