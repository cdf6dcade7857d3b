"""List of the functions and types that each kind of system compiles: `signatures.json`.

Types of Numba are lists there, of JSON values and of indices of other types in one table:
``["array", 3, 1, "C", ""]``, ``["tuple", 1, 2]``, ``["named", "module:name", 1, 2]``.
`tests.signatures` writes the file.
"""

from __future__ import annotations

import importlib
import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import from_dtype, types

from .._typing import Untyped

FILE = Path(__file__).with_name("signatures.json")


class Item(NamedTuple):
    """A function for some types.

    Attributes
    ----------
    function : str
        As ``"module:name"``, with ``":called"`` as its ending if compiled code calls it.
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


class Manifest(NamedTuple):
    """The contents of the file: types as lists, and items."""

    types: list[list[Untyped]]
    items: list[Item]

    def type(self, place: int) -> Untyped:
        """Return the type at an index.

        Examples
        --------
        >>> Manifest([["int64"], ["array", 0, 2, "C", ""]], []).type(1)
        Array(int64, 2, 'C', False, aligned=True)
        """
        what, *rest = self.types[place]
        if what == "array":
            dtype, ndim, layout, flags = rest
            aligned = {"readonly": "r" in flags, "aligned": "u" not in flags}
            return types.Array(self.type(dtype), ndim, layout, **aligned)
        if what == "named":
            return types.BaseTuple.from_types([self.type(k) for k in rest[1:]], named(rest[0]))
        if what == "tuple":
            return types.BaseTuple.from_types([self.type(k) for k in rest])
        if what == "record":
            return from_dtype(np.dtype([(name, form) for name, form in rest]))
        if what == "borrowed":
            return named(rest[0])(self.type(rest[1]))
        if what == "method":
            return named(rest[0])(named(f"frontal.numeric.method:{rest[1]}"))
        return types.boolean if what == "bool" else getattr(types, what)

    def signature(self, item: Item) -> tuple[Untyped, ...]:
        """Return the types of an item."""
        return tuple(map(self.type, item.arguments))

    def levels(self) -> list[float]:
        """Return seconds from the start of each item to the end of its longest chain of callers.

        Examples
        --------
        >>> Manifest([], [Item("f", (), 1.0, (), ()), Item("g", (), 2.0, (0,), ())]).levels()
        [3.0, 2.0]
        """
        spans = [0.0] * len(self.items)
        for place in reversed(range(len(self.items))):  # callees precede callers
            spans[place] += self.items[place].seconds
            for need in self.items[place].needs:
                spans[need] = max(spans[need], spans[place])
        return spans


def named(name: str) -> Untyped:
    """Return the object ``"module:name"``, or what compiled code calls instead (``":called"``)."""
    module, attribute, *called = name.split(":")
    outer = getattr(importlib.import_module(module), attribute)
    return outer.for_callers() if called else outer


@cache
def known() -> Manifest:
    """Return the contents of the file."""
    read = json.loads(FILE.read_text(encoding="utf-8"))
    kinds = read["kinds"]
    items = [
        Item(name, tuple(arguments), seconds, tuple(needs), tuple(kinds[k] for k in places))
        for name, arguments, seconds, needs, places in read["items"]
    ]
    return Manifest(read["types"], items)
