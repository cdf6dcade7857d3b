"""The order that an assembly tree gives, as minimum degree leaves it behind."""

from __future__ import annotations

import numpy as np

from .._jit import jit

NONE = np.int32(-1)
_VARIABLE = 65535  # comes behind fronts of any size


@jit
def _sizes_and_parents(node, size, parent):
    """Front of each element, as far as it matters, and parents inside the same class."""
    for i in range(node.size):
        weight, above = node[i].weight, node[i].parent
        size[i] = min(weight + node[i].degree, _VARIABLE - 1) if weight > 0 else _VARIABLE
        parent[i] = above if above >= 0 and node[above].group == node[i].group else -1


@jit
def _postorder(parent, order):
    """Nodes in a postorder of their trees, roots and children in the given order."""
    n = order.size
    head, sibling = np.full(n, -1, np.int32), np.empty(n, np.int32)
    for k in range(n - 1, -1, -1):
        i = order[k]
        if parent[i] >= 0:
            sibling[i] = head[parent[i]]
            head[parent[i]] = i
    post, stack = np.empty(n, np.int32), np.empty(n, np.int32)
    done = 0
    for root in order:
        if parent[root] >= 0:
            continue
        stack[0] = root
        top = 1
        while top > 0:
            i = stack[top - 1]
            child = head[i]
            if child < 0:
                top -= 1
                post[done] = i
                done += 1
            else:
                head[i] = sibling[child]
                stack[top] = child
                top += 1
    return post


def assembly_postorder(node: np.ndarray, classes: int) -> np.ndarray:
    """Postorder of the assembly tree, class by class, dense nodes at the end of their class.

    Below an element come elements, the largest front last, so that its contribution waits for no
    other, and then the variables eliminated with it.
    """
    size, parent = np.empty(node.size, np.uint16), np.empty(node.size, np.int32)
    _sizes_and_parents(node, size, parent)
    order = np.argsort(size, kind="stable").astype(np.int32)
    if classes > 1:
        order = order[np.argsort(node["group"][order], kind="stable")]
    return _postorder(parent, order)
