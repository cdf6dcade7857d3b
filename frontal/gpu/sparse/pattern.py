"""The fronts of a plan on the device, with the lists of tasks that kernels work through."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from .fronts import Fronts
from .schedule import TILE
from .small_tasks import SmallTasks, small_tasks
from .solve_tasks import SolveTasks, solve_tasks
from .tile_tasks import Tasks, first_sent, tile_tasks


class Pattern(Fronts):
    """Fronts, and the lists of their tasks, each made when it is first asked for."""

    @cached_property
    def tasks(self) -> Tasks:
        """Tasks of the fronts that are not small."""
        return tile_tasks(self)

    @cached_property
    def small_tasks(self) -> SmallTasks:
        """Fronts that are small, by level."""
        return small_tasks(self)

    @cached_property
    def _solve_tasks(self) -> dict[np.dtype, SolveTasks]:
        return {}

    def solve_tasks(self, dtype: np.dtype) -> SolveTasks:
        """Tasks of the solves with panels of this scalar type."""
        if dtype not in self._solve_tasks:
            self._solve_tasks[dtype] = solve_tasks(self, dtype)
        return self._solve_tasks[dtype]

    @cached_property
    def messages(self) -> int:
        """Numbers that blocks send each other during a factorization."""
        places = TILE // 16 if self.method.indefinite else 0
        return int(first_sent(self)[-1]) * TILE * (self.method.panels * TILE + places)
