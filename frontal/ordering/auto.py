"""The choice of an ordering: minimum degree always, what is dearer where it should pay."""

from __future__ import annotations

import logging
import time

import numpy as np

from ..errors import OrderingTimeout
from ..machine.lockfree_property import cached_property
from ..machine.resources import thread_count
from . import dissection, metis
from .candidates import Candidates
from .components import Components
from .model import dissected, dissection_seconds, metis_seconds

FLOOR = 1e8  # flops of minimum degree below which nothing else is worth a look
MIN_DISSECTION_NODES = 2000  # nodes from which dissection may win
BESIDE_THREADS = 4  # from which on a dissection begins beside minimum degree
BESIDE_NODES = 20_000  # that take minimum degree 20 milliseconds
LAYERS_PLANE = 60_000  # nodes of plane grids, that take minimum degree 20 milliseconds
LAYERS_START = 0.005  # seconds that threads take to begin with layers
LAYERS_TIME = 1.5  # times that of minimum degree, on one thread
LAYERS_CHAIN = 0.4  # of that of minimum degree at least, on any number of threads
LAYERS_GAIN = 0.01  # of the seconds of an order of a grid by layers, by another dissection
PLANE = 5  # neighbours of a node, in the mean, of plane meshes, which minimum degree is good for
SEEDS = 4  # dissections, the best of which has about 0.88 times the flops of one
SEED_GAIN = 0.06  # of the flops, by one more
METIS_GAIN = 0.08  # of the flops, on meshes
TREE_NODE = 1.8e-7  # and of the tree of another order, which minimum degree tells
SLOWED = 0.5  # of a dissection's time, by which minimum degree beside it may be slowed down
MESH = 3.0  # times n^(2/3): mean height of the columns of meshes at most, seen by an entry
MIN_HUB_TREE_HEIGHT = (
    5.0  # times sqrt(n): mean height of columns from which on hubs may leave separators
)
HARD = 2.0  # times the flops that were hoped for: an expander, or hubs
HARD_GAIN = 0.35  # of the flops, by METIS on these
CONSTRAINED_GAIN = 0.02  # of the flops, by constrained minimum degree
CONSTRAINED_SHARE = 0.3  # of METIS's time, for that and counting

log = logging.getLogger("frontal")


def choose(candidates: Candidates, time_limit: float | None, threads: int | None) -> None:
    """Fill `candidates` with minimum degree and, as far as they should pay, dissections.

    A dissection that is sooner done on many threads comes first, and often alone. One that fails or
    is not done in time is given up: minimum degree is there.
    """
    if candidates.graph.n < MIN_DISSECTION_NODES:
        candidates.add_amd()
        return
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    components = Components(candidates.graph, candidates.merged, looked=True)
    threads = threads or thread_count()
    layered = _by_layers(candidates, threads, time_limit)
    with _Dissections(candidates, components, threads) as dissections:
        if not (layered or dissections.come_first()):
            candidates.add_amd()
            if candidates.cost.flops < FLOOR:
                return
        try:
            if dissections.should_pay():
                hard = not dissections.find_separators() or dissections.add(deadline) > HARD
                if metis.available():
                    _try_metis(candidates, components, HARD_GAIN if hard else METIS_GAIN, deadline)
        except (OrderingTimeout, RuntimeError) as error:
            log.warning("%s. Going on without it", error)
        if "amd" not in candidates.tried and not dissections.suffice():
            candidates.add_amd()


def _by_layers(candidates: Candidates, threads: int, time_limit: float | None) -> bool:
    """Add a dissection by layers to a grid where that is soon done, or makes up for its time."""
    if not _should_pay_by_layers(candidates, threads):
        return False
    try:
        return candidates.add_layers(threads, time_limit)
    except (OrderingTimeout, RuntimeError) as error:
        log.warning("%s. Going on without it", error)
        return False


def _should_pay_by_layers(candidates: Candidates, threads: int) -> bool:
    """Whether a grid is best dissected by layers of breadth first searches.

    They are as good separators there as any, and take less time. Those of other meshes are ragged,
    and make twice the flops: a dissection on many threads is done as soon.
    """
    if not candidates.is_grid:
        return False
    if not candidates.is_solid:
        many = threads >= BESIDE_THREADS and candidates.compressed.n >= LAYERS_PLANE
        return many and candidates.is_plane
    seconds = max(LAYERS_TIME / threads, LAYERS_CHAIN) * candidates.amd_seconds + LAYERS_START
    return seconds < candidates.amd_seconds + candidates.saving


