"""`BatchFactor`: the factors of many matrices, and solutions with all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._typing import is_on_cupy
from ..errors import BatchError
from ..factor.determinant import is_positive
from ..factor.factor import Factor
from ..matrix.exact import refuse_masked
from ..matrix.value_map import ValueMap
from ..numeric.linear_system import require_trans
from .input import AnyArray, RhsBlock, arranged_values, module_of, on_host, rhs_block, rhs_list
from .substitute import Report
from .systems import Systems, column_of


class BatchInfo(NamedTuple):
    """Quality of the solutions; for each system the worst of its right-hand sides.

    Attributes
    ----------
    backward_error : (batch,) float64 array
        Normwise; NaN for a system without a solution.
    refinement_steps : (batch,) int64 array
        Accepted corrections.
    condition : (batch,) float64 array
        Estimated factor by which the relative error of x may exceed its backward error.
    """

    backward_error: np.ndarray
    refinement_steps: np.ndarray
    condition: np.ndarray


class Group(NamedTuple):
    """Systems of one pattern, their indices in the batch, and their value maps."""

    systems: Systems
    members: np.ndarray
    orders: list[ValueMap]


class BatchFactor:
    """The factors of a batch, computed by `frontal.factorize_batch`.

    Systems are independent: on the CPU the bits of a factor do not depend on the size of the batch
    or on its position in it, on a GPU not on the success of other systems.
    """

    def __init__(
        self, groups: list[Group], count: int, listed: bool, lost: dict[int, Exception]
    ) -> None:
        self._groups, self._count, self._listed = groups, count, listed
        self._lost = lost  # errors of systems whose pattern is structurally singular
        self._home = np.zeros((2, count), np.int64)
        for number, group in enumerate(groups):
            self._home[0, group.members] = number
            self._home[1, group.members] = np.arange(group.members.size)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, i: int) -> Factor:
        """Return the `Factor` of one system; it shares memory, until the next `refactorize`."""
        if not -self._count <= i < self._count:
            raise IndexError(f"system {i} is out of range: the batch has {self._count} systems")
        i %= self._count
        if i in self._lost:
            raise self._lost[i]
        number, place = self._home[:, i].tolist()
        group = self._groups[number]
        return group.systems.factor(place, group.orders[place if self._listed else 0])

    def __repr__(self) -> str:
        failed = int(np.count_nonzero(self.status))
        methods = {group.systems.analysis.method for group in self._groups}
        return (
            f"<BatchFactor of {self._count} matrices: {', '.join(sorted(methods))}, "
            f"{len(self._groups)} patterns{f', {failed} failed' if failed else ''}>"
        )

    @property
    def status(self) -> np.ndarray:
        """(batch,) int32: 0 for a factor, 1 + the first column without a pivot, -1 if unknown."""
        codes = self._gathered(lambda systems: systems.status(), np.int32)
        for i, error in self._lost.items():
            codes[i] = 1 + column_of(error)
        return codes

    @property
    def perturbed(self) -> np.ndarray:
        """(batch,) int64: number of perturbed pivots."""

        def replaced(systems: Systems) -> np.ndarray:
            counts = np.zeros(systems.count, np.int64)
            for i, factor in systems.singles.items():
                counts[i] = factor.info["perturbed_pivots"]
            return counts

        return self._gathered(replaced, np.int64)

    def slogdet(self) -> tuple[np.ndarray, np.ndarray]:
        """Return signs (or phases) and logarithms of the moduli of the determinants, (batch,) each.

        NaN for systems without a factor.
        """
        pairs = [group.systems.slogdet() for group in self._groups]
        dtype = np.result_type(np.float32, *(sign.dtype for sign, _ in pairs))
        sign, value = np.full(self._count, np.nan, dtype), np.full(self._count, np.nan)
        for group, (group_sign, group_value) in zip(self._groups, pairs, strict=True):
            sign[group.members], value[group.members] = group_sign, group_value
        return sign, value

    def logdet(self) -> np.ndarray:
        """Return natural logarithms of the determinants, (batch,); NaN unless positive.

        Examples
        --------
        >>> import frontal, numpy as np, scipy.sparse as sp
        >>> A = sp.csc_array([[2.0, 0.0], [1.0, 3.0]])
        >>> factors = frontal.factorize_batch(A, np.array([[1.0, 5.0, 2.0], [1.0, 5.0, -1.0]]))
        >>> factors.logdet().round(3).tolist()
        [0.693, nan]
        """
        sign, value = self.slogdet()
        n = max((group.systems.n for group in self._groups), default=0)
        return np.where(is_positive(sign, n), value, np.nan)

    def solve(
        self, b: AnyArray, trans: str = "N", *, check: bool = True, return_info: bool = False
    ) -> AnyArray:
        """Solve op(A_i) x_i = b_i for all systems.

        Parameters
        ----------
        b : array (n,), (n, k), (batch, n) or (batch, n, k), or list of (n_i,) or (n_i, k)
            On the host or on the GPU. An array without a batch axis serves all systems. If both
            (batch, n) and (n, k) fit, b is read as (batch, n).
        trans : {"N", "T", "H"}
            op(A): the matrix, its transpose or its adjoint.
        check : bool
            Raise if a system with a factor has no solution.
        return_info : bool

        Returns
        -------
        x : array (batch, n) or (batch, n, k), or list; on the same device as b
            NaN for systems without a factor.
        info : BatchInfo
            If `return_info`.

        Raises
        ------
        BatchError
            If a system with a factor has no solution; ``result`` holds the others.
        ValueError, NonFiniteInputError
            If b does not fit, or contains NaN or infinity.

        Warns
        -----
        IllConditionedWarning
            As `Factor.solve`, for each such system.
        PerformanceWarning
            If systems were solved one by one.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.convdiff2d(10)
        >>> factors = frontal.factorize_batch(A, np.linspace(1, 2, 5)[:, None] * A.data)
        >>> x, info = factors.solve(np.ones(100), return_info=True)
        >>> x.shape, bool((info.backward_error < 1e-15).all())
        ((5, 100), True)
        """
        require_trans(trans)
        on_device, blocks = self._blocks(b)
        parts, reports, failures = [], [], {}
        for group, block in zip(self._groups, blocks, strict=True):
            X, report, lost = _solve(group.systems, trans, block)
            parts.append(block.restore(X))
            reports.append(report)
            failures |= {int(group.members[i]): error for i, error in lost.items()}
        x = self._joined(parts, isinstance(b, list | tuple), on_device)
        for i in self._lost:
            x[i] = np.full(np.shape(b[i]), np.nan)
        if failures and check:
            raise batch_error("solve", self._count, failures, x)
        return (x, self._info(reports)) if return_info else x

    __call__ = solve

    def _info(self, reports: list[Callable[[], Report]]) -> BatchInfo:
        """Return the quality of the solutions of all groups."""
        merged = Report.empty(self._count)
        for group, report in zip(self._groups, reports, strict=True):
            for all_, group_values in zip(merged, report(), strict=True):
                all_[group.members] = group_values
        return BatchInfo(merged.error, merged.steps, merged.condition)

    def refactorize(
        self, values: AnyArray, where: AnyArray = None, *, check: bool = True
    ) -> BatchFactor:
        """Factorize new values of the same patterns, in place.

        Parameters
        ----------
        values : array (batch, nnz), or list of arrays (nnz_i,)
            As for `factorize_batch`; for a list of matrices, ``A.data`` of each.
        where : (batch,) bool array, optional
            The systems to refactorize; others keep factor and status, and their values are not
            read.
        check : bool

        Returns
        -------
        BatchFactor
            This object.

        Raises
        ------
        BatchError
            If a selected system has no factor; the others are factorized.
        ValueError, TypeError
            If shapes differ, or the scalar type of the batch cannot hold the values; the batch is
            unchanged then.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> A = frontal.problems.poisson2d(4)
        >>> factors = frontal.factorize_batch(A, np.stack([A.data, A.data]))
        >>> changed = factors.refactorize(4 * factors[0].A.data * np.ones((2, 1)), [False, True])
        >>> [float(changed[i].A[0, 0]) for i in range(2)]
        [4.0, 16.0]
        """
        mask = np.ones(self._count, np.bool_) if where is None else np.asarray(on_host(where))
        if mask.shape != (self._count,) or mask.dtype != np.bool_:
            raise ValueError(f"where must be a bool array ({self._count},), one for each system")
        new = [self._values(group, values, mask[group.members]) for group in self._groups]
        for group, (_, group_values) in zip(self._groups, new, strict=True):
            _require_dtype(group_values.dtype, group.systems.values.dtype)
        for group, (systems, group_values) in zip(self._groups, new, strict=True):
            group.systems.renew(systems, group_values)
            group.systems.factorize(systems)
        if check:
            self.raise_failures(mask)
        return self

    def raise_failures(self, mask: np.ndarray | None = None) -> None:
        """Raise `BatchError` if systems, or those selected by a mask, have no factor."""
        failures = {
            int(group.members[i]): error
            for group in self._groups
            for i, error in group.systems.failures.items()
        } | self._lost
        failures = {i: e for i, e in failures.items() if mask is None or mask[i]}
        if failures:
            raise batch_error("factorize_batch", self._count, failures, self)

    def _values(
        self, group: Group, values: AnyArray, mask: np.ndarray
    ) -> tuple[np.ndarray, AnyArray]:
        """Return the selected systems of a group, and their new values by columns."""
        refuse_masked(values, "values")
        systems, symbolic = np.flatnonzero(mask), group.systems.analysis.symbolic
        if len(values) != self._count:
            raise ValueError(f"values has {len(values)} systems, not {self._count}")
        if not self._listed:
            group_systems, on_device = group.systems, group.systems.on_device
            new_values = values if on_device else on_host(values)
            new_values = new_values if systems.size == group_systems.count else new_values[systems]
            order = group.orders[0]
            return systems, arranged_values(new_values, order, symbolic, on_device, fresh=False)
        rows = [group.systems.values[:0]]
        for i in systems.tolist():
            row = np.asarray(on_host(values[int(group.members[i])]))[None]
            rows.append(arranged_values(row, group.orders[i], symbolic))
        return systems, np.concatenate([on_host(row) for row in rows])

    def _blocks(self, b: AnyArray) -> tuple[bool, list[RhsBlock]]:
        """Return whether b is on the device, and the right-hand sides of each group."""
        refuse_masked(b, "b")
        groups = [(group.members, group.systems) for group in self._groups]
        if isinstance(b, list | tuple):
            if len(b) != self._count:
                raise ValueError(f"{len(b)} right-hand sides for {self._count} systems")
            on_device = any(map(is_on_cupy, b))
            forms = [(s.n, s.values.dtype) for _, s in groups]
            return on_device, [rhs_list(b, m, *o) for (m, _), o in zip(groups, forms, strict=True)]
        on_device = is_on_cupy(b)
        if len(groups) == 1 and not self._lost:
            ((_, systems),) = groups
            b = b if systems.on_device else on_host(b)
            return on_device, [rhs_block(b, self._count, systems.n, systems.values.dtype)]
        b = np.asarray(on_host(b))
        if len({s.n for _, s in groups}) != 1 or self._lost:
            raise ValueError("matrices differ in order, or have no factor. Try: b as a list")
        blocks: list[RhsBlock] = []
        n = groups[0][1].n
        has_batch_axis = b.ndim == 3 or (b.ndim == 2 and b.shape == (self._count, n))
        for members, systems in groups:
            if has_batch_axis and b.shape[0] != self._count:
                raise ValueError(f"b has {b.shape[0]} systems, not {self._count}")
            group_rhs = b[members] if has_batch_axis else b
            if not has_batch_axis and b.shape == (members.size, n):  # to be read as (n, k)
                group_rhs = np.broadcast_to(b, (members.size, *b.shape))
            blocks.append(rhs_block(group_rhs, members.size, n, systems.values.dtype))
        return on_device, blocks

    def _joined(self, parts: list[AnyArray], as_list: bool, on_device: bool) -> AnyArray:
        """Return the solutions of all groups in the form of b."""
        if len(parts) == 1 and not as_list:
            return _to_device(parts[0]) if on_device else on_host(parts[0])
        out: list[AnyArray] = [None] * self._count
        for group, solutions in zip(self._groups, parts, strict=True):
            for i, x in zip(group.members.tolist(), solutions, strict=True):
                out[i] = _to_device(x) if on_device and as_list else on_host(x)
        if as_list:
            return out
        stack = np.stack(out) if out else np.empty((0, 0))
        return _to_device(stack) if on_device else stack

    def _gathered(self, query: Callable[[Systems], np.ndarray], dtype: type) -> np.ndarray:
        out = np.zeros(self._count, dtype)
        for group in self._groups:
            out[group.members] = query(group.systems)
        return out


def _solve(
    systems: Systems, trans: str, block: RhsBlock
) -> tuple[AnyArray, Callable[[], Report], dict[int, Exception]]:
    """Return solutions of a group; a real factor solves real and imaginary parts separately."""
    B = block.values
    if B.dtype.kind != "c" or systems.values.dtype.kind == "c":
        return systems.solve(trans, B, block.refuse_non_finite)
    xp = module_of(B, True)
    k, parts = B.shape[1], xp.concatenate([B.real, B.imag], axis=1)
    contiguous = xp.ascontiguousarray(parts)
    X, report, failures = systems.solve(trans, contiguous, block.refuse_non_finite)
    return X[:, :k] + 1j * X[:, k:], report, failures


def _require_dtype(dtype: np.dtype, stored: np.dtype) -> None:
    """Raise TypeError if the scalar type of a batch cannot hold new values."""
    if not np.can_cast(dtype, stored, "safe"):
        raise TypeError(
            f"values has dtype {dtype}, which the batch of dtype {stored} cannot hold. Try: "
            f"values.astype({str(stored)!r}), or a new factorize_batch"
        )


def _to_device(x: AnyArray) -> AnyArray:
    return sys.modules["cupy"].asarray(x)


def batch_error(
    routine: str, count: int, failures: dict[int, Exception], result: object
) -> BatchError:
    """Return a `BatchError` that names all failed systems."""
    indices = np.array(sorted(failures), np.int64)
    columns = np.array([max(column_of(failures[i]), -1) for i in indices.tolist()], np.int64)
    return BatchError(routine, count, indices, columns, result)
