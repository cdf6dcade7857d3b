"""Nested dissection whose leaves and separators are ordered by constrained minimum degree.

METIS returns a permutation without its separators. They are recovered from the elimination tree of
the permutation: once both its sides are eliminated, the remaining separator is a clique, hence
a chain of the tree above the trees of the sides. Leaves and separators become the classes of
a constrained minimum degree ordering, which reorders inside each class and keeps the dissection.

Reference: Y. Chen, T. A. Davis, W. W. Hager, S. Rajamanickam, Algorithm 887, ACM TOMS 35 (2008),
section on nested dissection (CHOLMOD's ``nesdis``).
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit
from .amd import amd
from .etree import EliminationTree
from .graph import Graph, dense_limit

LEAF = 200  # most columns of a bottom subtree that is one class (nd_small of CHOLMOD)


@jit
def _tree_classes(parent, leaf):
    """Return the class of each column of a postordered tree, numbered from the leaves up.

    A maximal subtree of at most `leaf` columns is one class. A column above joins the class of
    its parent, unless the parent has two or more child subtrees larger than a leaf.
    """
    n = parent.size
    size = np.ones(n, np.int32)
    branches = np.zeros(n, np.int32)
    for j in range(n):
        if parent[j] >= 0:
            size[parent[j]] += size[j]
            branches[parent[j]] += size[j] > leaf
    class_of = np.empty(n, np.int32)
    count = 0
    for j in range(n - 1, -1, -1):
        above = parent[j]
        if above >= 0 and (size[above] <= leaf or (size[j] > leaf and branches[above] == 1)):
            class_of[j] = class_of[above]
        else:
            class_of[j] = count
            count += 1
    return (count - 1 - class_of).astype(np.int32)


def separator_classes(tree: EliminationTree, leaf: int = LEAF) -> np.ndarray:
    """Recover leaves and separators of a dissection from its order.

    Parameters
    ----------
    tree : EliminationTree
        Tree of a nested dissection of n nodes.
    leaf : int
        Most columns of a leaf.

    Returns
    -------
    (n,) int32 array
        Class of each node: a leaf or a separator, with a smaller number than the separators above.

    Examples
    --------
    A path cut at its middle node, then each half at its middle node:

    >>> import scipy.sparse as sp
    >>> from frontal.ordering.graph import adjacency
    >>> path = adjacency(sp.diags_array([1.0] * 6, offsets=1, shape=(7, 7)))
    >>> tree = EliminationTree.from_graph(path, np.array([0, 2, 1, 4, 6, 5, 3]))
    >>> separator_classes(tree, leaf=1)
    array([0, 2, 1, 6, 3, 5, 4], dtype=int32)
    """
    class_of = np.empty_like(tree.perm)
    class_of[tree.perm] = _tree_classes(tree.parent, leaf)
    return class_of


def constrained_amd(graph: Graph, tree: EliminationTree) -> np.ndarray:
    """Reorder inside leaves and separators of a dissection; return an (n,) int32 array."""
    classes = separator_classes(tree)
    dense = dense_limit(graph) / np.sqrt(max(graph.n, 1))
    return amd(graph.indptr, graph.indices, constraint=classes, dense=dense)
