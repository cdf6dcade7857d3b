"""Variable parts of messages: lists, column numbers, a wider scalar type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_MAX_COLUMNS = 5  # columns named in a message
_DOUBLE = {"float32": "float64", "complex64": "complex128"}  # of types in single precision


def listed(items: Sequence[str], word: str = "or") -> str:
    """Return items as a list in English.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a or b', 'a, b or c')
    """
    *others, last = items
    return f"{', '.join(others)} {word} {last}" if others else last


def named_columns(columns: Sequence[int] | np.ndarray) -> str:
    """Return the numbers of columns; if more than five, the first five and the count of the rest.

    >>> named_columns([8]), named_columns([8, 7, 9])
    ('column 8', 'columns 8, 7 and 9')
    >>> named_columns(range(7))
    'columns 0, 1, 2, 3, 4 and 2 more'
    """
    shown = [str(int(j)) for j in columns[:_MAX_COLUMNS]]
    if len(columns) > _MAX_COLUMNS:
        shown.append(f"{len(columns) - _MAX_COLUMNS} more")
    return f"column{'s' * (len(columns) > 1)} {listed(shown, 'and')}"


def double_precision(dtype: np.dtype | str | None) -> tuple[str, ...]:
    """Return the advice to use double precision; nothing if the matrix has it already.

    Parameters
    ----------
    dtype : data type or None
        Scalar type of the matrix; None if it is unknown.

    Examples
    --------
    >>> double_precision("float32"), double_precision("complex64"), double_precision("float64")
    (('use float64',), ('use complex128',), ())
    """
    wider = None if dtype is None else _DOUBLE.get(np.dtype(dtype).name)
    return () if wider is None else (f"use {wider}",)
