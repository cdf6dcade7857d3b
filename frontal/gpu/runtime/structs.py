"""Structs and constants shared by kernels and host, defined once for C++ and for NumPy.

A `StructHeader` is a file of ``kernels/`` that ``python -m tests.structs`` writes from its
definition here: readers of a kernel find each struct by name in a header, and a test compares the
two. Every kernel that includes the header asserts at compile time that sizes and offsets are those
of NumPy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .array import Array
    from .device import Device

    Field = Array | np.number | float | Mapping[str, "Field"] | None

_NUMBERS = {"int": "i4", "long long": "i8", "double": "f8"}
_PREFACE = """// Made by `python -m tests.structs` of frontal/gpu/{source}; not to be edited.
#pragma once
{includes}
// NVRTC 12 knows no __builtin_offsetof.
#ifndef OFFSET_OF
#ifdef __CUDACC_RTC__
#define OFFSET_OF(type, field) __INTADDR__(&((type *)0)->field)
#else
#define OFFSET_OF(type, field) __builtin_offsetof(type, field)
#endif
#endif
"""


@dataclass(frozen=True)
class Struct:
    """A struct, by the C types of its fields.

    Attributes
    ----------
    name : str
    about : str
        A comment; lines of at most 96 characters.
    fields : mapping of str to str
        Declared type of each field (``"const T *"``, ``"int"``, the name of a struct of `parts`) by
        name, in order. A type with ``T`` in it makes the struct a template over the scalar; all
        scalars must give one layout.
    comments : mapping of str to str
        Comments by field.
    align : int, optional
        Alignment in bytes, if larger than that of the fields.
    parts : tuple of Struct
        Structs that are fields.
    functions : tuple of str
        Declarations of member functions, which kernel files define.
    """

    name: str
    about: str
    fields: Mapping[str, str]
    comments: Mapping[str, str]
    align: int = 0
    parts: tuple[Struct, ...] = ()
    functions: tuple[str, ...] = ()

    def dtype_for(self, scalar: npt.DTypeLike = np.float64) -> np.dtype:
        """Return the NumPy type of the struct in kernels for a scalar type."""
        real = np.dtype(scalar).char.lower()
        if real not in self._dtypes:
            self._dtypes[real] = self._dtype_with(real)
        return self._dtypes[real]

    @cached_property
    def _dtypes(self) -> dict[str, np.dtype]:
        """NumPy types by the letter of the real type."""
        return {}

    def _dtype_with(self, real: str) -> np.dtype:
        nested = {part.name: part.dtype_for(real) for part in self.parts}
        types: dict[str, npt.DTypeLike] = {**_NUMBERS, "real_t<T>": real, **nested}
        fields = [(n, "u8" if t.endswith("*") else types[t]) for n, t in self.fields.items()]
        return np.dtype(fields, align=True)

    @cached_property
    def dtype(self) -> np.dtype:
        """`dtype_for` of a struct that is the same for all scalars."""
        return self.dtype_for()

    @property
    def template(self) -> bool:
        """Whether the scalar is a template parameter of the struct in C++."""
        return any(re.search(r"\bT\b", kind) for kind in self.fields.values())

    def definition(self) -> str:
        """Return the struct in C++."""
        before = "template <class T> " * self.template
        aligned = f"alignas({self.align}) " * bool(self.align)
        lines = [*_comment(self.about), f"{before}struct {aligned}{self.name} {{"]
        for name, kind in self.fields.items():
            lines += ["    " + line for line in _comment(self.comments.get(name, ""))]
            is_template = self.template and any(p.name == kind and p.template for p in self.parts)
            space = "" if kind.endswith("*") else " "
            lines.append(f"    {kind}{'<T>' * is_template}{space}{name};")
        return "\n".join([*lines, *(f"    {declared}" for declared in self.functions), "};"])

    def checks(self) -> str:
        """Return static assertions that compare the layout in C++ with that of NumPy.

        Raises
        ------
        ValueError
            If the layout depends on the scalar, or the size is not a multiple of the alignment.
        """
        narrow, wide = self.dtype_for(np.float32), self.dtype_for(np.float64)
        size, offsets = wide.itemsize, _offsets(wide)
        if (narrow.itemsize, _offsets(narrow)) != (size, offsets):
            raise ValueError(
                f"the layout of {self.name} depends on the scalar type: pad the real fields"
            )
        if size % max(self.align, 1):
            raise ValueError(f"{self.name} has {size} bytes, not a multiple of {self.align}")
        kind = f"{self.name}<SCALAR>" if self.template else self.name
        lines = [f"static_assert(sizeof({kind}) == {size});"]
        for name, offset in offsets.items():
            lines.append(f"static_assert(OFFSET_OF({kind}, {name}) == {offset});")
        return "\n".join(lines)


@dataclass(frozen=True)
class StructHeader:
    """A header file of structs and constants.

    Attributes
    ----------
    path : str
        Name of the file in ``kernels/``.
    source : str
        The module that defines it, in ``frontal/gpu/``.
    about : str
        Comment at the top of the file.
    includes : tuple of str
        Files that it includes.
    constants : mapping of str to (int, str)
        Value and comment, by name.
    structs : tuple of Struct
        In order: parts precede the structs that contain them.
    declared : tuple of str
        Forward declarations.
    """

    path: str
    source: str
    about: str
    includes: tuple[str, ...]
    constants: Mapping[str, tuple[int, str]]
    structs: tuple[Struct, ...]
    declared: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the text of the file."""
        includes = "".join(f'#include "{name}"\n' for name in self.includes)
        about = "\n".join([*_comment(self.about), "//", ""])
        head = about + _PREFACE.format(source=self.source, includes=includes)
        constants = "".join(
            f"// {about}\nconstexpr int {name} = {value if value < 1 << 16 else hex(value)};\n"
            for name, (value, about) in self.constants.items()
        )
        definitions = "\n\n".join(struct.definition() for struct in self.structs)
        checks = "\n\n".join(struct.checks() for struct in self.structs)
        declared = "".join(f"{line}\n\n" for line in self.declared)
        return f"{head}\n{constants}\n{declared}{definitions}\n\n{checks}\n"


def _comment(text: str) -> list[str]:
    return [f"// {line}".rstrip() for line in text.splitlines()]


def _offsets(dtype: np.dtype) -> dict[str, int]:
    return {name: field[1] for name, field in (dtype.fields or {}).items()}


def filled(
    device: Device, struct: Struct, scalar: npt.DTypeLike = np.float64, /, **values: Field
) -> np.ndarray:
    """Return a struct as an argument of a kernel, with a value for each of its fields.

    Parameters
    ----------
    values
        A device array, stored by address; None for a null pointer; a number; or for a field that is
        a struct, a mapping of its values.

    Returns
    -------
    numpy.ndarray, 0-d
        Of untyped bytes: CuPy is slow with structured types.

    Raises
    ------
    TypeError
        If a field has no value, or a value no field.
    """
    dtype = struct.dtype_for(scalar)
    out = np.zeros((), dtype)
    _fill(device, out, values, struct.name)
    return out.view(f"V{dtype.itemsize}")


def _fill(device: Device, out: np.ndarray, values: Mapping[str, Field], name: str) -> None:
    if missing := set(out.dtype.names or ()) ^ set(values):
        raise TypeError(f"fields and values of {name} differ: {', '.join(sorted(missing))}")
    for field, value in values.items():
        if isinstance(value, Mapping):
            _fill(device, out[field], value, f"{name}.{field}")
        elif isinstance(value, int | float | np.number):
            out[field] = value
        else:
            out[field] = device.pointer(value)
