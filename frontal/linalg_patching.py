"""Temporary replacement of functions in all modules that have them by name.

Each block replaces functions by wrappers of its own. They are found by identity when it ends, so
modules that imported a wrapper inside of the block, by ``from ... import``, get the original back,
and blocks may end in any order.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

Function = Callable[..., object]


class _Patch:
    """The wrappers of one block, and the modules in which they replace the originals."""

    def __init__(self, pairs: Mapping[Function, Function], names: tuple[str, ...]) -> None:
        self.active, self._names = True, names
        self.replacements = {id(old): self._wrapped(old, new) for old, new in pairs.items()}
        originals = zip(self.replacements.values(), pairs, strict=True)
        self.back = {id(mine): old for mine, old in originals}

    def _wrapped(self, old: Function, new: Function) -> Function:
        @functools.wraps(new)
        def standing(*arguments: object, **named: object) -> object:
            function = new if self.active else old  # a wrapper may outlive its block
            return function(*arguments, **named)

        return standing

    def concerns(self, name: str) -> bool:
        """Return whether a module is one of the named modules, or a submodule."""
        return (
            not self._names
            or name.startswith(tuple(f"{of}." for of in self._names))
            or (name in self._names)
        )


_lock = threading.Lock()
_active: list[_Patch] = []


@contextmanager
def replaced(
    pairs: Mapping[Function, Function], modules: tuple[str | ModuleType, ...]
) -> Iterator[None]:
    """Replace functions inside of a ``with`` block.

    Parameters
    ----------
    pairs : mapping
        From originals to replacements.
    modules : tuple of str or module
        Modules in which to replace, with their submodules; all, if empty.

    Raises
    ------
    ImportError
        If a module does not exist.
    """
    names = tuple(_imported(module) for module in modules)
    patch = _Patch(pairs, names)
    try:
        with _lock:
            _active.append(patch)
            _apply(patch)
        yield
    finally:
        with _lock:
            patch.active = False
            _active.remove(patch)
            _exchange(patch.back, lambda _: True)
            for remaining_patch in _active:  # an outer or concurrent block may replace it, too
                _apply(remaining_patch)


def _imported(module: str | ModuleType) -> str:
    if isinstance(module, ModuleType):
        return module.__name__
    importlib.import_module(module)
    return module


def _apply(patch: _Patch) -> None:
    _exchange(patch.replacements, patch.concerns)


def _exchange(replacements: Mapping[int, Function], concerned: Callable[[str], bool]) -> None:
    """Replace functions with these identities in the namespaces of modules."""
    for module_name, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", None)
        if type(names) is not dict or not concerned(module_name):
            continue
        for name, value in list(names.items()):
            if id(value) in replacements:
                names[name] = replacements[id(value)]
