"""The choice of an ordering: minimum degree, and costlier methods if they should pay."""

from __future__ import annotations

import logging
import time

import numpy as np

from ..errors import OrderingTimeout
from ..machine.lockfree_property import cached_property
from ..machine.resources import thread_count
from . import dissection, metis
from .candidates import Candidates
from .model import dissected, dissection_seconds, metis_seconds

MIN_DISSECTION_FLOPS = 1e8  # of minimum degree: below, no other method is tried
MIN_DISSECTION_NODES = 2000  # of the smallest graph on which dissection may win
MIN_BESIDE_THREADS = 4  # for a dissection beside minimum degree
MIN_BESIDE_NODES = 20_000  # for a dissection beside or before minimum degree (20 ms)
MIN_LAYERS_PLANE_NODES = 60_000  # of a plane grid for layers; minimum degree takes 20 ms for it
LAYERS_START_SECONDS = 0.005  # until threads have started a dissection by layers
LAYERS_TIME_RATIO = 1.5  # time of layers on one thread over that of minimum degree
MIN_LAYERS_TIME_RATIO = 0.4  # on any number of threads
LAYERS_GAIN = 0.01  # share of a grid's seconds that `NestedDissection` saves against layers
PLANE_NEIGHBOURS = 5  # largest mean number in plane meshes, which suit minimum degree
MAX_DISSECTIONS = 4  # the best of 4 has about 0.88 times the flops of one
SEED_GAIN = 0.06  # share of the flops that one more dissection saves
METIS_GAIN = 0.08  # share of the flops that METIS saves on meshes
METIS_HARD_GAIN = 0.35  # and on expanders and graphs with hubs
HARD_FLOPS_RATIO = 2.0  # flops over expected flops: above, a graph is an expander or has hubs
TREE_NODE_SECONDS = 1.8e-7  # per node, for the tree of an order; minimum degree needs none
MAX_DELAY_SHARE = 0.5  # share of a dissection's time by which it may delay minimum degree beside it
MAX_MESH_HEIGHT = 3.0  # mean column height of a mesh, weighted by entries, over n^(2/3)
MIN_HUB_HEIGHT = 5.0  # the same over sqrt(n), of graphs with hubs that may have separators
CONSTRAINED_GAIN = 0.02  # share of the flops that constrained minimum degree saves
CONSTRAINED_TIME_RATIO = 0.3  # its time with column counts over that of METIS

log = logging.getLogger("frontal")


def choose(candidates: Candidates, time_limit: float | None, threads: int | None) -> None:
    """Add minimum degree to `candidates`, and the dissections that should pay.

    A dissection that is faster on many threads runs first, and often alone. If a dissection fails
    or exceeds its time limit, the choice falls back to minimum degree.
    """
    if candidates.graph.n < MIN_DISSECTION_NODES:
        candidates.add_amd()
        return
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    threads = threads or thread_count()
    layered = _by_layers(candidates, threads, time_limit)
    with _Dissections(candidates, threads) as dissections:
        if not (layered or dissections.come_first()):
            candidates.add_amd()
            if candidates.cost.flops < MIN_DISSECTION_FLOPS:
                return
        try:
            if dissections.should_pay():
                hard = not dissections.find_separators() or dissections.add(deadline)
                if metis.available():
                    _try_metis(candidates, METIS_HARD_GAIN if hard else METIS_GAIN, deadline)
        except (OrderingTimeout, RuntimeError) as error:
            log.warning("%s. Continuing without it", error)
        if "amd" not in candidates.tried and not dissections.suffice():
            candidates.add_amd()


def _by_layers(candidates: Candidates, threads: int, time_limit: float | None) -> bool:
    """Add a dissection by layers if it should pay; return whether it was added."""
    if not _should_pay_by_layers(candidates, threads):
        return False
    try:
        return candidates.add_layers(threads, time_limit)
    except (OrderingTimeout, RuntimeError) as error:
        log.warning("%s. Continuing without it", error)
        return False


def _should_pay_by_layers(candidates: Candidates, threads: int) -> bool:
    """Return whether the graph is a grid that is best dissected by layers.

    Layers of breadth-first searches are as good separators of grids as any, and cost less time.
    Layers of other meshes are ragged and make twice the flops; there a multilevel dissection on
    many threads takes no longer.
    """
    if not candidates.is_grid:
        return False
    if not candidates.is_solid:
        many = threads >= MIN_BESIDE_THREADS and candidates.compressed.n >= MIN_LAYERS_PLANE_NODES
        return many and candidates.is_plane
    ratio = max(LAYERS_TIME_RATIO / threads, MIN_LAYERS_TIME_RATIO)
    seconds = ratio * candidates.amd_seconds + LAYERS_START_SECONDS
    return seconds < candidates.amd_seconds + candidates.saving


