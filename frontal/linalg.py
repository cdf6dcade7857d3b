"""Drop-in replacements of `scipy.sparse.linalg`: spsolve, splu, factorized, eigsh.

Signatures, shapes and failures are SciPy's, but more input is accepted: a complex right-hand side
with a real factor, lists, sparse right-hand sides, pickling. A nearly singular matrix gives an
`IllConditionedWarning`; SciPy is silent.

`patched` replaces SciPy's functions in programs that call them. The analyses of the most recent
patterns are cached in `analyses`, because such programs repeat patterns; factors are not cached:
each returned object has its own.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as theirs
from scipy.sparse import SparseEfficiencyWarning
from scipy.sparse.linalg import MatrixRankWarning

from ._typing import MatrixLike, Sparse, for_scipy, is_sparse
from .analysis_cache import AnalysisCache
from .api import factorize
from .eigen.api import eigsh, eigvals_count
from .errors import NonFiniteInputError, SingularMatrixError, warn
from .factor.factor import Factor
from .linalg_patching import replaced
from .machine.lockfree_property import cached_property
from .matrix.complete import to_canonical
from .matrix.exact import refuse_inexact, refuse_masked
from .matrix.validate import checked

# fmt: off
__all__ = [
    "SparseLU", "analyses", "eigsh", "eigvals_count", "factorized", "patched", "splu", "spsolve",
]

analyses = AnalysisCache()  # `analyses.clear()` frees the memory
# SuperLU's orderings by name and by number. All except NATURAL reduce the fill.
_ORDERINGS = {
    "NATURAL": "natural", "MMD_ATA": "auto", "MMD_AT_PLUS_A": "auto", "COLAMD": "auto",
}
_OPTIONS = {
    "ColPerm", "ConditionNumber", "DiagPivotThresh", "Equil", "Fact", "ILU_DropRule", "ILU_DropTol",
    "ILU_FillFactor", "ILU_FillTol", "ILU_MILU", "ILU_Norm", "IterRefine", "PanelSize",
    "PivotGrowth", "PrintStat", "RefineInitialized", "Relax", "ReplaceTinyPivot", "RowPerm",
    "SolveInitialized", "SymmetricMode", "Trans",
}
# fmt: on


def spsolve(
    A: MatrixLike,
    b: MatrixLike,
    permc_spec: str | None = None,
    use_umfpack: bool = True,
    *,
    singular: str = "raise",
) -> Any:
    """Solve A x = b, as `scipy.sparse.linalg.spsolve`.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
    b : array (n,), (n, 1) or (n, k), dense or sparse
    permc_spec : {"NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD"}, optional
        ``"NATURAL"`` keeps the order of the columns, up to exchanges that do not change the fill;
        all others select an ordering that reduces the fill.
    use_umfpack : bool
        Ignored.
    singular : {"raise", "warn", "allow"}
        As for `frontal.factorize`; SciPy behaves like ``"raise"``.

    Returns
    -------
    x : array or sparse
        (n,) for b of shape (n,) or (n, 1); sparse, in A's format, for sparse b with k > 1 columns.

    Raises
    ------
    ValueError, TypeError
        If shapes do not fit, or a scalar type is not supported.
    SingularMatrixError
        If A is singular and b sparse with k > 1 columns.

    Warns
    -----
    scipy.sparse.linalg.MatrixRankWarning
        If A is singular, or contains NaN or infinity; x is NaN then.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from frontal.linalg import spsolve
    >>> spsolve(sp.csc_array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 5.0]))
    array([1., 1.])
    """
    ordering = _ordering(permc_spec)
    matrix = _compressed(A, ("csc", "csr"), "spsolve requires A be CSC or CSR matrix format")
    if is_sparse(b) and b.ndim == 2 and b.shape[1] != 1:
        factor = _factorized(_promoted(matrix, b.dtype), ordering, singular)
        return type(matrix)(factor.solve(b))
    refuse_masked(b, "b")
    dense = checked(b, "b").toarray() if is_sparse(b) else np.asarray(b)
    squeeze = dense.ndim == 2 and dense.shape[1] == 1
    try:
        factor = _factor(_promoted(matrix, dense.dtype), ordering, singular)
        x = _solve(factor, dense, "N")
    except (SingularMatrixError, NonFiniteInputError) as error:
        finite = isinstance(error, SingularMatrixError)
        text = f"Matrix is exactly singular: {error}" if finite else _not_finite(error)
        warn(text, MatrixRankWarning)
        x = np.full(dense.shape, np.nan, np.result_type(matrix.dtype, dense.dtype, np.float32))
    return x.ravel() if squeeze else x


def splu(
    A: MatrixLike,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: dict[str, object] | None = None,
    *,
    singular: str = "raise",
) -> SparseLU:
    """Factorize A, as `scipy.sparse.linalg.splu`.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
    permc_spec : str, optional
        As for `spsolve`.
    diag_pivot_thresh, relax, panel_size : optional
        Tuning of SuperLU, ignored.
    options : dict, optional
        Options of SuperLU. ``ColPerm`` overrides `permc_spec`, the others are ignored.
    singular : {"raise", "warn", "allow"}
        As for `frontal.factorize`; SciPy behaves like ``"raise"``.

    Returns
    -------
    SparseLU

    Raises
    ------
    SingularMatrixError
        If A is singular; a RuntimeError, as in SciPy.
    ValueError
        If A is not square.
    TypeError
        For an option that SuperLU does not have.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from frontal.linalg import splu
    >>> lu = splu(sp.csc_array([[1.0, 0.0, 0.0], [5.0, 0.0, 2.0], [0.0, -1.0, 0.0]]))
    >>> lu.solve(np.array([1.0, 2.0, 3.0]))
    array([ 1. , -3. , -1.5])
    """
    options = {"ColPerm": permc_spec, **(options or {})}
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise TypeError(f"{unknown[0]!r} is not a SuperLU option; choose from {sorted(_OPTIONS)}")
    ordering = _ordering(options["ColPerm"])
    matrix = _compressed(A, ("csc",), "splu converted its input to CSC format")
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"can only factor square matrices, and the shape is {matrix.shape}")
    return SparseLU(_factorized(matrix, ordering, singular))


def factorized(A: MatrixLike, *, singular: str = "raise") -> Callable[[MatrixLike], Any]:
    """Return a function that solves A x = b, as `scipy.sparse.linalg.factorized`.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
    singular : {"raise", "warn", "allow"}
        As for `frontal.factorize`; SciPy behaves like ``"raise"``.

    Returns
    -------
    solve : callable
        Returns x for b, (n,) or (n, k).

    Raises
    ------
    SingularMatrixError, ValueError
        As `splu`.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from frontal.linalg import factorized
    >>> solve = factorized(sp.csc_array([[3.0, 2.0, -1.0], [2.0, -2.0, 4.0], [-1.0, 0.5, -1.0]]))
    >>> solve(np.array([1, -2, 0])).round(12)
    array([ 1., -2., -2.])
    """
    return splu(A, singular=singular).solve


def patched(*modules: str | ModuleType) -> AbstractContextManager[None]:
    """Replace SciPy's spsolve, splu and factorized by the functions of this module, in a block.

    They are replaced in `scipy.sparse.linalg`, and in each module that has imported them by name.
    When the block ends or fails, all are restored, in modules imported meanwhile too. A replaced
    function that was stored elsewhere, as a class attribute or a default argument, calls SciPy's
    again. Blocks may be nested, and used in several threads: they apply to the process. `spilu`
    and `eigsh`, which accepts fewer arguments here, are not, and isinstance of SuperLU is false.

    Parameters
    ----------
    *modules : str or module
        Modules in which to replace the functions, with all imported submodules; imported if
        necessary. By default all modules, including SciPy's solvers, such as the implicit methods
        of ``scipy.integrate.solve_ivp`` and the shifts of ``eigsh``.

    Returns
    -------
    context manager
        Also a decorator. Entering and leaving each take some 10 ms, because all imported modules
        are searched.

    Raises
    ------
    ImportError
        If a module does not exist.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, scipy.sparse.linalg
    >>> import frontal.linalg
    >>> A = sp.eye_array(3, format="csc")
    >>> with frontal.linalg.patched():
    ...     type(scipy.sparse.linalg.splu(A)).__name__
    'SparseLU'
    >>> type(scipy.sparse.linalg.splu(A)).__name__
    'SuperLU'
    """
    return replaced(_REPLACEMENTS, modules)


_REPLACEMENTS: dict[Callable[..., object], Callable[..., object]] = {
    theirs.spsolve: spsolve,
    theirs.splu: splu,
    theirs.factorized: factorized,
}


class SparseLU:
    """A factorized matrix with the attributes of SciPy's SuperLU: ``Pr @ A @ Pc == L @ U``.

    If `factor` is L D L^H with 2x2 pivots, the first access to a permutation, L or U computes an
    LU factorization.

    Attributes
    ----------
    factor : frontal.Factor
        The factor, which has more methods.
    """

    def __init__(self, factor: Factor) -> None:
        self.factor = factor

    def solve(self, rhs: MatrixLike, trans: str = "N") -> Any:
        """Solve A x = rhs, or with the transpose ("T") or the adjoint ("H") of A.

        Parameters
        ----------
        rhs : array (n,) or (n, k), or sparse
        trans : {"N", "T", "H"}

        Returns
        -------
        x : array of the shape and kind of rhs
        """
        return _solve(self.factor, rhs, trans)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.factor.shape

    @property
    def nnz(self) -> int:
        """Entries stored for L and U, both diagonals included."""
        stored = self._triangles.nnz
        return 2 * stored if self._cholesky else stored + self.shape[0]

    @cached_property
    def perm_c(self) -> np.ndarray:
        """Position of each column of A in ``Pr @ A @ Pc``, int32."""
        return self._triangles.perm_c

    @cached_property
    def perm_r(self) -> np.ndarray:
        """Position of each row of A in ``Pr @ A @ Pc``, int32."""
        return self._triangles.perm_r

    @cached_property
    def L(self) -> sp.csc_array:
        """Lower factor with unit diagonal."""
        L = self._triangles.L
        if self._cholesky:  # A = (L / d) (d L^H) with d the diagonal of L
            L.data = np.divide(L.data, np.repeat(np.asarray(L.diagonal()), np.diff(L.indptr)))
        return L

    @cached_property
    def U(self) -> sp.csc_array:
        """Upper factor."""
        U = self._triangles.U
        if self._cholesky:
            U.data = U.data * np.asarray(U.diagonal())[U.indices]
        return U

    @cached_property
    def _triangles(self) -> Factor:
        """A factor whose L and U are triangular."""
        factor = self.factor
        if factor.analysis.method not in ("ldlt", "ldlh") or not factor.has_pairs:
            return factor
        return factorize(factor.A, kind="general", singular="allow")

    @property
    def _cholesky(self) -> bool:
        return self.factor.analysis.method == "cholesky"

    def __repr__(self) -> str:
        return f"<SparseLU of {self.factor!r}>"


def _ordering(permc_spec: object) -> str:
    """Return the ordering for SuperLU's ``ColPerm``, given by name in any case or by number."""
    if permc_spec is None:
        return "auto"
    names = list(_ORDERINGS)
    if isinstance(permc_spec, int) and 0 <= permc_spec < len(names):
        permc_spec = names[permc_spec]
    if isinstance(permc_spec, str) and permc_spec.upper() in _ORDERINGS:
        return _ORDERINGS[permc_spec.upper()]
    raise ValueError(f"invalid value for 'ColPerm' parameter: {permc_spec!r}, choose from {names}")


