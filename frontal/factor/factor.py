"""Factor: a factorized matrix, which solves systems and answers questions about A."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..backend.memory_limit import required_memory
from ..backend.protocol import Progress
from ..files.versioned_pickle import Versioned
from ..matrix.canonical import Canonical
from ..matrix.value_map import ValueMap
from . import determinant, extract
from .analyzed import Analyzed
from .condition import reciprocal_condition
from .inertia import Inertia, inertia
from .mixed import require_double, require_refinement
from .new_values import resolve_values
from .policy import DeviceValues
from .state import FactorState

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator
    from typing_extensions import Self


class Factor(Versioned):
    """A factorized matrix: A = L L^H, P D A D P^T = L D L^H, or P_r D_r A D_c P_c = L U.

    Made by `frontal.factorize` or `Analysis.factorize`. It keeps the values of A for residuals:
    later changes of A are not seen. Factor, values, right-hand sides and solutions of a GPU stay
    there. Pickles are on the host, for the version that made them; load none from others.

    With ``precision="mixed"`` the factors are in single precision until a query needs double, as
    determinants and inertia do; L, U, D and `diag` too.
    """

    def __init__(
        self,
        matrix: Canonical | DeviceValues,
        analysis: Analyzed,
        progress: Progress | None = None,
        singular: str = "raise",
        precision: str = "full",
        memory: str | float = "auto",
        renewed: bool = False,
    ) -> None:
        if precision == "mixed":
            require_double(matrix.dtype)
        self._order = matrix.order  # None: by columns
        self._numbers = FactorState(analysis, None, singular, precision, required_memory(memory))
        matrix = analysis.snapshot(matrix) if isinstance(matrix, Canonical) else matrix
        self._numbers.factorize(matrix, progress, renewed=renewed)

    def solve(
        self, b: Any, trans: str = "N", *, refine: int | None = None, return_info: bool = False
    ) -> Any:
        """Solve op(A) x = b.

        Parameters
        ----------
        b : array (n,) or (n, k), or sparse (n, k)
            Right-hand sides, any layout. Complex ones are fine with a real factor. An array on the
            GPU stays there, if the factor is there.
        trans : {"N", "T", "H"}
            op(A): the matrix, its transpose or its adjoint.
        refine : int, optional
            Most steps of iterative refinement; by default as many as help, 0 for none, and then
            for no warnings either. Where b and the factor are on the GPU, ``refine=0`` without
            `return_info` neither waits for the device nor looks for NaN in b, and can be captured
            into a CUDA graph after a first one.
        return_info : bool
            With a condition number and an error of x, which are estimated by a few more solves.

        Returns
        -------
        x : array of b's shape and kind, in the common scalar type of A and b
        info : SolveInfo
            If `return_info`.

        Raises
        ------
        ValueError, TypeError, NonFiniteInputError
            If b does not fit, or has NaN, infinity, masked entries or too large integers; for
            another `trans`; if `refine` is no number of steps, or 0 with ``precision="mixed"``.
        SingularMatrixError, SolutionOverflowError
            If A is singular; if no solution is accurate, or x is too large for its type.
        FactorFreedError, FactorInvalidError
            After `free`, after a `refactorize` that failed, or while another thread refactorizes.

        Warns
        -----
        IllConditionedWarning
            If the backward error stays above 4 eps; if x may have less than two right digits, by
            its condition number (not with ``singular="allow"``); if x is too small for its type.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.poisson2d(10)
        >>> x, info = frontal.factorize(A).solve(np.ones(100), return_info=True)
        >>> bool(info.backward_error < 1e-15)
        True
        """
        if refine is None and not return_info:
            x = self._numbers.solver.solve_fast(b, trans)
            if x is not None:
                return x
        about = (lambda: self.info) if return_info else None
        require_refinement(self._numbers.precision, refine)
        x, info = self._numbers.answer(lambda solver: solver.solve(b, trans, refine, about))
        return x if info is None else (x, info)

    __call__ = solve

    def refactorize(
        self, A: Any, *, check_finite: bool = True, triangle: str | None = None
    ) -> Self:
        """Factorize new values of the same pattern, in place.

        Parameters
        ----------
        A : sparse matrix or array (n, n), or array of values
            The matrix, or its values alone: what ``A.data`` of the very CSC, CSR, COO or BSR matrix
            would be that this factor was given last, explicit zeros and repeated entries included,
            sorted or not. Other formats have no such array, and want the matrix itself.

            Where the factor is on the GPU and A too, an array or a CSC or CSR matrix of CuPy, all
            stays there.
        check_finite : bool
        triangle : {"lower", "upper"}, optional
            What a matrix A stores alone. Values alone are those of the triangle, where that was
            given last.

        Raises
        ------
        ValueError
            If pattern or number of values differ, or an array of values has no meaning; the factor
            is as before then. If the matrix is not Hermitian, where ``kind="spd"`` promised it.
        NonFiniteInputError, NotPositiveDefiniteError, SingularMatrixError
            If the values have no factor: until a `refactorize` succeeds, as after an interrupt,
            all else raises `FactorInvalidError`.
        FactorFreedError
            After `free`.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.convdiff2d(4).tocsr()
        >>> factor = frontal.factorize(A).refactorize(2 * A.data)
        >>> bool(np.allclose(factor.solve(2 * A @ np.ones(16)), 1))
        True
        """
        last = self._numbers.last()
        order = self._order or ValueMap.by_columns(last.analysis.symbolic.indices.size)
        matrix, order = resolve_values(A, last, order, check_finite, triangle)
        if self._numbers.precision == "mixed":
            require_double(matrix.dtype)
        self._order = order
        self._numbers.renew(matrix, check_finite, last)
        return self

    @property
    def analysis(self) -> Analyzed:
        """Ordering, tree and plan, of the method and the backend that factorized."""
        return self._numbers.analysis

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.analysis.n, self.analysis.n

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors: single where ``precision="mixed"`` was enough."""
        return self._numbers.dtype

    @property
    def nnz(self) -> int:
        """Stored entries of the factors, zeros of merged fronts included."""
        return self.analysis.nnz_factor

    @property
    def A(self) -> sp.csc_array:
        """The factorized matrix."""
        return self._numbers.factor.matrix.A

    @property
    def growth(self) -> float:
        """Largest entry of the factors over the largest of the (scaled) matrix."""
        return self._numbers.solver.growth

    def slogdet(self) -> tuple[Any, float]:
        """Sign (or phase) and logarithm of the modulus of det(A).

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> [float(x) for x in frontal.factorize(sp.csc_array([[0.0, 2.0], [1.0, 1.0]])).slogdet()]
        [-1.0, 0.6931471805599453]
        """
        return self._numbers.answer(lambda solver: determinant.slogdet(solver.factor), True)

    def logdet(self) -> float:
        """Natural logarithm of det(A); a ValueError if that is not positive."""
        return self._numbers.answer(lambda solver: determinant.logdet(solver.factor), True)

    @property
    def inertia(self) -> Inertia:
        """Numbers of positive, negative and zero eigenvalues of A, by Sylvester's law.

        They are exact: a zero eigenvalue is not told from a tiny one, so that `zero` is 0.

        Raises
        ------
        InertiaUncertainError
            If a pivot was replaced, or is too small for its sign to be certain.
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
        """Reciprocal condition number 1 / (|A| |A^-1|), 1-norm, estimated by a few solves.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> frontal.factorize(sp.diags_array([1.0, 2.0, 8.0]).tocsc()).rcond()
        0.125
        """
        return self._numbers.answer(lambda solver: reciprocal_condition(solver.factor))

    @property
    def null_columns(self) -> np.ndarray:
        """(p,) columns of A that depend on the others, to working precision; empty as a rule.

        Only ``singular="warn"`` and ``"allow"`` make factors of singular matrices.
        """
        null = self._numbers.solver.verdict.null_space
        return np.empty(0, np.int64) if null is None else null.columns.copy()

    def null_space(self) -> np.ndarray:
        """Basis N, (n, p), of the vectors that A takes to zero: 1 in one null column, 0 in others.

        The relative distance of A, with rows and columns of moderate size, to a matrix that takes N
        to zero exactly is at most 2 eps: ``|A N|`` is some roundings of ``|A| |N|``. For a regular
        matrix it is (n, 0); otherwise ``singular`` must be ``"warn"`` or ``"allow"``.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> A = sp.csc_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
        >>> bool(abs(frontal.factorize(A, singular="allow").null_space() - 1).max() < 1e-14)
        True
        """
        null = self._numbers.solver.verdict.null_space
        return np.empty((self.shape[0], 0), self.dtype) if null is None else null.basis.copy()

    def diag(self) -> np.ndarray:
        """The pivots, in the numbering of A's columns: of U, of D, or squares of Cholesky's L.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> frontal.factorize(sp.diags_array([4.0, -2.0]).tocsc()).diag()
        array([ 4., -2.])
        """
        return extract.pivots(self._numbers.factor)

    @property
    def perm_c(self) -> np.ndarray:
        """Position of each column of A: ``(Pr @ A @ Pc)`` has column j at ``perm_c[j]``."""
        return extract.column_positions(self._numbers.factor)

    @property
    def perm_r(self) -> np.ndarray:
        """Position of each row of A, as scipy's ``SuperLU.perm_r``; ``Pr @ A @ Pc == L @ U``."""
        return extract.row_positions(self._numbers.factor)

    @property
    def L(self) -> sp.csc_array:
        """Lower factor: of ``Pr @ A @ Pc``, unit diagonal for LU."""
        return extract.lower_factor(self._numbers.factor)

    @property
    def U(self) -> sp.csc_array:
        """Upper factor of ``Pr @ A @ Pc``; the adjoint of L for Cholesky, D L^H with LDL^H.

        A ValueError if D has 2x2 blocks, as then it is not triangular: take `D`.
        """
        return extract.upper_factor(self._numbers.factor)

    @property
    def D(self) -> sp.csc_array:
        """Block diagonal factor, (n, n): ``Pr @ A @ Pc == L @ D @ L.conj().T`` (``L.T`` for LDL^T).

        Blocks are 1x1 and 2x2. A ValueError for Cholesky and LU.
        """
        return extract.block_diagonal(self._numbers.factor)

    @property
    def has_pairs(self) -> bool:
        """Whether D has 2x2 blocks."""
        return bool(self._numbers.factor.subdiagonal().any())

    def as_linear_operator(self, *, refine: int | None = None) -> LinearOperator:
        """The inverse of A as an operator, for Krylov methods and eigensolvers.

        Parameters
        ----------
        refine : int, optional
            As for `solve`: 0 for a preconditioner, which need not be exact.

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

        Eigenvalues next to a shift, or to zero, are those of the inverse:

        >>> inverse = frontal.factorize(A).as_linear_operator()
        >>> eigsh(A, k=1, sigma=0, OPinv=inverse, return_eigenvectors=False).round(4)
        array([0.162])
        """
        from scipy.sparse.linalg import LinearOperator

        require_refinement(self._numbers.precision, refine)
        solve, adjoint = (partial(self.solve, trans=trans, refine=refine) for trans in "NH")
        dtype = self._numbers.factor.matrix_dtype
        return LinearOperator(self.shape, solve, adjoint, solve, dtype, adjoint)

    def profile(self) -> Any:
        """Factorize once more, with clocks: a `FactorProfile` by level and by size of the fronts.

        Its rows have milliseconds, and the least that moving their bytes and computing would take
        at the device's measured ceilings. A ValueError if the factor is not on a GPU.
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
        """An independent factor where this one is: refactorizing one leaves the other alone."""
        return self._with(self._numbers.copy())

    def to_cpu(self) -> Self:
        """An independent factor on the CPU, which needs no GPU any more."""
        return self._with(self._numbers.on_cpu(self.analysis.on("cpu")))

    def free(self) -> None:
        """Give the memory of the factor and of the values back; later use is an error.

        A factor on the GPU gives it to CuPy's pool. In a ``with`` block it is freed at the end.
        """
        self._numbers.free()

    def _with(self, numbers: FactorState) -> Self:
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _numbers=numbers)
        return twin

    __copy__ = copy

    def __enter__(self) -> Self:
        self._numbers.solver  # noqa: B018 - raises where there is no factor
        return self

    def __exit__(self, *_: object) -> None:
        self.free()
