"""Files that a command writes, checked before its work begins."""

from __future__ import annotations

import os
from pathlib import Path

VECTORS = (".npy", ".txt", ".mtx", ".mtx.gz", ".mtx.bz2", ".mm", ".mm.gz", ".mm.bz2")


def require_vector(path: str | None) -> None:
    """Raise if no vector can be written to a file.

    Raises
    ------
    OSError, ValueError
    """
    if path is None:
        return
    if not path.lower().endswith(VECTORS):
        raise ValueError(f"{path} has an unknown ending; these are known: {', '.join(VECTORS)}")
    require_folder(path)


def require_folder(path: str | None, create: bool = False) -> None:
    """Raise if no file can be written in a folder, or if the name of the file is that of a folder.

    Parameters
    ----------
    path : str or None
        Of the file; nothing is checked without it.
    create : bool
        Folders that are missing will be created.

    Raises
    ------
    OSError
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
