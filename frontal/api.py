"""The public functions solve, analyze and factorize: the phases of the solver in their order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ._typing import MatrixLike
from .analysis_cache import AnalysisCache
from .backend.choose import prewarm
from .backend.protocol import Progress
from .errors import FactorMemoryError, SingularMatrixError
from .factor.analysis import Analysis
from .factor.factor import Factor
from .factor.mixed import require_refinement
from .factor.quasidefinite import required_signs
from .factor.schur_index import host_backend, require_same_schur, required_index
from .matrix.canonical import Canonical, on_device, prepare_rhs
from .matrix.complete import to_canonical, warn_of_lone_triangle
from .symbolic.phase import SymbolicOptions

_MAX_CACHED_COLUMNS = 2000  # columns; up to here the analysis takes half the time of a solve
_CACHED_BACKENDS = "auto", "cpu"  # backends whose analyses are cached
_analyses = AnalysisCache(
    most_bytes=1 << 22
)  # bytes of the cached analyses of small patterns; no values are cached


def solve(
    A: MatrixLike,
    b: MatrixLike,
    *,
    kind: str = "auto",
    ordering: ArrayLike = "auto",
    backend: str = "auto",
    refine: int | None = None,
    check_finite: bool = True,
    singular: str = "raise",
    return_info: bool = False,
    triangle: str | None = None,
    precision: str = "full",
    memory: str | float = "auto",
) -> Any:
    """Solve A x = b.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
        Any scipy.sparse format, or a dense array (with a warning).
    b : array (n,) or (n, k), or sparse (n, k)
        Right-hand sides. Arrays and matrices of CuPy are supported; x is on the device of b.
    kind : {"auto", "spd", "general", "symmetric", "hermitian", "quasidefinite"}
        ``"auto"`` tries Cholesky for a Hermitian matrix with a positive diagonal, uses LDL^T or
        LDL^H for other symmetric matrices, else LU; ``"spd"`` allows Cholesky only, and
        ``"quasidefinite"`` LDL^H without a search for pivots (see `analyze`). On the CPU, LU
        of a thin matrix works by columns of its block triangular form, else all methods by fronts.
    ordering : str or (n,) int array
        ``"auto"``, ``"amd"``, ``"dissection"``, ``"layers"``, ``"metis"``, ``"nesdis"``, ``"rcm"``,
        ``"natural"``, or a permutation: entry k is the column eliminated k-th.
    backend : {"auto", "cpu", "gpu"}
        ``"auto"`` is the value of ``FRONTAL_BACKEND``; without it an available GPU, except for
        small problems and for factors that do not fit into its memory, which the CPU computes.
        ``"gpu"`` requires a GPU, and raises if the factor does not fit.
    refine : int, optional
        Maximum number of steps of iterative refinement; by default as many as help. With 0 there
        is neither refinement nor a warning.
    check_finite : bool
        Refuse NaN and infinity in A.
    singular : {"raise", "warn", "allow"}
        As for `factorize`.
    return_info : bool
        Return (x, SolveInfo).
    triangle : {"lower", "upper"}, optional
        The triangle that A stores, if only one; `kind` defines the other, and is required for a
        complex matrix. By default both triangles are stored.
    precision : {"full", "mixed"}
        As for `factorize`.
    memory : {"auto", "device", "streamed"} or number
        As for `factorize`.

    Returns
    -------
    x : array of b's shape
        In the common scalar type of A and b.
    info : SolveInfo
        If `return_info`: errors, condition, perturbed pivots, backend, times.

    Raises
    ------
    SingularMatrixError, NotPositiveDefiniteError, NonFiniteInputError, FactorMemoryError,
    ValueError, TypeError

    Warns
    -----
    IllConditionedWarning
        If x may have fewer than two correct digits, by its backward error and an estimated
        condition number that is invariant under row scaling.

    Examples
    --------
    >>> import frontal, numpy as np
    >>> from frontal.problems import poisson2d
    >>> A = poisson2d(30)
    >>> x = frontal.solve(A, A @ np.ones(900))
    >>> bool(np.allclose(x, 1))
    True
    """
    require_refinement(precision, refine)
    dtype = np.result_type(_dtype_of(A), _dtype_of(b))
    if not np.issubdtype(_dtype_of(A), np.complexfloating) and dtype.kind == "c":
        dtype = np.finfo(dtype).dtype  # a real factor solves for real and imaginary parts
    options = AnalysisOptions(kind, ordering, backend)
    known = options.lookup(A, triangle) if dtype == _dtype_of(A) else None
    if known is None:
        matrix = to_canonical(A, triangle, kind=kind, check_finite=check_finite, dtype=dtype)
        warn_of_lone_triangle(matrix, kind)
    else:
        matrix = known[0]
    restore = None
    if not on_device(b):  # check b before other work is done, and convert it once
        B, restore = prepare_rhs(b, matrix.n, matrix.dtype)
        b = B[:, 0] if isinstance(b, np.ndarray) and b.ndim == 1 else B
    analysis = options.cached_analysis(matrix) if known is None else known[1]
    factor = Factor.from_matrix(
        matrix, analysis, singular=singular, precision=precision, memory=memory
    )
    solved = factor.solve(b, refine=refine, return_info=return_info)
    if restore is None:
        return solved
    x, *info = solved if return_info else (solved,)
    x = restore(x[:, None] if x.ndim == 1 else x)
    return (x, *info) if return_info else x


def analyze(
    A: MatrixLike,
    *,
    kind: str = "auto",
    ordering: ArrayLike = "auto",
    backend: str = "auto",
    reuse: int = 1,
    check_finite: bool = True,
    progress: Progress | None = None,
    triangle: str | None = None,
    signs: ArrayLike | None = None,
    regularize: bool = True,
    schur: ArrayLike | None = None,
) -> Analysis:
    """Order A and plan its factorization, for all matrices with its pattern.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
    kind, ordering, backend, check_finite
        As for `solve`.
    reuse : int
        Expected number of factorizations: more of them justify a slower, better ordering.
    progress : callable, optional
        Called with (phase, done, total).
    triangle : {"lower", "upper"}, optional
        As for `solve`.
    signs : (n,) array of 1 and -1, optional
        For ``kind="quasidefinite"``: signs of the pivots, by default those of the diagonal. Zero
        diagonal entries, as of a linear program, need them.
    regularize : bool
        For ``kind="quasidefinite"``: replace pivots that lack their sign by ones of sqrt(eps) times
        the largest entry of their column; `Factor.perturbed_pivots` counts them, and solutions are
        refined. If False, such a matrix raises `NotQuasidefiniteError`.
    schur : (k,) int array or (n,) bool array, optional
        Unknowns, in any order, that are eliminated last: `Factor.schur` is the dense Schur
        complement onto them. The factorization is then computed on the CPU.

    Returns
    -------
    Analysis
        `Analysis.save` writes it to a file. If ``FRONTAL_ANALYSIS_CACHE`` names a folder, the
        symbolic phase of a pattern of 2000 columns or more is computed once for the same options;
        with a matching, which depends on the values, once for the same values.

    Raises
    ------
    SingularMatrixError
        If the pattern is structurally singular. Stored zeros belong to the pattern.

    Examples
    --------
    >>> import frontal
    >>> from frontal.problems import poisson3d
    >>> analysis = frontal.analyze(poisson3d(8))
    >>> analysis.method, analysis.n
    ('cholesky', 512)
    """
    options = AnalysisOptions(
        kind, ordering, backend, reuse, progress, signs=signs, regularize=regularize, schur=schur
    )
    return analyzed(A, options, triangle=triangle, check_finite=check_finite)


def analyzed(
    A: MatrixLike, options: AnalysisOptions, triangle: str | None = None, check_finite: bool = True
) -> Analysis:
    """Return the result of `analyze`."""
    matrix = to_canonical(A, triangle, kind=options.kind, check_finite=check_finite)
    warn_of_lone_triangle(matrix, options.kind)
    try:
        return options.analyze(matrix)
    except SingularMatrixError:
        if not (matrix.data == 0).any():
            raise
    pattern = replace(matrix, data=np.ones_like(matrix.data))  # with stored zeros as entries
    return options.analyze(pattern)


def factorize(
    A: MatrixLike,
    analysis: Analysis | None = None,
    *,
    kind: str = "auto",
    ordering: ArrayLike = "auto",
    backend: str = "auto",
    reuse: int = 1,
    check_finite: bool = True,
    singular: str = "raise",
    progress: Progress | None = None,
    triangle: str | None = None,
    precision: str = "full",
    memory: str | float = "auto",
    signs: ArrayLike | None = None,
    regularize: bool = True,
    schur: ArrayLike | None = None,
) -> Factor:
    """Factorize A, for many solves.

    The analyses of the most recent patterns of at most 2000 columns are cached: a repeated pattern
    is not analyzed again, unless ``ordering``, ``backend``, ``reuse`` or ``progress`` is set.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
    analysis : Analysis, optional
        Of a matrix with the same pattern; replaces ``kind``, ``ordering``, ``backend``, ``reuse``.
    kind, ordering, backend, reuse, check_finite, progress, triangle, signs, regularize, schur
        As for `analyze`.
    singular : {"raise", "warn", "allow"}
        What to do if A is singular to working precision: less than 2 eps from a matrix of lower
        rank, with rows and columns of moderate size. ``"raise"`` raises an error. ``"allow"``
        returns, if b is in the range of A to 1000 eps, the solution that is zero in
        `Factor.null_columns`; for another b, x is huge along the null space, as inverse iteration
        requires. It disables warnings about the condition, for a regular matrix too. ``"warn"``
        does the same with an `IllConditionedWarning`. `Factor.refactorize` keeps the choice. A
        structurally singular pattern always raises.
    precision : {"full", "mixed"}
        ``"mixed"`` factorizes a double-precision matrix in single precision, in half the memory
        and less time, and solves to the same backward error and with the same verdict as
        ``"full"``, by refinement or GMRES in double. If that finds no solution, or one that needs
        a warning, the matrix is factorized in double, at once or in a later solve, and the factor
        stays in double: likely for a condition number above 1e7, and it costs both factorizations.
        ``refine=0`` raises. `Factor.refactorize` keeps the choice.
    memory : {"auto", "device", "streamed"} or number
        Where a factor on a GPU is stored. ``"device"`` stores all panels in device memory.
        ``"streamed"`` factorizes the matrix in parts, and stores the panels in memory of the host;
        a solve copies them back, once for all right-hand sides. A number limits the bytes of
        device memory that the factor and a solve of one right-hand side take; a larger factor is
        streamed. ``"auto"`` is ``"device"`` if that fits, else ``"streamed"``, else the CPU with a
        `PerformanceWarning`. The bits of the result do not depend on it. On the CPU a number limits
        the memory that the analysis estimates, and strings have no effect. `Factor.refactorize`
        keeps the choice; a factor that moves to the CPU drops the limit.

    Returns
    -------
    Factor

    Raises
    ------
    SingularMatrixError
        With the rank and `null_columns`, if known.
    FactorMemoryError
        With the least sufficient memory; raised before any is allocated.
    NotPositiveDefiniteError, NonFiniteInputError, ValueError, TypeError

    Examples
    --------
    >>> import frontal, numpy as np
    >>> from frontal.problems import convdiff2d
    >>> A = convdiff2d(20)
    >>> factor = frontal.factorize(A)
    >>> x = factor.solve(A.T @ np.ones(400), trans="T")
    >>> bool(np.allclose(x, 1))
    True
    """
    more: dict[str, Any] = {"singular": singular, "precision": precision, "memory": memory}
    more["progress"] = progress
    if analysis is not None:
        require_same_schur(schur, analysis.symbolic.schur, analysis.n)
        return analysis.factorize(A, triangle=triangle, check_finite=check_finite, **more)
    options = AnalysisOptions(
        kind, ordering, backend, reuse, progress, signs=signs, regularize=regularize, schur=schur
    )
    known = options.lookup(A, triangle)
    if known is None:
        matrix = to_canonical(A, triangle, kind=kind, check_finite=check_finite, ordered=True)
        warn_of_lone_triangle(matrix, kind)
        known = matrix, options.cached_analysis(matrix)
    return Factor.from_matrix(*known, **more)


class AnalysisOptions(NamedTuple):
    """The options of `analyze`; for the last four see `SymbolicOptions`."""

    kind: str
    ordering: ArrayLike
    backend: str
    reuse: int = 1
    progress: Progress | None = None
    alone: bool = True
    signs: ArrayLike | None = None
    regularize: bool = True
    schur: ArrayLike | None = None

    @property
    def allow_cache(self) -> bool:
        """Whether these options, except `kind`, are those of the cached analyses."""
        automatic = isinstance(self.ordering, str) and self.ordering == "auto"
        plain = automatic and (self.reuse, self.progress) == (1, None)
        plain = plain and self.signs is None and self.regularize and self.schur is None
        return plain and self.backend in _CACHED_BACKENDS

    def lookup(self, A: MatrixLike, triangle: str | None) -> tuple[Canonical, Analysis] | None:
        """Return canonical A and a cached analysis of its pattern; see `AnalysisCache.lookup`."""
        if triangle is None and self.kind == "auto" and self.allow_cache:
            return _analyses.lookup(A, self.backend)
        return None

    def cached_analysis(self, matrix: Canonical) -> Analysis:
        """Return the analysis of a matrix; cached if it is small and the options allow it."""
        if matrix.n > _MAX_CACHED_COLUMNS or not self.allow_cache:
            prewarm(self.backend, matrix.method, matrix.dtype, matrix.n)
            return self.analyze(matrix)
        return _analyses.get(matrix, "auto", _falls_back(self.kind, matrix), self.backend)

    def analyze(self, matrix: Canonical) -> Analysis:
        """Return a new analysis of a matrix."""
        perm, ordering = None, self.ordering
        if not isinstance(ordering, str):
            perm, ordering = np.asarray(ordering), "given"
        signs = required_signs(self.signs, matrix)
        schur = required_index(self.schur, matrix.n)
        more = {"alone": self.alone, "signs": signs, "regularize": self.regularize, "schur": schur}
        try:
            return Analysis.from_matrix(
                matrix,
                choices=SymbolicOptions(ordering, perm, self.reuse, **more),
                backend=self.backend if schur is None else host_backend(self.backend),
                fallback=_falls_back(self.kind, matrix),
                progress=self.progress,
            )
        except MemoryError as error:
            raise FactorMemoryError.from_error(error) from None


def _falls_back(kind: str, matrix: Canonical) -> bool:
    """Return whether LDL^T or LDL^H replaces Cholesky if A is not positive definite."""
    return kind == "auto" and matrix.method.one_triangle


def _dtype_of(x: object) -> np.dtype:
    dtype = getattr(x, "dtype", None)
    return np.asarray(x).dtype if dtype is None else dtype
