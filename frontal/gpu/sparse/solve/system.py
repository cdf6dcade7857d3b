"""Systems with vectors on the device: solutions, residuals and their errors.

The kernels are in system.cu. A check of a solution is one small download.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....machine.lockfree_property import cached_property
from ....numeric.acceptance import ErrorLimits, judge, limits_of
from ....numeric.condition import PROBABLE_FRACTION
from ....numeric.linear_system import BackwardErrors, WeightedInverseNorm
from ...runtime.array import NULL, Array, Kernel, Value
from ...runtime.graph import Launch
from .. import launch
from .condition_estimate import ConditionProbes, WeightedProbes
from .probes import ConditionKernels, DeviceProbes
from .rows import Resident, ends_of, rows_of
from .sweeps import ColumnBlock, DeviceSolver, SweepLaunches

_MAX_BLOCK_ENTRIES = 1 << 24  # entries of right-hand sides solved together
_MIN_WIDTH = 32  # least number of right-hand sides solved together, if they are long
_MAX_INVERTED_ORDER = 4  # largest order for which the host forms the inverse
_KERNELS = "enter", "leave", "peak", "residual_1", "residual_4", "row_sums", "certificate"


def bound_of(largest: float, most: float) -> float:
    """Return the bound given by the two numbers of a certificate; infinity if there is none."""
    product = largest * most
    return product if 0 < product < np.inf else np.inf


def errors_of(norms: np.ndarray, by_component: bool, limits: ErrorLimits) -> BackwardErrors:
    """Return the errors of the solutions of one system by the norms of `DeviceSystem.sizes`."""
    of_columns, norm = norms[:-1].reshape(-1, 5), float(norms[-1])
    by_rows = of_columns[:, 3:]
    by_rows[np.isnan(by_rows)] = np.inf
    residual, solution, rhs, component, row = of_columns.T
    errors = BackwardErrors(residual, solution, rhs, norm, component, row, by_component)
    if len(of_columns) == 1:
        fine = judge(of_columns[0].tolist(), norm, by_component, limits)[2]
        errors.summary = float(row[0]), fine
    return errors


def widest(n: int) -> int:
    """Return the number of right-hand sides of this length that are solved together."""
    return max(_MAX_BLOCK_ENTRIES // max(n, 1), _MIN_WIDTH)


def _columns(a: Array, columns: slice) -> Array:
    """Return a range of columns; all columns without a view, which costs the host time."""
    return a if columns.stop - columns.start == a.shape[1] else a[:, columns]


class DeviceSystem:
    """A `LinearSystem` of device arrays (n, k) in Fortran order, of one scalar type.

    Attributes
    ----------
    condition : ConditionKernels
        Kernels for condition numbers that read op(A).
    """

    def __init__(self, resident: Resident, trans: str, dtype: np.dtype) -> None:
        entries = self._entries = resident.entries
        values = self._values = resident.values
        self.dtype, self.eps = dtype, float(np.finfo(dtype).eps)
        self._storage = resident.storage  # not the factor, which owns this system
        self.most = widest(entries.n)
        panels = resident.storage.panels
        self._by_component = resident.scales[0] is not None
        self.limits = limits_of(np.dtype(panels.dtype), np.dtype(dtype))
        self._kernels = {
            name: self._kernel(name, of.dtype)
            for name, of in zip(_KERNELS, (panels, panels, *[values] * 5), strict=True)
        }
        self.ends = ends_of(resident, trans)
        sides = "NH" if trans == "N" else "HN"  # op(A), up to conjugation, and its adjoint
        self._sides = tuple(ends_of(resident, one) for one in sides)
        self.rows = rows_of(resident, trans)
        self.condition = ConditionKernels(entries, self.rows, dtype)
        self._begun: WeightedProbes | None = None  # for the factor's condition number

    def _kernel(self, name: str, dtype: np.dtype) -> Kernel:
        """Return a kernel for a scalar type of the factors or the matrix, and for these vectors."""
        wide, entries = self.dtype.itemsize > dtype.itemsize, self._entries
        constants = entries.pattern.constants(WIDE=wide, LONG=entries.long)
        return entries.device.kernel("system.cu", f"system_{name}", dtype, **constants)

    def empty(self, n: int, k: int) -> Array:
        """See `LinearSystem`."""
        return self._entries.device.xp.empty((n, k), self.dtype, order="F")

    def solve(self, B: Array) -> Array:
        """See `LinearSystem`."""
        return self._direct(B, None)

    def _direct(self, B: Array, before: Array | None, norms: Value = NULL) -> Array:
        """Return `before` + the solution by the factors; `norms` are for one right-hand side."""
        n, k = B.shape
        X = self._entries.device.xp.empty((n, k), self.dtype, order="F")
        for sweep_pass in self._solver.passes(k, self.ends.transposed, X):
            ends = []
            for columns, block in sweep_pass.blocks:
                addend = NULL if before is None else _columns(before, columns)
                count = columns.stop - columns.start
                rhs, solution = _columns(B, columns), _columns(X, columns)
                enter, leave = self.around(block, count, rhs, addend, solution, norms)
                enter()
                ends.append(leave)
            sweep_pass.run()
            for leave in ends:
                leave()
        return X

    def around(
        self,
        sweeps: ColumnBlock,
        count: int,
        B: Array,
        before: Value,
        X: Array,
        norms: Value = NULL,
    ) -> tuple[Launch, Launch]:
        """Return the launches that copy right-hand sides into the sweeps and solutions out.

        `before` is added to the solutions. `norms[1]` receives the largest modulus of the first
        solution.
        """
        shift = sweeps.width.bit_length() - 1
        sizes = np.int32(count), np.int32(shift)
        blocks = launch.system_blocks(self._entries.n << shift, self._entries.device.limits)
        number, kernels = self.rows.number, self._kernels
        enter = number, *self.ends.enter.arguments, *sizes, B, sweeps.vectors
        leave = number, *self.ends.leave.arguments, *sizes, sweeps.solution, before, X, norms
        return (
            Launch(kernels["enter"], blocks, launch.SYSTEM_THREADS, enter),
            Launch(kernels["leave"], blocks, launch.SYSTEM_THREADS, leave),
        )

    def solved(self, B: Array, probing: bool = False) -> tuple[Array, Array, BackwardErrors]:
        """See `LinearSystem`; waits."""
        if B.shape[1] != 1:
            X = self.solve(B)
            return X, *self.measure(X, B)
        xp, n = self._entries.device.xp, self._entries.n
        R, norms = self.empty(n, 1), xp.zeros((6, 1), np.float64)
        estimator = self.ready_probing() if probing else None
        if estimator is None:
            X = self._direct(B, None, norms)
            self.residual(X, B, R, norms)()
            return X, R, self._errors(norms)
        X, sums = self.empty(n, 1), xp.empty(n, np.float64)
        for step in self.probed(estimator, B, X, norms):
            step()
        estimator.note()
        self._begun = WeightedProbes(estimator, sums)
        self.residual(X, B, R, norms, sums)()
        self._begun.begin()  # before corrections overwrite the vectors
        self._solver.sweeps(1, self.ends.transposed)  # prepared for later while the device computes
        return X, R, self._errors(norms)

    def probed(
        self, probing: ConditionProbes, B: Array, X: Array, norms: Array
    ) -> list[Launch | SweepLaunches]:
        """Return the steps that solve for one right-hand side and begin a condition estimate."""
        wide = probing.sweeps()
        if probing.beside:
            enter, leave = self.around(wide, 1, B, NULL, X, norms)
            return [enter, probing.entering(alone=False), wide, leave]
        return [*self.solving(B, X, norms), probing.entering(alone=True), wide]

    def solving(
        self, B: Array, X: Array, norms: Array, before: Value = NULL
    ) -> list[Launch | SweepLaunches]:
        """Return the steps that solve for one block of columns; see `around`."""
        count = B.shape[1]
        sweeps = self._solver.sweeps(count, self.ends.transposed)
        enter, leave = self.around(sweeps, count, B, before, X, norms)
        return [enter, sweeps, leave]

    @property
    def _solver(self) -> DeviceSolver:
        return self._storage.solver_of(self._entries.pattern)

    @cached_property
    def _probing(self) -> ConditionProbes | None:
        """Estimator in few steps; None if the types of vectors, values and factors differ.

        None also if panels come from the host, or if the order is so small that the host forms the
        inverse.
        """
        same_dtype = self.dtype == self._values.dtype == self._storage.panels.dtype
        if not (same_dtype and self._solver.resident) or self._entries.n <= _MAX_INVERTED_ORDER:
            return None
        return ConditionProbes(self._entries, self._solver, *self._sides)

    def ready_probing(self) -> ConditionProbes | None:
        """Return the estimator in few steps, with its sweeps; None without memory for them."""
        probing = self._probing
        try:
            if probing is not None:
                probing.sweeps()
        except MemoryError:
            return None
        return probing

    def estimated(self, weights: Array, small: float, decided: float) -> WeightedInverseNorm | None:
        """See `LinearSystem`; waits."""
        probing = self.ready_probing()
        if probing is None:
            return None
        weighed = WeightedProbes(probing, weights)
        weighed.begin()
        norm = weighed.quick(small) if small > 0 else weighed.norm()
        if small < norm <= decided:
            norm = weighed.better()
        if not norm < np.inf:
            return None

        def near_null() -> Array:
            return self._largest_column(weighed.products())

        return WeightedInverseNorm(norm, near_null)

    def _largest_column(self, block: ColumnBlock) -> Array:
        """Return the solution with the largest entry of those in the sweeps, (n, 1); waits."""
        X = self.empty(self._entries.n, block.width)
        self.around(block, block.width, X, NULL, X)[1]()
        largest = self._entries.device.download(self._peaks(X))[1:-1:5, 0]
        c = int(np.argmax(largest))
        return X[:, c : c + 1]

    def measure(self, X: Array, B: Array) -> tuple[Array, BackwardErrors]:
        """See `LinearSystem`; waits."""
        R, norms = self.sizes(X, B)
        return R, self._errors(norms)

    def _errors(self, norms: Array) -> BackwardErrors:
        """Return the errors of the solutions of one system; waits."""
        host_norms = self._entries.device.download(norms)[:, 0]
        return errors_of(host_norms, self._by_component, self.limits)

    def sizes(self, X: Array, B: Array, count: int = 1) -> tuple[Array, Array]:
        """Return residuals, and norms (5 k + 1, count) of systems of one order; nothing waits.

        For each column: the largest moduli of the residual, of the solution and of the right-hand
        side, and componentwise and rowwise errors; after those of all columns the norm of op(A).
        """
        R, norms = self.empty(*B.shape), self._peaks(X, count)
        self.residual(X, B, R, norms, NULL, B.shape[1], count)()
        return R, norms

    def _peaks(self, X: Array, count: int = 1) -> Array:
        """Return the norms of `sizes`, of which only those of the solutions are written."""
        k, device = X.shape[1], self._entries.device
        norms, order = device.xp.zeros((5 * k + 1, count), np.float64), self._entries.n // count
        grid = launch.system_blocks(order, device.limits), k, launch.planes(count)
        arguments = np.int32(order), np.int32(count), X, norms
        self._kernels["peak"](grid, (launch.SYSTEM_THREADS,), arguments)
        return norms

    def residual(
        self,
        X: Array,
        B: Array,
        R: Array,
        norms: Array,
        sums: Value = NULL,
        k: int = 1,
        count: int = 1,
    ) -> Launch:
        """Return the launch that computes residuals and norms as `sizes` does.

        `norms` must hold the largest moduli of the solutions. The row sums of |op(A)| are written
        to `sums`.
        """
        order, lanes, columns = self._entries.n // count, self.rows.lanes, 1 if k == 1 else 4
        blocks = launch.system_blocks(order * lanes, self._entries.device.limits)
        grid = blocks, -(-k // columns), launch.planes(count)
        numbers = (np.int32(i) for i in (order, count, k, lanes))
        arguments = *numbers, *self.rows.arguments, X, B, R, sums, norms
        kernel = self._kernels[f"residual_{columns}"]
        return Launch(kernel, grid, launch.SYSTEM_THREADS, arguments)

    def corrected(self, X: Array, R: Array) -> Array:
        """See `LinearSystem`."""
        return self._direct(R, X)

    def chosen(self, better: np.ndarray, trial: Array, X: Array) -> Array:
        """See `LinearSystem`."""
        if better.all():
            return trial
        device = self._entries.device
        device.xp.copyto(X, trial, where=device.upload(better))
        return X

    def certified(self) -> float:
        """See `LinearSystem`; waits."""
        device, xp = self._entries.device, self._entries.device.xp
        sums, norms = self.empty(self._entries.n, 1), xp.zeros(2, np.float64)
        self.summing(sums)()
        self.certifying(self.solve(sums), norms)()
        largest, most = device.download(norms).tolist()
        return bound_of(largest, most)

    def summing(self, sums: Array) -> Launch:
        """Return the launch that writes the row sums of |op(A)| as a right-hand side."""
        return self._by_rows("row_sums", sums)

    def certifying(self, Z: Array, norms: Array) -> Launch:
        """Return the launch that computes the two numbers of `bound_of`.

        `Z` is the solution for the row sums; `norms` must be zero.
        """
        return self._by_rows("certificate", Z, norms)

    def _by_rows(self, name: str, *vectors: Array) -> Launch:
        arguments = self.rows.number, np.int32(self.rows.lanes), *self.rows.arguments, *vectors
        blocks = launch.system_blocks(
            self._entries.n * self.rows.lanes, self._entries.device.limits
        )
        return Launch(self._kernels[name], blocks, launch.SYSTEM_THREADS, arguments)

    def bounded(self, enough: float) -> float | None:
        """See `LinearSystem`."""
        probing = self.ready_probing()
        if probing is None:
            return None
        weighed, self._begun = self._begun, None
        if weighed is None:
            weighed = WeightedProbes(probing, self.row_sums())
            weighed.begin()
        return weighed.quick(PROBABLE_FRACTION * enough)

    def row_sums(self) -> Array:
        """Return the sums of the rows of |op(A)|, (n,) float64; nothing waits."""
        return self.condition.row_sums()

    def row_probes(self) -> DeviceProbes | None:
        """See `LinearSystem`."""
        return self.probes(self.row_sums(), 2)

    def probes(self, weights: Array, width: int) -> DeviceProbes | None:
        """See `LinearSystem`."""
        if self._entries.n <= _MAX_INVERTED_ORDER:
            return None
        return DeviceProbes(self.condition, width, weights)

    def weights(self, X: Array, B: Array, solution: np.ndarray, error: float) -> Array | None:
        """See `LinearSystem`; nothing waits."""
        used = (solution > 0) & np.isfinite(solution)
        if not used.any():
            return None
        scale = np.where(used, 1 / np.where(used, solution, 1.0), 0.0)
        scale = np.append(scale, 1 / error)[:, None]
        return self.weighted(X, B, self._entries.device.upload(scale))

    def weighted(self, X: Array, B: Array, scale: Array) -> Array:
        """Return the weights of systems of one order; nothing waits.

        Parameters
        ----------
        scale : device array (k + 1, count) of float64
            1 over the largest modulus of each solution, or 0 if it is zero or not finite; and 1
            over the error.
        """
        return self.condition.weights(X, B, scale)

    def ratios(
        self, weights: Array, references: Sequence[Array | None]
    ) -> list[tuple[float, float]]:
        """See `LinearSystem`; waits."""
        return self.condition.ratios(
            weights, [self.kept_row_sums if v is None else v for v in references]
        )

    @cached_property
    def kept_row_sums(self) -> Array:
        """The sums of the rows of |op(A)|, (n,) float64."""
        return self.row_sums()
