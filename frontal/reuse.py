"""What a call can take over from earlier ones: whether arrays are the same, and analyses.

Nothing is taken for granted: patterns and values are compared with copies that nobody else has.
"""

from __future__ import annotations

import numpy as np

from ._typing import Untyped
from .backends import requested
from .factor.analysis import Analysis
from .machine import MACHINES, thread_count
from .matrix import Canonical
from .symbolic.matched import looks_at_values
from .symbolic.symbolic import Choices

_BLOCK = 1 << 15  # entries compared at a time: arrays that differ mostly do so in the first ones


def same_bits(a: Untyped, b: Untyped) -> bool:
    """Whether two arrays, of NumPy or both on a device, have the same type, shape and bits.

    NaN is NaN then, and 0 is not -0.

    Examples
    --------
    >>> same_bits(np.array([1.0, np.nan]), np.array([1.0, np.nan]))
    True
    >>> same_bits(np.zeros(2), np.zeros(2, np.float32))
    False
    """
    if type(a) is not type(b) or a.dtype != b.dtype or a.shape != b.shape:
        return False
    word = f"u{min(8, a.dtype.itemsize)}"
    if isinstance(a, np.ndarray) and a.dtype.kind == "i" and a.size <= _BLOCK:
        return a.tobytes() == b.tobytes()
    a, b = (np.ravel(x) if isinstance(x, np.ndarray) else x.ravel() for x in (a, b))
    a, b = a.view(word), b.view(word)
    step = _BLOCK if isinstance(a, np.ndarray) else max(1, a.size)
    return all(bool((a[i : i + step] == b[i : i + step]).all()) for i in range(0, a.size, step))


class Analyses:
    """The analyses of the patterns that were met last; of values nothing is kept.

    Threads may share one without waiting for each other: the analyses are a tuple, which is
    replaced as a whole. Two threads that meet a new pattern at once may both analyze it.

    Parameters
    ----------
    most : int
        Patterns.
    most_bytes : int
        Of all index arrays together; an analysis that is larger is not kept.

    Attributes
    ----------
    hits, misses : int
        Analyses that were found, and that were made.
    """

    def __init__(self, most: int = 16, most_bytes: int = 1 << 28) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._kept: tuple[tuple[tuple[object, ...], int, Analysis], ...] = ()
        self.hits = self.misses = 0

    def of(
        self, matrix: Canonical, ordering: str = "auto", fallback: bool | None = None
    ) -> Analysis:
        """The analysis of a matrix, as if it were made now, but for its times.

        One that follows from the values, as by a matching, is made now.

        Parameters
        ----------
        matrix : Canonical
        ordering : str
        fallback : bool, optional
            As for `Analysis.of`, where it is not that of ``kind="auto"``.
        """
        method = matrix.method
        fallback = method.one_triangle if fallback is None else fallback
        key = (
            *(matrix.n, matrix.indices.size, method.name, matrix.dtype.char, matrix.hermitian),
            *(ordering, fallback, requested("auto"), thread_count(), *MACHINES.values()),
        )
        if looks_at_values(matrix, method):
            return self._made(matrix, ordering, fallback)
        kept = self._kept
        for one in kept:
            symbolic = one[2].symbolic
            if (
                one[0] == key
                and same_bits(symbolic.indptr, matrix.indptr)
                and same_bits(symbolic.indices, matrix.indices)
            ):
                self.hits += 1
                if one is not kept[0]:
                    self._keep(one)
                return one[2]
        analysis = self._made(matrix, ordering, fallback)
        of = analysis.symbolic
        arrays = (*of.plan, of.indptr, of.indices, of.perm, of.row_perm)
        self._keep((key, sum(array.nbytes for array in arrays), analysis))
        return analysis

    def clear(self) -> None:
        """Forget all analyses; factors that were made with them keep theirs."""
        self._kept = ()

    def __len__(self) -> int:
        return len(self._kept)

    def _made(self, matrix: Canonical, ordering: str, fallback: bool) -> Analysis:
        self.misses += 1
        return Analysis.of(matrix, choices=Choices(ordering), fallback=fallback)

    def _keep(self, one: tuple[tuple[object, ...], int, Analysis]) -> None:
        """Put an analysis before the others, as many of which stay as there is room for."""
        found, total = [], 0
        for other in (one, *(other for other in self._kept if other[2] is not one[2])):
            total += other[1]
            if len(found) == self._most or total > self._most_bytes:
                break
            found.append(other)
        self._kept = tuple(found)
