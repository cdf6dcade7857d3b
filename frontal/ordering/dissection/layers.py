"""Separators that are layers of a breadth first search, moved a little to where they are lighter.

All nodes that are equally far from one node at the rim of a mesh are between those that are nearer
and those that are farther. Nothing is coarsened for that: a separator costs a search or two.

References: A. George, J. W. H. Liu, SIAM J. Numer. Anal. 15 (1978), for the layers; C. Chevalier,
F. Pellegrini, Parallel Comput. 34 (2008), for refinement in a band.
"""

from __future__ import annotations

import numpy as np

from ...compile.jit import allocating, inner, jit
from .bisect import LARGEST_SIDE
from .graph import SEPARATOR, Weighted
from .improve import make_work, refine
from .start import ALL

SEARCHES = 3  # at most
BAND = 3  # layers on either side to which a separator may move
MARKS = SEARCHES + 1  # numbers that a part has for its nodes
MIN_SIDE_WEIGHT = 0.1  # of the weight
HEAVY = 4.0  # times n^(2/3): a separator of no mesh
LIGHT = 1.05  # times sqrt(n): one that is as light as in a plane square
LIGHTER = 0.5  # of the one above: another search would find none that is much lighter
FACE = 0.1  # of the best layer: where the last one has as much, the part ends with a face


@jit
def sort_dense(indptr, max_degree, mark, names):
    """All nodes, those with more than `most` neighbours at the end.

    The mark of these is -1, that of all others 0. Returns how many these are, and the place of
    the first of them with fewest neighbours: a corner of grids.
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
def _search(indptr, indices, weights, mark, stamp, names, starts, queue, first, below, stop):
    """Put the nodes that are marked `own` into a queue, layer by layer, and mark them anew.

    Layer k is ``queue[first[k] : first[k + 1]]``, the first one `starts`; all before it weigh
    ``below[k]``. Between components there is an empty one. Returns how many there are; 0 if nobody
    waits any more.
    """
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
    """The layer lightest over the lighter side, -1 if there is none; and what it is over that."""
    best, best_share = np.int64(-1), np.inf
    for k in range(1, count):
        side = min(below[k], below[count] - below[k + 1])
        share = (below[k + 1] - below[k] + 1) / max(side, 1)
        if side > MIN_SIDE_WEIGHT * below[count] and share < best_share:
            best, best_share = k, share
    return best, best_share


@allocating
def _next_starts(queue, first, below, count, best, turn):
    """Where the next search begins: in the last layer, with all of it if it is a face.

    The second search of a part that ends with faces begins at one node of one of them: the third
    comes back from the face that is opposite to it, by layers that are parallel to it.
    """
    last, n = first[count - 1], queue.size
    end, layer_weight = below[count] - below[count - 1], below[best + 1] - below[best]
    face = best >= 0 and end >= FACE * layer_weight
    if face and turn > 0:
        return queue[last:].copy()
    at = last + (n - last) // 4 if face or turn > 0 else n - 1
    return queue[at : at + 1].copy()


@allocating
def _band(indptr, indices, weights, mark, stamp, place, queue, low, high, middle):
    """The graph of a band of layers, ``queue[low:high]``, and of all nodes before and after it.

    These are its last two nodes. Which of them a neighbour outside of the band belongs to is told
    by `middle`, the first place behind the separator.
    """
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
    """Sides of a band's nodes, refined, of a separator that was layer k; and their weights."""
    size = graph.weight.size - 2
    where, weight = np.empty(size + 2, np.int8), np.empty(3, np.int64)
    for q in range(size):
        where[q] = 0 if q + low < first[k] else SEPARATOR if q + low < first[k + 1] else 1
    where[size], where[size + 1] = 0, 1
    weight[0], weight[1] = below[k], below[count] - below[k + 1]
    weight[SEPARATOR] = below[k + 1] - below[k]
    # what is not in the band goes nowhere
    graph.weight[size], graph.weight[size + 1] = weight[0], weight[1]
    max_weight = max(np.int64(LARGEST_SIDE * below[count]), max(weight[0], weight[1]))
    refine(graph, where, weight, make_work(size + 2), max_weight, ALL)
    return where, weight


@inner
def _sort_out(queue, low, high, where, out, mark, stamp):
    """Nodes of side 0, then of side 1, then of the separator; the sizes of both sides.

    They are marked as what they belong to: a part is marked by where its nodes begin in all parts.
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
def cut(indptr, indices, weights, mark, place, begin, names, start, above, stop):
    """Separate a part of a graph.

    Parameters
    ----------
    indptr, indices, weights : int64, int32, int32 arrays
        The whole graph.
    mark : (n,) int32 array
        It is ``MARKS * begin`` for all nodes of the part, and for no others from there on up to
        ``MARKS * (begin + m)``. So it is for each side of it afterwards, and -1 in the separator.
    place : (n,) int32 array
        Room.
    begin : int
        Place of the part among all.
    names : (m,) int32 array
        Its nodes.
    start : int
        One of them, if possible at the rim.
    above : int
        Weight of the separator that has made the part.
    stop : (1,) int32 array
        Not zero once nobody waits for the result any more.

    Returns
    -------
    names : (m,) int32 array
        The same nodes, side by side, and then the separator.
    zero, one : int
        Nodes of both sides; 0 where no separator is light enough.
    weight : int
        Of the separator.
    """
    n, stamp = names.size, MARKS * begin
    queue, best_queue = np.empty(n, np.int32), np.empty(n, np.int32)
    first, below = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    layers, sums, layer, layered = first[:0], below[:0], np.int64(0), np.int64(0)
    best_share, starts = np.inf, np.full(1, start, np.int32)
    for turn in range(SEARCHES):
        args = indptr, indices, weights, mark, stamp
        count = _search(*args, names, starts, queue, first, below, stop)
        if count == 0:
            break
        stamp += 1
        k, share = _best_layer(below, count)
        starts = _next_starts(queue, first, below, count, k, turn)
        if k >= 0 and share < best_share:
            best_share, layer, layered = share, k, count
            layers, sums = first[: count + 1].copy(), below[: count + 1].copy()
            queue, best_queue = best_queue, queue
            layer_weight = sums[k + 1] - sums[k]
            if layer_weight <= max(LIGHT * np.sqrt(np.float64(sums[count])), LIGHTER * above):
                break
    if stop[0] != 0 or best_share == np.inf:
        return names, 0, 0, 0
    low, high = layers[max(layer - BAND, 0)], layers[min(layer + BAND + 1, layered)]
    middle = layers[layer + 1]
    graph = _band(indptr, indices, weights, mark, stamp, place, best_queue, low, high, middle)
    where, weight = _refined(graph, layers, sums, layer, low, layered)
    if weight[SEPARATOR] > HEAVY * np.float64(sums[layered]) ** (2 / 3):
        return names, 0, 0, 0
    size0, size1 = _sort_out(best_queue, low, high, where, queue, mark, MARKS * begin)
    return queue, size0, size1, weight[SEPARATOR]
