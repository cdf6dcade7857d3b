"""`frontal analyze`: the report of an analysis, and its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..symbolic.plan import front_flops
from . import show

if TYPE_CHECKING:
    from .._typing import Sparse
    from ..factor.analysis import Analysis


def report(name: str, A: Sparse, analysis: Analysis) -> show.Record:
    """Return the report of `frontal analyze` about a matrix, in types that JSON supports."""
    tried = [
        {"ordering": order, "nnz": cost.nnz, "flops": cost.flops, "height": cost.height}
        for order, cost in analysis.ordering.tried.items()
    ]
    return {
        "matrix": name,
        "n": analysis.n,
        "nnz": int(A.nnz),
        "dtype": str(analysis.dtype),
        "kind": analysis.kind,
        "method": analysis.method,
        "ordering": analysis.ordering.method,
        "fronts": analysis.n_fronts,
        "tree_depth": analysis.levels,
        "largest_front": int(np.add(*analysis.front_sizes()).max(initial=0)),
        "nnz_factor": analysis.nnz_factor,
        "flops": analysis.flops,
        "memory": analysis.memory,
        "seconds": analysis.seconds,
        "size_classes": size_classes(analysis),
        "orderings": tried,
    }


def tables(record: show.Record) -> None:
    """Show a report on stdout."""
    show.table("Analysis", ("", ""), show.described(record))
    memory = [(name, show.size(value)) for name, value in record["memory"].items()]
    show.table("Memory", ("part", "size"), memory)
    header = ("pivot columns", "fronts", "mean order", "columns", "work")
    shares = [
        {**c, "flops_share": f"{100 * c['flops_share']:.1f} %"} for c in record["size_classes"]
    ]
    if shares:
        show.table("Fronts", header, show.rows(shares))
    counts = [
        {**t, "nnz": show.count(t["nnz"]), "flops": show.count(t["flops"])}
        for t in record["orderings"]
    ]
    header = ("ordering", "nnz(L)", "flops", "height")
    show.table("Orderings tried, with their costs for Cholesky", header, show.rows(counts))
    show.table("Time", ("phase", "seconds"), show.seconds(record["seconds"]))


def size_classes(analysis: Analysis) -> list[show.Record]:
    """Return fronts by pivot columns, 1, 2, 3-4, 5-8, and so on, with their share of the work."""
    k, m = analysis.front_sizes()
    flops = front_flops(analysis.plan.start, analysis.plan.pointer)
    size = np.ceil(np.log2(np.maximum(k, 1))).astype(int)
    classes = []
    for s in np.unique(size):
        mask = size == s
        low, high = (2**s // 2 + 1 if s else 1), 2**s
        classes.append(
            {
                "pivots": str(high) if low == high else f"{low}-{high}",
                "fronts": int(mask.sum()),
                "mean_order": float((k + m)[mask].mean()),
                "columns": int(k[mask].sum()),
                "flops_share": float(flops[mask].sum() / max(flops.sum(), 1)),
            }
        )
    return classes
