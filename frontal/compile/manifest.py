"""List of the functions and types that each kind of system compiles: `signatures.json`.

Types of Numba are lists there, of JSON values and of indices of other types in one table:
``["array", 3, 1, "C", ""]``, ``["tuple", 1, 2]``, ``["named", "module:name", 1, 2]``.
"""

from __future__ import annotations

import importlib
import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import from_dtype, types
from numba.np.numpy_support import as_dtype

from .._typing import Untyped

FILE = Path(__file__).with_name("signatures.json")


class UnknownTypeError(TypeError):
    """A type without a representation in the file: it holds an address, or is unsupported."""


class Item(NamedTuple):
    """A function for some types.

    Attributes
    ----------
    function : str
        As ``"module:name"``.
    arguments : tuple of int
        Indices of types in the table.
    seconds : float
        Time of compilation, without callees.
    needs : tuple of int
        Indices of the items that it calls.
    kinds : tuple of str
        Kinds of systems that need it.
    """

    function: str
    arguments: tuple[int, ...]
    seconds: float
    needs: tuple[int, ...]
    kinds: tuple[str, ...]


class Table:
    """Types by index, as read or to be written."""

    def __init__(self, rows: list[list[Untyped]] | None = None) -> None:
        self.rows = rows or []
        self._places = {json.dumps(row): place for place, row in enumerate(self.rows)}

    def place(self, kind: Untyped) -> int:
        """Return the index of a type; add it if it is missing.

        Examples
        --------
        >>> table = Table()
        >>> [table.place(kind) for kind in (types.int64, types.int64[:, ::1], types.int64)]
        [0, 1, 0]
        >>> table.rows, table.type(1)
        ([['int64'], ['array', 0, 2, 'C', '']], Array(int64, 2, 'C', False, aligned=True))
        """
        row = self._row(kind)
        place = self._places.setdefault(json.dumps(row), len(self.rows))
        if place == len(self.rows):
            self.rows.append(row)
        return place

    def _row(self, kind: Untyped) -> list[Untyped]:
        untyped: Untyped = kind
        if isinstance(kind, types.Array) and type(kind) is types.Array:
            flags = "" if kind.mutable else "r"
            flags += "" if kind.aligned else "u"
            return ["array", self.place(kind.dtype), kind.ndim, kind.layout, flags]
        if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
            return ["named", _name(kind.instance_class), *map(self.place, kind.types)]
        if isinstance(kind, types.BaseTuple):
            return ["tuple", *map(self.place, untyped.types)]
        if isinstance(kind, types.Literal):
            return ["literal", kind.literal_value]
        if isinstance(kind, types.Record):
            return ["record", *_fields(as_dtype(kind))]
        if isinstance(kind, types.Number | types.Boolean | types.NoneType):
            return [str(kind)]
        if type(kind).__name__ == "Reference":
            return ["borrowed", _name(type(kind)), self.place(kind.dtype)]
        if type(kind).__name__ == "MethodType":
            return ["method", _name(type(kind)), untyped.method.name.upper()]
        raise UnknownTypeError(str(kind))

    def type(self, place: int) -> Untyped:
        """Return the type at an index."""
        what, *rest = self.rows[place]
        if what == "array":
            dtype, ndim, layout, flags = rest
            aligned = {"readonly": "r" in flags, "aligned": "u" not in flags}
            return types.Array(self.type(dtype), ndim, layout, **aligned)
        if what == "named":
            return types.BaseTuple.from_types([self.type(k) for k in rest[1:]], _named(rest[0]))
        if what == "tuple":
            return types.BaseTuple.from_types([self.type(k) for k in rest])
        if what == "literal":
            return types.literal(rest[0])
        if what == "record":
            return from_dtype(np.dtype([(name, form) for name, form in rest]))
        if what == "borrowed":
            return _named(rest[0])(self.type(rest[1]))
        if what == "method":
            return _named(rest[0])(_named(f"frontal.numeric.method:{rest[1]}"))
        return types.boolean if what == "bool" else getattr(types, what)


def _fields(dtype: np.dtype) -> list[tuple[str, str]]:
    fields = [(name, dtype[name].str) for name in dtype.names or ()]
    if np.dtype(fields) != dtype:
        raise UnknownTypeError(str(dtype))
    return fields


def _name(definition: Untyped) -> str:
    return f"{definition.__module__}:{definition.__qualname__}"


def _named(name: str) -> Untyped:
    module, attribute = name.split(":")
    return getattr(importlib.import_module(module), attribute)


@cache
def known() -> tuple[Table, list[Item]]:
    """Return all types and items of the file."""
    read = json.loads(FILE.read_text(encoding="utf-8"))
    kinds = read["kinds"]
    items = [
        Item(name, tuple(arguments), seconds, tuple(needs), tuple(kinds[k] for k in places))
        for name, arguments, seconds, needs, places in read["items"]
    ]
    return Table(read["types"]), items


def write(table: Table, items: list[Item]) -> None:
    """Replace the file, one item a line."""
    kinds = sorted({kind for item in items for kind in item.kinds})
    rows = [[*item[:4], [kinds.index(kind) for kind in item.kinds]] for item in items]
    parts = (
        '{"kinds": ' + json.dumps(kinds),
        '"types": [\n' + ",\n".join(map(json.dumps, table.rows)) + "]",
        '"items": [\n' + ",\n".join(map(json.dumps, rows)) + "]}\n",
    )
    FILE.write_text(",\n".join(parts), encoding="utf-8")


def levels(items: list[Item]) -> list[float]:
    """Return seconds from the start of each item to the end of its longest chain of callers.

    Examples
    --------
    >>> levels([Item("f", (), 1.0, (), ()), Item("g", (), 2.0, (0,), ())])
    [3.0, 2.0]
    """
    spans = [0.0] * len(items)
    for place in reversed(range(len(items))):  # callees precede callers
        spans[place] += items[place].seconds
        for need in items[place].needs:
            spans[need] = max(spans[need], spans[place])
    return spans


def dispatcher(item: Item) -> Untyped:
    """Return the function of an item."""
    return _named(item.function)


def signature(table: Table, item: Item) -> tuple[types.Type, ...]:
    """Return the types of an item."""
    return tuple(table.type(place) for place in item.arguments)
