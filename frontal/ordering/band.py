"""Orders of band matrices: natural, and reverse Cuthill-McKee.

Their elimination trees are chains, which have no parallelism, and each front assembles nearly all
of the one before. With half the flops of dissection (bcsstk16) they take twice the time here, so
``"auto"`` does not try them.

Reference: E. Cuthill, J. McKee, ACM National Conference (1969); A. George, J. W. H. Liu, Computer
Solution of Large Sparse Positive Definite Systems (1981), chapter 4.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .graph import Graph


def natural(graph: Graph) -> np.ndarray:
    """Return the identity permutation: (n,) int32 array."""
    return np.arange(graph.n, dtype=np.int32)


def rcm(graph: Graph) -> np.ndarray:
    """Return the reverse Cuthill-McKee order: (n,) int32 array, the node eliminated k-th."""
    if not graph.nnz:
        return natural(graph)  # SciPy's routine needs an edge
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # imports all of sparse.linalg

    pattern = (np.ones(graph.nnz, np.int8), graph.indices, graph.indptr)
    matrix = sp.csr_array(pattern, shape=(graph.n, graph.n))
    return reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int32)
