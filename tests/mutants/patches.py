"""The patches of this folder: what is wrong in each, and the tests that must fail with it.

A patch begins with header lines ``# what: the bug`` and ``# kills: tests/test_x.py[::test_name]``.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
_HEADER = re.compile(r"^# (what|kills): (.+)$", re.M)
_CHANGED = re.compile(r"^\+\+\+ b/(\S+)", re.M)


@dataclass(frozen=True)
class Patch:
    """One bug.

    Attributes
    ----------
    path : Path
    what : str
        The bug in words.
    kills : str
        The test file, or one test of it, that must fail.
    changed : tuple of str
        The files that it edits.
    """

    path: Path
    what: str
    kills: str
    changed: tuple[str, ...]

    @property
    def name(self) -> str:
        """File name without its ending."""
        return self.path.stem

    def apply(self, tree: Path, *options: str) -> None:
        """Put the bug into a tree, a work tree of Git or not.

        Raises
        ------
        subprocess.CalledProcessError
            If the lines that it is about are not there any more.
        """
        command = ["git", "apply", "-C1", *options, str(self.path)]
        subprocess.run(command, cwd=tree, check=True, capture_output=True)


def read(path: Path) -> Patch:
    """Read a patch; a missing header is a ValueError."""
    text = path.read_text(encoding="utf-8")
    header = dict(_HEADER.findall(text))
    changed = tuple(_CHANGED.findall(text))
    if set(header) != {"what", "kills"} or not changed:
        raise ValueError(f"{path.name} needs lines '# what: ...', '# kills: ...' and a diff")
    return Patch(path, header["what"], header["kills"], changed)


def patches() -> list[Patch]:
    """All of them, by name."""
    return [read(path) for path in sorted(FOLDER.glob("*.patch"))]
