"""Factor: a factorized matrix with its solves and the queries about A."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._typing import MatrixLike, Untyped
from ..backend.memory_limit import required_memory
from ..backend.protocol import Progress
from ..files.versioned_pickle import Versioned
from ..matrix.canonical import Canonical
from ..matrix.value_map import ValueMap
from . import determinant
from .analyzed import Analyzed
from .attempt import DeviceValues
from .density import GaussianDensity
from .factor_condition import reciprocal_condition
from .gradients import Derivatives
from .inertia import Inertia, inertia
from .inverse_queries import InverseQueries
from .mixed import require_double, require_refinement
from .new_values import resolve_values
from .parts import FactorParts
from .schur import SchurComplement
from .state import FactorState
from .updates import Updates

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator
    from typing_extensions import Self


class Factor(
    Versioned, Derivatives, InverseQueries, FactorParts, GaussianDensity, Updates, SchurComplement
):
    """A factorized matrix: A = L L^H, P D A D P^T = L D L^H, or P_r D_r A D_c P_c = L U.

    Created by `frontal.factorize` or `Analysis.factorize`. A factor stores a copy of A's values for
    residuals: later changes of A have no effect. Factor, values, right-hand sides and solutions
    stay on the GPU if it computed them. Pickles are on the host and can be loaded only by the
    version that wrote them; do not load untrusted ones. With ``precision="mixed"`` L, U, D and
    `diag` are in single precision until a query needs double: determinants, entries of the inverse.
    """

    def __init__(self, state: FactorState, order: ValueMap | None = None) -> None:
        self._numbers, self._order = state, order  # None if the user's values are by columns

    @classmethod
    def from_matrix(
        cls,
        matrix: Canonical | DeviceValues,
        analysis: Analyzed,
        *,
        progress: Progress | None = None,
        singular: str = "raise",
        precision: str = "full",
        memory: str | float = "auto",
        renewed: bool = False,
    ) -> Self:
        """Factorize as `frontal.factorize`; `renewed` if the analysis may be of other values."""
        require_double(precision, matrix.dtype)
        memory = required_memory(memory)
        state = FactorState(analysis, singular=singular, precision=precision, memory=memory)
        values = analysis.snapshot(matrix) if isinstance(matrix, Canonical) else matrix
        state.factorize(values, mixed=precision == "mixed", progress=progress, renewed=renewed)
        return cls(state, matrix.order)

    def solve(
        self,
        b: Untyped,
        trans: str = "N",
        *,
        refine: int | None = None,
        return_info: bool = False,
        system: str = "A",
    ) -> Any:
        """Solve op(A) x = b, or a system with a part of the factors.

        Parameters
        ----------
        b : array (n,) or (n, k), or sparse (n, k)
            Right-hand sides, any layout; they may be complex with a real factor. An array on the
            GPU stays there if the factor is on the GPU.
        trans : {"N", "T", "H"}
            op(A): the matrix, its transpose or its adjoint.
        refine : int, optional
            Refinement steps at most; by default as many as help. 0 disables refinement and its
            warnings. With b and the factor on the GPU, ``refine=0`` without `return_info` neither
            waits for the device nor checks b for NaN, and can be captured into a CUDA graph after
            a first such solve.
        return_info : bool
            Return `info` too; its condition number and error of x cost a few more solves.
        system : {"A", "LDLt", "LD", "DLt", "L", "Lt", "D", "LU", "U", "P", "Pt", "Q", "Qt"}
            Matrix of the system. Names other than "A" are the parts of the factors, as CHOLMOD's:
            ``Lt`` is L^H (L^T for LDL^T), D is the identity for Cholesky, and U is D L^H except for
            LU, which has only LU, L, U and permutations. ``P`` and ``Pt`` return ``Pr @ b`` and
            ``Pr.T @ b``; ``Q`` and ``Qt`` the same with ``Pc``. The equation is
            ``Pr @ A @ Pc == L @ D @ Lt`` or ``== L @ U``, for `L`, `D` and `U` of this factor,
            which contain its scaling. Parts are not refined, and no condition is estimated. Those
            of a factor on a GPU are computed on the host.

        Returns
        -------
        x : array of b's shape and kind, in the common scalar type of A and b
        info : SolveInfo
            If `return_info`.

        Raises
        ------
        ValueError, TypeError, NonFiniteInputError
            If b does not fit, or has NaN, infinity, masked entries or too large integers; if
            `trans` is invalid; if `refine` is no number of steps, or 0 with ``precision="mixed"``;
            if the method has no such system, or `trans`, `refine` or `return_info` is set for it.
        SingularMatrixError, SolutionOverflowError
            If A is singular or no solution is accurate; if x is too large for its type.
        InverseInaccurateError
            For a part of the factors, if pivots were replaced.
        FactorFreedError, FactorInvalidError
            After `free`; after a failed `refactorize`, or while another thread refactorizes.

        Warns
        -----
        IllConditionedWarning
            If the backward error stays above 16 eps in a row; if x may have less than two correct
            digits by its condition (not with ``singular="allow"``); if x is too small for its type.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.poisson2d(10)
        >>> x, info = frontal.factorize(A).solve(np.ones(100), return_info=True)
        >>> bool(info.backward_error < 1e-15)
        True
        """
        if system != "A":
            return self._solve_part(b, system, trans, refine, return_info)
        if not return_info:
            x = self._numbers.solver.solve_vector(b, trans, refine)
            if x is not None:
                return x
        about = (lambda: self.info) if return_info else None
        require_refinement(self._numbers.precision, refine)
        x, info = self._numbers.answer(lambda solver: solver.solve(b, trans, refine, about))
        return x if info is None else (x, info)

    __call__ = solve

    def refactorize(
        self, A: MatrixLike, *, check_finite: bool = True, triangle: str | None = None
    ) -> Self:
        """Factorize new values of the same pattern, in place.

        Parameters
        ----------
        A : sparse matrix or array (n, n), or array of values
            The matrix, or new values in the order of ``A.data`` of the last CSC, CSR, COO or BSR
            matrix that this factor was computed from, including explicit zeros and duplicates,
            sorted or not. Other formats have no such array; pass the matrix itself.

            A CuPy array or CSC or CSR matrix stays on the GPU if the factor is there.
        check_finite : bool
        triangle : {"lower", "upper"}, optional
            The only triangle that a matrix A stores. An array of values has the values of one
            triangle if the last matrix stored one.

        Raises
        ------
        ValueError
            If pattern or number of values differ, or the last format has no array of values; the
            factor is unchanged. If the matrix is not Hermitian though ``kind="spd"`` states it.
        NonFiniteInputError, NotPositiveDefiniteError, SingularMatrixError
            If the values have no factor. Then, and after an interrupt, all other methods raise
            `FactorInvalidError` until a `refactorize` succeeds.
        FactorFreedError

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.convdiff2d(4).tocsr()
        >>> factor = frontal.factorize(A).refactorize(2 * A.data)
        >>> bool(np.allclose(factor.solve(2 * A @ np.ones(16)), 1))
        True
        """
        last = self._numbers.last()
        matrix, order = resolve_values(A, last, self._order, check_finite, triangle)
        require_double(self._numbers.precision, matrix.dtype)
        self._order = order
        self._numbers.renew(matrix, check_finite, last)
        return self

    @property
    def analysis(self) -> Analyzed:
        """Analysis with the method and the backend that factorized."""
        return self._numbers.analysis

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.analysis.n, self.analysis.n

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors: single if ``precision="mixed"`` was sufficient."""
        return self._numbers.dtype

    @property
    def nnz(self) -> int:
        """Stored entries of the factors, including zeros from amalgamation."""
        return self.analysis.nnz_factor

    @property
    def A(self) -> sp.csc_array:
        """The factorized matrix."""
        return self._numbers.factor.matrix.A

    @property
    def growth(self) -> float:
        """Largest modulus in the factors over the largest in the (scaled) matrix.

        For ``kind="quasidefinite"`` the largest of |L| |D| |L^H| over the infinity norm.
        """
        return self._numbers.solver.growth

    def slogdet(self) -> tuple[np.number, float]:
        """Return sign (or phase) and logarithm of the modulus of det(A).

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> [float(x) for x in frontal.factorize(sp.csc_array([[0.0, 2.0], [1.0, 1.0]])).slogdet()]
        [-1.0, 0.6931471805599453]
        """
        return self._numbers.answer(determinant.certain_slogdet, True)

    def logdet(self) -> float:
        """Return the natural logarithm of det(A); raise ValueError if det(A) is not positive."""
        return self._numbers.answer(determinant.logdet, True)

    @property
    def inertia(self) -> Inertia:
        """Numbers of positive, negative and zero eigenvalues of A, by Sylvester's law.

        The numbers are exact, and `zero` is 0: zero cannot be distinguished from a tiny eigenvalue.

        Raises
        ------
        InertiaUncertainError
            If a pivot was perturbed, or is too small for its sign to be certain.
        ValueError
            If the factor is neither Cholesky's nor LDL^H of a real symmetric or Hermitian matrix.

        Examples
        --------
        >>> import frontal
        >>> frontal.factorize(frontal.problems.poisson2d(10)).inertia
        Inertia(positive=100, negative=0, zero=0)
        """
        return self._numbers.answer(lambda solver: inertia(solver.factor), True)

    def rcond(self) -> float:
        """Return the reciprocal condition 1 / (|A| |A^-1|), 1-norm, estimated by a few solves.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> frontal.factorize(sp.diags_array([1.0, 2.0, 8.0]).tocsc()).rcond()
        0.125
        """
        return self._numbers.answer(lambda solver: reciprocal_condition(solver.factor))

    @property
    def null_columns(self) -> np.ndarray:
        """(p,) columns of A that depend on the others, to working precision; usually empty.

        Singular matrices have factors only with ``singular="warn"`` or ``"allow"``.
        """
        null = self._numbers.solver.verdict.null_space
        return np.empty(0, np.int64) if null is None else null.columns.copy()

    def null_space(self) -> np.ndarray:
        """Return a basis N, (n, p), of the null space: 1 in one null column, 0 in the others.

        The relative distance of A, scaled to rows and columns of moderate size, to a matrix with
        the exact null vectors N is at most 2 eps: ``|A N|`` is a few roundings of ``|A| |N|``. N is
        (n, 0) for a regular matrix; otherwise ``singular`` must be ``"warn"`` or ``"allow"``.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> A = sp.csc_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
        >>> bool(abs(frontal.factorize(A, singular="allow").null_space() - 1).max() < 1e-14)
        True
        """
        null = self._numbers.solver.verdict.null_space
        return np.empty((self.shape[0], 0), self.dtype) if null is None else null.basis.copy()

    def as_linear_operator(self, *, refine: int | None = None) -> LinearOperator:
        """Return the inverse of A as an operator, for Krylov methods and eigensolvers.

        Parameters
        ----------
        refine : int, optional
            As for `solve`; 0 is enough for a preconditioner.

        Raises
        ------
        ValueError
            For ``refine=0`` with ``precision="mixed"``.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> from scipy.sparse.linalg import eigsh, gmres
        >>> A = frontal.problems.poisson2d(10)
        >>> M = frontal.factorize(A).as_linear_operator(refine=0)
        >>> x, failed = gmres(A + 0.01 * A @ A, np.ones(100), M=M)
        >>> failed
        0

        The inverse gives the eigenvalues closest to a shift, or to zero:

        >>> inverse = frontal.factorize(A).as_linear_operator()
        >>> eigsh(A, k=1, sigma=0, OPinv=inverse, return_eigenvectors=False).round(4)
        array([0.162])
        """
        from scipy.sparse.linalg import LinearOperator

        require_refinement(self._numbers.precision, refine)
        solve, adjoint = (partial(self.solve, trans=trans, refine=refine) for trans in "NH")
        dtype = self._numbers.factor.matrix_dtype
        return LinearOperator(self.shape, solve, adjoint, solve, dtype, adjoint)

    def profile(self) -> object:
        """Factorize again with timers; return a `FactorProfile` by level and by size of the fronts.

        Its rows have milliseconds, and lower bounds from the bytes and operations at the device's
        measured peak rates. Raise ValueError if the factor is not on a GPU.
        """
        return self._numbers.factor.profile()

    @property
    def info(self) -> dict[str, Any]:
        """Backend, method, ordering, cost and health of this factorization."""
        return self._numbers.about()

    def __repr__(self) -> str:
        analysis, state = self.analysis, self._numbers.state
        return (
            f"<Factor of a {self.shape[0]} x {self.shape[1]} {self.dtype} matrix: "
            f"{analysis.method}, {analysis.nnz_factor} entries, {analysis.ordering.method}"
            f"{state and ', ' + state}>"
        )

    def copy(self) -> Self:
        """Return an independent factor on the same device; `refactorize` changes only one."""
        return type(self)(self._numbers.copy(), self._order)

    def to_cpu(self) -> Self:
        """Return an independent factor on the CPU, which needs no GPU."""
        return type(self)(self._numbers.on_cpu(self.analysis.on("cpu")), self._order)

    def free(self) -> None:
        """Release the memory of the factor and of the values; later use is an error.

        A factor on the GPU returns it to CuPy's pool. A ``with`` block frees it at its end.
        """
        self._numbers.free()

    __copy__ = copy

    def __enter__(self) -> Self:
        self._numbers.solver  # noqa: B018 - raises if there is no factor
        return self

    def __exit__(self, *_: object) -> None:
        self.free()
