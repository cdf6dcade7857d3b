"""The order that minimum degree ends with: a postorder of the assembly tree that it has built."""

from __future__ import annotations

import numpy as np

from .._jit import brief
from .etree import inverse, postorder

NONE = np.int32(-1)


@brief
def _front_sizes(node):
    """Rows of the fronts of elements, as far as they fit; variables are behind them."""
    out = np.empty(node.size, np.uint16)
    for i in range(node.size):
        weight = np.int64(node[i].weight)
        out[i] = min(weight + node[i].degree, 65534) if weight > 0 else 65535
    return out


@brief
def _walk(node, order):
    """Postorder of the assembly tree, inside classes, whose siblings come in `order`."""
    place, parent = inverse(order), np.full(order.size, NONE, np.int32)
    for k in range(order.size):
        i = order[k]
        above = node[i].parent
        if above != NONE and node[above].group == node[i].group:
            parent[k] = place[above]
    return order[postorder(parent)]


def assembly_postorder(node: np.ndarray, classes: int) -> np.ndarray:
    """Postorder of the assembly tree, class by class, dense nodes at the end of their class.

    Below an element come elements, the largest front last, so that its contribution waits for no
    other, and then the variables eliminated with it.
    """
    order = np.argsort(_front_sizes(node), kind="stable").astype(np.int32)
    if classes > 1:
        order = order[np.argsort(node["group"][order], kind="stable")]
    return _walk(node, order)
