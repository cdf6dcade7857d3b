"""Machine code that is made once: of functions that Python calls, with all that they call.

Numba makes machine code of each function together with all that it calls, and does so again in
each caller. Here what only compiled code calls is a `BitcodeUnit`, whose code is kept as it is
before functions are put together, and a `LinkedUnit` takes in the code of its parts, is optimized,
and is made machine code.
"""

from __future__ import annotations

from typing import NamedTuple

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary

from .._typing import Untyped


class Stamp(NamedTuple):
    """A file of compiled code: its name, and the checksum of what is in it."""

    name: str
    checksum: bytes


class _Silent:
    """Stands for the code generator, where a function has no address to be told anything at."""

    def set_env(self, name: str, environment: object) -> None:
        """Do nothing."""


class _SharedPassLibrary(JITCodeLibrary):
    """As Numba's, but that it makes one manager of passes for all functions of a module."""

    def add_ir_module(self, ir_module: Untyped) -> None:
        """Take in code as llvmlite has it, a net of many small objects, and untie that."""
        super().add_ir_module(ir_module)
        for function in ir_module.functions:
            for block in function.blocks:
                block.instructions.clear()
            function.blocks.clear()

    def _optimize_functions(self, ll_module: Untyped) -> None:
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class BitcodeUnit(_SharedPassLibrary):
    """The code of one function, without machine code of its own.

    Attributes
    ----------
    stamp : Stamp or None
        Where it is on disk.
    """

    stamp: Stamp | None = None

    @property
    def codegen(self) -> Untyped:
        """What is told of the environment of a function."""
        return _Silent()

    @property
    def has_dynamic_globals(self) -> bool:
        """Whether it holds addresses of this process."""
        self._ensure_finalized()
        return any(library._dynamic_globals for library in reached(self))

    def finalize(self) -> None:
        """End it: callers may define the same functions again."""
        self._raise_if_finalized()
        self._finalize_dynamic_globals()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """0: there is none."""
        self._ensure_finalized()
        return 0

    def _get_module_for_linking(self) -> Untyped:
        """With all that it calls, for libraries of Numba's own."""
        self._ensure_finalized()
        if self._shared_module is None:
            self._shared_module = _linked(reached(self))
        return self._shared_module

    def serialize_using_object_code(self) -> Untyped:
        """Its name, its kind, its code with what is in no file, and the files of all else."""
        stamps: list[Stamp] = []
        inlined: list[Untyped] = []
        for library in reached(self, ends=lambda unit: unit is not self and _stamp(unit)):
            stamp = None if library is self else _stamp(library)
            inlined.append(library) if stamp is None else stamps.append(stamp)
        return self.name, BITCODE, (_linked(inlined).as_bitcode(), stamps)

    @classmethod
    def read(
        cls, codegen: Untyped, name: str, bitcode: bytes, calls: list[BitcodeUnit]
    ) -> BitcodeUnit:
        """Of what `serialize_using_object_code` wrote, and the parts that it calls."""
        unit = cls(codegen, name)
        unit._final_module = llvm.parse_bitcode(bitcode)
        unit._linking_libraries = [*calls]
        unit.finalize()
        return unit


BITCODE = "part"


LINKED = "whole"


class LinkedUnit(_SharedPassLibrary):
    """The machine code of one function and of all that it calls, optimized together."""

    _bitcode: bytes | None = None  # of what was read, for callers in compiled code

    def finalize(self) -> None:
        """Take in the code of all that it calls, then as Numba does."""
        libraries = [library for library in reached(self) if library is not self]
        self._linking_libraries = [
            _UnitWithoutCallees(unit) if isinstance(unit, BitcodeUnit) else unit
            for unit in libraries
        ]
        super().finalize()

    def _get_module_for_linking(self) -> Untyped:
        """As Numba's, of what was read too."""
        if self._shared_module is None and self._bitcode is not None:
            self._shared_module = llvm.parse_bitcode(self._bitcode)
        return super()._get_module_for_linking()

    def serialize_using_object_code(self) -> Untyped:
        """As Numba's, with the names of what it defines."""
        name, _, (machine_code, bitcode) = super().serialize_using_object_code()
        module = self._get_module_for_linking()
        defined = [
            symbol.name
            for symbols in (module.functions, module.global_variables)
            for symbol in symbols
            if not symbol.is_declaration
        ]
        return name, LINKED, (machine_code, bitcode, defined)

    @classmethod
    def read(cls, codegen: Untyped, written: Untyped) -> LinkedUnit:
        """Of what `serialize_using_object_code` wrote, whose bitcode is seldom looked at."""
        name, _, (machine_code, bitcode, defined) = written
        unit = cls(codegen, name)
        unit._bitcode = bitcode
        unit.enable_object_caching()
        unit._set_compiled_object(machine_code)
        unit._finalize_final_module()
        codegen._engine._defined_symbols.update(defined)
        return unit


class _UnitWithoutCallees:
    """A part without what it calls."""

    def __init__(self, unit: BitcodeUnit) -> None:
        self._unit, self._reload_init = unit, unit._reload_init

    def _get_module_for_linking(self) -> Untyped:
        return self._unit._final_module


def _stamp(library: Untyped) -> Stamp | None:
    return getattr(library, "stamp", None)


def reached(library: Untyped, ends: Untyped = None) -> list[Untyped]:
    """A library, those that it calls, and those that parts among them call.

    Callers come first: LLVM leaves out a function that nothing has called so far.

    Parameters
    ----------
    library : CodeLibrary
    ends : callable, optional
        Tells whose calls are not looked at.
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


def _linked(libraries: list[Untyped]) -> Untyped:
    """One module of the code of libraries."""
    first, *others = libraries
    module = first._final_module.clone()
    for library in others:
        final_module = library._final_module if isinstance(library, BitcodeUnit) else None
        module.link_in(final_module or library._get_module_for_linking(), preserve=True)
    return module