class _Dissections:
    """Dissections of a graph; with cores to spare the first one begins beside minimum degree."""

    def __init__(self, candidates: Candidates, components: Components, threads: int) -> None:
        self.candidates, self.components, self.threads = candidates, components, threads
        self.run: dissection.NestedDissection | None = None
        self.since = time.monotonic()
        self._dense = candidates.graph.nnz > PLANE * candidates.graph.n
        self._beside = threads >= BESIDE_THREADS

    def come_first(self) -> bool:
        """Whether the first one is likely to win against minimum degree on a mesh.

        If it is not, but may pay all the same, it begins beside where there are cores to spare;
        where there are not, the graph has to grow like a solid mesh.
        """
        candidates, price = self.candidates, self._connected_price
        if candidates.graph.n < BESIDE_NODES or not (self._dense and candidates.is_mesh):
            return False
        sooner = (
            price + candidates.compressed.n * TREE_NODE < candidates.amd_seconds + candidates.saving
        )
        if sooner and (self._beside or candidates.is_solid):
            return True
        if self._beside and (
            candidates.saving > SLOWED * price or candidates.model.crowded(candidates.likely)
        ):
            self.run = dissection.NestedDissection(self.components, 1, self.threads - 1)
        return False

    def find_separators(self) -> bool:
        """Whether there may be some: in a mesh, and where minimum degree is bad all the same.

        In circuits it is better than any dissection. Where few nodes are hubs of a graph that has
        separators, such as an optimization problem, it makes as much fill as in a solid.
        """
        if self.candidates.is_mesh:
            return True
        cost, n = self.candidates.cost, self.candidates.graph.n
        return cost.flops > MIN_HUB_TREE_HEIGHT * cost.nnz * n**0.5

    def suffice(self) -> bool:
        """Whether minimum degree is not worth its time any more: separators are those of a mesh."""
        if not self.candidates.tried:
            return False
        cost, n = self.candidates.cost, self.candidates.graph.n
        meshlike = cost.flops <= MESH * cost.nnz * n ** (2 / 3)
        return meshlike or self.candidates.seconds <= self.candidates.amd_seconds

    def should_pay(self) -> bool:
        """Whether the first one is worth the time that it still takes."""
        candidates = self.candidates
        if not candidates.tried:
            return True
        if candidates.method == "layers":
            saving = LAYERS_GAIN * candidates.seconds
        elif candidates.model.crowded(candidates.cost):
            return True
        else:
            saving = candidates.seconds - candidates.model.seconds(
                dissected(candidates.cost, candidates.graph.n)
            )
        if self.run is not None:
            return saving > self.price - (time.monotonic() - self.since)
        # the first test spares most meshes a search for components and equal nodes
        return saving > self._connected_price and saving > self.price

    @cached_property
    def _connected_price(self) -> float:
        """Seconds that one takes, if there is one component and no further equal nodes."""
        return dissection_seconds(self.candidates.compressed, self.threads)

    @cached_property
    def price(self) -> float:
        """Seconds that one takes."""
        return dissection_seconds(self.components, self.threads)

    def add(self, deadline: float) -> float:
        """Add as many as should pay; the flops of the first over those that were hoped for."""
        candidates = self.candidates
        by_degree = candidates.tried.get("amd", candidates.likely)
        hoped = dissected(by_degree, candidates.graph.n).flops
        if "amd" not in candidates.tried and self._beside:
            hoped = np.inf  # METIS has one thread
        for seed in range(1, SEEDS + 1):
            run, self.run = self.run, None
            with run or dissection.NestedDissection(self.components, seed, self.threads) as running:
                perm = running.result(deadline - time.monotonic())
            candidates.add("dissection", perm, f"dissection {seed}" if seed > 1 else "")
            if SEED_GAIN * candidates.seconds < self.price:
                break
        return candidates.tried["dissection"].flops / hoped

    def __enter__(self) -> _Dissections:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.run is not None:
            self.run.cancel()


def _try_metis(
    candidates: Candidates, components: Components, gain: float, deadline: float
) -> None:
    """Add METIS's order, and a better one inside its separators, if a `gain` of flops pays."""
    price = metis_seconds(components)
    if gain * candidates.seconds < price:
        return
    with metis.MetisRun(components) as run:
        candidates.add("metis", run.result(deadline - time.monotonic()))
    if (
        candidates.method == "metis"
        and CONSTRAINED_GAIN * candidates.seconds > CONSTRAINED_SHARE * price
    ):
        candidates.add_constrained()
