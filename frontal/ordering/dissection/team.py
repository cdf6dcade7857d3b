"""The sides of a large part, computed by several threads, one range of nodes each.

The result of a range depends on the graph alone, and results are joined in the order of the
ranges: they equal the results of one thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from ...machine.thread_group import run_each
from .bisect import bisect
from .graph import SEPARATOR, Levels, Weighted
from .split import cut_out, number_side

Result = TypeVar("Result")

MIN_RANGE_EDGES = 200_000  # edges of a range that is worth a call


class Team:
    """The `size` threads that split a part, until ``stop[0]`` is nonzero."""

    def __init__(self, size: int, stop: np.ndarray) -> None:
        self._size, self._stop = size, stop

    def split(
        self, levels: Levels, names: np.ndarray, seed: int
    ) -> tuple[Levels, np.ndarray, Levels, np.ndarray, np.ndarray]:
        """Bisect a graph as `split.split`, with `leaf` = 0."""
        where = bisect(levels, seed, self._stop)
        sides = _each(number_side, [(levels, where, side) for side in (0, 1)])
        (levels0, names0), (levels1, names1) = (
            (self._side(levels, *numbered), names[where == side])
            for side, numbered in enumerate(sides)
        )
        return levels0, names0, levels1, names1, names[where == SEPARATOR]

    def _side(
        self, levels: Levels, label: np.ndarray, weight: np.ndarray, first: np.ndarray
    ) -> Levels:
        """Return the levels of a side from the result of `number_side`."""
        rows = _each(cut_out, [(levels, label, *r) for r in self._ranges(levels.graph)])
        begin, near, edge, coarse_of = self._joined(rows)
        return Levels(Weighted(begin, near, edge, weight), coarse_of, first)

    def _joined(self, rows: Sequence[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
        """Concatenate blocks of rows: begin, near, edge, and one value per node."""
        nodes = np.cumsum([0, *(one[0].size - 1 for one in rows)])
        entries = np.cumsum([0, *(one[1].size for one in rows)])
        begin = np.empty(nodes[-1] + 1, np.int64)
        near, edge = (np.empty(entries[-1], np.int32) for _ in range(2))
        node_data = np.empty(nodes[-1], np.int32)

        def copy_rows(k: int) -> None:
            node_slice = slice(nodes[k], nodes[k + 1])
            entry_slice = slice(entries[k], entries[k + 1])
            np.add(rows[k][0][:-1], entries[k], out=begin[node_slice])
            near[entry_slice], edge[entry_slice], node_data[node_slice] = rows[k][1:]

        _each(copy_rows, [(k,) for k in range(len(rows))])
        begin[-1] = entries[-1]
        return begin, near, edge, node_data

    def _ranges(self, graph: Weighted) -> list[tuple[int, int]]:
        count = max(1, min(self._size, graph.near.size // MIN_RANGE_EDGES))
        cuts = np.linspace(0, graph.weight.size, count + 1).astype(int).tolist()
        return list(itertools.pairwise(cuts))


def _each(step: Callable[..., Result], arguments: Iterable[tuple[object, ...]]) -> list[Result]:
    """Run a step with each of the arguments concurrently; return the results."""
    return run_each(partial(step, *given) for given in arguments)
