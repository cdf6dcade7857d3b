"""What a solve reports about itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class SolveInfo:
    """Where and how a system was solved, and how well.

    Attributes
    ----------
    backend, device : str
        ``"cpu"`` or ``"gpu"``, and what it ran on.
    method, ordering, dtype : str
        ``"cholesky"`` or ``"lu"``, the ordering taken, the factor's scalar type: single
        where ``precision="mixed"`` was enough.
    backward_error : float
        max over right-hand sides of |b - A x| / (|A| |x| + |b|), infinity norm.
    componentwise_error : float
        Largest entry of |b - A x| / (|A| |x| + |b|).
    refinement_steps : int
        Corrections applied.
    refined : bool
        The solution was refined as far as needed, and judged; not with ``refine=0``, which gives no
        warnings.
    condition : float or None
        By how much the relative error of x may exceed the precision: an estimate of
        | |A^-1| (|A||x| + |b|) | / |x|, infinity norm. None if not refined, or A is singular.
    forward_error : float or None
        Estimate of |x - x_true| / |x|, infinity norm: `condition` times the backward error or the
        precision, at most 1. None where `condition` is.
    perturbed_pivots : int
        Pivots that were replaced because they were tiny.
    null_pivots : int
        n less the rank to working precision, where ``singular`` allows a singular matrix.
    growth : float
        Largest entry of the factors over the largest of the (scaled) matrix.
    nnz_factor : int
        Entries of the factors.
    flops : float
        Multiplications and additions of the factorization.
    memory : int
        Bytes of the factors.
    seconds : dict of str to float
        Time of each phase.
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
        """All fields, ready for JSON."""
        return asdict(self)
