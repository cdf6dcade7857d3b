"""What a batched routine returns, or raises, once it is known which matrices failed."""

from __future__ import annotations

import numpy as np

from ...errors import BatchError
from ..runtime.array import Array
from ..runtime.device import Device


def outcome(routine: str, device: Device, result: object, info: Array, check: bool) -> object:
    """Return the result, with info unless it was asked to be checked here.

    Raises
    ------
    BatchError
        With ``check``, for matrices whose info is not zero.
    """
    if not check:
        return (*result, info) if isinstance(result, tuple) else (result, info)
    codes = device.download(info)
    indices = np.flatnonzero(codes)
    if len(indices):
        raise BatchError(routine, len(codes), indices, codes[indices] - 1, result)
    return result
