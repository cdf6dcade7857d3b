"""Nested dissection whose leaves and separators are ordered by constrained minimum degree.

METIS gives a permutation and keeps its separators to itself. They show in the elimination tree of
that permutation: what is left of a separator when both its sides are eliminated is a clique, hence
a chain of the tree, on top of the trees of the sides. Leaves and separators become the classes of
a constrained minimum degree ordering, which is free inside a class and keeps the dissection.

Reference: Y. Chen, T. A. Davis, W. W. Hager, S. Rajamanickam, Algorithm 887, ACM TOMS 35 (2008),
section on nested dissection (CHOLMOD's ``nesdis``).
"""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit
from .amd import amd
from .etree import EliminationTree
from .graph import Graph, dense_limit

LEAF = 200  # columns of a bottom subtree that is one class (nd_small of CHOLMOD)


@jit
def _tree_classes(parent, leaf):
    """Class of each column of a postordered tree, numbered from the leaves up.

    A maximal subtree of at most `leaf` columns is one class. Above, a column joins the class of
    its parent unless the tree branches there into two or more subtrees larger than a leaf.
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
        Of a nested dissection of n nodes.
    leaf : int
        Most columns of a leaf.

    Returns
    -------
    (n,) int32 array
        Class of each node: a leaf or a separator, below the number of the separators above it.

    Examples
    --------
    A path cut at its middle node, then the halves at theirs:

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
    """Order anew inside leaves and separators of a dissection; (n,) int32 array."""
    classes = separator_classes(tree)
    dense = dense_limit(graph) / np.sqrt(max(graph.n, 1))
    return amd(graph.indptr, graph.indices, constraint=classes, dense=dense)
