"""Values that float64 cannot represent: masked entries, and integers beyond 2^53.

NumPy drops masks and rounds integers silently when it converts an array.
"""

from __future__ import annotations

import numpy as np

from .._typing import Untyped

_MAX_EXACT_INTEGER = 2**53  # all integers up to this size are float64 numbers


def refuse_masked(x: object, name: str) -> None:
    """Raise if an array has masked entries.

    Parameters
    ----------
    x : array, sparse matrix, or list of arrays
        Other objects pass, in O(1).
    name : str
        Name of x in the error.

    Raises
    ------
    ValueError
        With the number of masked entries and the first one.

    Examples
    --------
    >>> refuse_masked(np.ma.masked_invalid([1.0, 2.0]), "b")  # nothing is masked
    >>> refuse_masked(np.ma.masked_invalid([1.0, np.nan]), "b")
    Traceback (most recent call last):
    ...
    ValueError: b has 1 masked entry of 2, the first is b[1]: a masked value is missing, and \
no equation can be solved with it. Try: b.filled(value), or remove the masked entries with their \
equations
    """
    if isinstance(x, list | tuple):
        for i, item in enumerate(x):
            refuse_masked(item, f"{name}[{i}]") if hasattr(item, "dtype") else None
        return
    array = x if isinstance(x, np.ndarray) else getattr(x, "data", None)
    if not isinstance(array, np.ma.MaskedArray) or not np.ma.is_masked(array):
        return
    mask = np.ma.getmaskarray(array)
    count, what = int(mask.sum()), name if array is x else f"{name}.data"
    place = ", ".join(str(int(k)) for k in np.argwhere(mask)[0])
    entries = f"{count} masked entr{'y' if count == 1 else 'ies'} of {mask.size}"
    raise ValueError(
        f"{what} has {entries}, the first is {what}[{place}]: a masked value is missing, and no "
        f"equation can be solved with it. Try: {what}.filled(value), or remove the masked entries "
        "with their equations"
    )


def refuse_inexact(values: Untyped, name: str) -> None:
    """Raise if integers are not float64 numbers; O(1) for types that hold no such integers.

    Parameters
    ----------
    values : array
        NumPy's or CuPy's, of any type.
    name : str
        Name of the array in the error.

    Raises
    ------
    ValueError
        With the first such integer.

    Examples
    --------
    >>> refuse_inexact(np.array([2**53, 2**60]), "b")
    >>> refuse_inexact(np.array([1, 2**53 + 1]), "b")
    Traceback (most recent call last):
    ...
    ValueError: b has the integer 9007199254740993, which float64 cannot hold: integers beyond \
2^53 are rounded. Try: b.astype(float) to solve with rounded values, or other units
    """
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not values.size:
        return
    if int(values.min()) >= -_MAX_EXACT_INTEGER and int(values.max()) <= _MAX_EXACT_INTEGER:
        return
    host_values = values.get() if hasattr(values, "get") else values
    host_values = host_values.ravel()
    for value in host_values[
        (host_values > _MAX_EXACT_INTEGER) | (host_values < -_MAX_EXACT_INTEGER)
    ].tolist():
        if int(float(value)) != value:
            raise ValueError(
                f"{name} has the integer {value}, which float64 cannot hold: integers beyond 2^53 "
                f"are rounded. Try: {name}.astype(float) to solve with rounded values, or other "
                "units"
            )
