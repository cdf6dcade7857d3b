"""Solutions with a factor: right-hand sides, refinement, the error that is left, its report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ..cached import cached_property
from ..errors import IllConditionedWarning, SingularMatrixError, warn
from ..info import SolveInfo
from ..matrix import on_device, prepare_rhs
from . import exponent, refine

if TYPE_CHECKING:
    from ..gpu.sparse.system import ResidentSystem
    from ..matrix import Canonical
    from ..protocol import NumericFactor
    from ..symbolic.scaling import Scaling
    from .analysis import Analysis


class Solutions:
    """The part of `Factor` that solves systems."""

    analysis: Analysis
    _numeric: NumericFactor
    _scaling: Scaling | None
    _resident: ResidentSystem | None  # None on the CPU
    _assessed: bool  # the condition of this matrix has been looked at

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, int]: ...
        @property
        def dtype(self) -> np.dtype: ...
        @property
        def matrix(self) -> Canonical: ...
        @property
        def info(self) -> dict[str, Any]: ...
        def _smallest_pivot_column(self) -> int: ...
        def _assess(self) -> None: ...

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
            Most steps of iterative refinement; by default as many as help, 0 for none. Where b and
            the factor are on the GPU, ``refine=0`` without `return_info` neither waits for the
            device nor looks for NaN in b.
        return_info : bool
            Return (x, SolveInfo).

        Returns
        -------
        x : array of b's shape and kind
            In the common scalar type of A and b. CuPy's for an array on a GPU.
        info : SolveInfo
            If `return_info`.

        Raises
        ------
        ValueError
            If b does not fit, or for another `trans`.
        NonFiniteInputError
            If b has NaN or infinity.
        SingularMatrixError
            If no accurate solution could be computed.
        SolutionOverflowError
            If the solution is larger than the numbers of its scalar type.
        FactorFreedError, FactorInvalidError
            After `free`, or after a `refactorize` that failed.

        Warns
        -----
        IllConditionedWarning
            If the backward error stays above what is usual, or x is too small for its type.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> from frontal.problems import poisson2d
        >>> A = poisson2d(10)
        >>> x, info = frontal.factorize(A).solve(np.ones(100), return_info=True)
        >>> bool(info.backward_error < 1e-15)
        True
        """
        if trans not in ("N", "T", "H"):
            raise ValueError(f"trans is {trans!r}; choose 'N', 'T' or 'H'")
        began = time.perf_counter()
        resident = self._resident
        judged = refine is None or return_info
        if resident is not None and on_device(b):
            B = resident.block(b)
            X, errors, steps = self._solve_block(B, trans, refine, judged)
            if errors is not None and not np.isfinite(errors.rhs).all():
                resident.refuse_non_finite_rhs(B, b.ndim)
            x = X[:, 0] if b.ndim == 1 else X
        else:
            B, restore = prepare_rhs(b, self.shape[0], self.dtype)
            X, errors, steps = self._solve_on_host(B, trans, refine, judged)
            x = restore(X)
        if errors is not None:
            exponent.refuse_overflow(errors, X.dtype)
            if refine is None:
                self._warn_of(exponent.told_of_underflow(errors, X.dtype))
        if not return_info or errors is None:
            return x
        return x, self._report(errors, X, B, trans, steps, began)

    __call__ = solve

    def _solve_on_host(
        self, B: np.ndarray, trans: str, steps: int | None, judged: bool = True
    ) -> tuple[np.ndarray, Any, int]:
        """As `_solve_block`, for a host array wherever the factor is."""
        if self._resident is None:
            return self._solve_block(B, trans, steps, judged)
        X, errors, taken = self._solve_block(self._resident.upload(B), trans, steps, judged)
        return self._resident.download(X), errors, taken

    @np.errstate(all="ignore")  # of what is not finite, the errors tell
    def _solve_block(
        self, B: Any, trans: str, steps: int | None, judged: bool
    ) -> tuple[Any, Any, int]:
        """Solution, errors (None if not judged) and steps for an array that is with the factor."""
        if _is_split(B, self.dtype):
            xp: Any = np if self._resident is None else self._resident.entries.device.xp
            k = B.shape[1]
            parts = xp.empty((B.shape[0], 2 * k), B.real.dtype, order="F")
            parts[:, :k], parts[:, k:] = B.real, B.imag
            X, errors, taken = self._solve_block(parts, trans, steps, judged)
            return X[:, :k] + 1j * X[:, k:], errors, taken
        if self._resident is not None:
            X, errors, taken = self._resident.solve(B, trans, steps, judged)
        else:
            B = B.astype(np.result_type(B.dtype, self.dtype), copy=False)
            system = self._system(trans, B.dtype)
            X, errors, taken = refine.refine(system, system.solve(B), B, steps)
        if errors is None:
            return X, errors, taken
        if steps is None and errors.insufficient(float(np.finfo(B.dtype).eps)):
            X, errors, more = self._rescued(X, B, trans, errors)
            taken += more
        return exponent.mended(self, X, B, trans, steps, errors, taken)

    def _rescued(self, X: Any, B: Any, trans: str, errors: Any) -> tuple[Any, refine.Errors, int]:
        """What `refine.rescue`, on the host, makes of solutions that are not good enough."""
        resident, system = self._resident, self._system(trans, B.dtype)
        if resident is None:
            X, _, taken = refine.rescue(system, X, B, errors.normwise)
            return X, system.measure(X, B)[1], taken
        host = resident.download(X), resident.download(B)
        better, _, taken = refine.rescue(system, *host, errors.normwise)
        X = resident.upload(np.asfortranarray(better))
        return X, resident.system(trans, B.dtype).measure(X, B)[1], taken

    def _warn_of(self, errors: refine.Errors) -> None:
        worst = float(errors.normwise.max(initial=0.0))
        eps = float(np.finfo(self.dtype).eps)
        if not self._assessed and errors.amplification * eps > 0.01:
            self._assess()
        if worst <= refine.NORMWISE * eps:
            return
        if not np.isfinite(worst) or (self._numeric.perturbed and worst > eps**0.75):
            raise SingularMatrixError.numerical(
                self._smallest_pivot_column(), f"the backward error stays at {worst:.1e}"
            )
        warn(
            f"the backward error of the solution stays at {worst:.1e}; scale the matrix, or "
            "use float64",
            IllConditionedWarning,
        )

    def _system(self, trans: str, dtype: np.dtype) -> refine.HostSystem:
        op = {"N": lambda A: A, "T": lambda A: A.T, "H": lambda A: A.conj().T}[trans]
        A = op(self.A)
        return refine.HostSystem(
            A if A.dtype == dtype else A.astype(dtype),
            self._norms[0 if trans == "N" else 1],
            lambda B: self._direct(B, trans),
            self._magnitude if trans == "N" else self._magnitude.T,
            self._scaling is not None,
        )

    def _direct(self, B: np.ndarray, trans: str, scaled: bool = True) -> np.ndarray:
        """One solution with the factors, no refinement; B is (n, k).

        Unless `scaled`, that of the matrix as it was scaled.
        """
        if trans == "H":
            return self._direct(B.conj(), "T", scaled).conj()
        analysis, scaling = self.analysis, self._scaling if scaled else None
        dtype = np.result_type(B.dtype, self.dtype)
        rows, columns = analysis.row_perm, analysis.perm
        if trans == "T":
            rows, columns = columns, rows
        left, right = (scaling.row, scaling.column) if scaling else (None, None)
        if trans == "T":
            left, right = right, left
        if left is not None:
            B = B * left[:, None]
        # the layout that the sweeps want, in the scalar type of the factor
        y = np.ascontiguousarray(B[rows], self.dtype)
        self._numeric.solve(y, trans == "T")
        X = np.empty(B.shape, dtype)
        X[columns] = y
        if right is not None:
            X *= right[:, None]
        return X

    def _report(self, errors: refine.Errors, X, B, trans: str, steps: int, began: float):
        component = errors.componentwise
        if component is None:  # on the host, where refinement had no use for it
            if _is_split(B, self.dtype):
                X, B = (np.concatenate([np.real(M), np.imag(M)], axis=1) for M in (X, B))
            system = self._system(trans, X.dtype)
            component = refine.componentwise_error(system, X, B, system.residual(X, B))
        info = self.info
        return SolveInfo(
            **{name: info[name] for name in info if name != "seconds"},
            backward_error=float(errors.normwise.max(initial=0.0)),
            componentwise_error=float(component.max(initial=0.0)),
            refinement_steps=steps,
            seconds={**info["seconds"], "solve": time.perf_counter() - began},
        )

    @cached_property
    def A(self) -> sp.csc_array:
        """The factorized matrix, sharing the user's arrays where they were canonical."""
        matrix = self.matrix
        return sp.csc_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)

    @cached_property
    def _magnitude(self) -> sp.csc_array:
        """|A|."""
        return abs(self.A)

    @cached_property
    def _norms(self) -> tuple[float, float]:
        """Infinity norm and 1-norm of A."""
        size = self._magnitude
        return float(size.sum(1).max(initial=0.0)), float(size.sum(0).max(initial=0.0))


def _is_split(B: Any, dtype: np.dtype) -> bool:
    """Whether a real factor solves for real and imaginary parts."""
    return B.dtype.kind == "c" and dtype.kind != "c"
