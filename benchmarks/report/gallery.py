"""The README's picture of some examples side by side."""

from __future__ import annotations

import importlib
import os
import tempfile
from pathlib import Path

from benchmarks.harness.records import ROOT

GALLERY = ROOT / "docs" / "static" / "gallery.png"
SHOWN = ("helmholtz_scattering", "convection_diffusion", "gmrf")


def draw(path: Path = GALLERY) -> None:
    """Run some examples, and write their pictures side by side."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    pictures, here = [], Path.cwd()
    with tempfile.TemporaryDirectory() as folder, matplotlib.rc_context({"savefig.bbox": "tight"}):
        os.chdir(folder)
        for name in SHOWN:
            plt.figure()
            importlib.import_module(f"examples.{name}").main(plot=True)
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
