"""Pickles that store the version of this package and that other versions refuse to read."""

from __future__ import annotations

import pickle
import sys
from importlib.abc import MetaPathFinder

from .. import __version__

# Removed modules of frontal 0.2, those that its pickles name first.
_FORMER_MODULES = {"frontal.symbolic.symbolic", "frontal.values"}


class Versioned:
    """Base class of objects that are pickled with the version of this package.

    Attributes change between versions, so an older pickle could be silently wrong. The version
    precedes the attributes in the pickle and is checked before any class of theirs is looked up.
    Pickles execute code: load only trusted ones; `Analysis.save` writes safe files.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return _empty, (__version__, type(self)), dict(self.__dict__)


def _empty(version: str, cls: type[Versioned]) -> Versioned:
    """Return an instance without attributes.

    Raises
    ------
    pickle.UnpicklingError
        If another version made the pickle.
    """
    if version != __version__:
        raise pickle.UnpicklingError(_refusal(f"frontal {version}"))
    return cls.__new__(cls)


def _refusal(maker: str) -> str:
    return (
        f"this pickle was written by {maker}, but frontal {__version__} is installed: only the "
        "version that wrote a pickle can read it. Try: write it again, or store analyses by "
        "Analysis.save, whose files later versions check"
    )


class _FormerModules(MetaPathFinder):
    """Finder that explains why pickles of frontal 0.2 cannot be read; the last of all finders."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Raise for a module that only pickles of frontal 0.2 name.

        Raises
        ------
        ImportError
        """
        if fullname in _FORMER_MODULES:
            raise ImportError(f"there is no module {fullname}: {_refusal('frontal 0.2 or before')}")


sys.meta_path.append(_FormerModules())
