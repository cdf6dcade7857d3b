"""Output of the command line: tables, progress bars, sizes. Uses rich if it is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Rows = list[tuple[str, ...]]
Record = dict[str, Any]  # an object of JSON


def table(title: str, header: tuple[str, ...], rows: Rows) -> None:
    """Write a table to stdout: by rich on a terminal, else as aligned plain text.

    Examples
    --------
    >>> table("Time", ("phase", "seconds"), [("ordering", "0.1"), ("total", "0.25")])
    Time
      phase     seconds
      ordering      0.1
      total        0.25
    <BLANKLINE>
    """
    if not (sys.stdout.isatty() and _rich_table(title, header, rows)):
        _plain_table(title, header, rows)


def _rich_table(title: str, header: tuple[str, ...], rows: Rows) -> bool:
    """Write a table by rich; return False if it is not installed."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        return False
    grid = Table(title=title, title_justify="left", show_header=any(header))
    for i, name in enumerate(header):
        grid.add_column(name, justify="right" if i else "left")
    for row in rows:
        grid.add_row(*row)
    Console().print(grid)
    return True


def _plain_table(title: str, header: tuple[str, ...], rows: Rows) -> None:
    lines = [header, *rows] if any(header) else rows
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    text = [title]
    for line in lines:
        cells = (f"{cell:{'>' if i else '<'}{widths[i]}}" for i, cell in enumerate(line))
        text.append("  " + "  ".join(cells).rstrip())
    sys.stdout.write("\n".join(text) + "\n\n")


@contextmanager
def progress() -> Iterator[Callable[[str, float, float], None] | None]:
    """Yield a callback that shows phases on stderr; None if stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
    except ImportError:
        yield _name_phase
        return
    with Progress(
        TextColumn("{task.description:14}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(phase: str, done: float, total: float) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase)
            bars.update(tasks[phase], completed=done, total=total)

        yield advance


def _name_phase(phase: str, done: float, total: float) -> None:
    if done == 0:
        sys.stderr.write(f"frontal: {phase}\n")


def described(report: Record) -> Rows:
    """Return names and values of a report as text, without lists and times."""
    unit = {"memory": size, "flops": count, "nnz_factor": count, "nnz": count}
    return [
        (name.replace("_", " "), unit.get(name, text)(value))
        for name, value in report.items()
        if not isinstance(value, dict | list)
    ]


def rows(records: list[Record]) -> Rows:
    """Return the values of each record as text."""
    return [tuple(text(value) for value in record.values()) for record in records]


def seconds(times: dict[str, float]) -> Rows:
    """Return the rows of a table of times, with their sum."""
    lines = [(name, f"{value:.3f}") for name, value in times.items()]
    return [*lines, ("total", f"{sum(times.values()):.3f}")]


def text(value: object) -> str:
    """Return a value as text; a float with three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def count(value: float) -> str:
    """Return a large number with a decimal prefix.

    >>> count(999), count(12_345_678)
    ('999', '12.3 M')
    """
    return _scaled(value, 1000, ["", " k", " M", " G", " T"])


def size(value: float) -> str:
    """Return a size in bytes with a binary prefix.

    >>> size(12), size(3 * 2**29)
    ('12 B', '1.5 GiB')
    """
    return _scaled(value, 1024, [" B", " KiB", " MiB", " GiB"])


def _scaled(value: float, base: int, units: list[str]) -> str:
    power = 0
    while value >= base and power < len(units) - 1:
        value, power = value / base, power + 1
    return f"{value:.3g}{units[power]}" if value < 999.5 else f"{value:.0f}{units[power]}"


def plain(value: object) -> object:
    """Return scalars and arrays of NumPy as types that JSON supports."""
    to_list = getattr(value, "tolist", None)
    return to_list() if to_list else str(value)
