"""Pickles that store the version of this package, and that no other version reads."""

from __future__ import annotations

import pickle
import sys
from importlib.abc import MetaPathFinder

from .. import __version__

# Modules of frontal 0.2 that its pickles name first, and that exist no more.
_FORMER_MODULES = {"frontal.symbolic.symbolic", "frontal.values"}


class Versioned:
    """An object that is pickled with the version of this package.

    Attributes change between versions, so that an older pickle could be silently wrong. The version
    precedes the attributes: it is checked before any class of theirs is looked up. Pickles run what
    they contain: load none from others; `Analysis.save` writes files for that.
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
        f"this pickle was made by {maker}, and frontal {__version__} is installed: a pickle is for "
        "the version that made it. Make it again, or store analyses by Analysis.save, whose files "
        "later versions check"
    )


class _FormerModules(MetaPathFinder):
    """Explains why pickles of frontal 0.2 cannot be read; it comes after all other finders."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Raise for a module that only pickles of frontal 0.2 name.

        Raises
        ------
        ImportError
        """
        if fullname in _FORMER_MODULES:
            raise ImportError(f"there is no {fullname}: {_refusal('frontal 0.2 or before')}")


sys.meta_path.append(_FormerModules())
