"""Pickles that say which version made them, and that no other one reads."""

from __future__ import annotations

import pickle

from .. import __version__

_VERSION = "frontal"  # the name it has in a pickle


class Versioned:
    """An object that is pickled with the version of this package.

    What it is made of changes between versions, and a foreign one would be silently wrong. Pickles
    run what they contain: load none that others made; `Analysis.save` makes files for that.
    """

    def __getstate__(self) -> dict[str, object]:
        return {_VERSION: __version__, "content": dict(self.__dict__)}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Take what `__getstate__` gave.

        Raises
        ------
        pickle.UnpicklingError
            If another version did.
        """
        made = state.get(_VERSION) if isinstance(state, dict) else None
        content = state.get("content") if made == __version__ else None
        if not isinstance(content, dict):
            raise pickle.UnpicklingError(
                f"this pickle was made by frontal {made or 'of another time'}, and frontal "
                f"{__version__} is installed: a pickle is for the version that made it. Make it "
                "again, or keep analyses by Analysis.save, whose files later versions check"
            )
        self.__dict__.update(content)
