"""The generated parts of the project's README: `python benchmarks/readme.py` writes them.

They are the benchmark tables, each between a pair of markers.
"""

from __future__ import annotations

import re
from pathlib import Path

import gpu_behind
import report

ROOT = Path(__file__).resolve().parents[1]


def benchmarks() -> str:
    """Return the main tables of the results, or that there are none."""
    found = report.sections()
    names = [x for x in ("Ratios", "Problems", "Start-up", "Origin") if x in found]
    return "\n\n".join(found[name] for name in names) or "No results yet."


PARTS = {"benchmarks": benchmarks, "cuDSS": gpu_behind.readme}


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
