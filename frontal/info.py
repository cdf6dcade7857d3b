"""The reports of a solve, of a least-squares solution and of an inverse."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class SolveInfo:
    """Where and how a system was solved, and how accurately.

    Attributes
    ----------
    backend, device : str
        ``"cpu"`` or ``"gpu"``, and the name of the device.
    method, ordering, dtype : str
        ``"cholesky"``, ``"ldlt"``, ``"ldlh"`` or ``"lu"``; the ordering used; the factor's scalar
        type: single if ``precision="mixed"`` was sufficient.
    backward_error : float
        max over right-hand sides of |b - A x| / (|A| |x| + |b|), infinity norm.
    componentwise_error : float
        Largest entry of |b - A x| / (|A| |x| + |b|).
        Accepted corrections.
        Corrections applied.
    refined : bool
        The solution was refined as far as needed, and checked; False with ``refine=0``, which
        gives no warnings.
    condition : float or None
        Factor by which the relative error of x may exceed its backward error: an estimate of
        | |A^-1| (|A||x| + |b|) | / |x|, infinity norm. None if not refined, or A is singular.
    forward_error : float or None
        Estimate of |x - x_true| / |x|, infinity norm: `condition` times the backward error or the
        precision, at most 1. None if `condition` is.
    perturbed_pivots : int
        Number of pivots that were replaced because they were tiny.
    null_pivots : int
        n minus the rank to working precision, if ``singular`` allows a singular matrix.
    growth : float
        Largest modulus in the factors over the largest in the (scaled) matrix.
    nnz_factor : int
        Number of entries of the factors.
    flops : float
        Number of multiplications and additions of the factorization.
    memory : int
        Bytes of the factors.
    seconds : dict of str to float
        Wall time of each phase.
    """

    backend: str
    device: str
    method: str
    ordering: str
    dtype: str
    backward_error: float
    componentwise_error: float
    refinement_steps: int
    refined: bool
    condition: float | None
    forward_error: float | None
    perturbed_pivots: int
    null_pivots: int
    growth: float
    nnz_factor: int
    flops: float
    memory: int
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """Return all fields, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class LeastSquaresInfo:
    """How accurately a least-squares problem was solved.

    With `damp` the residual is that of [A; damp I] x = [b; 0]. Norms of A are estimates of its
    2-norm from below, so errors are overestimated.

    Attributes
    ----------
    residual_norm : float
        2-norm of the residual r; the largest over right-hand sides.
    optimality : float
        |A^H r| / (|A| |r|), 2-norms, the largest over right-hand sides: 0 for a zero residual. It
        is large without meaning for a residual that consists of rounding errors.
    backward_error : float
        Upper bound of the least relative change |E| / |A| for which x solves the problem of A + E,
        the largest over right-hand sides (Stewart 1977, and one that uses both residuals).
    norm_error : float or None
        |x - A^H w| / |x| for a vector w, the largest over right-hand sides: how far x is from the
        range of A^H, in which the solution of least norm is. None if x is unique.
    rank : int or None
        Rank of A to working precision; None with `damp`, which needs no rank.
    condition : float or None
        Estimate of the ratio of the extreme singular values of A (with `damp`: of [A; damp I]),
        after its columns, or the rows of a wide matrix, were scaled. None for deficient rank.
    forward_error : float or None
        First-order estimate of the relative error of x, in scaled unknowns: the precision, or the
        backward error, times condition + condition^2 |r| / (|A| |x|); at most 1. None if
        `condition` is.
    refinement_steps : int
        Accepted corrections, the most of a right-hand side.
    method : str
        ``"signed_ldlh"``, or ``"ldlt"`` or ``"ldlh"`` if pivots had to be searched.
    backend : str
        ``"cpu"`` or ``"gpu"``.
    nnz_factor : int
        Number of entries of the factors.
    seconds : dict of str to float
        Wall time of each phase.
    """

    residual_norm: float
    optimality: float
    backward_error: float
    norm_error: float | None
    rank: int | None
    condition: float | None
    forward_error: float | None
    refinement_steps: int
    method: str
    backend: str
    nnz_factor: int
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class InverseInfo:
    """How accurately the diagonal of an inverse was computed.

    Attributes
    ----------
    columns : tuple of int
        Columns j of A whose entries were compared with the refined solution of A x = e_j.
    error : float
        Largest difference of a diagonal entry from x_j, relative to the largest entry of x.
    positive : bool or None
        Whether all diagonal entries are positive, as those of a positive definite matrix are; None
        for other methods than Cholesky.
    seconds : float
        Wall time, without the comparison.
    """

    columns: tuple[int, ...]
    error: float
    positive: bool | None
    seconds: float
