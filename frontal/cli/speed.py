"""The speed of a GPU in words."""

from __future__ import annotations

import numpy as np

from ..backend.choose import slow_gpu
from ..gpu import Speed


def speed(rate: Speed | None) -> str:
    """Return the speed of a GPU, and how ``backend="auto"`` uses it.

    >>> speed(None)
    'speed unknown: used like a GPU with fast double precision'
    >>> speed(Speed(6.7e13, 3.35e13))
    '67 and 33.5 Tflop/s in single and double precision: used for large systems'
    """
    if rate is None:
        return "speed unknown: used like a GPU with fast double precision"
    text = f"{1e-12 * rate.single:.3g} and {1e-12 * rate.double:.3g} Tflop/s in single and double "
    if not slow_gpu(np.dtype(np.float64), rate):
        return f"{text}precision: used for large systems"
    return (
        f"{text}precision: the CPU is used for double precision; "
        "precision='mixed' with backend='gpu' may be faster"
    )
