"""Halo minimum degree: order a part of a graph with the degrees that it has in the whole graph.

Reference: F. Pellegrini, J. Roman, P. Amestoy, Concurrency: Pract. Exper. 12 (2000).
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit
from .amd import classes_of, eliminate, eliminated
from .amd_tree import assembly_order, column_tree
from .graph import weighted_degree
from .quotient import NODE, NONE


def amd_inside(indptr: np.ndarray, indices: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Order the first m nodes as `amd`; later nodes count in degrees and are never eliminated.

    Parameters
    ----------
    indptr, indices
        As in `amd`.
    classes : (m,) int array
        `constraint` of `amd` for the first m nodes.

    Returns
    -------
    (m,) int32 array
        ``perm[k]`` is the node eliminated k-th.
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
    node, members = np.zeros(n, NODE), np.empty(n, np.int32)
    spared = total = np.int64(0)
    for i in range(n):
        members[i], node[i].group = i, i >= m
        total += weights[i]
        spared += weights[i] * (i >= m)
    head = np.full(total + 1, NONE)
    buckets = 1
    while buckets <= min(n, (1 << 16) - 1):
        buckets *= 2
    bucket = np.full(buckets, NONE)
    work = np.empty(indices.size + indices.size // 5 + n + 1, np.uint32)
    first = np.array([0, m, n])
    reach = weighted_degree(indptr, indices, weights)
    eliminate(
        indptr,
        indices,
        node,
        work,
        weights,
        reach,
        head,
        bucket,
        members,
        first,
        total,
        True,
        spared,
    )
    perm, pivots, above, weight, degree = assembly_order(node, members, first)
    parent, counts = column_tree(pivots, above, weight, degree)
    columns = parent.size - spared
    return perm[:m], parent[:columns], counts[:columns]
