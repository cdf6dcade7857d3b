"""Halo minimum degree: order a part of a graph with the degrees that it has in the whole graph.

Reference: F. Pellegrini, J. Roman, P. Amestoy, Concurrency: Pract. Exper. 12 (2000).
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit
from .amd import classes_of, eliminate, eliminated
from .amd_tree import assembly_order, column_tree


def amd_inside(indptr: np.ndarray, indices: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the order of the first m nodes as `amd`, with the m constraint `classes`.

    Later nodes count in degrees and are never eliminated.
    """
    m, n = classes.size, indptr.size - 1
    group = np.full(n, classes.max(initial=-1) + 1, np.int32)
    group[:m] = classes
    records = eliminated(indptr, indices, None, classes_of(group, n), -1, True, n - m)
    return assembly_order(*records)[0][:m]


@jit
def halo_amd_tree(indptr, indices, weights, m):
    """Order the first m nodes as `amd_tree`; later nodes only count in degrees.

    It is one compiled call, so that a thread waits for the GIL once per part.
    """
    n = indptr.size - 1
    members, is_outside = np.arange(n).astype(np.int32), np.zeros(n, np.int32)
    is_outside[m:] = 1
    spared = weights[m:].astype(np.int64).sum()
    first = np.array([0, m, n])
    groups = is_outside, members, first
    node = eliminate(indptr, indices, weights, groups, -1.0, True, spared)
    perm, pivots, above, weight, degree = assembly_order(node, members, first)
    parent, counts = column_tree(pivots, above, weight, degree)
    columns = parent.size - spared
    return perm[:m], parent[:columns], counts[:columns]
