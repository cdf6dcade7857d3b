"""The pages of benchmarks, from benchmarks/results by the report's own code: docs/benchmarks/*."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.report import chart, dense, plots, results, sparse

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "benchmarks"

# page: its heading, what is said first, and a pattern of the report's headings
PAGES = {
    "cpu": (
        "On the CPU",
        "Beside CHOLMOD, MKL PARDISO, MUMPS and SuperLU, each job in its own process; medians. "
        "*From scratch* is one `solve` with all that comes by default; the other times are of an "
        "analysis that was told to expect ten factorizations, and of solves without refinement.",
        r"Ratios|Problems|Solvers.*|Origin|Start-up",
    ),
    "matrices": (
        "Real matrices",
        "One solve from scratch of each matrix of a collection, with its scaled residual.",
        r"Real matrices.*",
    ),
    "gpu": ("Sparse systems on a GPU", "Beside NVIDIA's cuDSS.", r"Sparse systems on a GPU.*"),
    "dense": ("Many dense matrices on a GPU", "Beside the vendor's libraries.", r"GPU: .*"),
}
PLOTTED = ("potrf", "getrf")  # routines whose ladders are drawn, in double precision


def body(pattern: str, parts: dict[str, str]) -> str:
    """The parts of the report whose headings match, one after the other."""
    found = {title: text for title, text in parts.items() if re.fullmatch(pattern, title)}
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in found.items())


def ladders() -> str:
    """Draw the ladders of some routines, and return the lines that show them."""
    chosen = [r for r in dense.collected(dense.LADDER) if r["routine"] in PLOTTED]
    records = [r for r in chosen if r["dtype"] == "d"]
    written = plots.draw(records, dense.ceilings(dense.LADDER), FOLDER)
    return "\n\n".join(f"![GF/s against the size]({path.name})" for path in written)


def main() -> None:
    """Write all pages."""
    FOLDER.mkdir(exist_ok=True)
    parts = results.sections()
    for name, (title, text, pattern) in PAGES.items():
        extra = ladders() if name == "dense" else ""
        sections = body(pattern, parts)
        (FOLDER / f"{name}.md").write_text(
            f"# {title}\n\n{text}\n\n{extra}\n\n{sections}\n", "utf-8"
        )
    chart.draw(FOLDER / "laplacian.svg")
    overview = [
        "# Benchmarks",
        "These pages are made from the measurements in `benchmarks/results`, which name machine, "
        "versions and commit; what they say was measured there, and nothing else.",
        "![Seconds from scratch and of a refactorization against n](laplacian.svg)",
        chart.caption(),
        "## Where it is behind",
        sparse.summary(sparse.beside_cudss()),
        "```{toctree}\n:hidden:\n\n" + "\n".join(PAGES) + "\n```",
    ]
    (FOLDER / "index.md").write_text("\n\n".join(overview) + "\n", "utf-8")


if __name__ == "__main__":
    main()
