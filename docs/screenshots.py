"""Pictures of the main pages: `python -m docs.screenshots` takes them in build/docs/screenshots.

They are for a person to look at. A Chromium that is installed takes them, without a window.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

from .build import OUTPUT

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
PAGES = (
    *("index", "tutorial", "guide/index", "guide/report", "guide/orderings", "theory/trees"),
    *("theory/fronts", "theory/kernels", "gallery/index", "gallery/helmholtz_scattering"),
    *("benchmarks/index", "benchmarks/gpu", "migration/scipy", "reference/solving"),
)
SIZES = {"wide": (1300, 1800), "narrow": (500, 1600)}


def main() -> int:
    """Take the pictures; return the exit code."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no browser of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        return 1
    folder = OUTPUT / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        for name, size in SIZES.items():
            target = folder / f"{page.replace('/', '-')}-{name}.png"
            command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            command += [f"--window-size={size[0]},{size[1]}", f"--screenshot={target}"]
            command.append((OUTPUT / "html" / f"{page}.html").as_uri())
            subprocess.run(command, check=True, capture_output=True, timeout=60)
    print(f"{len(PAGES) * len(SIZES)} pictures are in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
