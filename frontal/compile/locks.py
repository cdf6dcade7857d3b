"""Locks on functions being compiled, so that no two processes compile the same one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

MAX_WAIT_SECONDS = 30.0  # longest wait for another process to compile a function
_PAUSE = 0.005  # seconds between two checks


class CompileLocks:
    """Files in a folder, one for each function being compiled, with the name of the process.

    Parameters
    ----------
    folder : path
        Folder of the files, while several processes cooperate; without it each works alone.
    who : str
        Name of this process.
    alive : callable
        Returns whether the process of a name is running.
    lost : callable
        Called with the name of a process that has taken too long.
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
        """Claim a function unless another process has; return whether this process has it.

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
        except OSError:  # the folder is deleted
            pass
        return True

    def release(self, name: str) -> None:
        """Release a function that is compiled, or will not be."""
        with contextlib.suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def wait(self, name: str) -> None:
        """Wait until the process that compiles a function is done, has died, or takes too long."""
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
    """Return the file that marks a kind of system as being compiled, or in the end as `DONE`."""
    return folder / ("helped-" + kind.replace(" ", "-"))


DONE = b"done"
shared: list[CompileLocks] = []  # the last one is active; empty if this process works alone


def current() -> CompileLocks | None:
    """Return the locks of this process while others cooperate; a thread may end that any time."""
    return next(iter(shared[-1:]), None)
