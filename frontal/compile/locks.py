"""Locks on functions being compiled, so that no two processes compile the same one."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

MAX_WAIT_SECONDS = 30.0  # longest wait for another process to compile a function
_PAUSE = 0.005  # seconds between two checks


class CompileLocks:
    """Files in a folder, one for each function being compiled, with the name of the process.

    Parameters
    ----------
    folder : path
    who : str
        Name of this process.
    workers : sequence of subprocess.Popen
        Processes named by their index. A function of one that has ended is not waited for, and one
        that takes too long is killed.
    """

    def __init__(
        self, folder: Path, who: str, workers: Sequence[subprocess.Popen[bytes]] = ()
    ) -> None:
        self._folder, self._who, self._workers = folder, who, workers

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
            worker = self._workers[int(holder)] if self._workers and holder.isdigit() else None
            if time.monotonic() > until:
                if worker is not None:
                    worker.kill()
                return
            if worker is not None and worker.poll() is not None:
                return
            time.sleep(_PAUSE)

    def _holder(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text()
        except OSError:
            return None


active: CompileLocks | None = None  # while processes cooperate; a thread may end that any time