def _factor(A: Sparse, ordering: str, singular: str) -> Factor:
    """Factorize A as `frontal.factorize`, with a cached analysis if there is one."""
    known = analyses.lookup(A) if ordering == "auto" else None
    if known is None:
        matrix = to_canonical(A, None, ordered=True)
        known = matrix, analyses.get(matrix, ordering)
    return Factor.from_matrix(*known, singular=singular)


def _factorized(A: Sparse, ordering: str, singular: str) -> Factor:
    """Do as `_factor`, with SuperLU's wording of the error."""
    try:
        return _factor(A, ordering, singular)
    except SingularMatrixError as error:
        details = {name: getattr(error, name) for name in ("column", "rank", "null_columns")}
        raise SingularMatrixError(f"Factor is exactly singular: {error}", **details) from error


def _compressed(A: MatrixLike, formats: tuple[str, ...], message: str) -> Sparse:
    """Return A in one of `formats`, with SciPy's warning if it must be converted."""
    matrix = for_scipy(A)
    refuse_masked(matrix, "A")
    if is_sparse(matrix) and matrix.format in formats:
        return matrix
    warn(message, SparseEfficiencyWarning)
    return sp.csc_array(checked(matrix, "A") if is_sparse(matrix) else matrix)


def _promoted(A: Sparse, rhs_dtype: np.dtype) -> Sparse:
    """Return A in the common precision of A and b; a real A stays real."""
    refuse_inexact(A.data, "A")
    work = np.result_type(A.dtype, rhs_dtype)
    if work.kind == "c" and A.dtype.kind != "c":
        work = np.finfo(work).dtype
    return A if A.dtype == work else A.astype(work)


def _not_finite(error: NonFiniteInputError) -> str:
    """Return the warning of `spsolve` for a matrix with NaN or infinity."""
    return f"Matrix is not finite, all of x is NaN: {error.entry}. {error.causes}"


def _solve(factor: Factor, b: MatrixLike, trans: str) -> Any:
    """Solve as `Factor.solve`; a column of b with NaN or infinity gives NaN in x, as in SciPy."""
    try:
        return factor.solve(b, trans)
    except NonFiniteInputError:
        dense = b.toarray() if is_sparse(b) else np.asarray(b)
        finite = np.isfinite(dense)
        x = factor.solve(np.where(finite, dense, 0), trans)
        x[..., ~finite.all(axis=0)] = np.nan
        return type(b)(x) if is_sparse(b) else x
