"""Solutions with A + sign C D^H by the factors of A (Woodbury 1950), checked as all solutions are.

With y = sign D^H x, the system is a bordered one:

    [ A     C      ] [x]   [b]
    [ D^H  -sign I ] [y] = [0]

With W = A^-1 C and the capacitance matrix S = sign I + D^H W its solution is y = S^-1 D^H A^-1 b,
x = A^-1 b - W y. Condition numbers are those of the bordered system: its residual is
that of x, no product C D^H is formed, and a cancellation of A and C D^H is not hidden.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from .._typing import Untyped
from ..backend.protocol import NumericFactor
from ..cpu.host_system import HostSystem
from ..cpu.probes import HostProbes
from ..cpu.updates.vectors import SparseColumns
from ..errors import SingularMatrixError
from ..info import SolveInfo
from ..machine.lockfree_property import cached_property
from ..matrix.canonical import prepare_rhs
from ..numeric.acceptance import with_long_rows
from ..numeric.linear_system import BackwardErrors, eps_of
from ..numeric.one_norm import one_norm
from ..numeric.thresholds import THRESHOLDS, margin_of
from . import refine
from .condition import ConditionEstimate, dependent
from .mixed import ImpreciseError
from .null_proof import extended
from .report import warn_of_condition, warn_of_error
from .solve import FactorSolver, SolvedBlock
from .sparse_columns import as_sparse
from .vector_blocks import of_parts


@dataclass(eq=False)
class LowRankChange:
    """The matrix A + sign C D^H with the factors of A.

    Attributes
    ----------
    factor : NumericFactor
        Of A, or of its adjoint if `adjoint`.
    C, D : (n, k) sparse arrays
    sign : {1, -1}
    dtype : numpy.dtype
        Scalar type of solutions.
    adjoint : bool
    """

    factor: NumericFactor
    C: sp.csc_array
    D: sp.csc_array
    sign: int
    dtype: np.dtype
    adjoint: bool = False

    @classmethod
    def scaled(
        cls, factor: NumericFactor, C: SparseColumns, D: SparseColumns, sign: int, dtype: np.dtype
    ) -> LowRankChange:
        """Return the change with columns of D scaled to entries of about 1, so that y is like x."""
        n = factor.symbolic.n
        left, right = as_sparse(C, n), as_sparse(D, n)
        largest = abs(right).max(axis=0).toarray().ravel()
        exponent = np.frexp(np.where(largest > 0, largest, 1))[1]
        up, down = (sp.diags_array(np.ldexp(1.0, e).astype(dtype)) for e in (exponent, -exponent))
        return cls(factor, sp.csc_array(left @ up), sp.csc_array(right @ down), sign, dtype)

    @cached_property
    def transposed(self) -> LowRankChange:
        """The adjoint of the changed matrix."""
        return LowRankChange(self.factor, self.D, self.C, self.sign, self.dtype, not self.adjoint)

    def solve_original(self, B: np.ndarray) -> np.ndarray:
        """Return A^-1 B, or A^-H B, by the factors alone."""
        factor = self.factor
        if B.dtype.kind == "c" and factor.dtype.kind != "c":
            parts = np.concatenate([np.real(B), np.imag(B)], axis=1)
            return of_parts(self.solve_original(parts))
        B = factor.upload(np.asfortranarray(B))
        system = factor.system("H" if self.adjoint else "N", B.dtype)
        return factor.download(refine.solve(system, B, 0, False)[0])

    @cached_property
    def solved_columns(self) -> np.ndarray:
        """W = A^-1 C, (n, k)."""
        return self.solve_original(self.C.toarray().astype(self.dtype, copy=False))

    @cached_property
    def product(self) -> np.ndarray:
        """D^H W, (k, k)."""
        return self.D.conj().T @ self.solved_columns

    @cached_property
    def capacitance(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Singular value decomposition of S."""
        S = self.sign * np.eye(self.C.shape[1]) + self.product
        if not np.isfinite(S).all():
            raise SingularMatrixError.numerical(
                None, "solutions for the columns of C are not finite", dtype=self.dtype
            )
        return np.linalg.svd(S)

    def solve(self, B: np.ndarray) -> np.ndarray:
        """Return the solutions of the bordered system for (n + k, r) right-hand sides."""
        n = self.factor.symbolic.n
        X = self.solve_original(B[:n])
        U, s, V = self.capacitance
        Y = V.conj().T @ ((U.conj().T @ (self.D.conj().T @ X - B[n:])) / s[:, None])
        return np.concatenate([X - self.solved_columns @ Y, Y]).astype(B.dtype, copy=False)

    @cached_property
    def system(self) -> HostSystem:
        """The bordered system."""
        A, count = self.factor.matrix.A, self.C.shape[1]
        A = A.conj().T if self.adjoint else A
        corner = -self.sign * sp.eye_array(count)
        M = sp.csr_array(
            sp.block_array([[A, self.C], [self.D.conj().T, corner]]).astype(self.dtype)
        )
        norm = float(abs(M).sum(axis=1).max(initial=0.0))
        system = HostSystem.from_matrix(M, norm, self.solve, self.factor.dtype)
        system.limits = with_long_rows(system.limits, int(np.diff(M.indptr).max(initial=0)))
        return system

    def measure(self, X: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return b - (A + sign C D^H) x, and its rowwise error, in long double if available.

        The weights are |A| |x| + |C| |D^H| |x| + |b|, each summed over the terms of a row.
        """
        n, x, b = self.factor.symbolic.n, extended(X[: self.C.shape[0]]), extended(B)
        A = extended(self.factor.matrix.A.conj().T if self.adjoint else self.factor.matrix.A)
        C, Dh = extended(self.C), extended(self.D).conj().T
        R = b[:n] - A @ x - self.sign * (C @ (Dh @ x))
        size = abs(A) @ abs(x) + abs(C) @ (abs(Dh) @ abs(x)) + abs(b[:n])
        row = size.max(axis=0, initial=0.0) * eps_of(self.dtype)
        errors = np.abs(R) / np.where(
            size > row, size, np.maximum(size + row, np.finfo(R.dtype).tiny)
        )
        return R.astype(self.dtype), errors.max(axis=0, initial=0.0).astype(np.float64)

    def corrected(self, X: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return x after at most three corrections of large errors of A + sign C D^H."""
        n, limit = self.factor.symbolic.n, THRESHOLDS.accepted * eps_of(self.dtype)
        R, errors = self.measure(X, B)
        for _ in range(3):
            if not (errors > limit).any():
                break
            border = np.zeros((B.shape[0] - n, B.shape[1]), B.dtype)
            trial = X + self.solve(np.concatenate([R, border]))
            trial_R, after = self.measure(trial, B)
            better = after < errors
            if not better.any():
                break
            X, R = np.where(better, trial, X), np.where(better, trial_R, R)
            errors = np.where(better, after, errors)
        return X, errors

    def errors(self, X: np.ndarray, B: np.ndarray, rows: np.ndarray) -> BackwardErrors:
        """Return the errors of x in A + sign C D^H, for its rowwise errors."""
        n, A = self.factor.symbolic.n, abs(self.factor.matrix.A)
        e = np.ones(n)
        sums = (A.T if self.adjoint else A) @ e + abs(self.C) @ (abs(self.D).T @ e)
        residual, x, b = (abs(Y).max(axis=0, initial=0.0)
                          for Y in (self.measure(X, B)[0], X[:n], B[:n]))  # fmt: skip
        return BackwardErrors(residual, x, b, float(sums.max(initial=0.0)), rows, rows)

    def refuse_singular(self) -> None:
        """Raise if the smallest singular vector of S gives a null vector of the changed matrix.

        Raises
        ------
        SingularMatrixError
        """
        _, s, V = self.capacitance
        size = 1 + np.abs(self.product).max(initial=0.0)
        if not s.size or s[-1] > size * eps_of(self.dtype) ** 0.5:
            return
        z = V[-1:].conj().T
        v = np.concatenate([self.solved_columns @ z, -z]).astype(self.dtype, copy=False)
        if s[-1] == 0 or not self.system.measure(v, np.zeros_like(v))[1].insufficient(
            self.system.limits
        ):
            n, sign = self.factor.symbolic.n, "+" if self.sign > 0 else "-"
            column = int(np.argmax(np.abs(v[:n, 0])))
            raise SingularMatrixError(
                f"A {sign} C D^H is singular to working precision: the smallest singular value of "
                f"its capacitance matrix is {s[-1]:.1e}, its largest term is {size:.1e}, and the "
                f"null vector has its largest entry in column {column}. Likely causes: (a) the "
                "change removes the last support of an unknown, (b) columns of C repeat others. "
                f"Try: a smaller change, or frontal.factorize(A {sign} C D^H, singular='allow') if "
                "the right-hand side is in its range",
                column=column,
            )


def solve_changed(
    change: Callable[[NumericFactor], LowRankChange],
    b: Untyped,
    steps: int | None,
    about: Callable[[], dict[str, Untyped]] | None,
    solver: FactorSolver,
) -> tuple[Untyped, SolveInfo | None]:
    """Solve as `Factor.solve_plus`; `about` returns the fields of `SolveInfo` on the factor."""
    began, changed = time.perf_counter(), change(solver.factor)
    n, count = changed.C.shape
    B, restore = prepare_rhs(b, n, changed.dtype)
    if B.dtype != changed.dtype:
        changed.dtype = B.dtype
    changed.refuse_singular()
    system, border = changed.system, np.zeros((count, B.shape[1]), B.dtype)
    bordered = np.asfortranarray(np.concatenate([B, border]))
    with np.errstate(all="ignore"):  # errors report non-finite solutions
        X, errors, taken = refine.solve(system, bordered, steps, True)
        assert errors is not None
        if steps is None and errors.insufficient(system.limits):
            X, _, more = refine.rescue(system, X, bordered, errors.rowwise)
            errors, taken = system.measure(X, bordered)[1], taken + more
        if steps != 0:
            X, rows = changed.corrected(X, bordered)
            errors = changed.errors(X, bordered, rows)
    if solver.mixed and errors.insufficient(system.limits):
        raise ImpreciseError(f"the backward error stays at {errors.worst:.1e}")
    estimate = None
    if steps != 0:
        estimate = _judged(changed, X, bordered, errors, steps, about is not None)
    x = restore(np.asfortranarray(X[:n]))
    if about is None:
        return x, None
    block = SolvedBlock(X[:n], errors, taken, estimate)
    return x, solver.report(about(), block, steps != 0, time.perf_counter() - began)


def _judged(
    changed: LowRankChange,
    X: np.ndarray,
    B: np.ndarray,
    errors: BackwardErrors,
    steps: int | None,
    reported: bool,
) -> ConditionEstimate | None:
    """Raise or warn if solutions are not accurate, as `Diagnosis.judge`; return the condition."""
    if not errors.worst_normwise < np.inf:
        raise SingularMatrixError.numerical(
            None, "solutions of the changed system are not finite", dtype=changed.dtype
        )
    if errors.insufficient(changed.system.limits):
        warn_of_error(changed.factor, errors, steps is not None)
        return None
    precision = max(errors.worst_normwise, eps_of(changed.dtype))
    estimate = _condition(changed, X, B, precision, reported)
    if estimate is not None and not estimate.condition * precision <= THRESHOLDS.warned:
        warn_of_condition(estimate, precision, changed.factor.matrix_dtype)
    return estimate


def _condition(
    changed: LowRankChange, X: np.ndarray, B: np.ndarray, precision: float, reported: bool
) -> ConditionEstimate | None:
    """Estimate the condition number of x in the bordered system; None if all x are zero."""
    n, system = changed.factor.symbolic.n, changed.system
    weights = system.weights(X, B, np.abs(X[:n]).max(axis=0, initial=0.0), precision)
    if weights is None:
        return None
    limit = THRESHOLDS.warned / precision
    enough = 0.0 if reported else limit / margin_of(changed.dtype)

    def inside(Y: np.ndarray) -> np.ndarray:
        Y = np.array(Y)  # errors of y alone do not count
        Y[n:] = 0
        return Y

    def adjoint(Y: np.ndarray) -> np.ndarray:
        return changed.transposed.solve(inside(Y))

    probes = HostProbes(weights, changed.dtype if changed.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        norm, signs = one_norm(probes, adjoint, lambda S: inside(changed.solve(S)), enough)
    norm = float(norm) if np.isfinite(norm) else np.inf
    columns = () if norm <= limit else dependent(changed.solve(signs)[:n, 0])
    return ConditionEstimate(norm, columns)
