"""`Pattern`: a sparsity pattern, solved with for any values of its entries."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch

from .._typing import Untyped
from ..batch.recent import PatternFactors, require_options
from ..matrix.canonical import KINDS, require_kind
from ..numeric.linear_system import require_trans
from .arrays import array_of, host_array_of, tensor_of
from .function import LogdetFunction, SolveFunction

_DTYPES = torch.float32, torch.float64, torch.complex64, torch.complex128
_SYMMETRY = {"spd": "hermitian", "hermitian": "hermitian", "symmetric": "symmetric"}


class Pattern:
    """The pattern of a sparse matrix, by rows, and the factors of its last values.

    Parameters
    ----------
    crow_indices, col_indices : int tensors (n + 1,), (count,)
        Compressed rows, as of a CSR tensor; columns in any order, perhaps repeated.
    kind : str
        As for `frontal.factorize`. "spd", "symmetric" and "hermitian" promise that the values have
        this symmetry, and gradients have it, too.
    keep : int
        Number of factors, and of batches of factors, that are kept for later gradients. Others are
        computed again when a gradient needs them.
    **options
        ``ordering`` and ``backend`` of `frontal.factorize`.

    Attributes
    ----------
    rows, columns : int64 tensors (count,)
        Coordinates of the entries.

    Examples
    --------
    Two systems in a batch, and the gradient for each of their values:

    >>> import torch, frontal.torch
    >>> A = torch.eye(3, dtype=torch.float64).to_sparse_csr()
    >>> pattern = frontal.torch.Pattern(A.crow_indices(), A.col_indices())
    >>> values = torch.tensor([[1.0, 2.0, 4.0], [1.0, 1.0, 8.0]], dtype=torch.float64)
    >>> values.requires_grad = True
    >>> x = pattern.solve(values, torch.ones(2, 3, dtype=torch.float64))
    >>> x.sum().backward()
    >>> [round(x, 6) for x in values.grad[0].tolist()]
    [-1.0, -0.25, -0.0625]
    """

    def __init__(
        self,
        crow_indices: torch.Tensor,
        col_indices: torch.Tensor,
        *,
        kind: str = "auto",
        keep: int = 2,
        **options: Untyped,
    ) -> None:
        _require_extents(crow_indices, col_indices.numel())
        counts = crow_indices.diff()
        row = torch.arange(counts.numel(), device=counts.device)
        rows = row.repeat_interleave(counts)
        self._prepare(counts.numel(), rows, col_indices, kind, keep, options)
        self._indptr = host_array_of(crow_indices).copy()

    @classmethod
    def from_coordinates(
        cls,
        n: int,
        rows: torch.Tensor,
        columns: torch.Tensor,
        *,
        kind: str = "auto",
        keep: int = 2,
        **options: Untyped,
    ) -> Pattern:
        """Return the pattern of entries in any order, as of a COO tensor; repeated ones are added.

        Parameters
        ----------
        n : int
            Order of the matrix.
        rows, columns : int tensors (count,)
        kind, keep, **options
            As for `Pattern`.
        """
        pattern = cls.__new__(cls)
        pattern._prepare(n, rows, columns, kind, keep, options)
        return pattern

    def _prepare(
        self,
        n: int,
        rows: torch.Tensor,
        columns: torch.Tensor,
        kind: str,
        keep: int,
        options: dict[str, Untyped],
    ) -> None:
        require_kind(kind)
        require_options(options)
        _require_indices(n, rows, columns)
        if keep < 1:
            raise ValueError(f"keep is {keep}, but at least one factor is needed")
        self.n, self.rows = n, rows.to(torch.int64, copy=True)
        self.columns = columns.to(torch.int64, copy=True)
        self.symmetry = _SYMMETRY.get(KINDS[kind])
        self._keep, self._options = keep, {"kind": kind, **options}
        self._indptr: np.ndarray | None = None  # of coordinates
        self._indices = host_array_of(columns).copy()
        self._factors: dict[tuple[torch.device, torch.dtype], PatternFactors] = {}

    def solve(self, values: torch.Tensor, b: torch.Tensor, trans: str = "N") -> torch.Tensor:
        """Solve op(A) x = b; x can be differentiated any number of times for values and b.

        Parameters
        ----------
        values : tensor (count,) or (batch, count)
            Values of the entries, of one matrix or of each of a batch.
        b : tensor (n,), (n, k), or with a batch (batch, n) or (batch, n, k)
            Of the type and on the device of the values.
        trans : {"N", "T", "H"}
            op(A): the matrix, its transpose or its adjoint.

        Returns
        -------
        x : tensor of b's shape

        Raises
        ------
        ValueError, TypeError
            If shapes, types or devices do not fit.
        frontal.FrontalError
            As `frontal.factorize` and `Factor.solve`.
        """
        self._check(values, b, trans)
        single = b.dim() == values.dim()
        x = SolveFunction.apply(values, b.unsqueeze(-1) if single else b, self, trans)
        return x.squeeze(-1) if single else x

    def logdet(self, values: torch.Tensor) -> torch.Tensor:
        """Return the natural logarithm of det A, which has derivatives of first order.

        Its gradient has the entries of the inverse in A's pattern, computed on the host.

        Parameters
        ----------
        values : tensor (count,) or (batch, count)

        Returns
        -------
        logarithm : real scalar tensor, or (batch,)

        Raises
        ------
        ValueError
            If a determinant is not positive, or values do not fit.
        frontal.FrontalError
            As `frontal.factorize`.

        Examples
        --------
        >>> import torch, frontal.torch
        >>> pattern = frontal.torch.Pattern(torch.arange(3), torch.arange(2))
        >>> values = torch.tensor([2.0, 4.0], requires_grad=True)
        >>> pattern.logdet(values).backward()
        >>> values.grad
        tensor([0.5000, 0.2500])
        """
        self._check_values(values)
        return LogdetFunction.apply(values, self)

    def __getstate__(self) -> dict[str, Untyped]:
        """Return the state for copies and pickles, without factors."""
        return {**vars(self), "_factors": {}}

    def _check_values(self, values: torch.Tensor) -> None:
        _refuse_nested_forward_mode()
        if values.dtype not in _DTYPES:
            raise TypeError(f"values are {values.dtype}; choose {', '.join(map(str, _DTYPES))}")
        count = self.columns.numel()
        if values.dim() not in (1, 2) or values.shape[-1] != count:
            raise ValueError(
                f"values have shape {tuple(values.shape)}, and the pattern has {count} entries: "
                f"they must be ({count},) or (batch, {count})"
            )

    def _check(self, values: torch.Tensor, b: torch.Tensor, trans: str) -> None:
        require_trans(trans)
        self._check_values(values)
        wanted = *values.shape[:-1], self.n
        if b.dim() - len(wanted) not in (0, 1) or tuple(b.shape[: len(wanted)]) != wanted:
            raise ValueError(
                f"b has shape {tuple(b.shape)}; for values of shape {tuple(values.shape)} it must "
                f"be {wanted} or {wanted} and a number of columns"
            )
        if b.dtype != values.dtype or b.device != values.device:
            raise TypeError(
                f"b is {b.dtype} on {b.device}, the values are {values.dtype} on {values.device}"
            )

    def solved(self, values: torch.Tensor, b: torch.Tensor, trans: str) -> torch.Tensor:
        """Return x for b (n, k) or (batch, n, k), unknown to autograd."""
        x = self._factors_for(values).solve(array_of(values), array_of(b), trans)
        return tensor_of(x, values.device)

    def logarithm(self, values: torch.Tensor) -> torch.Tensor:
        """Return log det A, unknown to autograd."""
        logarithms = self._factors_for(values).logdet(array_of(values))
        return torch.as_tensor(logarithms, dtype=values.real.dtype, device=values.device)

    def logarithm_gradient(self, values: torch.Tensor) -> torch.Tensor:
        """Return the gradient of log det A for the values, unknown to autograd."""
        return tensor_of(self._factors_for(values).logdet_gradient(array_of(values)), values.device)

    def _factors_for(self, values: torch.Tensor) -> PatternFactors:
        """Return the factors for values of this type on this device."""
        key = values.device, values.dtype
        if key not in self._factors:
            place = {"backend": "gpu"} if values.is_cuda else {}
            self._factors[key] = PatternFactors(self._matrix, self._keep, place | self._options)
        return self._factors[key]

    def _matrix(self, values: np.ndarray) -> sp.sparray:
        """Return the matrix of host values, in their order."""
        shape = self.n, self.n
        if self._indptr is not None:
            return sp.csr_array((values, self._indices, self._indptr), shape=shape)
        return sp.coo_array((values, (host_array_of(self.rows), self._indices)), shape=shape)


def _require_extents(crow_indices: torch.Tensor, count: int) -> None:
    """Raise ValueError unless extents of rows ascend from 0 to the number of entries."""
    if crow_indices.dim() != 1 or not crow_indices.numel():
        raise ValueError("crow_indices must have one axis and n + 1 entries")
    ends = int(crow_indices[0]), int(crow_indices[-1])
    if ends != (0, count) or bool((crow_indices.diff() < 0).any()):
        raise ValueError(f"crow_indices must ascend from 0 to {count}, the number of columns given")


def _require_indices(n: int, rows: torch.Tensor, columns: torch.Tensor) -> None:
    """Raise unless rows and columns are as many integers in range(n)."""
    for index in rows, columns:
        if index.is_floating_point() or index.is_complex() or index.dtype == torch.bool:
            raise TypeError(f"indices are integers, not {index.dtype}")
        if index.dim() != 1 or index.shape != columns.shape:
            raise ValueError("rows and columns must be two lists of equal length")
        if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < n:
            raise ValueError(f"indices must be in range({n})")


def _refuse_nested_forward_mode() -> None:
    """Raise in forward mode inside of forward mode, which PyTorch (2.13) computes wrongly.

    The derivative of a function of its own, also of ``torch.linalg.solve``, is then not that of the
    outer mode.
    """
    stack = getattr(torch._C._functorch, "get_interpreter_stack", lambda: None)() or ()
    if sum("Jvp" in str(level.key()) for level in stack) > 1:
        raise RuntimeError(
            "forward mode inside of forward mode is wrong in PyTorch. Try: reverse mode for one of "
            "both, as torch.func.hessian does"
        )
