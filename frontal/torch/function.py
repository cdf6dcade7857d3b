"""Solutions and determinants as functions of the values of A and of b, for autograd.

Derivatives of a solution call the function of solutions itself, so that they have derivatives, too.
Those of a determinant are entries of the inverse, whose derivatives are not offered.
"""

from __future__ import annotations

from typing import NoReturn, Protocol

import torch

from .._typing import Untyped
from ..factor.gradients import adjoint_solution, gradient_vectors

_NO_SECOND = (
    "second derivatives of log det A are not offered: they need entries of the inverse outside of "
    "the pattern. Try: solve() with unit vectors"
)


class DirectSolver(Protocol):
    """Solutions and determinants of the matrices of a pattern, unknown to autograd: `Pattern`."""

    rows: torch.Tensor
    columns: torch.Tensor
    symmetry: str | None

    def solved(self, values: torch.Tensor, b: torch.Tensor, trans: str) -> torch.Tensor:
        """Return x for values (count,) and b (n, k), or both with a batch axis before."""
        ...

    def logarithm(self, values: torch.Tensor) -> torch.Tensor:
        """Return log det A, a scalar or (batch,)."""
        ...

    def logarithm_gradient(self, values: torch.Tensor) -> torch.Tensor:
        """Return the gradient of log det A for the values."""
        ...


