"""Solves around a dense Schur complement, refined, and the check of its accuracy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from ..backend.protocol import NumericFactor
from ..cpu.factor import CpuFactor
from ..cpu.host_system import HostSystem
from ..cpu.schur import SchurBlock
from ..errors import IllConditionedWarning, SingularMatrixError, warn
from ..machine.lockfree_property import cached_property
from ..messages import double_precision, listed
from ..numeric.acceptance import limits_of, with_long_rows
from ..numeric.thresholds import THRESHOLDS
from ..symbolic.phase import Symbolic
from ..symbolic.scaling import shifted
from . import refine
from .inverse_entries import finite
from .report import warn_of_error
from .solve import FactorSolver
from .vector_blocks import of_parts

_ROUNDINGS = 100  # of the terms of S v, which a cancelled row of S need not exceed


class SchurSolver:
    """The Schur complement of one factor, and the solves around it.

    The solves are refined: where factors have grown, sweeps alone have large backward errors.

    Attributes
    ----------
    solver : FactorSolver
        Of the whole factor.
    """

    def __init__(self, solver: FactorSolver) -> None:
        self.solver = solver
        self._systems: dict[np.dtype, HostSystem] = {}

    def complement(self) -> np.ndarray:
        """Return S; warn if it may have fewer than two correct digits."""
        S = schur_matrix(self.solver)
        if self._is_doubtful:
            self._warn()
        return S

    def condensed(self, B: np.ndarray) -> np.ndarray:
        """Return b2 - A21 A11^-1 b1, from the solution of A11 x1 = b1 and its residual."""
        _require_block(require_schur(self.solver.factor))
        X = self._refined(np.zeros((self._index.size, B.shape[1]), B.dtype), B)
        with np.errstate(all="ignore"):  # `finite` refuses the result
            R = np.asfortranarray(B - self._matrix(B.dtype) @ X)
            return _condensed(self.solver, R if np.isfinite(R).all() else B)

    def expanded(self, xs: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return x with x2 = xs and A11 x1 = b1 - A12 xs."""
        _require_block(require_schur(self.solver.factor))
        return self._refined(xs, B.astype(xs.dtype, copy=False))

    @property
    def _index(self) -> np.ndarray:
        index = self.solver.factor.symbolic.schur
        assert index is not None
        return index

    def _matrix(self, dtype: np.dtype) -> sp.sparray:
        return self.solver.factor.matrix.A.astype(dtype, copy=False)

    def _refined(self, xs: np.ndarray, B: np.ndarray) -> np.ndarray:
        """Return `expanded`, refined until its backward error is accepted; warn if it is not."""
        if self._is_doubtful:
            self._warn()
        system, index = self._system(B.dtype), self._index
        rhs = np.array(B, order="F")
        rhs[index] = xs
        with np.errstate(all="ignore"):  # `finite` refuses the result
            X, errors, _ = refine.solve(system, rhs, None, True)
            assert errors is not None
            if errors.insufficient(system.limits):
                X, _, _ = refine.rescue(system, X, rhs, errors.rowwise)
                errors = system.measure(X, rhs)[1]
        X[index] = xs
        if errors.insufficient(system.limits) and errors.worst < np.inf:
            warn_of_error(self.solver.factor, errors, False)
        return X

    def _system(self, dtype: np.dtype) -> HostSystem:
        """Return the system [A11 A12; 0 I] x = [b1; xs]."""
        known = self._systems.get(dtype)
        if known is not None:
            return known
        factor, index = self.solver.factor, self._index
        inside = np.zeros(factor.symbolic.n)
        inside[index] = 1
        A = sp.csr_array(factor.matrix.A)
        M = sp.diags_array(1 - inside) @ A + sp.diags_array(inside)
        M = sp.csr_array(M).astype(dtype)
        norm = float(abs(M).sum(axis=1).max(initial=0.0))
        system = HostSystem.from_matrix(
            M, norm, lambda R: _expanded(self.solver, R[index], R), factor.dtype
        )
        longest = int(np.diff(M.indptr).max(initial=0))
        system.limits = with_long_rows(limits_of(factor.dtype, dtype), longest)
        self._systems[dtype] = system
        return system

    @cached_property
    def _is_doubtful(self) -> bool:
        """Whether S may have fewer than two correct digits, unless singular matrices are allowed.

        For x with x2 = v and b = 0, `_condensed` (A x) is S v with A x1 computed from A itself: the
        residual of x1 corrects the errors of the factors of A11.
        """
        solver, index, n = self.solver, self._index, self.solver.factor.symbolic.n
        if not 0 < index.size < n or solver.verdict.singular == "allow":
            return False
        S = schur_matrix(solver)
        v = np.random.default_rng(0).standard_normal((index.size, 1)).astype(S.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            x = _expanded(solver, v, np.zeros((n, 1), S.dtype, order="F"))
            A = solver.factor.matrix.A
            difference = np.abs(S @ v - _condensed(solver, np.asfortranarray(A @ x)))
            size = np.abs(S) @ np.abs(v)
            if (difference <= THRESHOLDS.warned * size).all():
                return False
            terms = (abs(A) @ np.abs(x))[index]
            size += _ROUNDINGS * np.finfo(S.dtype).eps / THRESHOLDS.warned * terms
        return not (difference <= THRESHOLDS.warned * size).all()

    def _warn(self) -> None:
        factor = self.solver.factor
        remedies = ["add the unknowns of its null space to `schur`"]
        if factor.symbolic.method.one_triangle:
            remedies.append("kind='symmetric' or 'hermitian', whose pivots limit growth")
        remedies += double_precision(factor.matrix_dtype)
        warn(
            "the Schur complement may have fewer than two correct digits. Likely causes: (a) the "
            "matrix without the rows and columns of `schur` is nearly singular, (b) the factors "
            f"have grown: Factor.growth is {self.solver.growth:.0e}. Try: {listed(remedies)}",
            IllConditionedWarning,
        )


def schur_matrix(solver: FactorSolver) -> np.ndarray:
    """Return the Schur complement of a factor; see `SchurComplement.schur`."""
    factor = require_schur(solver.factor)
    block = _require_block(factor)
    S = block.values
    if factor.symbolic.method.one_triangle:
        adjoint = factor.symbolic.method.adjoint
        lower, diagonal = np.tril(S, -1), S.diagonal()
        S = (lower.conj().T if adjoint else lower.T) + lower
        S[np.diag_indices(S.shape[0])] = np.real(diagonal) if adjoint else diagonal
    scaling = factor.scaling
    if scaling is not None:
        row, column = (
            -np.log2(x) for x in (scaling.row[block.rows], scaling.column[block.columns])
        )
        S = _times_powers(S, row[:, None] + column)
    row, column = (_positions(factor.symbolic, x) for x in (block.rows, block.columns))
    out = np.empty(S.shape, S.dtype)
    if all((x[1:] > x[:-1]).all() for x in (row, column)):
        out[...] = S
    else:
        out[row[:, None], column] = S
    return finite(out)


def _condensed(solver: FactorSolver, B: np.ndarray) -> np.ndarray:
    """Return the block of `SchurComplement.schur_condense`."""
    factor = require_schur(solver.factor)
    _require_block(factor)
    solve, scaling = factor.schur_solver(), factor.scaling
    parts, joined = _real_parts(factor, B)
    g = joined(solve.condense(parts))
    if scaling is not None:
        g = _times_powers(g, -np.log2(scaling.row[solve.rows])[:, None])
    out = np.empty(g.shape, B.dtype, order="F")
    out[_positions(factor.symbolic, solve.rows)] = g
    return out


def _expanded(solver: FactorSolver, xs: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the block of `SchurComplement.schur_expand`."""
    factor = require_schur(solver.factor)
    _require_block(factor)
    solve, scaling = factor.schur_solver(), factor.scaling
    B = B.astype(xs.dtype, copy=False)
    inner = xs[_positions(factor.symbolic, solve.columns)]
    if scaling is not None:
        inner = _times_powers(inner, -np.log2(scaling.column[solve.columns])[:, None])
    parts, joined = _real_parts(factor, B)
    X = joined(solve.expand(_real_parts(factor, inner)[0], parts)).astype(B.dtype)
    X[solve.columns] = xs[_positions(factor.symbolic, solve.columns)]
    return X


def _times_powers(values: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Return values times powers of two in their scalar type, infinite where they overflow."""
    with np.errstate(over="ignore", under="ignore"):
        return shifted(values, exponent.astype(np.int64)).astype(values.dtype, copy=False)


def _real_parts(
    factor: CpuFactor, B: np.ndarray
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Return the block for which a factor solves, and the way back for results."""
    if B.dtype.kind != "c" or factor.dtype.kind == "c":
        return B, lambda X: X
    return np.hstack((np.real(B), np.imag(B))), of_parts


def _positions(symbolic: Symbolic, numbers: np.ndarray) -> np.ndarray:
    """Return the positions of rows or columns of the Schur complement in the user's order."""
    position = np.empty(symbolic.n, np.int64)
    position[symbolic.schur] = np.arange(numbers.size)
    return position[numbers]


def require_schur(factor: NumericFactor) -> CpuFactor:
    """Return a factor with a Schur complement; raise ValueError for any other."""
    if not isinstance(factor, CpuFactor) or factor.schur is None:
        raise ValueError(
            "the factor has no Schur complement. Try: frontal.factorize(A, schur=index)"
        )
    return factor


def _require_block(factor: CpuFactor) -> SchurBlock:
    """Return the Schur complement; raise if pivots before it were replaced."""
    block = factor.schur
    assert block is not None
    if block.replaced:
        raise SingularMatrixError(
            f"the factor has no Schur complement: {block.replaced} pivots before it lacked their "
            "sign and were replaced. Likely causes: (a) the matrix is not quasidefinite, (b) "
            "`signs` are wrong. Try: kind='symmetric' or 'hermitian', or regularize=False"
        )
    return block
