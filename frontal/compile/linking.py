"""Linking of compiled functions, so that machine code is generated only once.

Numba generates machine code of each function together with all its callees, again for each
caller. Here a function for callers in compiled code is a `BitcodeUnit`, stored as code before
linking. A `LinkedUnit`, a function for Python, links the bitcode of its callees, optimizes it and
generates machine code. A function with callers of both kinds is compiled as both.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary

from .._typing import Untyped

BITCODE, LINKED = "part", "whole"  # what a file holds
_NO_ADDRESSES = SimpleNamespace(set_env=lambda name, environment: None)  # as a code generator


class Stamp(NamedTuple):
    """A file of compiled code: its name, and the checksum of its contents."""

    name: str
    checksum: bytes


class BitcodeUnit(JITCodeLibrary):
    """The code of one function, without machine code.

    Attributes
    ----------
    stamp : Stamp or None
        Its file on disk.
    """

    stamp: Stamp | None = None

    @property
    def codegen(self) -> Untyped:
        """Receiver of the environment of a function."""
        return _NO_ADDRESSES

    @property
    def has_dynamic_globals(self) -> bool:
        """Whether the code contains addresses of this process."""
        self._ensure_finalized()
        return any(library._dynamic_globals for library in reached(self))

    def finalize(self) -> None:
        """Finish the unit: callers may define the same functions again."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: a unit without machine code has no addresses."""
        self._ensure_finalized()
        return 0

    def _get_module_for_linking(self) -> Untyped:
        """Return the unit linked with all its callees, for Numba's own libraries."""
        self._ensure_finalized()
        if self._shared_module is None:
            self._shared_module = _link(self._final_module.clone(), reached(self)[1:])
        return self._shared_module

    def serialize_using_object_code(self) -> Untyped:
        """Return name, kind, the code of all units without a file, and the files of the others."""
        libraries = reached(self, ends=_stamp)[1:]
        stamps = [stamp for stamp in map(_stamp, libraries) if stamp]
        module = _link(
            self._final_module.clone(), [library for library in libraries if not _stamp(library)]
        )
        return self.name, BITCODE, (module.as_bitcode(), stamps)

    @classmethod
    def read(
        cls, codegen: Untyped, name: str, bitcode: bytes, calls: list[BitcodeUnit]
    ) -> BitcodeUnit:
        """Read the result of `serialize_using_object_code`, with the units that it calls."""
        unit = cls(codegen, name)
        unit._final_module = llvm.parse_bitcode(bitcode)
        unit._linking_libraries = [*calls]
        unit.finalize()
        return unit


class LinkedUnit(JITCodeLibrary):
    """The machine code of one function and all its callees, optimized together."""

    def finalize(self) -> None:
        """Link the code of all callees, then finalize as Numba does."""
        libraries = reached(self)[1:]
        for library in libraries:
            self._reload_init.update(library._reload_init)
        _link(self._final_module, libraries)
        self._linking_libraries = []
        super().finalize()

    def serialize_using_object_code(self) -> Untyped:
        """Return name, kind, machine code, and the names of all defined symbols."""
        module = self._final_module
        defined = [
            symbol.name
            for symbols in (module.functions, module.global_variables)
            for symbol in symbols
            if not symbol.is_declaration
        ]
        return self.name, LINKED, (self._get_compiled_object(), defined)

    @classmethod
    def read(cls, codegen: Untyped, written: Untyped) -> LinkedUnit:
        """Read the result of `serialize_using_object_code`."""
        name, _, (machine_code, defined) = written
        unit = cls(codegen, name)
        unit.enable_object_caching()
        unit._set_compiled_object(machine_code)
        unit._finalize_final_module()
        codegen._engine._defined_symbols.update(defined)
        return unit


def _stamp(library: Untyped) -> Stamp | None:
    return getattr(library, "stamp", None)


def reached(library: Untyped, ends: Callable[[Untyped], object] | None = None) -> list[Untyped]:
    """Return a library, its callees, and the callees of bitcode units among them.

    Callers come first: LLVM drops a function that has no caller so far.

    Parameters
    ----------
    library : CodeLibrary
    ends : callable, optional
        Returns whether the callees of a unit are skipped.
    """
    seen, last = {library}, []

    def visit(caller: Untyped) -> None:
        follow = caller is library or isinstance(caller, BitcodeUnit)
        if follow and not (ends is not None and ends(caller)):
            for called in caller._linking_libraries:
                if called not in seen:
                    seen.add(called)
                    visit(called)
        last.append(caller)

    visit(library)
    return last[::-1]


def _link(module: Untyped, libraries: list[Untyped]) -> Untyped:
    """Add the code of libraries to a module; return it."""
    for library in libraries:
        alone = isinstance(library, BitcodeUnit)
        code = library._final_module if alone else library._get_module_for_linking()
        module.link_in(code, preserve=True)
    return module
