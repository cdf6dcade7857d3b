"""Matrices of graphs and circuits: irregular, with a few nodes of high degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from .._typing import Sparse
from .tensor import csc

if TYPE_CHECKING:
    import networkx as nx


def random_geometric(
    n: int, degree: float = 10.0, dimensions: int = 3, seed: int = 0
) -> sp.csc_array:
    """Return the adjacency matrix of random points in the unit cube, joined if they are close.

    Parameters
    ----------
    n : int
        Number of points.
    degree : float
        Mean number of neighbours of a point that is not near the boundary.
    dimensions : int
        1, 2 or 3.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n, n) csc_array of float64
        Symmetric, ones, no diagonal.

    Examples
    --------
    >>> W = random_geometric(500, degree=8)
    >>> bool(6 < W.nnz / 500 < 8)
    True
    """
    from scipy.spatial import KDTree

    points = np.random.default_rng(seed).random((n, dimensions))
    ball = {1: 2.0, 2: np.pi, 3: 4 * np.pi / 3}[dimensions]
    radius = (degree / (ball * max(n, 1))) ** (1 / dimensions)
    i, j = KDTree(points).query_pairs(radius, output_type="ndarray").reshape(-1, 2).T
    W = sp.coo_array((np.ones(i.size), (i, j)), shape=(n, n))
    return csc(W + W.T)


def graph_laplacian(graph: nx.Graph | Sparse, shift: float = 1.0) -> sp.csc_array:
    """Return the Laplacian of a weighted graph, shifted: ``D - W + shift I``.

    Symmetric positive definite for ``shift > 0``; the smallest eigenvalue is then `shift`.

    Parameters
    ----------
    graph : networkx graph, or (n, n) sparse matrix or array
        Undirected; weights not negative. The diagonal of a matrix is ignored.
    shift : float
        Number added to the diagonal.

    Returns
    -------
    (n, n) csc_array of float64

    Examples
    --------
    >>> import networkx
    >>> graph_laplacian(networkx.path_graph(3), shift=0).toarray()
    array([[ 1., -1.,  0.],
           [-1.,  2., -1.],
           [ 0., -1.,  1.]])
    """
    if not sp.issparse(graph):
        import networkx

        graph = networkx.to_scipy_sparse_array(graph, dtype=float, format="csc")
    W = sp.csc_array(graph, dtype=float)
    W = sp.csc_array(sp.triu(W, 1) + sp.tril(W, -1))
    return csc(sp.diags_array(W.sum(axis=0) + shift) - W)


def circuit(n: int, hubs: int = 3, seed: int = 0) -> sp.csc_array:
    """Return the modified nodal analysis of a random circuit: ``[[G, B], [B^T, 0]]``.

    n nodes with random conductances between near nodes and between a few far ones; each of the
    `hubs` (supply rails) is connected to every fiftieth node; transistors, whose current depends on
    the voltage of a third node, make G unsymmetric; each of n // 100 voltage sources adds a row and
    a column with a zero on the diagonal. Conductances range over six decades. Regular: the
    symmetric part of G is positive definite and B has full rank.

    Parameters
    ----------
    n : int
        Nodes, at least 100.
    hubs : int
        Number of nodes with many neighbours.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n + n // 100, n + n // 100) csc_array of float64
        Unsymmetric, about 4 entries a column.

    Examples
    --------
    >>> A = circuit(1000)
    >>> A.shape, bool(4 < A.nnz / 1000 < 5)
    ((1010, 1010), True)
    """
    if n < 100:
        raise ValueError(f"n must be at least 100, not {n!r}")
    rng = np.random.default_rng(seed)
    near = rng.integers(0, n, 3 * n // 2)
    far = rng.integers(0, n, (2, n // 50))
    rail = np.repeat(rng.choice(n, hubs, replace=False), n // 50)
    i = np.concatenate([near, far[0], rail])
    j = np.concatenate([(near + rng.integers(1, 12, near.size)) % n, far[1]])
    j = np.concatenate([j, rng.integers(0, n, rail.size)])
    g = 10.0 ** rng.uniform(-6, 0, i.size)
    W = sp.coo_array((g, (i, j)), shape=(n, n))
    G = graph_laplacian(W + W.T, shift=0.0)
    # a transistor: the gate changes the current at the drain; the diagonal keeps G definite
    drain, gate = rng.integers(0, n, n // 4), rng.integers(1, 12, n // 4)
    gate = (drain + gate) % n
    gain = 10.0 ** rng.uniform(-4, 0, drain.size)
    load = np.bincount(drain, gain, n) + np.bincount(gate, gain, n)
    transistors = sp.coo_array((-gain, (drain, gate)), shape=(n, n))
    G = G + transistors + sp.diags_array(load + 1e-6)
    sources = n // 100
    at = rng.choice(n, sources, replace=False)
    B = sp.coo_array((np.ones(sources), (at, np.arange(sources))), shape=(n, sources))
    return csc(sp.block_array([[G, B], [B.T, None]]))


def mna(n: int, sources: int | None = None, frequency: float = 0.0, seed: int = 0) -> sp.csc_array:
    """Return the modified nodal analysis of resistors, capacitors and voltage sources.

    ``[[G + i f C, B], [B^T, 0]]`` for n node voltages and the currents of voltage sources between
    two nodes, or a node and ground; B is their incidence matrix. Conductances range over eight
    decades, capacitances from nodes to ground over four. Symmetric; complex symmetric if
    `frequency` is not 0. Regular, as sources form no loop; without frequency n eigenvalues are
    positive.

    Parameters
    ----------
    n : int
        Number of nodes, at least 4.
    sources : int, optional
        Number of voltage sources, at most n / 2; ``n // 5`` by default.
    frequency : float
        f.
    seed : int
        Seed of the random numbers.

    Returns
    -------
    (n + sources, n + sources) csc_array of float64, or complex128 with a frequency

    Examples
    --------
    >>> A = mna(50)
    >>> A.shape, mna(50, frequency=1e3).dtype.kind
    ((60, 60), 'c')
    """
    sources = n // 5 if sources is None else sources
    if n < 4 or not 0 <= sources <= n // 2:
        raise ValueError("n must be at least 4 and sources at most n / 2")
    rng = np.random.default_rng(seed)
    i = np.arange(1, n).repeat(2)
    j = rng.integers(np.maximum(i - 12, 0), i)
    W = sp.coo_array((10.0 ** rng.uniform(-8, 0, i.size), (i, j)), shape=(n, n))
    grounded = 10.0 ** rng.uniform(-8, 0, n)
    G = graph_laplacian(W + W.T, shift=0.0) + sp.diags_array(grounded)
    if frequency:
        C = sp.diags_array(10.0 ** rng.uniform(-12, -8, n))
        G = sp.csc_array(G + 1j * frequency * C)
    ends = rng.permutation(n)[: 2 * sources].reshape(2, -1)  # distinct nodes, so no loop
    signs, number = np.repeat([1.0, -1.0], sources), np.tile(np.arange(sources), 2)
    to_ground = np.r_[np.zeros(sources, bool), rng.random(sources) < 0.3]
    signs, at, number = (x[~to_ground] for x in (signs, ends.ravel(), number))
    B = sp.coo_array((signs, (at, number)), shape=(n, sources))
    return csc(sp.block_array([[G, B], [B.T, None]]))
