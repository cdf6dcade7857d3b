"""Solver: solves with one matrix after another, and reuses their analysis and factor."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from numpy.typing import ArrayLike

from ._typing import MatrixLike, Untyped, for_scipy, is_on_cupy, is_sparse
from .analysis_cache import same_bits
from .api import analyze
from .backend.memory_limit import required_memory
from .factor.analysis import Analysis
from .factor.diagnosis import require_singular
from .factor.factor import Factor
from .factor.mixed import require_precision, require_refinement
from .matrix.canonical import canonical, require_kind
from .matrix.exact import refuse_masked

if TYPE_CHECKING:
    from typing_extensions import Self

_ARRAYS = {  # formats that store one value for each entry; values last
    "csc": ("indptr", "indices", "data"),
    "csr": ("indptr", "indices", "data"),
    "bsr": ("indptr", "indices", "data"),
    "coo": ("row", "col", "data"),
}


class _Stored(NamedTuple):
    """The arrays of a matrix.

    Attributes
    ----------
    about : tuple
        Format, shape and scalar type.
    pattern : tuple of arrays
    values : array
    """

    about: tuple[object, ...]
    pattern: tuple[Untyped, Untyped]
    values: Untyped

    @classmethod
    def by(cls, A: Untyped) -> _Stored:
        """Return the arrays, not copied, of a matrix in a format of `_ARRAYS`."""
        first, second, values = (getattr(A, name) for name in _ARRAYS[A.format])
        return cls((A.format, A.shape, values.dtype), (first, second), values)

    def has_pattern_of(self, candidate: _Stored) -> bool:
        """Return whether only values may differ."""
        pairs = zip(self.pattern, candidate.pattern, strict=True)
        return self.about == candidate.about and all(same_bits(*pair) for pair in pairs)


class _AnalyzedPattern(NamedTuple):
    """A copied pattern, and its analysis."""

    stored: _Stored
    analysis: Analysis


@dataclass
class _HeldFactor:
    """A factor, its values, and the number of threads that solve with it now."""

    factor: Factor
    values: Untyped  # a copy; None after a failed factorization
    users: int = 0


class Solver:
    """A solver of A x = b for one A after another, which recomputes only what has changed.

    The analysis is reused while the pattern of A repeats, and the factor while the values do, too.
    Both are compared with copies, bit by bit, in a small part of the time of a solve: A may be
    another object, or changed in place. `analyses`, `factorizations` and `solves` count the
    computations.

    Threads may share a solver. A thread with other values gets a new factor while other threads
    solve; for threads with different matrices, one solver each is faster. Pickles and copies
    contain the options only.

    Parameters
    ----------
    kind, ordering, backend, check_finite, singular, triangle, precision, memory, refine
        As for `frontal.solve`.
    reuse : int
        As for `frontal.analyze`: the expected number of factorizations of a pattern.

    Attributes
    ----------
    analyses, factorizations, solves : int
        Numbers of successful computations.

    Raises
    ------
    ValueError
        For an unknown ``kind``, ``singular``, ``precision`` or ``memory``, or a negative
        ``refine``.

    See Also
    --------
    frontal.factorize : one factor, without comparisons.

    Notes
    -----
    A solver can be passed wherever a function that solves a linear system is expected:

    - scikit-fem: ``skfem.solve(K, f, solver=frontal.Solver(kind="spd"))``, or `frontal.solve`;
    - PyAMG: ``pyamg.ruge_stuben_solver(A, coarse_solver=frontal.Solver())``;
    - a loop of Newton's method: ``x -= solver(jacobian(x), residual(x))``.

    For programs that call SciPy's functions by name use `frontal.linalg.patched`; for functions
    that take an operator, such as `scipy.sparse.linalg.gmres` and `eigsh`,
    `Factor.as_linear_operator`.

    Examples
    --------
    >>> import frontal, numpy as np
    >>> A, b = frontal.problems.poisson2d(10), np.ones(100)
    >>> solver = frontal.Solver(kind="spd")
    >>> for factor in (1, 1, 2, 2, 2):  # values change once
    ...     x = solver(factor * A, b)
    >>> solver.analyses, solver.factorizations, solver.solves
    (1, 2, 5)
    >>> bool(np.allclose(2 * A @ x, b))
    True
    """

    def __init__(
        self,
        kind: str = "auto",
        *,
        ordering: ArrayLike = "auto",
        backend: str = "auto",
        reuse: int = 10,
        refine: int | None = None,
        check_finite: bool = True,
        singular: str = "raise",
        triangle: str | None = None,
        precision: str = "full",
        memory: str | float = "auto",
    ) -> None:
        require_kind(kind)
        require_precision(precision)
        require_refinement(precision, refine)
        require_singular(singular)
        self._refine = refine
        self._input_options = {"check_finite": check_finite, "triangle": triangle}
        self._analyzed = {"kind": kind, "ordering": ordering, "backend": backend, "reuse": reuse}
        options = {"singular": singular, "precision": precision}
        self._factorized = options | {"memory": required_memory(memory)}
        self._begin()

    def _begin(self) -> None:
        self.analyses = self.factorizations = self.solves = 0
        self._lock = threading.Lock()
        self.free()

    def __call__(
        self, A: MatrixLike, b: MatrixLike, trans: str = "N", *, return_info: bool = False
    ) -> Untyped:
        """Solve op(A) x = b.

        Parameters
        ----------
        A : sparse matrix or array, (n, n)
            Any format, as for `frontal.solve`; CSC, CSR, BSR and COO are compared without a
            conversion. With a GPU, matrices of CuPy are compared and factorized on the device.
        b : array (n,) or (n, k), or sparse
        trans : {"N", "T", "H"}
            op(A): the matrix, its transpose or its adjoint.
        return_info : bool
            Return (x, SolveInfo).

        Returns
        -------
        x : array of b's shape and kind
        info : SolveInfo
            If `return_info`.

        Raises
        ------
        SingularMatrixError, NotPositiveDefiniteError, NonFiniteInputError, ValueError, TypeError
            As `frontal.solve`. If A has no factor, the analysis is reused nevertheless.

        Warns
        -----
        IllConditionedWarning
            As `frontal.solve`.
        """
        held = self._entered(A)
        try:
            x = held.factor.solve(b, trans, refine=self._refine, return_info=return_info)
        finally:
            with self._lock:
                held.users -= 1
        with self._lock:
            self.solves += 1
        return x

    def free(self) -> None:
        """Release analysis and factor; memory is freed when no thread solves any more."""
        with self._lock:
            self._known: _AnalyzedPattern | None = None
            self._held: _HeldFactor | None = None

    def _entered(self, A: MatrixLike) -> _HeldFactor:
        """Return the factor of A, with one more user."""
        A = _plain(A)
        stored = _Stored.by(A)
        with self._lock:
            known, held = self._known, self._held
            if known is None or not known.stored.has_pattern_of(stored):
                known, held = self._analyze(A, stored), None
            if held is None or held.values is None or not same_bits(held.values, stored.values):
                held = self._renewed(A, stored.values.copy(), known.analysis, held)
            held.users += 1
            return held

    def _analyze(self, A: Untyped, stored: _Stored) -> _AnalyzedPattern:
        """Analyze and store another pattern; drop the factor of the previous one."""
        first, second = (x.copy() for x in stored.pattern)
        analysis = analyze(A, **self._analyzed, **self._input_options)
        self._known = _AnalyzedPattern(_Stored(stored.about, (first, second), None), analysis)
        self._held = None
        self.analyses += 1
        return self._known

    def _renewed(
        self, A: Untyped, values: Untyped, analysis: Analysis, held: _HeldFactor | None
    ) -> _HeldFactor:
        """Return a factor of new values, in the memory of the last one unless it is in use."""
        if held is None or held.users:
            factor = analysis.factorize(A, **self._factorized, **self._input_options)
            held = self._held = _HeldFactor(factor, None)
        else:
            held.values = None
            held.factor.refactorize(A, **self._input_options)
        held.values = values
        self.factorizations += 1
        return held

    def __getstate__(self) -> dict[str, object]:
        """Return the options."""
        names = ("_refine", "_input_options", "_analyzed", "_factorized")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def __repr__(self) -> str:
        return (
            f"<Solver, kind={self._analyzed['kind']!r}: {self.analyses} analyses, "
            f"{self.factorizations} factorizations, {self.solves} solves>"
        )


def _plain(A: MatrixLike) -> Untyped:
    """Return A in a format whose arrays can be compared; other formats as CSC."""
    matrix: Untyped = A if is_on_cupy(A) else for_scipy(A)
    refuse_masked(matrix, "A")
    known = is_on_cupy(A) or is_sparse(matrix)
    if known and getattr(matrix, "format", "") in _ARRAYS and len(matrix.shape) == 2:
        return matrix
    return canonical(matrix, kind="general", check_finite=False).A
