"""The order that an assembly tree gives, as minimum degree leaves it behind."""

from __future__ import annotations

import numpy as np

from .._jit import jit
from .etree import inverse, postorder


@jit
def _postorder(parent):
    return postorder(parent)


def assembly_postorder(node: np.ndarray) -> np.ndarray:
    """Postorder of the assembly tree, class by class, dense nodes at the end of their class.

    Below an element come elements, the largest front last, so that its contribution waits for no
    other, and then the variables eliminated with it.
    """
    weight, group = node["weight"], node["group"]
    front = np.where(weight > 0, np.minimum(weight + node["degree"], 65534), 65535)
    order = np.argsort(front.astype(np.uint16), kind="stable").astype(np.int32)
    if group.any():
        order = order[np.argsort(group[order], kind="stable")]
    return order[_postorder(_parents_in_order(node, order))]


@jit
def _parents_in_order(node, order):
    """Place of the parent of each node in an order, if that is of the same class."""
    rank = inverse(order)
    parent = np.empty(order.size, np.int32)
    for k in range(order.size):
        above = node[order[k]].parent
        inside = above >= 0 and node[above].group == node[order[k]].group
        parent[k] = rank[above] if inside else -1
    return parent
