"""SVD and bidiagonalization of a user's arrays, by an algorithm for the size of each matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..runtime.array import Array
from ..runtime.device import Device
from .arguments import Argument, argument, check
from .gebrd import gebrd
from .geqrf import copy_upper, rescale
from .gesvd import JACOBI, Svd, gesvd, paths
from .lists import Arrays, Form, described, transposed
from .lists import Batch as Listed
from .operands import subset, upload_table
from .workspace import real_type


@dataclass(frozen=True)
class Decomposition:
    """A = U·diag(s)·Vᵀ for each matrix of a kind; U and V have contiguous columns."""

    s: Argument  # vectors
    sides: Sides | None  # U and V, if computed
    info: Array  # int32 (count,), on the device


class Tall:
    """Matrices as they are processed: transposed if they have more columns than rows.

    Attributes
    ----------
    arrays : array or `lists.Batch`
    turned : bool array
        Whether each matrix is transposed; one value for matrices of one size, as in m and n.
    m, n : int arrays
        Rows and columns, m ≥ n.
    """

    def __init__(self, a: Arrays, squares: bool) -> None:
        """Describe ``a``; with ``squares``, transpose square matrices stored by rows."""
        is_list = isinstance(a, Listed)
        m, n = (a.form.m, a.form.n) if is_list else a.shape[-2:]
        by_rows = a.form.column == 1 if is_list else a.strides[-1] == a.itemsize
        self.turned = np.less(m, n) | (np.equal(m, n) & by_rows & squares)
        self.m, self.n = np.maximum(m, n), np.minimum(m, n)
        if isinstance(a, Listed):
            row, column = a.form.row, a.form.column
            form = Form(
                a.dtype,
                self.m,
                self.n,
                row=np.where(self.turned, column, row),
                column=np.where(self.turned, row, column),
            )
            self.arrays: Arrays = a.with_form(form)
        else:
            self.arrays = transposed(a) if self.turned else a


class Sides:
    """Memory for U and V of A, which are V and U of the processed matrix if it is transposed.

    Attributes
    ----------
    left, right : Argument
        U and V of A.
    u, v : MatrixBatch
        U and V of the matrices that are processed.
    """

    def __init__(self, tall: Tall, operand: Argument, columns: int | np.ndarray) -> None:
        """Allocate memory; ``u`` gets ``columns`` columns."""
        first, second, turned = (tall.m, columns), (tall.n, tall.n), tall.turned
        if not isinstance(operand.arrays, Listed):
            matrices = operand.new(*first), operand.new(*second)
            self.u, self.v = (x.batch for x in matrices)
            self.left, self.right = reversed(matrices) if turned else matrices
            return
        sizes = [np.where(turned, y, x) for x, y in zip(first, second, strict=True)]
        others = [np.where(turned, x, y) for x, y in zip(first, second, strict=True)]
        m, n = (np.concatenate(x) for x in zip(sizes, others, strict=True))
        device, count = operand.batch.device, operand.batch.count
        sides = Listed.new(Form.dense(operand.batch.dtype, m, n), device)
        self.left, self.right = (Argument.from_arrays(x, device) for x in sides.halves())
        batch, indices = described(sides, device), np.arange(count)
        self.u = subset(batch, indices + count * turned)
        self.v = subset(batch, indices + count * ~turned)


def decompose(device: Device, a: Arrays, full: bool, vectors: bool) -> Decomposition:
    """Compute the SVD of a user's arrays; the larger of U and V is square if ``full``."""
    check("a", a, device)
    tall = Tall(a, True)
    matrix_paths = np.atleast_1d(paths(tall.m, tall.n, a.dtype, device.limits))
    operand = argument("a", tall.arrays, device, write=bool((matrix_paths != JACOBI).any()))
    s = operand.new(tall.n, 1, real_type(a.dtype), vectors=True)
    sides = Sides(tall, operand, tall.m if full else tall.n) if vectors else None
    out = Svd(s.batch) if sides is None else Svd(s.batch, sides.u, sides.v)
    used_paths = np.unique(matrix_paths)
    if len(used_paths) == 1:
        return Decomposition(s, sides, gesvd(operand.batch, out, int(used_paths[0])))
    info = device.xp.zeros(operand.batch.count, np.int32)
    for path in used_paths:
        members = np.flatnonzero(matrix_paths == path)
        u, v = (x and subset(x, members) for x in (out.u, out.v))
        target = Svd(subset(out.s, members), u, v)
        upload_table(
            device, gesvd(subset(operand.batch, members), target, int(path)), members, info
        )
    return Decomposition(s, sides, info)


def bidiagonal(
    device: Device, a: Arrays, overwrite: int = False
) -> tuple[Arrays, Arrays, Arrays, Arrays, Array]:
    """Bidiagonalize a user's arrays; return d, e, q, pᴴ and info. Nothing is overwritten."""
    check("a", a, device)
    tall = Tall(a, False)
    operand = argument("a", tall.arrays, device, write=True)
    exponents, info = rescale(operand.batch)
    reduced = gebrd(operand.batch)
    sizes = tall.n, np.maximum(tall.n - 1, 0)
    d, e = (operand.new(k, 1, reduced.d.dtype, vectors=True) for k in sizes)
    for source, target in zip((reduced.d, reduced.e), (d, e), strict=True):
        copy_upper(source, described(transposed(target.arrays), device), exponents)
    sides = Sides(tall, operand, tall.n)
    reduced.q.form(sides.u)
    reduced.p.form(sides.v)
    return d.result(), e.result(), sides.left.arrays, transposed(sides.right.arrays), info
