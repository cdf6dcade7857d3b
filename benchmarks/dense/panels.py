"""Cholesky of batches as the papers have it, for the GPU ladder.

The fused kernel goes by panels of 8 columns: "exclusive" launches it for each panel, with early
termination of idle blocks ("classic") or of idle threads too ("aggressive"), all matrices
beginning at once ("greedy") or ending at once ("lazy"); "inclusive" loops inside. "separate"
factors a panel's diagonal block, solves for the rows below and updates the rest, a launch each.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from frontal.gpu.dense import blas3
from frontal.gpu.dense.operands import MatrixBatch, Submatrix
from frontal.gpu.dense.potrf import potrf as factor

KERNEL = (Path(__file__).resolve().parent / "kernels" / "potrf_panels.cu").as_posix()
WIDTH = 8  # columns of a fused panel
SEPARATE = 128  # columns of a separate panel
_ROWS = 1024  # threads of a block, one a row

VARIANTS: dict[str, dict[str, int]] = {
    "exclusive": {"AGGRESSIVE": 1, "LAZY": 1},
    "exclusive-classic-greedy": {"AGGRESSIVE": 0, "LAZY": 0},
    "exclusive-classic-lazy": {"AGGRESSIVE": 0, "LAZY": 1},
    "exclusive-aggressive-greedy": {"AGGRESSIVE": 1, "LAZY": 0},
    "inclusive": {"AGGRESSIVE": 1, "INCLUSIVE": 1},
    "inclusive-classic": {"AGGRESSIVE": 0, "INCLUSIVE": 1},
    "separate": {},
}


def potrf(a: MatrixBatch, info: Any, uplo: str, variant: str) -> None:
    """Factor by a variant of ``VARIANTS``; arguments as ``frontal.gpu.dense.potrf.potrf`` has them.

    Raises
    ------
    ValueError
        For an unknown variant, and for what the fused kernel does not do: the upper triangle, or
        more than 1024 rows.
    """
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {sorted(VARIANTS)}, not {variant!r}")
    if variant == "separate":
        return _separate(a, info, uplo)
    if uplo != "L" or a.max_n > _ROWS:
        raise ValueError(f"{variant!r} takes the lower triangle of at most {_ROWS} rows")
    constants = VARIANTS[variant]
    kernel = a.device.kernel(KERNEL, f"potrf_panels_{a.wrapper}", a.dtype, **constants)
    n = a.max_n
    steps = [0] if "INCLUSIVE" in constants else range(0, max(n, 1), WIDTH)
    for done in steps:
        threads = -(-max(n - done, 1) // 32) * 32
        shared = (WIDTH * WIDTH + threads * WIDTH) * a.dtype.itemsize
        arguments = (a.locator, np.int32(n), np.int32(done), info)
        kernel((a.count,), (threads,), arguments, shared)
    return None


def _separate(a: MatrixBatch, info: Any, uplo: str) -> None:
    xp, lower = a.device.xp, uplo == "L"
    found = xp.zeros(a.count, xp.int32)
    info[...] = 0
    for j in range(0, a.max_n, SEPARATE):
        after = j + SEPARATE
        factor(_diagonal(a, j), found, uplo)
        xp.copyto(info, found + j, where=(info == 0) & (found > 0))
        diagonal = Submatrix(a, j, j, SEPARATE, SEPARATE)
        rest, corner = Submatrix(a, after, j, n=SEPARATE), Submatrix(a, after, after)
        if not lower:
            rest = Submatrix(a, j, after, m=SEPARATE)
        if after < a.max_n:
            blas3.trsm("R" if lower else "L", uplo, "C", "N", 1.0, diagonal, rest)
            blas3.herk(uplo, "N" if lower else "C", -1.0, rest, 1.0, corner)


def _diagonal(a: MatrixBatch, j: int) -> MatrixBatch:
    """The blocks of SEPARATE columns from (j, j) on."""
    n = np.clip(a.n - j, 0, SEPARATE).astype(np.int32)
    locator, keep, size = a.locator.copy(), a.keep, a.dtype.itemsize
    step = j * (a.ld.astype(np.int64) + 1) * size * (n > 0)
    if a.wrapper == "vbatched" or (a.wrapper == "batched" and int(locator["p"])):
        pointers = a.keep[0] + a.device.upload(step.astype(np.uint64))
        locator["p"] = a.device.pointer(pointers)
        keep = (pointers, *keep)
    else:
        locator["a"] += np.uint64(step.max(initial=0))
    if a.wrapper == "vbatched":
        sizes = a.device.upload(n)
        locator["m"] = locator["n"] = a.device.pointer(sizes)
        keep = (sizes, *keep)
    else:
        locator["m"] = locator["n"] = n.max(initial=0)
    return replace(a, locator=locator, m=n, n=n, keep=keep)
