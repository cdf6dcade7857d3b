"""Tables in Markdown and in columns, their numbers, and means of ratios."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, floor, log, log10

NO_RESULTS = "No results yet."


def markdown(header: Iterable[str], *rows: Iterable[str]) -> str:
    """Return a Markdown table; the first column is left-aligned, the others right-aligned."""
    header = list(header)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def aligned(*rows: Iterable[str]) -> str:
    """Return a table as text in columns, the first to the left."""
    lines = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([a.ljust(widths[0]), *map(str.rjust, rest, widths[1:])] for a, *rest in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def figure(value: float | None) -> str:
    """Return a number with three significant digits, a dash for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


def seconds(value: float | None) -> str:
    """Return a time with two figures (three from 1 on), to 0.1 ms; none is a dash."""
    if value is None:
        return "–"
    if value < 5e-5:
        return "0"
    digits = 2 - floor(log10(value)) if value >= 1 else 1 - floor(log10(max(value, 1e-3)))
    return f"{value:.{max(digits, 0)}f}"


def count(value: int | None) -> str:
    """Return an integer with commas, a dash for none."""
    return f"{value:,}" if value else "–"


def listed(about: dict) -> str:
    """Return names and values in one line."""
    return ", ".join(f"{k} {v}" for k, v in about.items())


def mean(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean of those that are there."""
    known = [x for x in ratios if x]
    return exp(sum(map(log, known)) / len(known)) if known else None


def behind(ratios: Iterable[float]) -> str:
    """Return how many ratios are above 1."""
    ratios = list(ratios)
    return f"{sum(x > 1 for x in ratios)} of {len(ratios)}"
