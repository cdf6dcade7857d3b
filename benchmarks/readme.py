"""The generated parts of the project's README: `python benchmarks/readme.py` writes them.

They are the file map (one line a file, the first of its docstring) and the benchmark tables, each
between a pair of markers.
"""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import gpu_behind
import report

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("frontal", "examples", "benchmarks", "tests")
SUFFIXES = (".py", ".cu", ".cuh", ".hpp", ".cpp")


def purpose(path: Path) -> str:
    """Return the first sentence of a module's docstring or of a kernel file's head."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        line = (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]
    else:
        head = itertools.takewhile(lambda line: line.startswith("//"), text.splitlines())
        line = re.split(r"\.(?: |$)", " ".join(part[2:].strip() for part in head))[0]
    return line.rstrip(".").replace("|", "\\|")


def file_map() -> str:
    """Return the table of every source file that says something, folder by folder."""
    everything = (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.*")))
    files = [p for p in everything if p.suffix in SUFFIXES]
    rows = ([f"`{p.relative_to(ROOT).as_posix()}`", purpose(p)] for p in files if purpose(p))
    return "| file | what |\n| --- | --- |\n" + "\n".join(f"| {a} | {b} |" for a, b in rows)


def benchmarks() -> str:
    """Return the main tables of the results, or that there are none."""
    found = report.sections()
    names = [x for x in ("Ratios", "Problems", "Start-up", "Origin") if x in found]
    return "\n\n".join(found[name] for name in names) or "No results yet."


PARTS = {"file map": file_map, "benchmarks": benchmarks, "cuDSS": gpu_behind.readme}


def filled(text: str, parts=PARTS) -> str:
    """Return the README with each named part written anew between its markers."""
    for name, write in parts.items():
        block = f"<!-- {name}: begin -->\n\n{write()}\n\n<!-- {name}: end -->"
        pattern = rf"<!-- {name}: begin -->.*?<!-- {name}: end -->"
        text, count = re.subn(pattern, lambda _, block=block: block, text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"README.md has {count} places for the {name}, it should have one")
    return text


def main() -> None:
    readme = ROOT / "README.md"
    readme.write_text(filled(readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