class SolveFunction(torch.autograd.Function):
    """x for values (count,) and b (n, k), or for values (batch, count) and b (batch, n, k)."""

    @staticmethod
    def forward(
        values: torch.Tensor, b: torch.Tensor, pattern: DirectSolver, trans: str
    ) -> torch.Tensor:
        """Return x."""
        return pattern.solved(values, b, trans)

    @staticmethod
    def setup_context(ctx: Untyped, inputs: tuple[Untyped, ...], output: torch.Tensor) -> None:
        """Keep what derivatives need."""
        values, _, ctx.pattern, ctx.trans = inputs
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(values, output)
        ctx.save_for_forward(values, output)

    @staticmethod
    def backward(ctx: Untyped, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients for values and b."""
        (x_bar,) = gradients
        if x_bar is None:
            return None, None, None, None
        values, x = ctx.saved_tensors
        pattern, trans = ctx.pattern, ctx.trans

        def solve(rhs: torch.Tensor, side: str) -> torch.Tensor:
            return SolveFunction.apply(values, rhs, pattern, side)

        b_bar, values_bar = adjoint_solution(solve, x_bar, trans), None
        if ctx.needs_input_grad[0]:
            values_bar = _gradient(pattern, *gradient_vectors(x, b_bar, trans))
        return values_bar, b_bar, None, None

    @staticmethod
    def jvp(ctx: Untyped, *changes: torch.Tensor | None) -> torch.Tensor:
        """Return the derivative of x along changes of values and b."""
        (values, x), (values_dot, b_dot) = ctx.saved_tensors, changes[:2]
        rhs = torch.zeros_like(x) if b_dot is None else b_dot
        if values_dot is not None:
            rhs = rhs - _product(ctx.pattern, values_dot, x, ctx.trans)
        return SolveFunction.apply(values, rhs, ctx.pattern, ctx.trans)

    @staticmethod
    def vmap(
        info: Untyped,
        in_dims: tuple[Untyped, ...],
        *inputs: Untyped,
    ) -> tuple[torch.Tensor, int]:
        """Solve for one more batch axis of values, of b, or of both."""
        (values, b, pattern, trans), (of_values, of_b) = inputs, in_dims[:2]
        if of_values is None:  # more right-hand sides of the same matrices
            columns = b.movedim(of_b, -2)
            x = SolveFunction.apply(values, columns.flatten(-2), pattern, trans)
            return x.unflatten(-1, columns.shape[-2:]), x.dim() - 1
        values = values.movedim(of_values, 0)
        b = b.unsqueeze(0).expand(info.batch_size, *b.shape) if of_b is None else b.movedim(of_b, 0)
        if values.dim() == 2:
            return SolveFunction.apply(values, b, pattern, trans), 0
        x = SolveFunction.apply(values.flatten(0, 1), b.flatten(0, 1), pattern, trans)
        return x.unflatten(0, b.shape[:2]), 0


class LogdetFunction(torch.autograd.Function):
    """log det A for values (count,), or (batch,) of them for values (batch, count)."""

    @staticmethod
    def forward(values: torch.Tensor, pattern: DirectSolver) -> torch.Tensor:
        """Return the logarithms."""
        return pattern.logarithm(values)

    @staticmethod
    def setup_context(ctx: Untyped, inputs: tuple[Untyped, ...], output: torch.Tensor) -> None:
        """Keep what derivatives need."""
        values, ctx.pattern = inputs
        ctx.save_for_backward(values)
        ctx.save_for_forward(values)

    @staticmethod
    def backward(ctx: Untyped, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return the gradient for the values."""
        (values,) = ctx.saved_tensors
        gradient = _InverseFunction.apply(values, ctx.pattern)
        return gradients[0].unsqueeze(-1) * gradient, None

    @staticmethod
    def jvp(ctx: Untyped, *changes: torch.Tensor | None) -> torch.Tensor:
        """Return the derivative along a change of the values."""
        (values,), change = ctx.saved_tensors, changes[0]
        gradient = _InverseFunction.apply(values, ctx.pattern)
        return (gradient.conj() * change).sum(-1).real

    @staticmethod
    def vmap(
        info: Untyped, in_dims: tuple[Untyped, ...], *inputs: Untyped
    ) -> tuple[torch.Tensor, int]:
        """Return the logarithms for one more batch axis of values."""
        return _of_batch(LogdetFunction, in_dims, *inputs)


class _InverseFunction(torch.autograd.Function):
    """The gradient of log det A for the values, which has no derivatives."""

    @staticmethod
    def forward(values: torch.Tensor, pattern: DirectSolver) -> torch.Tensor:
        return pattern.logarithm_gradient(values)

    @staticmethod
    def setup_context(ctx: Untyped, inputs: tuple[Untyped, ...], output: torch.Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Untyped, *gradients: torch.Tensor) -> NoReturn:
        raise RuntimeError(_NO_SECOND)

    @staticmethod
    def jvp(ctx: Untyped, *changes: torch.Tensor | None) -> NoReturn:
        raise RuntimeError(_NO_SECOND)

    @staticmethod
    def vmap(
        info: Untyped, in_dims: tuple[Untyped, ...], *inputs: Untyped
    ) -> tuple[torch.Tensor, int]:
        return _of_batch(_InverseFunction, in_dims, *inputs)


def _of_batch(
    function: type[LogdetFunction | _InverseFunction],
    in_dims: tuple[Untyped, ...],
    values: torch.Tensor,
    pattern: DirectSolver,
) -> tuple[torch.Tensor, int]:
    """Return a function of values with one more batch axis."""
    values = values.movedim(in_dims[0], 0)
    if values.dim() == 2:
        return function.apply(values, pattern), 0
    return function.apply(values.flatten(0, 1), pattern).unflatten(0, values.shape[:2]), 0


def _gradient(pattern: DirectSolver, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return the gradient for the values by `gradient_vectors`, as symmetric as is promised."""
    gradient = -_products(pattern, rows, columns)
    if pattern.symmetry is None:
        return gradient
    mirrored = -_products(pattern, columns, rows)
    return (gradient + (mirrored.conj() if pattern.symmetry == "hermitian" else mirrored)) / 2


def _products(pattern: DirectSolver, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return the products of row i and row j of two blocks of vectors for all entries (i, j)."""
    left = rows.index_select(-2, pattern.rows)
    return (left * columns.index_select(-2, pattern.columns)).sum(-1)


def _product(
    pattern: DirectSolver, values: torch.Tensor, x: torch.Tensor, trans: str
) -> torch.Tensor:
    """Return op(M) x for the matrix M of these values."""
    rows, columns = pattern.rows, pattern.columns
    if trans != "N":
        rows, columns = columns, rows
    values = values.conj() if trans == "H" else values
    terms = values.unsqueeze(-1) * x.index_select(-2, columns)
    return torch.zeros_like(x).index_add(-2, rows, terms)
