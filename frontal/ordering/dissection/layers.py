"""Separators from layers of a breadth-first search, refined in a band of layers.

The nodes at one distance from a node at the rim of a mesh separate the nearer nodes from the
farther ones. No graph is coarsened: a separator costs one or two searches.

References: A. George, J. W. H. Liu, SIAM J. Numer. Anal. 15 (1978), for the layers; C. Chevalier,
F. Pellegrini, Parallel Comput. 34 (2008), for refinement in a band.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compile.jit import allocating, inner, jit
from .bisect import MAX_SIDE_SHARE
from .graph import SEPARATOR, Weighted
from .improve import SideLimits, make_work, refine
from .start import ALL

MAX_SEARCHES = 3  # for a separator
BAND_LAYERS = 3  # layers on either side into which a separator may move
MARKS = MAX_SEARCHES + 1  # distinct marks per node that a part uses
MIN_SIDE_SHARE = 0.1  # weight of a side over that of the part
MAX_MESH_SEPARATOR = 4.0  # weight of a separator over n^(2/3): above it the graph is no mesh
PLANE_SEPARATOR = 1.05  # weight over sqrt(n) of a separator of a plane square: light enough
MIN_REDUCTION = 0.5  # weight of a separator over the one above that makes another search useless
MIN_FACE = 0.1  # weight of the last layer over the best layer if the part ends with a face


class Marked(NamedTuple):
    """A weighted graph whose nodes have marks of their parts (see `cut`), and a workspace."""

    indptr: np.ndarray
    indices: np.ndarray
    weights: np.ndarray
    mark: np.ndarray
    place: np.ndarray


class _LevelSearch(NamedTuple):
    """Layers of a breadth-first search.

    Layer k is ``queue[first[k] : first[k + 1]]``; all layers before it weigh ``below[k]``.
    """

    queue: np.ndarray
    first: np.ndarray
    below: np.ndarray


@jit
def sort_dense(indptr, max_degree, mark, names):
    """Fill `names` with all nodes, those with more than `max_degree` neighbours at the end.

    Dense nodes get the mark -1, all other nodes 0. Return the number of other nodes, and the
    position of the first of them with the fewest neighbours: a corner in grids.
    """
    first, last, fewest, corner = 0, names.size, names.size, 0
    for v in range(names.size):
        degree = indptr[v + 1] - indptr[v]
        if degree > max_degree:
            last -= 1
            names[last], mark[v] = v, -1
        else:
            names[first], mark[v] = v, 0
            if degree < fewest:
                fewest, corner = degree, first
            first += 1
    return first, corner


@inner
def _find_layers(graph, stamp, names, starts, search, stop):
    """Append the nodes with mark `stamp` to a queue, layer by layer, with new mark ``stamp + 1``.

    Layer 0 is `starts`. An empty layer separates components. Return the number of layers, or 0
    once ``stop[0]`` is nonzero.
    """
    indptr, indices, weights, mark, _ = graph
    queue, first, below = search
    count = scan = begin = 0
    end, heavy = starts.size, np.int64(0)
    first[0] = 0
    for k in range(end):
        queue[k], mark[starts[k]] = starts[k], stamp + 1
    while stop[0] == 0:
        below[count], tail = heavy, end
        for q in range(begin, end):
            v = queue[q]
            heavy += weights[v]
            for p in range(indptr[v], indptr[v + 1]):
                u = indices[p]
                if mark[u] == stamp:
                    mark[u] = stamp + 1
                    queue[tail] = u
                    tail += 1
        count += 1
        first[count], below[count] = end, heavy
        begin, end = end, tail
        if end > begin:
            continue
        if end == names.size:
            return count
        while mark[names[scan]] != stamp:
            scan += 1
        count += 1
        first[count], queue[end], mark[names[scan]] = end, names[scan], stamp + 1
        end += 1
    return 0


@inner
def _best_layer(below, count):
    """Return the layer of least weight relative to its lighter side, or -1, and that ratio."""
    best, best_share = np.int64(-1), np.inf
    for k in range(1, count):
        side = min(below[k], below[count] - below[k + 1])
        share = (below[k + 1] - below[k] + 1) / max(side, 1)
        if side > MIN_SIDE_SHARE * below[count] and share < best_share:
            best, best_share = k, share
    return best, best_share


@allocating
def _next_starts(search, count, best, turn):
    """Return the start of the next search: one node or all nodes of the last layer.

    If the last layer is a face, the second search begins at one node of it. The third search
    begins with the whole opposite face, so that its layers are parallel to that face.
    """
    queue, first, below = search
    last, n = first[count - 1], queue.size
    end, layer_weight = below[count] - below[count - 1], below[best + 1] - below[best]
    face = best >= 0 and end >= MIN_FACE * layer_weight
    if face and turn > 0:
        return queue[last:].copy()
    at = last + (n - last) // 4 if face or turn > 0 else n - 1
    return queue[at : at + 1].copy()


@allocating
def _band(graph, stamp, queue, low, high, middle):
    """Return the graph of a band of layers, ``queue[low:high]``, and two nodes for the rest.

    The last two nodes represent all nodes before and after the band. The neighbours outside the
    band of a node at q belong to the latter if q is at least `middle`, the end of the separator.
    """
    indptr, indices, weights, mark, place = graph
    size, capacity = high - low, 0
    for q in range(low, high):
        place[queue[q]] = q
        capacity += indptr[queue[q] + 1] - indptr[queue[q]]
    begin, near = np.empty(size + 3, np.int64), np.empty(capacity, np.int32)
    node = np.zeros(size + 2, np.int32)
    begin[0] = e = 0
    for q in range(low, high):
        v = queue[q]
        for p in range(indptr[v], indptr[v + 1]):
            u = indices[p]
            if mark[u] == stamp:
                r = place[u]
                inside = low <= r < high and queue[r] == u
                near[e] = r - low if inside else size + (q >= middle)
                e += 1
        begin[q - low + 1], node[q - low] = e, weights[v]
    begin[size + 1] = begin[size + 2] = e
    return Weighted(begin, near[:e], near[:0], node)


@allocating
def _refined(graph, first, below, k, low, count):
    """Refine layer k as a separator inside a band; return the sides of the nodes and weights."""
    size = graph.weight.size - 2
    where, weight = np.empty(size + 2, np.int8), np.empty(3, np.int64)
    for q in range(size):
        where[q] = 0 if q + low < first[k] else SEPARATOR if q + low < first[k + 1] else 1
    where[size], where[size + 1] = 0, 1
    weight[0], weight[1] = below[k], below[count] - below[k + 1]
    weight[SEPARATOR] = below[k + 1] - below[k]
    # nodes outside the band do not move
    graph.weight[size], graph.weight[size + 1] = weight[0], weight[1]
    max_weight = max(np.int64(MAX_SIDE_SHARE * below[count]), max(weight[0], weight[1]))
    refine(graph, where, weight, make_work(size + 2), SideLimits(max_weight, np.int64(ALL)))
    return where, weight


@inner
def _sort_out(queue, low, high, where, out, mark, stamp):
    """Sort nodes into `out`: side 0, side 1, separator; return the sizes of both sides.

    Each side gets the mark of a new part, ``MARKS`` times its position; the separator gets -1.
    """
    size0, size1 = np.int64(low), np.int64(queue.size - high)
    for q in range(low, high):
        size0 += where[q - low] == 0
        size1 += where[q - low] == 1
    first, second, third = np.int64(0), size0, size0 + size1
    for q in range(queue.size):
        v, side = queue[q], where[q - low] if low <= q < high else np.int8(q >= high)
        if side == 0:
            mark[v] = stamp
            out[first] = v
            first += 1
        elif side == 1:
            mark[v] = stamp + MARKS * size0
            out[second] = v
            second += 1
        else:
            mark[v] = -1
            out[third] = v
            third += 1
    return size0, size1


@jit
def cut(graph, begin, names, start, above, stop):
    """Separate a part of a graph.

    Parameters
    ----------
    graph : Marked
        `mark` is ``MARKS * begin`` for all nodes of the part; no other node has a mark from there
        up to ``MARKS * (begin + m)``. On return the same holds for each side; the separator has -1.
    begin : int
        Position of the part in the elimination order.
    names : (m,) int32 array
        Nodes of the part.
    start : int
        A node of the part, if possible at the rim.
    above : int
        Weight of the separator that cut off the part.
    stop : (1,) int32 array
        Nonzero once the run is cancelled.

    Returns
    -------
    names : (m,) int32 array
        The same nodes: side 0, side 1, separator.
    size0, size1 : int
        Nodes of both sides; 0 if no separator is light enough.
    weight : int
        Weight of the separator.
    """
    n, stamp = names.size, MARKS * begin
    queue, best_queue = np.empty(n, np.int32), np.empty(n, np.int32)
    first, below = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    layers, sums, layer, layered = first[:0], below[:0], np.int64(0), np.int64(0)
    best_share, starts = np.inf, np.full(1, start, np.int32)
    for turn in range(MAX_SEARCHES):
        search = _LevelSearch(queue, first, below)
        count = _find_layers(graph, stamp, names, starts, search, stop)
        if count == 0:
            break
        stamp += 1
        k, share = _best_layer(below, count)
        starts = _next_starts(search, count, k, turn)
        if k >= 0 and share < best_share:
            best_share, layer, layered = share, k, count
            layers, sums = first[: count + 1].copy(), below[: count + 1].copy()
            queue, best_queue = best_queue, queue
            separator, total = sums[k + 1] - sums[k], np.float64(sums[count])
            if separator <= max(PLANE_SEPARATOR * np.sqrt(total), MIN_REDUCTION * above):
                break
    if stop[0] != 0 or best_share == np.inf:
        return names, 0, 0, 0
    low = layers[max(layer - BAND_LAYERS, 0)]
    high = layers[min(layer + BAND_LAYERS + 1, layered)]
    band = _band(graph, stamp, best_queue, low, high, layers[layer + 1])
    where, weight = _refined(band, layers, sums, layer, low, layered)
    if weight[SEPARATOR] > MAX_MESH_SEPARATOR * np.float64(sums[layered]) ** (2 / 3):
        return names, 0, 0, 0
    size0, size1 = _sort_out(best_queue, low, high, where, queue, graph.mark, MARKS * begin)
    return queue, size0, size1, weight[SEPARATOR]
