"""Checks of output files before a command begins its work."""

from __future__ import annotations

import os
from pathlib import Path

VECTORS = (".npy", ".txt", ".mtx", ".mtx.gz", ".mtx.bz2", ".mm", ".mm.gz", ".mm.bz2")


def require_vector(path: str | None) -> None:
    """Raise OSError or ValueError if no vector can be written to the file `path`."""
    if path is None:
        return
    if not path.lower().endswith(VECTORS):
        raise ValueError(
            f"{path} has an unknown file extension; known extensions: {', '.join(VECTORS)}"
        )
    require_folder(path)


def require_folder(path: str | None, create: bool = False) -> None:
    """Raise OSError if no file can be written to the folder of `path`, or if `path` is a folder.

    None is accepted; with `create`, missing folders will be created later.
    """
    if path is None:
        return
    folder = Path(path).absolute().parent
    while create and not folder.exists():
        folder = folder.parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{path} cannot be written: there is no folder {Path(path).parent}. Try: create it"
        )
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} cannot be written: it is a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{path} cannot be written: no permission to write in {folder}")
