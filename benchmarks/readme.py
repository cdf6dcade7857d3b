"""The generated parts of the project's README: `python benchmarks/readme.py` writes them.

They are tables and sentences with numbers of the benchmarks, each between a pair of markers;
`--pictures` draws the chart and the picture of the gallery too, in docs/static.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import gpu_behind
import headlines
import readme_chart
import report
from gpu_aims import H100, SPARSE, Results, figure, markdown, mean

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "docs" / "static" / "gallery.png"
SHOWN = ("helmholtz_scattering", "convection_diffusion", "gmrf")


def benchmarks() -> str:
    """Return the ratios to the peers on the CPU, or that there are none."""
    found = report.sections()
    names = [x for x in ("Ratios", "Origin") if x in found]
    return "\n\n".join(found[name] for name in names) or "No results yet."


def cudss(paths: Sequence[Path] = (H100, SPARSE)) -> str:
    """Return what is compared with cuDSS: means, ranges, and on how many problems it is behind."""
    devices = [found for found in map(gpu_behind.results, paths) if found]
    if not devices:
        return "No results yet."
    header = ["double precision"]
    for found in devices:
        header += [gpu_behind.device(found), "range", "behind on"]
    rows = [
        [title, *(cell for found in devices for cell in _beside(found, name))]
        for name, title, _ in gpu_behind.MEASURES
    ]
    return markdown([header, *rows])


def _beside(results: Results, measure: str) -> list[str]:
    """The mean of a measure's ratios, their range, and how many are above 1."""
    known = [gpu_behind.ratio(results, case, measure) for case in gpu_behind.cases(results)]
    ratios = sorted(x for x in known if x)
    if not ratios:
        return ["–"] * 3
    behind = sum(x > 1 for x in ratios)
    span = f"{figure(ratios[0])} to {figure(ratios[-1])}"
    return [figure(mean(ratios)), span, f"{behind} of {len(ratios)}"]


def chart() -> str:
    """Return what the chart shows."""
    return readme_chart.caption()


TABLES = {"chart": chart, "benchmarks": benchmarks, "cuDSS": cudss}
SENTENCES = {
    "measured": headlines.measured,
    "startup": headlines.startup,
    "behind": headlines.behind,
}
PARTS = TABLES | SENTENCES


def gallery(path: Path = GALLERY) -> None:
    """Run some examples, and write their pictures side by side."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    sys.path.insert(0, str(ROOT))  # the examples import the package
    pictures, here = [], Path.cwd()
    with tempfile.TemporaryDirectory() as folder, matplotlib.rc_context({"savefig.bbox": "tight"}):
        os.chdir(folder)
        for name in SHOWN:
            spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
            example = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(example)
            plt.figure()
            example.main(plot=True)
            pictures.append(plt.imread(f"{name}.png"))
        os.chdir(here)
    shapes = [picture.shape[1] / picture.shape[0] for picture in pictures]
    whole, panels = plt.subplots(1, len(SHOWN), figsize=(9, 2), width_ratios=shapes)
    for axes, picture in zip(panels, pictures, strict=True):
        axes.imshow(picture)
        axes.set_axis_off()
    whole.subplots_adjust(0, 0, 1, 1, 0.03, 0)
    whole.savefig(path, dpi=88)
    plt.close("all")


def filled(text: str, parts=PARTS) -> str:
    """Return the README with each named part written anew between its markers."""
    for name, write in parts.items():
        before, after = ("\n", " ") if name in SENTENCES else ("\n\n", "\n\n")
        block = f"<!-- {name}: begin -->{before}{write()}{after}<!-- {name}: end -->"
        pattern = rf"<!-- {name}: begin -->.*?<!-- {name}: end -->"
        text, count = re.subn(pattern, lambda _, block=block: block, text, flags=re.DOTALL)
        if count != 1:
            raise SystemExit(f"README.md has {count} places for the {name}, it should have one")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pictures", action="store_true", help="draw the pictures too")
    if parser.parse_args().pictures:
        readme_chart.draw()
        gallery()
    readme = ROOT / "README.md"
    readme.write_text(filled(readme.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
