"""Fill-reducing orderings: minimum degree, nested dissection, bands, and a choice among them.

>>> from frontal.problems import poisson2d
>>> ordering = order(adjacency(poisson2d(30)))
>>> ordering.method, ordering.cost.nnz < 12_000
('amd', True)
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from .._typing import Sparse
from ..machine.resources import CPU, thread_count
from . import auto, band, dissection, metis
from .candidates import Candidates
from .etree import Cost, EliminationTree
from .graph import Graph, adjacency
from .metis import MetisNotFoundError
from .model import CostModel

__all__ = ["METHODS", "Graph", "MetisNotFoundError", "Ordering", "adjacency", "order"]

METHODS = ("auto", "amd", "dissection", "layers", "metis", "nesdis", "rcm", "natural", "given")
_OF_GRAPH = {"rcm": band.rcm, "natural": band.natural}  # functions of a graph alone


@dataclass(frozen=True, eq=False)
class Ordering:
    """An elimination order and its cost.

    Attributes
    ----------
    perm : (n,) int32 array
        ``perm[k]`` is the node eliminated k-th.
    method : str
        The method that computed the order: one of `METHODS` except ``"auto"``.
    cost : Cost
        Entries of the Cholesky factor, flops, height of the elimination tree.
    seconds : float
        Time spent on ordering.
    tried : dict of str to Cost
        Cost of each order that was tried.
    tree : EliminationTree or None
        The tree that `cost` was computed from. An `Analysis` does not store it.
    """

    perm: np.ndarray = field(repr=False)
    method: str
    cost: Cost
    seconds: float
    tried: dict[str, Cost] = field(repr=False)
    tree: EliminationTree | None = field(default=None, repr=False)


def order(
    graph: Graph | Sparse,
    method: str = "auto",
    *,
    perm: ArrayLike | None = None,
    reuse: float = 1.0,
    time_limit: float | None = None,
    rate: float = CPU.rate,
    bandwidth: float = CPU.bandwidth,
    room: float = np.inf,
    threads: int | None = None,
) -> Ordering:
    """Return an elimination order with little fill and few flops.

    Parameters
    ----------
    graph : Graph or (n, n) SciPy sparse array
        The pattern of A + Aᵀ, or A.
    method : str
        ``"amd"``, approximate minimum degree; ``"dissection"``, nested dissection on threads;
        ``"layers"``, nested dissection into large parts by layers of breadth-first searches, which
        takes less time and suits grids;
        ``"metis"``, nested dissection by METIS; ``"nesdis"``, METIS's separators with constrained
        minimum degree between them, or METIS's own order if it is better; ``"rcm"``, reverse
        Cuthill-McKee; ``"natural"``; ``"given"``, the order `perm`; ``"auto"``: minimum degree, and
        the methods that should pay by a model of ordering and factorization times.
    perm : (n,) int array, optional
        The order to use; ``perm[k]`` is eliminated k-th.
    reuse : float
        Expected number of factorizations: more of them justify a slower, better ordering.
    time_limit : float, optional
        Seconds after which a dissection is stopped. ``"auto"`` then continues without it.
    rate, bandwidth : float
        Flops per second of a factorization and bytes of factor per second, on the machine that
        will compute it.
    room : float
        Bytes of factor, 16 per entry, above which ``"auto"`` dissects at any cost in time.
    threads : int, optional
        Number of threads that dissect; default `frontal.machine.resources.thread_count`. The order
        does not depend on it.

    Returns
    -------
    Ordering
        The order, its cost, and the costs of all orders that were tried.

    Raises
    ------
    ValueError
        If the method is unknown, or `perm` is missing, superfluous or no permutation.
    MetisNotFoundError
        If `method` needs METIS and pymetis is not installed (an ImportError).
    OrderingTimeout
        If ``"dissection"``, ``"layers"``, ``"metis"`` or ``"nesdis"`` takes longer than the limit.

    Examples
    --------
    >>> from frontal.problems import poisson2d
    >>> A = poisson2d(20)
    >>> natural, amd = order(A, "natural"), order(A, "amd")
    >>> natural.cost.nnz, amd.cost.nnz < 5000
    (8019, True)
    """
    start = time.perf_counter()
    if perm is not None and method == "auto":
        method = "given"
    if method not in METHODS:
        raise ValueError(f"ordering is {method!r}; choose one of {', '.join(METHODS)}")
    if (perm is None) == (method == "given"):
        raise ValueError("perm is required with ordering 'given', and only with it")
    if not isinstance(graph, Graph):
        graph = adjacency(graph)
    candidates = Candidates(graph, CostModel(reuse, rate, bandwidth, room))
    if method == "auto":
        auto.choose(candidates, time_limit, threads)
    elif method == "amd":
        candidates.add_amd()
    elif method == "dissection":
        count = threads or thread_count()
        with dissection.NestedDissection(candidates.components, 1, count) as run:
            candidates.add(method, run.result(time_limit))
    elif method == "layers":
        if not candidates.add_layers(threads or thread_count(), time_limit):
            candidates.add_amd()
    elif method in ("metis", "nesdis"):
        with metis.MetisRun(candidates.components) as run:
            candidates.add("metis", run.result(time_limit))
        if method == "nesdis":
            candidates.add_constrained()
    elif method == "given":
        candidates.add("given", _permutation(perm, graph.n))
    else:
        candidates.add(method, _OF_GRAPH[method](graph))
    seconds = time.perf_counter() - start
    return Ordering(
        candidates.perm,
        candidates.method,
        candidates.cost,
        seconds,
        candidates.tried,
        candidates.tree,
    )


def _permutation(perm: ArrayLike | None, n: int) -> np.ndarray:
    """Return a user's order as (n,) int32 array; raise ValueError if it is no permutation."""
    perm = np.asarray(perm)
    if perm.shape != (n,) or (n and perm.dtype.kind not in "iu"):
        raise ValueError(
            f"perm must hold {n} integers, but it has shape {perm.shape} and type {perm.dtype}"
        )
    if n and (perm.min() < 0 or perm.max() >= n or np.bincount(perm, minlength=n).max() > 1):
        raise ValueError(f"perm is not a permutation: it must contain each of 0 to {n - 1} once")
    return perm.astype(np.int32)
