"""The ladder of dense batches on a GPU: rates, shares of the roofline, aims.

`python -m benchmarks.report.dense` prints the aims and by how much they are reached.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness.cases import DTYPES, SHAPES, SIZES, Case
from benchmarks.harness.records import RESULTS, Record, load, newest, origin
from benchmarks.report.tables import listed, markdown

LADDER, REFERENCE = RESULTS / "gpu_dense.jsonl", RESULTS / "magma_reference.jsonl"
ORDER = ("naive", "paper", "ours", "magma", "vendor", "streamed", "padding", "host")
TITLES = {
    "fixed": "one size, batch 10000 to n = 64, then 1000",
    "uniform": "sizes uniform in 1..N, batch 3000",
    "gaussian": "sizes Gaussian around N/2, batch 3000",
    "native": "one matrix",
}


def collected(path: Path) -> list[Record]:
    """Return the records that are numbers, the last of each entry, with MAGMA's rows.

    Of MAGMA's two batches of different sizes that of 3000 stands, where it was measured.
    """
    last: dict[tuple, Record] = {}
    for record in [*sorted(load(REFERENCE), key=lambda r: r["batch"] or 0), *load(path)]:
        key = tuple(record.get(k) for k in ("routine", "dtype", "shape", "n", "rung"))
        last[key] = record
    found = [r for r in last.values() if "gflops" in r and r.get("ok") is not False]
    return sorted(found, key=lambda r: r["n"])


def ceilings(path: Path) -> Record:
    """Return the last measured ceilings of the device; empty without them."""
    found = [r for r in load(path) if r["rung"] == "ceilings" and "copy_gbytes" in r]
    merged: Record = {"gemm_gflops": {}}
    for record in found:
        merged["copy_gbytes"] = record["copy_gbytes"]
        merged["gemm_gflops"] |= record["gemm_gflops"]
    return merged if found else {}


class Results:
    """Double precision by routine, shape and size: GF/s of each rung, and ours over others'."""

    def __init__(self, path: Path) -> None:
        found = [r for r in collected(path) if r["dtype"] == "d"]
        self.rates = {(r["routine"], r["shape"], r["n"], r["rung"]): r["gflops"] for r in found}
        self.shares = {
            (r["routine"], r["shape"], r["n"]): r.get("roofline")
            for r in found
            if r["rung"] == "ours"
        }

    def over(self, routine: str, shape: str, n: int, rivals: Iterable[str]) -> float | None:
        """Ours over the best of the rivals that have a result."""
        ours = self.rates.get((routine, shape, n, "ours"))
        others = [self.rates.get((routine, shape, n, x)) for x in rivals]
        known = [x for x in others if x]
        return ours / max(known) if ours and known else None

    def over_fixed(self, routine: str, n: int) -> float | None:
        """Ours on uniform sizes up to n over ours on one size of the same mean work."""
        ours = self.rates.get((routine, "uniform", n, "ours"))
        points = sorted(
            (k[2], v) for k, v in self.rates.items() if k[:2] + k[3:] == (routine, "fixed", "ours")
        )
        sizes = Case(routine, "d", "uniform", n, 3000).sizes()
        equal = float((sizes.astype(float) ** 3).mean()) ** (1 / 3)
        lower = [p for p in points if p[0] <= equal]
        upper = [p for p in points if p[0] >= equal]
        if not (ours and lower and upper):
            return None
        (a, low), (b, high) = lower[-1], upper[0]
        weight = (equal - a) / (b - a) if b > a else 0.0
        return ours / (low + weight * (high - low))


@dataclass(frozen=True)
class Aim:
    """A bound on a value at each of some sizes."""

    text: str
    bound: float
    sizes: Iterable[int]
    value: Callable[[Results, int], float | None]

    def row(self, results: Results) -> list[str]:
        """Return the aim, its bound, its values by size, and where it falls short."""
        found = {n: self.value(results, n) for n in self.sizes}
        known = {n: v for n, v in found.items() if v is not None}
        short = [str(n) for n, v in known.items() if v < self.bound]
        state = "no result" if not known else f"short at {', '.join(short)}" if short else "reached"
        values = ", ".join(f"{n}: {v:.2f}" for n, v in known.items())
        return [self.text, f">= {self.bound:g}", values, state]


def _over(routine: str, shape: str, *rivals: str) -> Callable[[Results, int], float | None]:
    return lambda results, n: results.over(routine, shape, n, rivals)


def _share(routine: str, shape: str) -> Callable[[Results, int], float | None]:
    return lambda results, n: results.shares.get((routine, shape, n))


def _teraflops(routine: str) -> Callable[[Results, int], float | None]:
    def rate(results: Results, n: int) -> float | None:
        found = results.rates.get((routine, "uniform", n, "ours"))
        return found / 1e3 if found else None

    return rate