class _Dissections:
    """Dissections of a graph; the first runs beside minimum degree if there are enough cores."""

    def __init__(self, candidates: Candidates, threads: int) -> None:
        self.candidates, self.threads = candidates, threads
        self.run: dissection.NestedDissection | None = None
        self.since = time.monotonic()
        self._dense = candidates.graph.nnz > PLANE_NEIGHBOURS * candidates.graph.n
        self._beside = threads >= MIN_BESIDE_THREADS

    def come_first(self) -> bool:
        """Return whether the first dissection of a mesh is likely to beat minimum degree.

        With fewer than `MIN_BESIDE_THREADS` threads only a solid mesh qualifies. With that many,
        a dissection that may still pay is started beside minimum degree, and False is returned.
        """
        candidates, price = self.candidates, self._connected_price
        if candidates.graph.n < MIN_BESIDE_NODES or not (self._dense and candidates.is_mesh):
            return False
        dissection_time = price + candidates.compressed.n * TREE_NODE_SECONDS
        sooner = dissection_time < candidates.amd_seconds + candidates.saving
        if sooner and (self._beside or candidates.is_solid):
            return True
        may_pay = candidates.saving > MAX_DELAY_SHARE * price
        if self._beside and (may_pay or candidates.model.crowded(candidates.likely)):
            self.run = self._begin(1, self.threads - 1)
        return False

    def find_separators(self) -> bool:
        """Return whether the graph may have separators: it is a mesh, or minimum degree is bad.

        For circuits minimum degree is better than any dissection. For a graph with separators and a
        few hubs, such as an optimization problem, it causes as much fill as for a solid mesh.
        """
        if self.candidates.is_mesh:
            return True
        cost, n = self.candidates.cost, self.candidates.graph.n
        return cost.flops > MIN_HUB_HEIGHT * cost.nnz * n**0.5

    def suffice(self) -> bool:
        """Return whether minimum degree can be skipped: the separators are as small as a mesh's."""
        if not self.candidates.tried:
            return False
        cost, n = self.candidates.cost, self.candidates.graph.n
        meshlike = cost.flops <= MAX_MESH_HEIGHT * cost.nnz * n ** (2 / 3)
        return meshlike or self.candidates.seconds <= self.candidates.amd_seconds

    def should_pay(self) -> bool:
        """Return whether the first dissection is worth its remaining time."""
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
        # the first test saves most meshes the search for components and equal nodes
        return saving > self._connected_price and saving > self.price

    @cached_property
    def _connected_price(self) -> float:
        """Seconds of a dissection of a connected graph without further equal nodes."""
        return dissection_seconds(self.candidates.compressed, self.threads)

    @cached_property
    def price(self) -> float:
        """Seconds of a dissection."""
        return dissection_seconds(self.candidates.components, self.threads)

    def add(self, deadline: float) -> bool:
        """Add the dissections that should pay; return whether the graph is hard to dissect."""
        candidates = self.candidates
        by_degree = candidates.tried.get("amd", candidates.likely)
        hoped = dissected(by_degree, candidates.graph.n).flops
        if "amd" not in candidates.tried and self._beside:
            hoped = np.inf  # METIS runs on one thread only
        for seed in range(1, MAX_DISSECTIONS + 1):
            run, self.run = self.run, None
            with run or self._begin(seed, self.threads) as running:
                perm = running.result(deadline - time.monotonic())
            candidates.add("dissection", perm, f"dissection {seed}" if seed > 1 else "")
            if SEED_GAIN * candidates.seconds < self.price:
                break
        return candidates.tried["dissection"].flops > HARD_FLOPS_RATIO * hoped

    def _begin(self, seed: int, threads: int) -> dissection.NestedDissection:
        return dissection.NestedDissection(self.candidates.components, seed, threads)

    def __enter__(self) -> _Dissections:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.run is not None:
            self.run.cancel()


def _try_metis(candidates: Candidates, gain: float, deadline: float) -> None:
    """Add METIS's order if a `gain` of flops pays, and constrained minimum degree if that pays."""
    price = metis_seconds(candidates.components)
    if gain * candidates.seconds < price:
        return
    with metis.MetisRun(candidates.components) as run:
        candidates.add("metis", run.result(deadline - time.monotonic()))
    if (
        candidates.method == "metis"
        and CONSTRAINED_GAIN * candidates.seconds > CONSTRAINED_TIME_RATIO * price
    ):
        candidates.add_constrained()
