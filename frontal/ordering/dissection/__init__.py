"""Nested dissection: a graph falls apart by separators, level by level, down to leaves.

`NestedDissection` has parts on threads (`dissect.py`). A graph is coarsened once (`coarsen.py`,
large ones by several threads in `team.py`); its coarser graphs are cut together with it
(`split.py`). One part is bisected by `bisect.py`, which cuts the coarsest graph (`start.py`) and
refines the separator on the way back (`improve.py`). `leaves.py` orders what is dissected no
further.

`Layers` has larger parts on threads (`layered.py`), cut along layers of breadth first searches
(`layers.py`); the elimination tree of the whole is put together from theirs (`merged_trees.py`).
"""

from .dissect import NestedDissection
from .layered import Layers

__all__ = ["Layers", "NestedDissection"]
