"""Levels of a large component by several threads: each has a range of the nodes.

What a range yields depends on the graph alone, and ranges are joined in their order: the results
are those of one thread.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from .bisect import KEPT, STALLED, bisect, with_levels
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
from .graph import SEPARATOR, Levels, Weighted, scrambled
from .split import cut_out, number_side

Result = TypeVar("Result")

RANGE = 200_000  # edges, at least, of a range that is worth a call


class Team:
    """Some threads of a pool.

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

    def with_levels(self, graph: Weighted, seed: int) -> Levels:
        """As `bisect.with_levels`, from level 0 on."""
        heaviest = int(heaviest_node(graph.weight.sum()))
        graphs, maps = [], []
        while graph.weight.size > KEPT and graph.near.size > 2 * RANGE and not self._stop[0]:
            own = int(scrambled(seed, len(graphs) + 1))
            coarse, coarse_of = self._coarser(graph, heaviest, own)
            if coarse.weight.size > STALLED * graph.weight.size:
                break
            graphs.append(graph)
            maps.append(coarse_of)
            graph = coarse
        rest = with_levels(graph, len(graphs), seed, self._stop)
        sizes = [one.weight.size for one in graphs]
        first = np.concatenate([np.cumsum([0, *sizes])[:-1], rest.first + sum(sizes)])
        rows = [(*one[:3], own) for one, own in zip(graphs, maps, strict=True)]
        begin, near, edge, coarse_of = self._joined([*rows, (*rest.graph[:3], rest.coarse_of)])
        weight = np.concatenate([*(one.weight for one in graphs), rest.graph.weight])
        return Levels(Weighted(begin, near, edge, weight), coarse_of, first)

    def split(
        self, levels: Levels, names: np.ndarray, seed: int
    ) -> tuple[Levels, np.ndarray, Levels, np.ndarray, np.ndarray]:
        """As `split.split`."""
        where = bisect(levels, seed, self._stop)
        sides = self._each(number_side, [(levels, where, side) for side in (0, 1)])
        (zero, zero_names), (one, one_names) = (
            self._side(levels, names, where, side, *numbered) for side, numbered in enumerate(sides)
        )
        return zero, zero_names, one, one_names, names[where == SEPARATOR]

    def _side(
        self,
        levels: Levels,
        names: np.ndarray,
        where: np.ndarray,
        side: int,
        label: np.ndarray,
        weight: np.ndarray,
        first: np.ndarray,
    ) -> tuple[Levels, np.ndarray]:
        found = self._each(cut_out, [(levels, label, *r) for r in self._ranges(levels.graph)])
        begin, near, edge, coarse_of = self._joined(found)
        return Levels(Weighted(begin, near, edge, weight), coarse_of, first), names[where == side]

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
        found = self._each(
            contract, [(graph, mate, coarse_of, *r, count, starts[-1]) for r, count in pairs]
        )
        return Weighted(*self._joined(found)), coarse_of

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

    def _joined(self, rows: Sequence[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
        """Rows that come one after the other, as one: begin, near, edge, what else a node has."""
        nodes = np.cumsum([0, *(one[0].size - 1 for one in rows)])
        entries = np.cumsum([0, *(one[1].size for one in rows)])
        begin = np.empty(nodes[-1] + 1, np.int64)
        near, edge = (np.empty(entries[-1], np.int32) for _ in range(2))
        of_node = np.empty(nodes[-1], np.int32)

        def put(k: int) -> None:
            there, entry = slice(nodes[k], nodes[k + 1]), slice(entries[k], entries[k + 1])
            np.add(rows[k][0][:-1], entries[k], out=begin[there])
            near[entry], edge[entry], of_node[there] = rows[k][1:]

        self._each(put, [(k,) for k in range(len(rows))])
        begin[-1] = entries[-1]
        return begin, near, edge, of_node

    def _ranges(self, graph: Weighted) -> list[tuple[int, int]]:
        count = max(1, min(self._size, graph.near.size // RANGE))
        cuts = np.linspace(0, graph.weight.size, count + 1).astype(int).tolist()
        return list(itertools.pairwise(cuts))

    def _each(
        self, step: Callable[..., Result], arguments: Iterable[tuple[object, ...]]
    ) -> list[Result]:
        """A step with each of these arguments, at the same time."""
        return list(self._pool.map(step, *zip(*arguments, strict=True)))
