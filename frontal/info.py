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
        ``"cholesky"`` or ``"lu"``, the ordering taken, the factor's scalar type.
    backward_error : float
        max over right-hand sides of |b - A x| / (|A| |x| + |b|), infinity norm.
    componentwise_error : float
        Largest entry of |b - A x| / (|A| |x| + |b|).
    refinement_steps : int
        Corrections applied.
    perturbed_pivots : int
        Pivots of LU that were replaced because they were tiny.
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
    perturbed_pivots: int
    growth: float
    nnz_factor: int
    flops: float
    memory: int
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, object]:
        """All fields, ready for JSON."""
        return asdict(self)
