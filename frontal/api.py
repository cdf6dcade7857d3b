"""The public functions: solve, analyze, factorize. The whole solver in the order of its theory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from .matrix.canonical import Canonical
from .matrix.complete import to_canonical
from .symbolic.phase import SymbolicOptions

_MAX_CACHED_COLUMNS = 2000  # columns, up to which an analysis takes as long as all else together
_CACHED_BACKENDS = "auto", "cpu"  # backends of which analyses are kept
_analyses = AnalysisCache(
    most_bytes=1 << 22
)  # of the last small patterns; of values nothing is kept


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
        Right-hand sides. CuPy's arrays and matrices are taken too, and x is then where b is.
    kind : {"auto", "spd", "general", "symmetric", "hermitian"}
        ``"auto"`` tries Cholesky on a Hermitian matrix with a positive diagonal, takes LDL^T or
        LDL^H for other symmetric ones, else LU; ``"spd"`` insists on Cholesky.
    ordering : str or (n,) int array
        ``"auto"``, ``"amd"``, ``"dissection"``, ``"layers"``, ``"metis"``, ``"nesdis"``, ``"rcm"``,
        ``"natural"``, or a permutation: entry k is the column eliminated k-th.
    backend : {"auto", "cpu", "gpu"}
        ``"auto"`` is what ``FRONTAL_BACKEND`` says; without it a GPU that is there, for all but
        small problems, and the CPU where the factor does not fit into its memory. ``"gpu"`` insists
        on a GPU, and raises there.
    refine : int, optional
        Largest number of steps of iterative refinement; by default as many as help. With 0 there
        is no refinement and no warning.
    check_finite : bool
        Refuse NaN and infinity in A.
    singular : {"raise", "warn", "allow"}
        As for `factorize`.
    return_info : bool
        Return (x, SolveInfo).
    triangle : {"lower", "upper"}, optional
        What A stores alone of a matrix whose `kind` tells the rest; of a complex one it must be
        named. By default both triangles are stored.
    precision : {"full", "mixed"}
        As for `factorize`.
    memory : {"auto", "device", "streamed"} or number
        As for `factorize`.

    Returns
    -------
    x : array of b's shape
        In the common scalar type of A and b.
    info : SolveInfo
        If `return_info`: errors, condition, perturbed pivots, where it ran, times.

    Raises
    ------
    SingularMatrixError, NotPositiveDefiniteError, NonFiniteInputError, FactorMemoryError,
    ValueError, TypeError

    Warns
    -----
    IllConditionedWarning
        If x may have less than two right digits, by its backward error and an estimated condition
        number that badly scaled rows do not change.

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
    known = _known(A, kind, ordering, backend, triangle) if dtype == _dtype_of(A) else None
    if known is None:
        matrix = to_canonical(A, triangle, kind=kind, check_finite=check_finite, dtype=dtype)
        known = matrix, _analyzed(matrix, kind, ordering, backend, 1, None)
    factor = Factor(*known, None, singular, precision, memory)
    return factor.solve(b, refine=refine, return_info=return_info)


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
) -> Analysis:
    """Order A and plan its factorization, once for all matrices of its pattern.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
    kind, ordering, backend, check_finite
        As for `solve`.
    reuse : int
        How many factorizations will follow: more of them justify a slower, better ordering.
    progress : callable, optional
        Called with (phase, done, total).
    triangle : {"lower", "upper"}, optional
        As for `solve`.

    Returns
    -------
    Analysis
        `Analysis.save` writes it to a file. Where ``FRONTAL_ANALYSIS_CACHE`` names a folder, the
        work is done once for a pattern of 2000 columns or more and these choices; where a matching
        has to look at the values, for these alone.

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
    matrix = to_canonical(A, triangle, kind=kind, check_finite=check_finite)
    args = kind, ordering, backend, reuse, progress
    try:
        return _analyze(matrix, *args)
    except SingularMatrixError:
        if not (matrix.data == 0).any():
            raise
    pattern = replace(matrix, data=np.ones_like(matrix.data))  # in which stored zeros count
    return _analyze(pattern, *args)


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
) -> Factor:
    """Factorize A, to solve with it many times.

    The analyses of the last patterns of at most 2000 columns are kept, so that one that comes again
    is not analyzed again, unless ``ordering``, ``backend``, ``reuse`` or ``progress`` is chosen.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
    analysis : Analysis, optional
        Of a matrix with the same pattern; the choices below are then taken from it.
    kind, ordering, backend, reuse, check_finite, progress, triangle
        As for `analyze`.
    singular : {"raise", "warn", "allow"}
        What is done about a matrix that is singular to working precision: less than 2 eps from one
        of less rank, with rows and columns of moderate size. ``"raise"`` refuses it. ``"allow"``
        solves, if b is in the range of A to 1000 eps, for the x that is zero in
        `Factor.null_columns`; for another b x is huge along the null space, as inverse iteration
        wants it. There are no warnings of condition then, for a regular matrix either. ``"warn"``
        does the same with an `IllConditionedWarning`. `Factor.refactorize` goes on so. A pattern
        without a regular matrix is always refused.
    precision : {"full", "mixed"}
        ``"mixed"`` factorizes a matrix of double precision in single, which takes half the memory
        and less time, and solves to the same backward error and with the same verdict as
        ``"full"``, by refinement or GMRES in double. Where that does not lead to a solution, or to
        one that would be warned of, it factorizes in double after all, then or when solving, and
        stays with that: for a condition above 1e7 that is likely, and takes time for both.
        ``refine=0`` is refused then. `Factor.refactorize` goes on so.
    memory : {"auto", "device", "streamed"} or number
        Where a factor on a GPU is kept. ``"device"`` takes the device's memory for all of it.
        ``"streamed"`` factorizes a part of the matrix after another, and keeps what is done in
        memory of the host; solves bring it back, once for all right-hand sides. A number is a limit
        in bytes of what factor and solves of one right-hand side take of the device; streamed is
        what would take more. ``"auto"`` is ``"device"`` if that fits, else ``"streamed"``, else the
        CPU with a `PerformanceWarning`. The numbers are the same to the last bit. On the CPU a
        limit is that of what the analysis estimates, and names mean nothing. `Factor.refactorize`
        goes on so, a factor that moves to the CPU without the limit.

    Returns
    -------
    Factor

    Raises
    ------
    SingularMatrixError
        With the rank and `null_columns`, if they are known.
    FactorMemoryError
        With the least memory that would do, before any is taken.
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
    if analysis is not None:
        options = {"check_finite": check_finite, "singular": singular, "progress": progress}
        options |= {"precision": precision, "memory": memory}
        return analysis.factorize(A, triangle=triangle, **options)
    known = _known(A, kind, ordering, backend, triangle, reuse, progress)
    if known is None:
        matrix = to_canonical(A, triangle, kind=kind, check_finite=check_finite, ordered=True)
        known = matrix, _analyzed(matrix, kind, ordering, backend, reuse, progress)
    return Factor(*known, progress, singular, precision, memory)


def _known(
    A: MatrixLike,
    kind: str,
    ordering: ArrayLike,
    backend: str,
    triangle: str | None,
    reuse: int = 1,
    progress: Progress | None = None,
) -> tuple[Canonical, Analysis] | None:
    """Return canonical A and a cached analysis of its pattern, or None; see `AnalysisCache`."""
    chosen = (kind, triangle, reuse, progress) != ("auto", None, 1, None)
    if (
        chosen
        or backend not in _CACHED_BACKENDS
        or not isinstance(ordering, str)
        or ordering != "auto"
    ):
        return None
    return _analyses.lookup(A, backend)


def _analyzed(
    matrix: Canonical,
    kind: str,
    ordering: ArrayLike,
    backend: str,
    reuse: int,
    progress: Progress | None,
) -> Analysis:
    """The analysis of a matrix, from before for a small one about which nothing was chosen."""
    chosen = backend not in _CACHED_BACKENDS or (reuse, progress) != (1, None)
    if (
        matrix.n > _MAX_CACHED_COLUMNS
        or chosen
        or not isinstance(ordering, str)
        or ordering != "auto"
    ):
        prewarm(backend, matrix.method, matrix.dtype, matrix.n)
        return _analyze(matrix, kind, ordering, backend, reuse, progress)
    return _analyses.get(matrix, "auto", _falls_back(kind, matrix), backend)


def _analyze(
    matrix: Canonical,
    kind: str,
    ordering: ArrayLike,
    backend: str,
    reuse: int,
    progress: Progress | None,
) -> Analysis:
    perm = None
    if not isinstance(ordering, str):
        perm, ordering = np.asarray(ordering), "given"
    try:
        return Analysis.from_matrix(
            matrix,
            choices=SymbolicOptions(ordering, perm, reuse),
            backend=backend,
            fallback=_falls_back(kind, matrix),
            progress=progress,
        )
    except MemoryError as error:
        raise FactorMemoryError.from_error(error) from None


def _falls_back(kind: str, matrix: Canonical) -> bool:
    """Return whether LDL^T or LDL^H replaces Cholesky if A is not positive definite."""
    return kind == "auto" and matrix.method.one_triangle


def _dtype_of(x: object) -> np.dtype:
    dtype = getattr(x, "dtype", None)
    return np.asarray(x).dtype if dtype is None else dtype
