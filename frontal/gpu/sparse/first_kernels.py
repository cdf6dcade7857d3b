"""The kernels of a first factorization and solve, compiled while the host makes lists."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from ...numeric.method import Method
from ..runtime.device import Device
from ..runtime.limits import Limits
from . import launch
from .factorize.equilibration import KERNELS
from .factorize.launches import tile_constants
from .factorize.small_fronts import small_constants

# arguments of `begin_kernels` so far: looking up the compiled kernels takes 100 us
_begun: WeakKeyDictionary[Device, set[tuple[Method, np.dtype, bool, bool]]] = WeakKeyDictionary()


def begin_kernels(
    device: Device, method: Method, dtype: np.dtype, few: bool = True, chained: bool = False
) -> None:
    """Begin to compile the kernels of a factorization and a solve for one right-hand side.

    Kernels that compile longest, or are needed first, come first. Kernels of small fronts are
    included if `few` is true, those of many levels of them in one launch if `chained` is.
    """
    key = method, dtype, few, chained
    done = _begun.setdefault(device, set())
    if key not in done:
        device.begin(_files(device.limits, *key), dtype)
        done.add(key)


def _files(
    limits: Limits, method: Method, dtype: np.dtype, few: bool, chained: bool
) -> list[tuple[str, dict[str, int]]]:
    """Return the kernel files and their constants."""
    kernels = [
        ("front_tiles.cu", tile_constants(method, launch.front_tiles(dtype, method, limits)))
    ]
    if few:
        kernels.insert(0, ("front_small.cu", small_constants(method)))
    if chained:
        kernels.insert(0, ("front_chains.cu", small_constants(method)))
    if method.scaling:
        kernels.insert(0, (KERNELS, {}))
    kernels += [("system.cu", method.constants), ("condition.cu", {})]
    if method.unit:
        kernels.append(("front_pivots.cu", method.constants))
    flips: tuple[dict[str, int], ...] = ({}, {"FLIP": 1}) if method.panels == 2 else ({},)
    # widths of a first solution with its condition number, estimated or certified, and of others
    for width in (launch.PROBING_WIDTH, 2, 1):
        large, small = (
            f(dtype, width, limits) for f in (launch.front_solve, launch.front_solve_small)
        )
        for flip in flips if width > 2 else flips[:1]:
            for way in ("forward", "backward"):
                kernels.append((f"front_{way}.cu", large.constants | method.constants | flip))
                if few:
                    more = small.constants | method.constants | flip
                    kernels.append((f"front_{way}_small.cu", more))
    return kernels
