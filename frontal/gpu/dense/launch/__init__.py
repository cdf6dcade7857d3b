"""Launch parameters: pure functions of sizes, scalar type and the device's limits; no CuPy here.

There is one file a family of routines. Each function returns what the host code launches: variant,
threads, tiles, bytes of shared memory. Numbers that depend on the chip come from ``tuning``.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from ...runtime import tuned
from . import cholesky, copies, lu, products, svd, vectors

__all__ = ["TUNING", "cholesky", "copies", "lu", "products", "svd", "tuning", "vectors"]

TUNING: dict[str, type] = {  # dataclass of the chip-dependent numbers of each routine
    "gemm": products.GemmTuning,
    "gemv": vectors.GemvTuning,
    "getrf": lu.GetrfTuning,
    "getrs": lu.GetrsTuning,
    "herk": products.HerkTuning,
    "potrf": cholesky.PotrfTuning,
    "trsm": products.TrsmTuning,
}


@cache
def tuning(routine: str, device_name: str) -> Any:
    """Return the numbers of a routine: an instance of its dataclass in `TUNING`.

    A field is the user's number for this device (``frontal tune``) if it exists, else the shipped
    number, else the dataclass's default.
    """
    kind = TUNING[routine]
    settings = tuned.numbers(device_name).get(routine, {})
    values = {
        k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()
    }  # JSON has lists
    return kind(**{f.name: values[f.name] for f in fields(kind) if f.name in values})
