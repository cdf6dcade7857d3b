"""Functions that stand for others, wherever modules have these by name, and for a while only.

Each block of code puts functions of its own in place of the originals, which are found again by
what they are, not by where they were put: modules that took one over inside of the block, as
``from ... import`` does, have the original back, and nothing has to be undone in order.
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
    """What stands for the originals in one block, and in which modules."""

    def __init__(self, pairs: Mapping[Function, Function], names: tuple[str, ...]) -> None:
        self.active, self._names = True, names
        self.replacements = {id(old): self._wrapped(old, new) for old, new in pairs.items()}
        originals = zip(self.replacements.values(), pairs, strict=True)
        self.back = {id(mine): old for mine, old in originals}

    def _wrapped(self, old: Function, new: Function) -> Function:
        @functools.wraps(new)
        def standing(*arguments: object, **named: object) -> object:
            function = new if self.active else old  # who has kept it beyond the block
            return function(*arguments, **named)

        return standing

    def concerns(self, name: str) -> bool:
        """Whether a module is one of those named, or inside of one."""
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
    """Have functions stand for others inside of a ``with`` block.

    Parameters
    ----------
    pairs : mapping
        From the originals to what stands for them.
    modules : tuple of str or module
        Where, their submodules included; everywhere, if none is named.

    Raises
    ------
    ImportError
        If there is no such module.
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
            for remaining_patch in _active:  # what it was put in place of
                _apply(remaining_patch)


def _imported(module: str | ModuleType) -> str:
    if isinstance(module, ModuleType):
        return module.__name__
    importlib.import_module(module)
    return module


def _apply(patch: _Patch) -> None:
    _exchange(patch.replacements, patch.concerns)


def _exchange(replacements: Mapping[int, Function], concerned: Callable[[str], bool]) -> None:
    """Put functions in place of those with these identities, where modules have them by name."""
    for module_name, module in list(sys.modules.items()):
        names = getattr(module, "__dict__", None)
        if type(names) is not dict or not concerned(module_name):
            continue
        for name, value in list(names.items()):
            if id(value) in replacements:
                names[name] = replacements[id(value)]
