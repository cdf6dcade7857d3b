"""The public functions for many systems at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..api import analyze
from ..backend.choose import resolved
from ..errors import FrontalError, NonFiniteInputError, SingularMatrixError
from ..factor.analyzed import Analyzed
from ..factor.factor import Factor
from ..matrix.canonical import Canonical
from ..matrix.complete import to_canonical
from ..matrix.value_map import ValueMap
from .device.systems import DeviceSystems
from .factors import BatchFactor, Group
from .host import HostSystems
from .input import AnyArray, arranged_values
from .systems import Systems

_REUSE = 100  # factorizations for which an ordering shall pay, whatever the size of a batch


def factorize_batch(
    A: AnyArray,
    values: AnyArray = None,
    *,
    kind: str = "auto",
    ordering: ArrayLike = "auto",
    backend: str = "auto",
    check: bool = True,
) -> BatchFactor:
    """Factorize many matrices at once, to solve with all of them.

    Parameters
    ----------
    A : sparse matrix (n, n), or list of sparse matrices (n_i, n_i)
        A matrix whose pattern all have. Its own values stand for those of the batch: they choose
        the method, and for LU which rows are matched to which columns; systems that these choices
        do not suit are factorized one by one. Or, without ``values``, the matrices themselves;
        equal patterns are analyzed once, by the first of them.
    values : array (batch, nnz), optional
        In each row what ``A.data`` is of one matrix, in the order in which A stores it. CuPy's too.
    kind, ordering
        As for `frontal.factorize`, for all of them.
    backend : {"auto", "cpu", "gpu"}
        On the CPU threads share the systems, each of which one thread factorizes. On a GPU they are
        the trees of a forest.
    check : bool
        Raise where systems have no factor; else `BatchFactor.status` tells.

    Returns
    -------
    BatchFactor

    Raises
    ------
    BatchError
        When all is done, naming the systems without a factor: singular ones, those with NaN, with
        ``kind="spd"`` those that are not positive definite. The others are in its ``result``.
    ValueError, TypeError, SingularMatrixError
        If A is no matrix to be factorized, or ``values`` are not of its pattern.

    Warns
    -----
    PerformanceWarning
        If systems had to be factorized one by one.

    Examples
    --------
    >>> import frontal, numpy as np
    >>> A = frontal.problems.poisson2d(10)
    >>> values = A.data * np.array([[1.0], [2.0], [4.0]])
    >>> x = frontal.factorize_batch(A, values).solve(A @ np.ones(100))
    >>> x[:, 0].round(6).tolist()
    [1.0, 0.5, 0.25]
    """
    choices = {"kind": kind, "ordering": ordering, "backend": backend}
    if values is None:
        if not isinstance(A, list | tuple):
            raise TypeError("A is one matrix: give `values` (batch, nnz), or a list of matrices")
        return _checked(_factorize_list(A, **choices), check)
    matrix = to_canonical(A, None, kind=kind, ordered=True)
    order = matrix.order or ValueMap.by_columns(matrix.indices.size)
    analysis = _analyzed(matrix, **choices)
    on_device = _engine(analysis, len(values)).on_device
    systems = _systems(analysis, arranged_values(values, order, analysis.symbolic, on_device))
    members = np.arange(systems.count)
    return _checked(BatchFactor([Group(systems, members, [order])], members.size, False, {}), check)


def solve_batch(
    A: AnyArray,
    values: AnyArray = None,
    b: AnyArray = None,
    *,
    kind: str = "auto",
    ordering: ArrayLike = "auto",
    backend: str = "auto",
    return_info: bool = False,
) -> AnyArray:
    """Solve A_i x_i = b_i for many matrices at once.

    Parameters
    ----------
    A, values, kind, ordering, backend
        As for `factorize_batch`.
    b, return_info
        As for `BatchFactor.solve`.

    Returns
    -------
    x : array (batch, n) or (batch, n, k), or list
    info : BatchInfo
        If `return_info`.

    Raises
    ------
    BatchError
        Naming the systems without a solution.

    Examples
    --------
    >>> import frontal, numpy as np
    >>> A = frontal.problems.poisson2d(10)
    >>> values = A.data * np.array([[1.0], [2.0]])
    >>> frontal.solve_batch(A, values, A @ np.ones(100))[1, :2].round(6).tolist()
    [0.5, 0.5]
    """
    if b is None:
        raise TypeError("b is missing: solve_batch(A, values, b), or solve_batch(matrices, b=b)")
    factors = factorize_batch(A, values, kind=kind, ordering=ordering, backend=backend)
    return factors.solve(b, return_info=return_info)


def _checked(factors: BatchFactor, check: bool) -> BatchFactor:
    if check:
        factors.raise_failures()
    return factors


def _factorize_list(
    matrices: Sequence[AnyArray], kind: str, ordering: ArrayLike, backend: str
) -> BatchFactor:
    """Factors of matrices with patterns of their own."""
    options = {"kind": kind, "check_finite": False, "ordered": True}
    canonical = [to_canonical(A, None, **options) for A in matrices]
    by_pattern: dict[object, list[int]] = {}
    for i, matrix in enumerate(canonical):
        key = (
            matrix.n,
            matrix.method,
            matrix.dtype,
            matrix.indptr.tobytes(),
            matrix.indices.tobytes(),
        )
        by_pattern.setdefault(key, []).append(i)
    groups: list[Group] = []
    lost: dict[int, Exception] = {}
    for places in by_pattern.values():
        members = [canonical[i] for i in places]
        choices = kind, ordering, backend
        try:
            analysis = _analyzed(_first_finite(members), *choices)
        except SingularMatrixError as error:
            lost |= dict.fromkeys(places, error)
            continue
        values = np.stack([member.data for member in members])
        orders = [m.order or ValueMap.by_columns(m.indices.size) for m in members]
        groups.append(Group(_systems(analysis, values), np.array(places, np.int64), orders))
    return BatchFactor(groups, len(canonical), True, lost)


def _analyzed(matrix: Canonical, kind: str, ordering: ArrayLike, backend: str) -> Analyzed:
    """The analysis by which a matrix is factorized in the end, with columns where they belong."""
    options = {"kind": kind, "ordering": ordering, "backend": backend}
    analysis = analyze(matrix.A, reuse=_REUSE, **options)
    try:
        return Factor(matrix, analysis).analysis
    except (FrontalError, ValueError):
        return analysis


def _systems(analysis: Analyzed, values: np.ndarray) -> Systems:
    """Factorized systems of one pattern, where there is enough to do for a GPU on one."""
    return Systems(analysis, values, _engine(analysis, values.shape[0]))


def _engine(analysis: Analyzed, count: int) -> type[DeviceSystems] | type[HostSystems]:
    """What computes with so many systems."""
    where = resolved(analysis.backend, analysis.flops * count)
    return DeviceSystems if where == "gpu" else HostSystems


def _first_finite(members: list[Canonical]) -> Canonical:
    """The first matrix of numbers; its pattern with ones on the diagonal where there is none."""
    for matrix in members:
        try:
            matrix.refuse_non_finite()
        except NonFiniteInputError:
            continue
        return matrix
    first = members[0]
    return replace(first, data=np.ones_like(first.data))
