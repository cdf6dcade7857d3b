"""Analyses of earlier calls, and comparison of arrays by their bits.

Patterns and values are always compared with private copies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._typing import Untyped
from .backend.choose import requested
from .compile.jit import brief
from .cpu.small.warmup import CallCounter
from .factor.analysis import Analysis
from .machine.resources import MACHINES, thread_count
from .matrix.canonical import Canonical
from .matrix.csc import CSC_TYPES, INT32, is_plain
from .matrix.symmetry import POSITIVE_DIAGONAL, SYMMETRIC, method_for, structure
from .symbolic.diagonal import TINY_DIAGONAL
from .symbolic.phase import SymbolicOptions
from .symbolic.preprocess import looks_at_values

_BLOCK_ENTRIES = (
    1 << 15
)  # entries compared at a time: arrays that differ mostly do so in their first block
_MISMATCH = -1
_often = CallCounter()  # of lookups


def same_bits(a: Untyped, b: Untyped) -> bool:
    """Return whether two arrays, of NumPy or both on a device, have equal type, shape and bits.

    Equal NaNs are the same then, and 0 and -0 are not.

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
    if isinstance(a, np.ndarray) and a.dtype.kind == "i" and a.size <= _BLOCK_ENTRIES:
        return a.tobytes() == b.tobytes()
    a, b = (np.ravel(x) if isinstance(x, np.ndarray) else x.ravel() for x in (a, b))
    a, b = a.view(word), b.view(word)
    step = _BLOCK_ENTRIES if isinstance(a, np.ndarray) else max(1, a.size)
    return all(bool((a[i : i + step] == b[i : i + step]).all()) for i in range(0, a.size, step))


@brief
def _structure_if(indptr, indices, data, cached_indptr, cached_indices, scaling):
    """Return `structure` of compressed columns if they have the cached pattern, else `_MISMATCH`.

    Return `_MISMATCH`, too, for values that need more analysis: values that are not finite, or
    small diagonal entries with a method that has a `scaling`, which may need a matching.
    """
    same, largest, least = True, 0.0, np.inf
    for j in range(cached_indptr.size):
        same &= indptr[j] == cached_indptr[j]
    for p in range(cached_indices.size):
        same &= indices[p] == cached_indices[p]
    if not same:
        return _MISMATCH
    for j in range(cached_indptr.size - 1):
        diagonal = 0.0
        for p in range(cached_indptr[j], cached_indptr[j + 1]):
            size = np.float64(np.abs(data[p]))
            same &= size < np.inf  # false for NaN, too
            largest = max(largest, size)
            diagonal = size if cached_indices[p] == j else diagonal
        least = min(least, diagonal)
    if not same or (scaling and not (least > 0 and TINY_DIAGONAL * largest <= least)):
        return _MISMATCH
    return structure(cached_indptr, cached_indices, data)


class _CacheEntry(NamedTuple):
    """An analysis, the keys of its matrix and of its environment, and the bytes of its arrays."""

    key: tuple[object, ...]
    asked: tuple[object, ...]
    size: int
    analysis: Analysis


