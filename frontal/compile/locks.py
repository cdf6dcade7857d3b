"""Who compiles which function: several processes take turns, and nobody does it twice."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

MAX_WAIT_SECONDS = 30.0  # seconds that one waits for a function that another one compiles
_PAUSE = 0.005


class CompileLocks:
    """Files in a folder, one for each function that is being compiled, with the name of who does.

    Parameters
    ----------
    folder : path
        Of these files, while some processes work together. Without it each works alone.
    who : str
        The name of this process among them.
    alive : callable
        Tells of a name whether that process still works.
    lost : callable
        Called with the name of who has taken too long.
    """

    def __init__(
        self,
        folder: Path,
        who: str,
        alive: Callable[[str], bool] = lambda name: True,
        lost: Callable[[str], None] = lambda name: None,
    ) -> None:
        self._folder, self._who, self._alive, self._lost = folder, who, alive, lost

    def take(self, name: str) -> bool:
        """Claim a function, if nobody else has.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> mine, theirs = CompileLocks(folder, "mine"), CompileLocks(folder, "theirs")
        >>> mine.take("f"), theirs.take("f"), mine.take("f"), mine.release("f"), theirs.take("f")
        (True, False, True, None, True)
        """
        try:
            with (self._folder / name).open("x") as stream:
                stream.write(self._who)
        except FileExistsError:
            return self._holder(name) == self._who
        except OSError:  # no folder any more
            pass
        return True

    def release(self, name: str) -> None:
        """Tell that a function is compiled, or will not be."""
        with contextlib.suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def wait(self, name: str) -> None:
        """Wait until who compiles a function is done, has died, or has taken too long."""
        until = time.monotonic() + MAX_WAIT_SECONDS
        while (holder := self._holder(name)) is not None:
            if time.monotonic() > until:
                self._lost(holder)
                return
            if holder and not self._alive(holder):
                return
            time.sleep(_PAUSE)

    def _holder(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text()
        except OSError:
            return None


def mark_of(folder: Path, kind: str) -> Path:
    """A file that says that a kind of system is being compiled for; in the end `DONE`."""
    return folder / ("helped-" + kind.replace(" ", "-"))


DONE = b"done"
shared: list[CompileLocks] = []  # the last one counts; empty where this process works alone


def current() -> CompileLocks | None:
    """Those of this process, if others work with it; a thread may end that at any time."""
    return next(iter(shared[-1:]), None)
