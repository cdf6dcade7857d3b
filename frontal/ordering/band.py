"""Orders that keep the matrix a band: the given one, and reverse Cuthill-McKee.

Their elimination trees are chains: nothing to do in parallel, and each front assembles nearly all
of the one before. With half the flops of dissection (bcsstk16) they take twice the time here, so
that ``"auto"`` does not try them.

Reference: E. Cuthill, J. McKee, ACM National Conference (1969); A. George, J. W. H. Liu, Computer
Solution of Large Sparse Positive Definite Systems (1981), chapter 4.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .graph import Graph


def natural(graph: Graph) -> np.ndarray:
    """The order of the matrix as it is given: (n,) int32 array."""
    return np.arange(graph.n, dtype=np.int32)


def rcm(graph: Graph) -> np.ndarray:
    """Order by reverse Cuthill-McKee: (n,) int32 array ``perm``, the node eliminated k-th."""
    if not graph.nnz:
        return natural(graph)  # SciPy's routine needs a node
    from scipy.sparse.csgraph import reverse_cuthill_mckee  # loads the whole of sparse.linalg

    pattern = (np.ones(graph.nnz, np.int8), graph.indices, graph.indptr)
    matrix = sp.csr_array(pattern, shape=(graph.n, graph.n))
    return reverse_cuthill_mckee(matrix, symmetric_mode=True).astype(np.int32)
