"""The bugs of this folder, each with the test that must fail with it.

A table `<room>.toml` stores the bugs of one folder of `frontal`, sorted by file and name. An entry
`["<file>".<name>]` has the keys `what` and `kills` beside the keys of its edit: `anchor` and
`replacement`. An edit without `replacement` deletes the lines of its anchor. A bug with several
edits stores each edit as `[["<file>".<name>.edits]]`, with the key `file` for another file.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]


class StaleBugError(Exception):
    """An anchor that does not occur exactly once in its file."""


@dataclass(frozen=True)
class Edit:
    """One replacement in one file.

    Attributes
    ----------
    file : str
        Path from the root of the repository.
    anchor : str
        Text that occurs exactly once in the file.
    replacement : str or None
        Text in place of the anchor. None deletes the lines of the anchor.
    """

    file: str
    anchor: str
    replacement: str | None = None

    def apply(self, text: str) -> str:
        """Return the text of the file with the edit.

        Raises
        ------
        StaleBugError
            If the anchor does not occur exactly once.
        """
        count = text.count(self.anchor)
        if count != 1:
            raise StaleBugError(f"{self.file} has the anchor {count} times instead of once")
        before, after = text.split(self.anchor)
        if self.replacement is not None:
            return before + self.replacement + after
        return before[: before.rfind("\n") + 1] + after.partition("\n")[2]


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
    edits : tuple of Edit
        Applied in this order.
    """

    name: str
    what: str
    kills: str
    edits: tuple[Edit, ...]

    @property
    def files(self) -> list[str]:
        """Paths of the edited files, each once."""
        return list(dict.fromkeys(edit.file for edit in self.edits))

    def texts(self, tree: Path) -> dict[str, str]:
        """Return the edited texts by path; the tree stays unchanged.

        Raises
        ------
        StaleBugError
        """
        texts = {file: (tree / file).read_text(encoding="utf-8") for file in self.files}
        for edit in self.edits:
            try:
                texts[edit.file] = edit.apply(texts[edit.file])
            except StaleBugError as error:
                raise StaleBugError(f"{self.name}: {error}") from None
        return texts

    def apply(self, tree: Path) -> None:
        """Write the bug into a tree.

        Raises
        ------
        StaleBugError
        """
        for file, text in self.texts(tree).items():
            (tree / file).write_text(text, encoding="utf-8")


def read(path: Path) -> list[Bug]:
    """Return the bugs of one table, in its order."""
    bugs = []
    for file, entries in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for name, entry in entries.items():
            what, kills = entry.pop("what"), entry.pop("kills")
            edits = tuple(Edit(**{"file": file, **edit}) for edit in entry.pop("edits", [entry]))
            bugs.append(Bug(name, what, kills, edits))
    return bugs


def bugs() -> list[Bug]:
    """Return the bugs of all tables, sorted by name."""
    tables = map(read, FOLDER.glob("*.toml"))
    return sorted(chain.from_iterable(tables), key=attrgetter("name"))