class AnalysisCache:
    """A cache of the analyses of the most recent patterns; it stores no values of matrices.

    Threads share a cache without locks: the entries are a tuple, which is replaced atomically. Two
    threads that miss the same pattern at the same time may both analyze it.

    Parameters
    ----------
    most : int
        Maximum number of patterns.
    most_bytes : int
        Maximum size of all index arrays together; a larger analysis is not stored.

    Attributes
    ----------
    hits, misses : int
        Numbers of analyses that were cached, and that were computed.
    """

    def __init__(self, most: int = 16, most_bytes: int = 1 << 28) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._entries: tuple[_CacheEntry, ...] = ()
        self.hits = self.misses = 0

    def get(
        self,
        matrix: Canonical,
        ordering: str = "auto",
        fallback: bool | None = None,
        backend: str = "auto",
    ) -> Analysis:
        """Return the analysis of a matrix: cached or new, equal except for its times.

        An analysis that depends on the values, as by a matching, is always computed.

        Parameters
        ----------
        matrix : Canonical
        ordering : str
        fallback : bool, optional
            As for `Analysis.from_matrix`; by default that of ``kind="auto"``.
        backend : str
            As for `Analysis.from_matrix`; not ``"gpu"``, as entries would hold device memory.
        """
        method = matrix.method
        fallback = method.one_triangle if fallback is None else fallback
        if looks_at_values(matrix, method):
            return self._miss(matrix, ordering, fallback, backend)
        key, asked = _key(matrix, ordering, fallback), _asked(backend)
        for entry in self._entries:
            symbolic = entry.analysis.symbolic
            if (
                entry.key == key
                and entry.asked == asked
                and same_bits(symbolic.indptr, matrix.indptr)
                and same_bits(symbolic.indices, matrix.indices)
            ):
                return self._hit(entry)
        analysis = self._miss(matrix, ordering, fallback, backend)
        computed = analysis.symbolic
        arrays = (
            *computed.plan,
            *(computed.columns or ())[:4],
            computed.indptr,
            computed.indices,
            computed.perm,
            computed.row_perm,
        )
        self._keep(_CacheEntry(key, asked, sum(array.nbytes for array in arrays), analysis))
        return analysis

    def lookup(self, A: Untyped, backend: str = "auto") -> tuple[Canonical, Analysis] | None:
        """Return canonical A, with copied values, and its cached analysis; None if not found.

        Only compressed columns with a cached pattern and values for the same method are found, and
        only after `warmup.MIN_CALLS` calls in a process.
        """
        if not (self._entries and type(A) in CSC_TYPES and _often()):
            return None
        indptr, indices, data = A.indptr, A.indices, A.data
        if not (is_plain(indptr, INT32) and is_plain(indices, INT32) and is_plain(data)):
            return None
        asked, n = _asked(backend), indptr.size - 1
        for entry in self._entries:
            analysis = entry.analysis
            symbolic = analysis.symbolic
            if n != symbolic.n or not indices.size == data.size == symbolic.indices.size:
                continue
            if A.shape != (n, n) or data.dtype != analysis.dtype or entry.asked != asked:
                continue
            symmetry = _structure_if(
                indptr, indices, data, symbolic.indptr, symbolic.indices, symbolic.method.scaling
            )
            if symmetry == _MISMATCH:
                continue
            hermitian = symmetry in (SYMMETRIC, POSITIVE_DIAGONAL)
            method = method_for(symmetry, data.dtype)
            matrix = Canonical(
                symbolic.indptr, symbolic.indices, data.copy(), n, method, hermitian, owned=True
            )
            if entry.key == _key(matrix, "auto", method.one_triangle):
                return matrix, self._hit(entry)
        return None

    def _hit(self, entry: _CacheEntry) -> Analysis:
        self.hits += 1
        if self._entries[:1] != (entry,):  # most recent first; store again if cleared meanwhile
            self._keep(entry)
        return entry.analysis

    def clear(self) -> None:
        """Drop all analyses; factors keep theirs."""
        self._entries = ()

    def __len__(self) -> int:
        return len(self._entries)

    def _miss(self, matrix: Canonical, ordering: str, fallback: bool, backend: str) -> Analysis:
        self.misses += 1
        options = {"choices": SymbolicOptions(ordering), "backend": backend, "fallback": fallback}
        return Analysis.from_matrix(matrix, **options)

    def _keep(self, entry: _CacheEntry) -> None:
        """Store an entry in front, and drop the oldest ones beyond the limits."""
        entries, total = [], 0
        for candidate in (
            entry,
            *(other for other in self._entries if other.analysis is not entry.analysis),
        ):
            total += candidate.size
            if len(entries) == self._most or total > self._most_bytes:
                break
            entries.append(candidate)
        self._entries = tuple(entries)


def _key(matrix: Canonical, ordering: str, fallback: bool) -> tuple[object, ...]:
    """Return the properties of a matrix, except its pattern, that an analysis depends on."""
    kind = matrix.method.name, matrix.dtype.char, matrix.hermitian
    return matrix.n, matrix.indices.size, kind, ordering, fallback


def _asked(backend: str) -> tuple[object, ...]:
    """Return the properties of the environment that an analysis depends on."""
    return backend, requested(backend), thread_count(), *MACHINES.values()
