"""The bugs of this folder: what is wrong in each, and the tests that must fail with it.

A bug is a row of `table.py` or `table_of_hosts.py`, or a patch that begins with header lines
``# what: the bug`` and ``# kills: tests/test_x.py[::test_name]``.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .table import OF_VERDICTS, Row
from .table_of_hosts import OF_HOSTS

ROWS = (*OF_VERDICTS, *OF_HOSTS)

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
_HEADER = re.compile(r"^# (what|kills): (.+)$", re.M)
_CHANGED = re.compile(r"^\+\+\+ b/(\S+)", re.M)


class StaleBugError(Exception):
    """The lines that a bug changes are not in the tree."""


@dataclass(frozen=True)
class Bug:
    """One bug.

    Attributes
    ----------
    name : str
    what : str
        The bug in words.
    kills : str
        The test file, or one test of it, that must fail.
    changed : tuple of str
        The files that it edits.
    edit : Path or Row
        A patch for Git, or one replacement in one file.
    """

    name: str
    what: str
    kills: str
    changed: tuple[str, ...]
    edit: Path | Row

    def check(self, tree: Path) -> None:
        """Raise if the bug does not fit the tree.

        Raises
        ------
        StaleBugError
        """
        if isinstance(self.edit, Row):
            self._replaced(tree, self.edit)
        else:
            self._git(tree, "--check")

    def apply(self, tree: Path) -> None:
        """Write the bug into a tree, a work tree of Git or not.

        Raises
        ------
        StaleBugError
            If the lines that it changes are missing, or the anchor of a row is not unique.
        """
        if isinstance(self.edit, Row):
            text = self._replaced(tree, self.edit)
            (tree / self.edit.file).write_text(text, encoding="utf-8")
        else:
            self._git(tree)

    def _replaced(self, tree: Path, row: Row) -> str:
        """Return the text of a row's file with its replacement."""
        text = (tree / row.file).read_text(encoding="utf-8")
        count = text.count(row.anchor)
        if count != 1:
            raise StaleBugError(f"{self.name}: {row.file} has its anchor {count} times, not once")
        return text.replace(row.anchor, row.replacement)

    def _git(self, tree: Path, *options: str) -> None:
        command = ["git", "apply", "-C1", *options, str(self.edit)]
        try:
            subprocess.run(command, cwd=tree, check=True, capture_output=True)
        except subprocess.CalledProcessError as error:
            raise StaleBugError(f"{self.name}: {error.stderr.decode()}") from error


def read(path: Path) -> Bug:
    """Read a patch; a missing header is a ValueError."""
    text = path.read_text(encoding="utf-8")
    header = dict(_HEADER.findall(text))
    changed = tuple(_CHANGED.findall(text))
    if set(header) != {"what", "kills"} or not changed:
        raise ValueError(f"{path.name} needs lines '# what: ...', '# kills: ...' and a diff")
    return Bug(path.stem, header["what"], header["kills"], changed, path)


def bugs(rows: Iterable[Row] = ROWS) -> list[Bug]:
    """Return all bugs by name: the patches, and those of a table."""
    found = [read(path) for path in FOLDER.glob("*.patch")]
    found += [Bug(row.name, row.what, row.kills, (row.file,), row) for row in rows]
    return sorted(found, key=lambda bug: bug.name)
