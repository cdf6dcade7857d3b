"""Queries of a factor about its dense Schur complement.

With A2 the rows and columns of ``schur`` and A11 the others, S = A22 - A21 A11^-1 A12 is the front
that is eliminated last. A x = b then is S x2 = b2 - A21 A11^-1 b1 and A11 x1 = b1 - A12 x2.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._typing import Untyped
from ..backend.protocol import NumericFactor
from ..cpu.factor import CpuFactor
from ..cpu.schur import SchurBlock
from ..errors import IllConditionedWarning, SingularMatrixError, warn
from ..matrix.canonical import check_finite_rhs, prepare_rhs
from ..messages import double_precision, listed
from ..numeric.thresholds import THRESHOLDS
from ..symbolic.phase import Symbolic
from ..symbolic.scaling import shifted
from .inverse_entries import finite
from .solve import FactorSolver
from .state import FactorState
from .vector_blocks import of_parts

_ROUNDINGS = 100  # of the terms of S v, which a cancelled row of S need not exceed


class SchurComplement:
    """The part of `Factor` for the Schur complement of `frontal.factorize`."""

    _numbers: FactorState

    def schur(self) -> np.ndarray:
        """Return the dense Schur complement S = A22 - A21 A11^-1 A12.

        Block 2 are the unknowns that `frontal.analyze` or `frontal.factorize` got as ``schur``,
        block 1 are the others. The accuracy of S is that of solutions with A11.

        Returns
        -------
        S : (k, k) array
            In the order of ``schur``; exactly symmetric or Hermitian if the method of the factor
            is. A new array with each call, on the host.

        Raises
        ------
        ValueError
            If there is no ``schur``.
        SingularMatrixError
            If pivots of A11 were replaced, for ``kind="quasidefinite"``.
        SolutionOverflowError
            If an entry is too large for its type.

        Warns
        -----
        IllConditionedWarning
            If S may have fewer than two correct digits, because A11 is nearly singular; not with
            ``singular="allow"``. A random vector is expanded and condensed for this check.

        Examples
        --------
        >>> import frontal, scipy.sparse as sp
        >>> A = sp.csc_array([[4.0, 2.0, 2.0], [2.0, 5.0, 0.0], [2.0, 0.0, 6.0]])
        >>> frontal.factorize(A, schur=[1, 2]).schur()
        array([[ 4., -1.],
               [-1.,  5.]])
        """
        return self._numbers.answer(_checked_schur, certain=True)

    def schur_condense(self, b: Untyped) -> Untyped:
        """Return g = b2 - A21 A11^-1 b1, the right-hand side of S x2 = g.

        Parameters
        ----------
        b : array (n,) or (n, c)
            Right-hand sides of A x = b; they may be complex with a real factor.

        Returns
        -------
        g : array (k,) or (k, c)
            In the order of ``schur``, on the device of b.

        Raises
        ------
        ValueError, TypeError, NonFiniteInputError
            As for `solve`, and if there is no ``schur``.
        SingularMatrixError, SolutionOverflowError
            As for `schur`.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A, b = frontal.problems.poisson2d(5), np.ones(25)
        >>> factor = frontal.factorize(A, schur=[12, 3])
        >>> xs = np.linalg.solve(factor.schur(), factor.schur_condense(b))
        >>> bool(np.allclose(factor.schur_expand(xs, b), factor.solve(b)))
        True
        """
        B, restore = self._block(b)
        g = self._numbers.answer(lambda solver: _condensed(solver, B), certain=True)
        return restore(finite(g))

    def schur_expand(self, xs: Untyped, b: Untyped) -> Untyped:
        """Return x with x2 = xs and A11 x1 = b1 - A12 xs.

        If S xs = `schur_condense` (b), x is the solution of A x = b. It is not refined.

        Parameters
        ----------
        xs : array (k,) or (k, c)
            In the order of ``schur``.
        b : array (n,) or (n, c)
            As for `schur_condense`.

        Returns
        -------
        x : array of b's shape
            In the common scalar type of A, xs and b.

        Raises
        ------
        ValueError, TypeError, NonFiniteInputError, SingularMatrixError, SolutionOverflowError
            As for `schur_condense`; if xs does not fit to b.

        Examples
        --------
        See `schur_condense`.
        """
        B, restore = self._block(b)
        known = _known_part(xs, self._numbers.analysis.symbolic, B, np.ndim(b))
        x = self._numbers.answer(lambda solver: _expanded(solver, known, B), certain=True)
        return restore(finite(x))

    def _block(self, b: Untyped) -> tuple[np.ndarray, Callable[[np.ndarray], Untyped]]:
        """Return right-hand sides as a block on the host, and the way back for results."""
        factor = self._numbers.factor
        _require_schur(factor)
        return prepare_rhs(b, factor.symbolic.n, factor.matrix_dtype)


def schur_matrix(solver: FactorSolver) -> np.ndarray:
    """Return the Schur complement of a factor; see `SchurComplement.schur`."""
    factor = _require_schur(solver.factor)
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


def _checked_schur(solver: FactorSolver) -> np.ndarray:
    """Return the Schur complement; warn if it may have fewer than two correct digits.

    For x with x2 = v and b = 0, `_condensed` (A x) is S v with A x1 computed from A itself: the
    residual of x1 corrects the errors of the factors of A11.
    """
    S = schur_matrix(solver)
    factor = solver.factor
    index, n = factor.symbolic.schur, factor.symbolic.n
    if index is None or not 0 < index.size < n or solver.verdict.singular != "raise":
        return S
    v = np.random.default_rng(0).standard_normal((index.size, 1)).astype(S.dtype)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        x = _expanded(solver, v, np.zeros((n, 1), S.dtype, order="F"))
        difference = np.abs(S @ v - _condensed(solver, np.asfortranarray(factor.matrix.A @ x)))
        size = np.abs(S) @ np.abs(v)
        doubtful = not (difference <= THRESHOLDS.warned * size).all()
        if doubtful:
            terms = (abs(factor.matrix.A) @ np.abs(x))[index]
            size += _ROUNDINGS * np.finfo(S.dtype).eps / THRESHOLDS.warned * terms
    if doubtful and not (difference <= THRESHOLDS.warned * size).all():
        remedies = ["add the unknowns of its null space to `schur`", *double_precision(S.dtype)]
        warn(
            "the Schur complement may have fewer than two correct digits. Likely cause: the matrix "
            "without the rows and columns of `schur` is nearly singular. Try: "
            f"{listed(remedies)}",
            IllConditionedWarning,
        )
    return S


def _known_part(xs: Untyped, symbolic: Symbolic, B: np.ndarray, ndim: int) -> np.ndarray:
    """Return x2 as a block of the scalar type of B or a wider one.

    Raises
    ------
    ValueError, TypeError, NonFiniteInputError
    """
    k = 0 if symbolic.schur is None else symbolic.schur.size
    shape = np.shape(xs)
    if shape != ((k,) if ndim == 1 else (k, B.shape[1])):
        expected = (k,) if ndim == 1 else (k, B.shape[1])
        raise ValueError(f"xs has shape {shape}, but with this b and `schur` it must be {expected}")
    block, _ = prepare_rhs(xs, k, B.dtype, check_finite=False)
    check_finite_rhs(block, ndim, "xs")
    return block


def _condensed(solver: FactorSolver, B: np.ndarray) -> np.ndarray:
    """Return the block of `SchurComplement.schur_condense`."""
    factor = _require_schur(solver.factor)
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
    factor = _require_schur(solver.factor)
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


def _require_schur(factor: NumericFactor) -> CpuFactor:
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
