"""Public functions for batches of systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..api import AnalysisOptions, analyzed
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

_REUSE = 100  # factorizations over which the cost of an ordering is spread, for any batch size


def factorize_batch(
    A: AnyArray,
    values: AnyArray = None,
    *,
    kind: str = "auto",
    ordering: ArrayLike = "auto",
    backend: str = "auto",
    check: bool = True,
) -> BatchFactor:
    """Factorize many matrices.

    Parameters
    ----------
    A : sparse matrix (n, n), or list of sparse matrices (n_i, n_i)
        With ``values``, a matrix that has the pattern of all. Its own values must be typical of the
        batch: they choose the method, and for LU the matching; systems for which these do not work
        are factorized one by one. Without ``values``, the matrices themselves; each pattern is
        analyzed once, with the first of its matrices.
    values : array (batch, nnz), optional
        Each row is ``A.data`` of one matrix, in the order in which A stores it; NumPy or CuPy.
    kind, ordering
        As for `frontal.factorize`; the same for all matrices.
    backend : {"auto", "cpu", "gpu"}
        On the CPU threads share the systems, and one thread factorizes each. On a GPU the assembly
        trees of all systems form a forest.
    check : bool
        Raise if a system has no factor; otherwise see `BatchFactor.status`.

    Returns
    -------
    BatchFactor

    Raises
    ------
    BatchError
        If matrices are singular, contain NaN, or with ``kind="spd"`` are not positive definite.
        All systems are tried first: the error names the failed ones, ``result`` holds the others.
    ValueError, TypeError, SingularMatrixError
        If A cannot be factorized, or ``values`` do not have its pattern.

    Warns
    -----
    PerformanceWarning
        If systems were factorized one by one.

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
    """Solve A_i x_i = b_i for many matrices.

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
        If systems have no solution; the error names them.

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
    """Factorize a list of matrices, grouped by pattern."""
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
        try:
            analysis = _analyzed(_first_finite(members), kind, ordering, backend)
        except SingularMatrixError as error:
            lost |= dict.fromkeys(places, error)
            continue
        values = np.stack([member.data for member in members])
        orders = [m.order or ValueMap.by_columns(m.indices.size) for m in members]
        groups.append(Group(_systems(analysis, values), np.array(places, np.int64), orders))
    return BatchFactor(groups, len(canonical), True, lost)


def _analyzed(matrix: Canonical, kind: str, ordering: ArrayLike, backend: str) -> Analyzed:
    """Return the analysis, with fronts, after a trial factorization.

    It has the final method, and delayed pivots are moved up.
    """
    options = AnalysisOptions(kind, ordering, backend, _REUSE, alone=False)
    analysis = analyzed(matrix.A, options).frontal
    try:
        return Factor.from_matrix(matrix, analysis).analysis
    except (FrontalError, ValueError):
        return analysis


def _systems(analysis: Analyzed, values: np.ndarray) -> Systems:
    """Return factorized systems of one pattern, on a GPU if there are enough operations."""
    return Systems(analysis, values, _engine(analysis, values.shape[0]))


def _engine(analysis: Analyzed, count: int) -> type[DeviceSystems] | type[HostSystems]:
    """Return the engine for `count` systems."""
    where = resolved(analysis.backend, analysis.flops * count)
    signed = analysis.symbolic.method.signed  # the device has no engine for these
    return DeviceSystems if where == "gpu" and not signed else HostSystems


def _first_finite(members: list[Canonical]) -> Canonical:
    """Return the first finite matrix; without one, the first pattern with all values one."""
    for matrix in members:
        try:
            matrix.refuse_non_finite()
        except NonFiniteInputError:
            continue
        return matrix
    first = members[0]
    return replace(first, data=np.ones_like(first.data))
