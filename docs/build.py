"""The documentation: `python -m docs.build` makes the site in build/docs/html.

Drawings, the gallery and the pages of benchmarks are made first, then Sphinx runs with every
warning an error, references that lead nowhere among them. `--links` looks at the links to other
sites, which needs a network; `--pages` runs Sphinx alone, on what was made before; `--scipy-limit`
ends SciPy's part of the gallery earlier.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
OUTPUT = ROOT / "build" / "docs"


def make(scipy_limit: float | None) -> None:
    """Write the pictures and pages that come from code and from results."""
    from . import drawings, gallery, measured

    limit = gallery.SCIPY_SECONDS if scipy_limit is None else scipy_limit
    for name, write in (
        ("drawings", drawings.main),
        ("gallery", lambda: gallery.main(limit)),
        ("measured", measured.main),
    ):
        began = time.perf_counter()
        write()
        print(f"{name}: {time.perf_counter() - began:.1f} s", flush=True)


def sphinx(builder: str) -> int:
    """Run Sphinx; return its exit code."""
    from sphinx.cmd.build import main as run

    # pages that are executed import the package beside this folder
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"
    strict = ["-W", "--keep-going", "-n", "-q", "-T"]
    return run([*strict, "-b", builder, str(DOCS), str(OUTPUT / builder)])


def main() -> int:
    """Build the site; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--links", action="store_true", help="check the links to other sites too")
    parser.add_argument("--pages", action="store_true", help="make no pictures and results anew")
    parser.add_argument("--scipy-limit", type=float, metavar="SECONDS", help="for each example")
    options = parser.parse_args()
    if not options.pages:
        make(options.scipy_limit)
    code = sphinx("html") or (sphinx("linkcheck") if options.links else 0)
    if not code:
        print(f"the site is in {(OUTPUT / 'html' / 'index.html').relative_to(ROOT)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
