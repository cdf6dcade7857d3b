"""What a call can take over from earlier ones: whether arrays are the same, and analyses.

Nothing is taken for granted: patterns and values are compared with copies that nobody else has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from ._typing import Untyped
from .backend.choose import requested
from .compile.jit import brief
from .cpu.small.warmup import CallCounter
from .factor.analysis import Analysis
from .machine.resources import MACHINES, thread_count
from .matrix.canonical import Canonical
from .matrix.symmetry import POSITIVE_DIAGONAL, SYMMETRIC, method_for, structure
from .symbolic.diagonal import TINY_DIAGONAL
from .symbolic.phase import SymbolicOptions
from .symbolic.preprocess import looks_at_values

_BLOCK_ENTRIES = (
    1 << 15
)  # entries compared at a time: arrays that differ mostly do so in the first ones
_CSC_TYPES = sp.csc_array, sp.csc_matrix
_INT32 = np.dtype(np.int32)
_MISMATCH = -1
_often = CallCounter()  # patterns come again


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
    if isinstance(a, np.ndarray) and a.dtype.kind == "i" and a.size <= _BLOCK_ENTRIES:
        return a.tobytes() == b.tobytes()
    a, b = (np.ravel(x) if isinstance(x, np.ndarray) else x.ravel() for x in (a, b))
    a, b = a.view(word), b.view(word)
    step = _BLOCK_ENTRIES if isinstance(a, np.ndarray) else max(1, a.size)
    return all(bool((a[i : i + step] == b[i : i + step]).all()) for i in range(0, a.size, step))


@brief
def _structure_if(indptr, indices, data, cached_indptr, cached_indices, scaling):
    """`structure` of compressed columns, if these are of that very pattern; else `_MISMATCH`.

    `_MISMATCH`, too, for values of which more has to be said: that are not finite, or that have
    small diagonal entries where a method with a `scaling` looks at them.
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
            same &= size < np.inf  # no NaN either
            largest = max(largest, size)
            diagonal = size if cached_indices[p] == j else diagonal
        least = min(least, diagonal)
    if not same or (scaling and not (least > 0 and TINY_DIAGONAL * largest <= least)):
        return _MISMATCH
    return structure(cached_indptr, cached_indices, data)


def _is_plain(array: object, dtype: np.dtype | None = None) -> bool:
    """Whether that is a vector as compiled code takes it, of this type."""
    return (
        type(array) is np.ndarray
        and (dtype is None or array.dtype == dtype)
        and array.ndim == 1
        and array.flags.carray
    )


class _CacheEntry(NamedTuple):
    """An analysis, what it is of and was asked for with, and the bytes of its arrays."""

    key: tuple[object, ...]
    asked: tuple[object, ...]
    size: int
    analysis: Analysis


class AnalysisCache:
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
        self._entries: tuple[_CacheEntry, ...] = ()
        self.hits = self.misses = 0

    def get(
        self,
        matrix: Canonical,
        ordering: str = "auto",
        fallback: bool | None = None,
        backend: str = "auto",
    ) -> Analysis:
        """The analysis of a matrix, as if it were made now, but for its times.

        One that follows from the values, as by a matching, is made now.

        Parameters
        ----------
        matrix : Canonical
        ordering : str
        fallback : bool, optional
            As for `Analysis.from_matrix`, where it is not that of ``kind="auto"``.
        backend : str
            As for `Analysis.from_matrix`; not ``"gpu"``, whose memory would be kept.
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
            computed.indptr,
            computed.indices,
            computed.perm,
            computed.row_perm,
        )
        self._keep(_CacheEntry(key, asked, sum(array.nbytes for array in arrays), analysis))
        return analysis

    def lookup(self, A: Untyped, backend: str = "auto") -> tuple[Canonical, Analysis] | None:
        """A in canonical form and what `get` gives for it, where there is next to nothing to do.

        Its values are copied. So it is for compressed columns of a pattern that is kept, with
        values of the same method. None otherwise, and for a process that does not ask often.
        """
        if not (self._entries and type(A) in _CSC_TYPES and _often()):
            return None
        indptr, indices, data = A.indptr, A.indices, A.data
        if not (_is_plain(indptr, _INT32) and _is_plain(indices, _INT32) and _is_plain(data)):
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
            pattern = symbolic.indptr, symbolic.indices
            matrix = Canonical(*pattern, data.copy(), n, method, hermitian, owned=True)
            if entry.key == _key(matrix, "auto", method.one_triangle):
                return matrix, self._hit(entry)
        return None

    def _hit(self, entry: _CacheEntry) -> Analysis:
        self.hits += 1
        if self._entries[:1] != (entry,):  # nor after another thread has cleared them
            self._keep(entry)
        return entry.analysis

    def clear(self) -> None:
        """Forget all analyses; factors that were made with them keep theirs."""
        self._entries = ()

    def __len__(self) -> int:
        return len(self._entries)

    def _miss(self, matrix: Canonical, ordering: str, fallback: bool, backend: str) -> Analysis:
        self.misses += 1
        options = {"choices": SymbolicOptions(ordering), "backend": backend, "fallback": fallback}
        return Analysis.from_matrix(matrix, **options)

    def _keep(self, entry: _CacheEntry) -> None:
        """Put an analysis before the others, as many of which stay as there is room for."""
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
    """All of a matrix that an analysis depends on, but for the pattern itself."""
    kind = matrix.method.name, matrix.dtype.char, matrix.hermitian
    return matrix.n, matrix.indices.size, kind, ordering, fallback


def _asked(backend: str) -> tuple[object, ...]:
    """All that it depends on besides."""
    return backend, requested(backend), thread_count(), *MACHINES.values()
