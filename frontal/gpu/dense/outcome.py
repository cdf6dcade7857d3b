"""Result or error of a batched routine, by the info of its matrices."""

from __future__ import annotations

import numpy as np

from ...errors import BatchError
from ..runtime import device as devices
from ..runtime.array import Array


def outcome(routine: str, result: object, info: Array, check: bool) -> object:
    """Return the result if no matrix failed; without ``check``, the result with info.

    Raises
    ------
    BatchError
        With ``check``, for matrices whose info is not zero.
    """
    if not check:
        return (*result, info) if isinstance(result, tuple) else (result, info)
    codes = devices.device_of(info).download(info)
    indices = np.flatnonzero(codes)
    if len(indices):
        raise BatchError(routine, len(codes), indices, codes[indices] - 1, result)
    return result
