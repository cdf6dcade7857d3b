"""The reports of a solve and of an inverse."""

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
