"""Dense linear algebra on many matrices at once, on the GPU: see `frontal.gpu.dense.batched`."""

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

__all__ = [
    "cho_solve",
    "cholesky",
    "gemm",
    "gemv",
    "herk",
    "inv",
    "lu_factor",
    "lu_solve",
    "solve_triangular",
]
