"""Subtrees of an assembly tree that are processed in parallel, and the fronts above them."""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit


@jit
def _cut_tree(parent, flops, shares):
    """Return weight and first front of each front's subtree, and the fronts above all subtrees."""
    fronts = parent.size
    weight = flops.copy()
    low = np.empty(fronts, np.int32)
    total = 0.0
    for s in range(fronts):
        low[s] = s
    for s in range(fronts):
        p = parent[s]
        if p >= 0:
            weight[p] += weight[s]
            low[p] = min(low[p], low[s])
        else:
            total += weight[s]
    is_top = np.zeros(fronts, np.bool_)
    for s in range(fronts - 1, -1, -1):
        if parent[s] < 0 or is_top[parent[s]]:
            is_top[s] = weight[s] > total / shares and low[s] < s
    return weight, low, is_top


def split_subtrees(
    parent: np.ndarray, flops: np.ndarray, shares: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cut the assembly tree into subtrees for threads.

    Subtrees of at most 1/`shares` of all flops are not cut further.

    Returns
    -------
    low, root : int32 arrays
        First and last front of each subtree (fronts are in postorder), heaviest first.
    top : int32 array
        The fronts above all subtrees, in postorder.
    """
    weight, low, is_top = _cut_tree(parent, flops, shares)
    under_top = np.append(is_top, True)[parent]  # parent -1 picks the appended entry
    root = np.nonzero(~is_top & under_top)[0]
    root = root[np.argsort(-weight[root], kind="stable")]
    return low[root], root.astype(np.int32), np.nonzero(is_top)[0].astype(np.int32)
