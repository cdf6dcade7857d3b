"""Launch parameters: pure functions of sizes, scalar type and the device's limits; no CuPy here.

There is one file a routine. Each function returns what the host code launches: variant, threads,
tiles, bytes of shared memory. Numbers that depend on the chip come from ``tuning``.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from ...runtime import tuned
from ...runtime.limits import H200, Limits
from .cholesky import PotrfLaunch, PotrfTuning, block_ld, potrf, potrf_tiny_count
from .copies import COPY_TILE, copy_strided, entries
from .lu import (
    BlockPlan,
    GetrfTuning,
    GetrsTuning,
    LeftPlan,
    PanelPlan,
    RowsPlan,
    StripPlan,
    getrf_block,
    getrf_info,
    getrf_left,
    getrf_panel,
    getrf_update,
    inverse_copies,
    laswp,
    laswp_through_shared,
)
from .products import (
    GemmTuning,
    HerkTuning,
    Tile,
    TrsmPlan,
    TrsmTinyPlan,
    TrsmTuning,
    product_tile,
    tiles,
    trsm,
    trsm_tiny,
    trtri,
)
from .svd import (
    BDSQR_REALS_PER_ROW,
    JACOBI_ORDERS,
    MIN_QR_ASPECT,
    PANEL,
    QR_THREADS,
    bdsqr,
    gebd2,
    jacobi,
    jacobi_order,
    labrd,
    labrd_once,
    max_jacobi_order,
    staged,
)
from .vectors import GemvPlan, GemvTuning, gemv

__all__ = [
    "BDSQR_REALS_PER_ROW",
    "COPY_TILE",
    "H200",
    "JACOBI_ORDERS",
    "MIN_QR_ASPECT",
    "PANEL",
    "QR_THREADS",
    "BlockPlan",
    "GemmTuning",
    "GemvPlan",
    "GemvTuning",
    "GetrfTuning",
    "GetrsTuning",
    "HerkTuning",
    "LeftPlan",
    "Limits",
    "PanelPlan",
    "PotrfLaunch",
    "PotrfTuning",
    "RowsPlan",
    "StripPlan",
    "Tile",
    "TrsmPlan",
    "TrsmTinyPlan",
    "TrsmTuning",
    "bdsqr",
    "block_ld",
    "copy_strided",
    "entries",
    "gebd2",
    "gemv",
    "getrf_block",
    "getrf_info",
    "getrf_left",
    "getrf_panel",
    "getrf_update",
    "inverse_copies",
    "jacobi",
    "jacobi_order",
    "labrd",
    "labrd_once",
    "laswp",
    "laswp_through_shared",
    "max_jacobi_order",
    "potrf",
    "potrf_tiny_count",
    "product_tile",
    "staged",
    "tiles",
    "trsm",
    "trsm_tiny",
    "trtri",
    "tuning",
]


@cache
def tuning(routine: str, device_name: str) -> Any:
    """Return the tuning dataclass of a routine, such as ``PotrfTuning`` for "potrf".

    A field is the user's number for this device (``frontal tune``) if it exists, else the shipped
    number, else the dataclass's default.
    """
    kind = globals()[f"{routine.capitalize()}Tuning"]
    settings = tuned.numbers(device_name).get(routine, {})
    values = {
        k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()
    }  # JSON has lists
    return kind(**{f.name: values[f.name] for f in fields(kind) if f.name in values})