_SMALL, _MIDDLE, _WIDE = (8, 16, 32), (64, 128, 256, 512), (256, 512, 1000, 1001, 1003, 1024)
_V = (32, 64, 128, 256)
AIMS = (
    Aim("potrf over the better of cuSOLVER and MAGMA", 1.3, (*_SMALL, *_MIDDLE),
        _over("potrf", "fixed", "vendor", "magma")),
    Aim("potrf uniform over MAGMA", 1.3, _V, _over("potrf", "uniform", "magma")),
    Aim("potrf uniform over MAGMA, large", 4, (512, 1024), _over("potrf", "uniform", "magma")),
    Aim("potrf uniform over padding", 3, (*_V, 512), _over("potrf", "uniform", "padding")),
    Aim("potrf uniform over streamed cuSOLVER", 4, (*_V, 512),
        _over("potrf", "uniform", "streamed")),
    Aim("potrf uniform over fixed at the same work", 0.7, (*_V, 512, 1024),
        lambda results, n: results.over_fixed("potrf", n)),
    Aim("getrf over the better of cuBLAS and MAGMA", 1.2, _SMALL,
        _over("getrf", "fixed", "vendor", "magma")),
    Aim("getrf over the better of cuBLAS and MAGMA, larger", 1.5, _MIDDLE,
        _over("getrf", "fixed", "vendor", "magma")),
    Aim("getrf uniform over MAGMA", 2, (*_V, 512), _over("getrf", "uniform", "magma")),
    Aim("inverse over cuBLAS", 3, (8, 16, 24, 32), _over("inv", "fixed", "vendor")),
    Aim("herk uniform, TF/s", 45, (1024,), _teraflops("herk")),
    Aim("gemm uniform, TF/s", 45, (1024,), _teraflops("gemm")),
    Aim("herk uniform, share of the roofline", 0.7, _MIDDLE, _share("herk", "uniform")),
    Aim("gemm uniform, share of the roofline", 0.7, _MIDDLE, _share("gemm", "uniform")),
    Aim("gemv, share of the roofline", 0.8, _WIDE, _share("gemv_n", "fixed")),
    Aim("gemv transposed, share of the roofline", 0.8, _WIDE, _share("gemv_t", "fixed")),
    Aim("potrf native over cuSOLVER", 1.5, (1024, 2048, 4096), _over("potrf", "native", "vendor")),
    Aim("potrf native over cuSOLVER, large", 1, (8192, 16384), _over("potrf", "native", "vendor")),
)  # fmt: skip


def aims(path: Path) -> list[list[str]]:
    """Return the cells of each aim."""
    results = Results(path)
    return [aim.row(results) for aim in AIMS]


def text(path: Path) -> str:
    """Return a line for each aim."""
    return "\n".join(f"{a:54} {b:7} {d:24} {c}" for a, b, c, d in aims(path))


def rates(records: list[Record]) -> str:
    """Return the table sizes × rungs of GF/s, with our share of the roofline."""
    rungs = sorted({r["rung"] for r in records}, key=lambda x: (ORDER.index(x.split("-")[0]), x))
    cells = {(r["n"], r["rung"]): r for r in records}
    rows = []
    for n in sorted({r["n"] for r in records}):
        found = [cells.get((n, rung), {}) for rung in rungs]
        rate = [f"{r['gflops']:,.0f}" if r else "" for r in found]
        share = cells.get((n, "ours"), {}).get("roofline")
        rows.append([str(n), *rate, f"{100 * share:.0f} %" if share else ""])
    return markdown(["n", *rungs, "ours / roofline"], *rows)


def by_shape(records: list[Record], routine: str, dtype: str) -> dict[str, list[Record]]:
    """Return the records of a routine and type by shape; none without one beside MAGMA's."""
    mine = [r for r in records if (r["routine"], r["dtype"]) == (routine, dtype)]
    if all(r["rung"] == "magma" for r in mine):
        return {}
    found = {shape: [r for r in mine if r["shape"] == shape] for shape in SHAPES}
    return {shape: of_shape for shape, of_shape in found.items() if of_shape}


def sections(path: Path = LADDER) -> dict[str, str]:
    """Return the parts of the report by heading; none without results."""
    measured = [r for r in load(path) if r.get("gpu")]
    if not measured:
        return {}
    records, limits = collected(path), ceilings(path)
    found = {"GPU: aims": markdown(["aim", "bound", "by size", ""], *aims(path))}
    for routine in SIZES:
        for letter, dtype in DTYPES.items():
            shapes = by_shape(records, routine, letter)
            if shapes:
                name = f"GPU: {routine.replace('_', ' ')}, {dtype.__name__}, GF/s"
                parts = [f"{TITLES[s]}:\n\n{rates(r)}" for s, r in shapes.items()]
                found[name] = "\n\n".join(parts)
    about = listed(newest(measured)["gpu"])
    note = f"{about}; {origin(r for r in records if r['rung'] != 'magma')}."
    if limits:
        peaks = listed({k: f"{v / 1e3:.1f}" for k, v in limits["gemm_gflops"].items()})
        note += f" Ceilings: copy {limits['copy_gbytes'] / 1e3:.2f} TB/s, gemm {peaks} TF/s."
    source = {r["source"] for r in records if "source" in r}
    found["GPU: origin"] = " ".join([note, *(f"MAGMA's rows: {s}." for s in source)])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--results", type=Path, default=LADDER)
    print(text(parser.parse_args().results))


if __name__ == "__main__":
    main()
