"""The steps of a large part by several threads: each has a range of the nodes.

What a range yields depends on the part alone, and ranges are joined in their order: the results
are those of one thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from .bisect import STALLED, bisect, finer
from .coarsen import (
    ROUNDS,
    accept,
    contract,
    count_pairs,
    heaviest_node,
    match_the_rest,
    number_pairs,
    propose,
)
from .graph import SEPARATOR, Weighted, scrambled
from .split import count_side, cut_out, number_side

Result = TypeVar("Result")

RANGE = 50_000  # edges, at least, of a range that is worth a call


class Team:
    """Some threads of a pool, for one part.

    Parameters
    ----------
    pool : ThreadPoolExecutor
        Where the steps run; nothing else may that waits for them.
    size : int
        How many threads.
    stop : (1,) int32 array
        Not zero once nobody waits for results any more.
    """

    def __init__(self, pool: ThreadPoolExecutor, size: int, stop: np.ndarray) -> None:
        self._pool, self._size, self._stop = pool, size, stop

    def split(
        self, graph: Weighted, names: np.ndarray, seed: int
    ) -> tuple[Weighted, np.ndarray, Weighted, np.ndarray, np.ndarray]:
        """As `split.split`."""
        where = self._bisect(graph, seed)
        label = np.empty(where.size, np.int32)
        ranges = self._ranges(graph)
        zero, zero_names = self._side(graph, names, where, 0, label, ranges)
        one, one_names = self._side(graph, names, where, 1, label, ranges)
        return zero, zero_names, one, one_names, names[where == SEPARATOR]

    def _bisect(self, graph: Weighted, seed: int) -> np.ndarray:
        """As `bisect.bisect`, from level 0 on."""
        heaviest = heaviest_node(int(graph.weight.sum()))
        levels: list[tuple[Weighted, np.ndarray]] = []
        while graph.near.size > 2 * RANGE and not self._stop[0]:
            coarse, coarse_of = self._coarser(
                graph, heaviest, int(scrambled(seed, len(levels) + 1))
            )
            if coarse.weight.size > STALLED * graph.weight.size:
                break
            levels.append((graph, coarse_of))
            graph = coarse
        where, weight = bisect(graph, len(levels), seed, self._stop)
        for fine, coarse_of in reversed(levels):
            where = finer(fine, coarse_of, where, weight, self._stop)
        return where

    def _coarser(self, graph: Weighted, heaviest: int, seed: int) -> tuple[Weighted, np.ndarray]:
        """As `coarsen.coarser`."""
        ranges = self._ranges(graph)
        mate = self._match(graph, heaviest, seed, ranges)
        counts = self._each(count_pairs, [(mate, *r) for r in ranges])
        starts = np.cumsum([0, *counts])
        coarse_of = np.empty(mate.size, np.int32)
        self._each(
            number_pairs, [(mate, *r, c, coarse_of) for r, c in zip(ranges, starts, strict=False)]
        )
        pairs = zip(ranges, counts, strict=True)
        given = [(graph, mate, coarse_of, *r, count, starts[-1]) for r, count in pairs]
        return self._joined(self._each(contract, given)), coarse_of

    def _match(
        self, graph: Weighted, heaviest: int, seed: int, ranges: list[tuple[int, int]]
    ) -> np.ndarray:
        n = graph.weight.size
        mate, proposal = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
        open_weight = graph.weight.copy()
        free = [np.arange(*r, dtype=np.int32) for r in ranges]
        for _ in range(ROUNDS):
            common = (mate, open_weight, proposal)
            self._each(propose, [(graph, one, *common, heaviest, seed) for one in free])
            left = self._each(accept, [(one, *common) for one in free])
            free = [one[:count] for one, count in zip(free, left, strict=True) if count]
            if not free:
                break
        match_the_rest(graph, mate, heaviest)
        return mate

    def _side(
        self,
        graph: Weighted,
        names: np.ndarray,
        where: np.ndarray,
        side: int,
        label: np.ndarray,
        ranges: list[tuple[int, int]],
    ) -> tuple[Weighted, np.ndarray]:
        counts = self._each(count_side, [(where, side, *r) for r in ranges])
        starts = np.cumsum([0, *counts])
        self._each(
            number_side,
            [(where, side, *r, c, label) for r, c in zip(ranges, starts, strict=False)],
        )
        pairs = zip(ranges, counts, strict=True)
        given = [(graph, names, where, side, label, *r, count) for r, count in pairs]
        found = self._each(cut_out, given)
        return self._joined([rows for rows, _ in found]), np.concatenate([own for _, own in found])

    def _joined(self, rows: list[Weighted]) -> Weighted:
        """The graph whose rows lie in these, one after the other."""
        entries = np.cumsum([0, *(one.near.size for one in rows)])
        begins = [one.begin[:-1] + first for one, first in zip(rows, entries, strict=False)]
        begin = np.concatenate([*begins, entries[-1:]])
        near, edge = (np.empty(entries[-1], np.int32) for _ in range(2))

        def put(k: int) -> None:
            there = slice(entries[k], entries[k + 1])
            near[there], edge[there] = rows[k].near, rows[k].edge

        self._each(put, [(k,) for k in range(len(rows))])
        return Weighted(begin, near, edge, np.concatenate([one.weight for one in rows]))

    def _ranges(self, graph: Weighted) -> list[tuple[int, int]]:
        count = max(1, min(self._size, graph.near.size // RANGE))
        cuts = np.linspace(0, graph.weight.size, count + 1).astype(int).tolist()
        return list(itertools.pairwise(cuts))

    def _each(
        self, step: Callable[..., Result], arguments: Iterable[tuple[Any, ...]]
    ) -> list[Result]:
        """A step with each of these arguments, at the same time."""
        return list(self._pool.map(step, *zip(*arguments, strict=True)))
