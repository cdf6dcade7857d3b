"""A matrix that stays on the device with its factor: solutions, residuals and their errors there.

The kernels are those of sparse/system.cu. One check of a solution is one small download; what is
decided with it is `refine.refine`, as on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ...errors import FactorInvalidError, NonFiniteInputError
from ...factor import refine
from ...matrix import working_dtype
from ...symbolic.scaling import scaled
from ..runtime.graph import Launch
from . import health as life
from . import launch

if TYPE_CHECKING:
    from ...symbolic.scaling import Scaling
    from .backend import GpuFactor
    from .entries import Entries

_LARGEST_BLOCK = 1 << 24  # entries of right-hand sides that are solved together,
_LEAST_WIDTH = 32  # or so many of them if they are long


class ResidentSystem:
    """The values of A, its scaling and its factor, all on the device.

    Parameters
    ----------
    entries : Entries
    values : device array (nnz,)
        By columns. Kept, not copied.
    scaling : Scaling, optional
        Of rows and columns, for LU.
    hermitian : bool
        A is known to be exactly Hermitian: its rows are then read as columns.
    """

    def __init__(
        self, entries: Entries, values: Any, scaling: Scaling | None, hermitian: bool
    ) -> None:
        self.entries, self.values, self.hermitian = entries, values, hermitian
        self.scaling = scaling
        self._scales: tuple[Any, Any] = (None, None)
        if scaling is not None:
            upload = entries.device.upload
            self._scales = upload(scaling.row), upload(scaling.column)
        self.numeric: GpuFactor | None = None
        self._systems: dict[tuple[str, np.dtype], DeviceSystem] = {}

    def renewed(self, values: Any) -> ResidentSystem:
        """The same pattern and scaling with other values, not factorized yet."""
        twin = ResidentSystem(self.entries, values, None, False)
        twin.scaling, twin._scales = self.scaling, self._scales
        return twin

    def with_factor(self, numeric: GpuFactor) -> ResidentSystem:
        """The same matrix with another copy of its factor."""
        twin = self.renewed(self.values)
        twin.hermitian, twin.numeric = self.hermitian, numeric
        return twin

    @property
    def factor(self) -> GpuFactor:
        """The factor."""
        if self.numeric is None:
            raise FactorInvalidError
        return self.numeric

    def scaled(self) -> Any:
        """The values that are factorized."""
        row, column = self._scales
        if row is None or not self.entries.nnz:
            return self.values
        if self.scaling is not None and self.scaling.extreme:
            return self._scaled_on_host()
        entries, out = self.entries, self.entries.device.xp.empty_like(self.values)
        sizes = np.int32(entries.n), np.int32(entries.lanes)
        self._launch(
            "system_scale",
            (launch.system_blocks(entries.n * entries.lanes, entries.device.limits),),
            (*sizes, entries.pointer, entries.index, row, column, self.values, out),
        )
        return out

    def _scaled_on_host(self) -> Any:
        """As `scaled`, where the kernel's product of two factors may overflow."""
        entries, scaling = self.entries, cast("Scaling", self.scaling)
        down = entries.device.download
        of = down(entries.pointer), down(entries.index), down(self.values)
        return entries.device.upload(scaled(*of, scaling.row, scaling.column))

    def _launch(self, entry: str, grid: tuple[int, ...], arguments: tuple[Any, ...]) -> None:
        entries, constants = self.entries, life.constants(self.entries.pattern)
        kernel = entries.device.kernel("system.cu", entry, self.values.dtype, **constants)
        kernel(grid, (launch.SYSTEM_THREADS,), arguments)

    def examination(self, panels: Any, values: Any, told: Any, again: bool) -> Launch:
        """What looks at a new factor and the values that it is of; see `life.examination`.

        Values of the first factorization come from the host, where their symmetry is known.
        """
        entries = self.entries
        of = entries.pointer, entries.index, entries.perm, values
        # by rows and by columns, the entries of one triangle are each other's mirror images
        mirror = entries.by_rows[2] if again and entries.pattern.method.one_triangle else None
        return life.examination(entries.pattern, panels, *of, mirror, told)

    @property
    def health(self) -> life.Health:
        """What the pivots and values tell."""
        told = self.factor.told
        if told is None:
            raise RuntimeError("this factor was never examined")
        return life.Health.of(self.entries.pattern.method, self.factor.dtype, told)

    def growth(self) -> float:
        """Largest entry of the factors over the largest of the (scaled) matrix."""
        entries = self.entries
        largest, norm = self.factor.growth(entries.pointer, self.values, entries.lanes)
        norm = norm if self.scaling is None else 1.0
        return largest / norm if norm else 0.0

    def refuse_non_finite(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        """Raise for the first value, by columns, that is NaN or infinite."""
        p = self._first_non_finite(self.values)
        if p is not None:
            j = int(np.searchsorted(indptr, p, "right")) - 1
            value = self.entries.device.download(self.values[p : p + 1])[0]
            raise NonFiniteInputError("A", (int(indices[p]), j), value)

    def _first_non_finite(self, flat: Any) -> int | None:
        xp = self.entries.device.xp
        bad = self.entries.device.download(xp.flatnonzero(~xp.isfinite(flat))[:1])
        return int(bad[0]) if bad.size else None

    # --- right-hand sides --------------------------------------------------------------------

    def block(self, b: Any) -> Any:
        """Right-hand sides that are on the device as (n, k) in Fortran order, in the common type.

        Raises
        ------
        ValueError, TypeError
            If the shapes do not fit, or for scalar types that no BLAS knows.
        """
        xp, n = self.entries.device.xp, self.entries.n
        b = xp.asarray(b)
        work = working_dtype(np.result_type(self.values.dtype, b.dtype), "b")
        if b.ndim not in (1, 2) or b.shape[0] != n:
            raise ValueError(
                f"b has shape {b.shape} and the matrix {(n, n)}: b must be ({n},) or ({n}, k)"
            )
        return xp.asfortranarray(b.reshape(n, 1) if b.ndim == 1 else b, dtype=work)

    def upload(self, B: np.ndarray) -> Any:
        """Copy a host array (n, k) in Fortran order."""
        return self.entries.device.upload(B.T).T

    def download(self, X: Any) -> np.ndarray:
        """Copy a device array (n, k) in Fortran order."""
        return self.entries.device.download(X.T).T

    def refuse_non_finite_rhs(self, B: Any, ndim: int) -> None:
        """Raise for the first entry of right-hand sides, by columns, that is not finite."""
        p = self._first_non_finite(B.T.reshape(-1))
        if p is not None:
            index = (p % B.shape[0], p // B.shape[0])
            value = self.entries.device.download(B[index[0], index[1] : index[1] + 1])[0]
            raise NonFiniteInputError("b", index[:ndim], value.item())

    # --- solution ----------------------------------------------------------------------------

    def solve(
        self, B: Any, trans: str, steps: int | None, judged: bool
    ) -> tuple[Any, refine.Errors | None, int]:
        """Solve op(A) X = B.

        Parameters
        ----------
        B : device array (n, k) in Fortran order
        trans : {"N", "T", "H"}
        steps : int, optional
            As for `refine.refine`.
        judged : bool
            Whether errors are wanted; with ``steps=0`` and without them nothing waits.

        Returns
        -------
        X : device array (n, k) in Fortran order
        errors : Errors
            None if not judged.
        taken : int
            Corrections kept.
        """
        n, k = B.shape
        system = self.system(trans, B.dtype)
        if n == 0 or k == 0:
            nothing = np.zeros(k)
            return B.copy(), refine.Errors(nothing, nothing, nothing, 0.0, nothing), 0
        width = max(_LARGEST_BLOCK // n, _LEAST_WIDTH)
        if k <= width:
            return system.solve(B, steps, judged)
        X, errors, taken = self.entries.device.xp.empty((n, k), B.dtype, order="F"), [], 0
        for first in range(0, k, width):
            part = slice(first, first + width)
            X[:, part], found, count = system.solve(B[:, part], steps, judged)
            errors.append(found)
            taken = max(taken, count)
        return X, refine.Errors.joined(errors) if judged else None, taken

    def system(self, trans: str, dtype: np.dtype) -> DeviceSystem:
        """op(A) X = B for vectors of a scalar type."""
        key = trans, dtype
        if key not in self._systems:
            self._systems[key] = DeviceSystem(self, trans, dtype)
        return self._systems[key]


class DeviceSystem:
    """A `refine.System` of device arrays (n, k) in Fortran order, of one scalar type."""

    def __init__(self, resident: ResidentSystem, trans: str, dtype: np.dtype) -> None:
        entries = self._entries = resident.entries
        values = self._values = resident.values
        self.dtype, self.eps = dtype, float(np.finfo(dtype).eps)
        self._factor = resident.factor
        self._badly_scaled = resident.scaling is not None
        wide = dtype.itemsize > values.dtype.itemsize
        constants = life.constants(entries.pattern, WIDE=wide, LONG=entries.long)
        names = ("enter", "leave", "residual_1", "residual_4")
        self._kernels = {
            name: entries.device.kernel("system.cu", f"system_{name}", values.dtype, **constants)
            for name in names
        }
        # Of Hermitian A only A X = B is solved by the factor: A^T is the conjugate of A.
        cholesky, complex_ = entries.pattern.method.one_triangle, values.dtype.kind == "c"
        self._transposed = trans != "N" and not cholesky
        self._conjugate = np.int32(complex_ and trans == ("T" if cholesky else "H"))
        rows, columns = (entries.row_perm, resident._scales[0]), (entries.perm, resident._scales[1])
        flipped = trans != "N"
        self._enter = self._order(*(columns if flipped else rows))
        self._leave = self._order(*(rows if flipped else columns))
        self._rows = self._rows_of(resident, trans, complex_)

    def _order(self, place: Any, scale: Any) -> tuple[Any, ...]:
        return place, np.uint64(0) if scale is None else scale, self._conjugate

    def _rows_of(self, resident: ResidentSystem, trans: str, complex_: bool) -> tuple[Any, ...]:
        """The arguments that describe the rows of op(A)."""
        entries, n = self._entries, np.int32(self._entries.n)
        if trans == "N" and not resident.hermitian:
            pointer, index, position, lanes = entries.by_rows
            return n, lanes, pointer, index, position, np.int32(0), self._values
        conjugate = np.int32(complex_ and trans != "T")
        of = entries.pointer, entries.index, np.uint64(0), conjugate, self._values
        return n, entries.lanes, *of

    def solve(
        self, B: Any, steps: int | None, judged: bool
    ) -> tuple[Any, refine.Errors | None, int]:
        """See `ResidentSystem.solve`."""
        X = self._direct(B, None)
        if steps == 0 and not judged:
            return X, None, 0
        return refine.refine(self, X, B, steps)

    def _direct(self, B: Any, before: Any) -> Any:
        """`before` + the solution by the factors."""
        n, k = B.shape
        X = self._entries.device.xp.empty((n, k), self.dtype, order="F")
        for part, sweeps in self._factor.blocks(k, self._transposed):
            given = np.uint64(0) if before is None else before[:, part]
            shift = sweeps.width.bit_length() - 1
            sizes = np.int32(part.stop - part.start), np.int32(shift)
            grid = (launch.system_blocks(n << shift, self._entries.device.limits),)
            size = self._rows[0]
            enter = (size, *self._enter, *sizes, B[:, part], sweeps.rhs)
            self._kernels["enter"](grid, (launch.SYSTEM_THREADS,), enter)
            sweeps()
            leave = (size, *self._leave, *sizes, sweeps.solution, given, X[:, part])
            self._kernels["leave"](grid, (launch.SYSTEM_THREADS,), leave)
        return X

    def measure(self, X: Any, B: Any) -> tuple[Any, refine.Errors]:
        """See `refine.System`; waits."""
        n, k = B.shape
        device = self._entries.device
        R = device.xp.empty((n, k), self.dtype, order="F")
        norms, columns = device.xp.zeros(4 * k + 1, np.float64), 1 if k == 1 else 4
        size, lanes, *rows = self._rows
        grid = launch.system_blocks(n * lanes, device.limits), -(-k // columns)
        arguments = (size, np.int32(k), np.int32(lanes), *rows, X, B, R, norms)
        self._kernels[f"residual_{columns}"](grid, (launch.SYSTEM_THREADS,), arguments)
        told = device.download(norms)
        residual, solution, rhs, component = told[:-1].reshape(4, k)
        component = np.where(np.isfinite(component), component, np.inf)
        norm = float(told[-1])
        return R, refine.Errors(residual, solution, rhs, norm, component, self._badly_scaled)

    def corrected(self, X: Any, R: Any) -> Any:
        """See `refine.System`."""
        return self._direct(R, X)

    def chosen(self, better: np.ndarray, trial: Any, X: Any) -> Any:
        """See `refine.System`."""
        if better.all():
            return trial
        device = self._entries.device
        device.xp.copyto(X, trial, where=device.upload(better))
        return X
