"""What the GPU ladder has to reach, as ratios of its results: `python benchmarks/gpu_ratios.py`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_cases import Case
from gpu_plots import collected
from harness import RESULTS

Key = tuple[str, str, int, str]  # routine, shape, n, rung


class Results:
    """GF/s of double precision by routine, shape, size and rung."""

    def __init__(self, path: Path) -> None:
        found = [r for r in collected(path) if r["dtype"] == "d"]
        self.rates = {(r["routine"], r["shape"], r["n"], r["rung"]): r["gflops"] for r in found}
        self.shares = {
            (r["routine"], r["shape"], r["n"]): r["roofline"]
            for r in found
            if r["rung"] == "ours" and "roofline" in r
        }

    def over(self, routine: str, shape: str, n: int, *rivals: str) -> float | None:
        """Ours over the best of the rivals that have a result."""
        ours = self.rates.get((routine, shape, n, "ours"))
        others = [self.rates.get((routine, shape, n, x)) for x in rivals]
        known = [x for x in others if x]
        return ours / max(known) if ours and known else None

    def share(self, routine: str, shape: str, n: int) -> float | None:
        """Ours as a share of the roofline."""
        return self.shares.get((routine, shape, n))

    def rate(self, routine: str, shape: str, n: int) -> float | None:
        """Ours, in TF/s."""
        found = self.rates.get((routine, shape, n, "ours"))
        return found / 1e3 if found else None

    def of_fixed(self, routine: str, n: int) -> float | None:
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


def _over(routine: str, shape: str, *rivals: str) -> Callable[[Results, int], Any]:
    return lambda results, n: results.over(routine, shape, n, *rivals)


_SMALL, _MIDDLE = (8, 16, 32), (64, 128, 256, 512)
_V, _NATIVE = (32, 64, 128, 256), (1024, 2048, 4096, 8192, 16384)
AIMS = (
    Aim("potrf over the better of cuSOLVER and MAGMA", 1.3, (*_SMALL, *_MIDDLE),
        _over("potrf", "fixed", "vendor", "magma")),
    Aim("potrf uniform over MAGMA", 1.3, _V, _over("potrf", "uniform", "magma")),
    Aim("potrf uniform over MAGMA, large", 4, (512, 1024), _over("potrf", "uniform", "magma")),
    Aim("potrf uniform over padding", 3, (*_V, 512), _over("potrf", "uniform", "padding")),
    Aim("potrf uniform over streamed cuSOLVER", 4, (*_V, 512),
        _over("potrf", "uniform", "streamed")),
    Aim("potrf uniform over fixed at the same work", 0.7, (*_V, 512, 1024),
        lambda r, n: r.of_fixed("potrf", n)),
    Aim("getrf over the better of cuBLAS and MAGMA", 1.2, _SMALL,
        _over("getrf", "fixed", "vendor", "magma")),
    Aim("getrf over the better of cuBLAS and MAGMA, larger", 1.5, _MIDDLE,
        _over("getrf", "fixed", "vendor", "magma")),
    Aim("getrf uniform over MAGMA", 2, (*_V, 512), _over("getrf", "uniform", "magma")),
    Aim("inverse over cuBLAS", 3, (8, 16, 24, 32), _over("inv", "fixed", "vendor")),
    Aim("herk uniform, TF/s", 45, (1024,), lambda r, n: r.rate("herk", "uniform", n)),
    Aim("gemm uniform, TF/s", 45, (1024,), lambda r, n: r.rate("gemm", "uniform", n)),
    Aim("herk uniform, share of the roofline", 0.7, (64, 128, 256, 512),
        lambda r, n: r.share("herk", "uniform", n)),
    Aim("gemm uniform, share of the roofline", 0.7, (64, 128, 256, 512),
        lambda r, n: r.share("gemm", "uniform", n)),
    Aim("gemv, share of the roofline", 0.8, (256, 512, 1000, 1001, 1003, 1024),
        lambda r, n: r.share("gemv_n", "fixed", n)),
    Aim("gemv transposed, share of the roofline", 0.8, (256, 512, 1000, 1001, 1003, 1024),
        lambda r, n: r.share("gemv_t", "fixed", n)),
    Aim("potrf native over cuSOLVER", 1.5, _NATIVE[:3], _over("potrf", "native", "vendor")),
    Aim("potrf native over cuSOLVER, large", 1, _NATIVE[3:], _over("potrf", "native", "vendor")),
)  # fmt: skip


def rows(path: Path) -> list[list[str]]:
    """Return the cells of each aim."""
    results = Results(path)
    return [aim.row(results) for aim in AIMS]


def text(path: Path) -> str:
    """Return a line for each aim."""
    return "\n".join(f"{a:54} {b:7} {d:24} {c}" for a, b, c, d in rows(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--results", type=Path, default=RESULTS / "gpu_dense.jsonl")
    print(text(parser.parse_args().results))


if __name__ == "__main__":
    main()
