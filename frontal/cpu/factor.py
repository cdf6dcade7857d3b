"""A factor on the CPU: panels in one array, the matrix that they are of, solutions with both."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..accuracy import System
from ..matrix import Canonical
from ..protocol import Health, HostFactor, relative_pivots
from ..symbolic.scaling import Scaling
from ..values import StoredOrder
from .blas import routines
from .blas_limit import single_threaded_blas
from .settle import Place
from .system import host_system
from .triangular import diagonal_of_panels, divide, sweep

_SOLVE_WIDTH = 32  # right-hand sides solved together


class CpuFactor:
    """See `protocol.NumericFactor`."""

    backend, asynchronous = "cpu", False
    failed = np.empty(0, np.int32)  # columns went where they have pivots

    def __init__(
        self, matrix: Canonical, host: HostFactor, scaling: Scaling | None, place: Place
    ) -> None:
        self.matrix, self.scaling = matrix, scaling
        self.symbolic, self.panel, self.device = place
        self.panels, self.pivots, self.perturbed, self._coupling, self.nulls = host
        self._diagonal: np.ndarray | None = None
        # what the factors were computed in, kept by those who factorize again and again
        self.storage: np.ndarray | None = None
        self.arena: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "arena": None, "storage": None, "_diagonal": None}

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the factors."""
        return self.panels.dtype

    @property
    def matrix_dtype(self) -> np.dtype:
        """See `NumericFactor`."""
        return self.matrix.dtype

    @property
    def memory(self) -> int:
        """Bytes of the factors."""
        return self.panels.nbytes

    def health(self) -> Health:
        """See `NumericFactor`; values were looked at on the host."""
        of = self.matrix, self.symbolic, self.scaling, self.coupling()
        ratios = relative_pivots(self.diagonal(), *of)
        return Health(float(ratios.min(initial=1.0)))

    def growth(self) -> float:
        """See `NumericFactor`."""
        panels = self.panels
        parts = (np.real(panels), np.imag(panels)) if np.iscomplexobj(panels) else (panels,)
        largest = max(max(x.max(initial=0.0), -x.min(initial=0.0)) for x in parts)
        size = self.matrix.norms[0] if self.scaling is None else 1.0
        return float(largest / size) if size else 0.0

    def diagonal(self) -> np.ndarray:
        """See `NumericFactor`."""
        if self._diagonal is None:
            self._diagonal = diagonal_of_panels(self.symbolic.plan, self.panel, self.panels)
        return self._diagonal

    def coupling(self) -> np.ndarray:
        """See `NumericFactor`."""
        return self._coupling

    def to_host(self) -> HostFactor:
        """See `NumericFactor`."""
        return HostFactor(self.panels, self.pivots, self.perturbed, self._coupling, self.nulls)

    def copy(self) -> CpuFactor:
        """See `NumericFactor`."""
        host = self.to_host()._replace(panels=self.panels.copy(), pivots=self.pivots.copy())
        place = Place(self.symbolic, self.panel, self.device)
        return CpuFactor(self.matrix, host, self.scaling, place)

    def free(self) -> None:
        """See `NumericFactor`: whoever holds the arrays lets them go."""

    def profile(self) -> Any:
        """See `NumericFactor`."""
        raise ValueError('only factors on a GPU have a profile; take backend="gpu"')

    # --- vectors -----------------------------------------------------------------------------

    def block(self, b: Any) -> None:
        """See `NumericFactor`: what is on the host is prepared by the caller."""

    def empty(self, k: int, dtype: np.dtype) -> np.ndarray:
        """See `NumericFactor`."""
        return np.empty((self.symbolic.n, k), dtype, order="F")

    def upload(self, B: np.ndarray) -> np.ndarray:
        """See `NumericFactor`."""
        return B

    def download(self, X: np.ndarray) -> np.ndarray:
        """See `NumericFactor`."""
        return X

    def system(self, trans: str, dtype: np.dtype) -> System:
        """See `NumericFactor`."""
        return host_system(self, trans, dtype)

    def sweep(self, x: np.ndarray, transposed: bool) -> None:
        """See `NumericFactor`."""
        plan, method, panels = self.symbolic.plan, self.symbolic.method, self.panels
        n, width = x.shape
        conjugate = method.one_triangle and method.adjoint and np.iscomplexobj(x)
        largest = int(np.diff(plan.pointer).max(initial=0))
        calls = routines(panels.dtype)
        buffer = np.empty(max(1, largest * min(width, _SOLVE_WIDTH)), panels.dtype)
        # with two panels L serves the forward sweep, and the backward one of A^T
        first_lower = method.one_triangle or not transposed
        last_lower = method.one_triangle or transposed
        with single_threaded_blas():
            for first in range(0, width, _SOLVE_WIDTH):
                part = x[:, first : first + _SOLVE_WIDTH]
                block = np.ascontiguousarray(part).reshape(-1)
                w = part.shape[1]
                if conjugate and transposed:
                    np.conjugate(block, out=block)
                given = plan, self.panel, calls, panels, self.pivots, block, w, buffer
                sweep(*given, first_lower, first_lower and method.pivots, False)
                if method.indefinite:
                    divide(block, w, self.diagonal(), self._coupling, method.adjoint)
                if conjugate:  # L^H y = z is L^T conj(y) = conj(z)
                    np.conjugate(block, out=block)
                sweep(*given, last_lower, last_lower and method.pivots, True)
                if conjugate and not transposed:
                    np.conjugate(block, out=block)
                part[...] = block.reshape(n, w)

    # --- new values --------------------------------------------------------------------------

    def values_there(self, A: Any, order: StoredOrder) -> None:
        """See `NumericFactor`: nothing is there."""
