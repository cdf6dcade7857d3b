"""Nested dissection: separators split a graph recursively down to leaves.

`NestedDissection` processes parts on threads (`dissect.py`). A graph is coarsened once
(`coarsen.py`; large graphs by several threads in `levels.py`); its coarser graphs are split
together with it (`split.py`, or `team.py` by several threads). `bisect.py` bisects a part: it cuts
the coarsest graph (`start.py`) and refines the separator on each finer level (`improve.py`).
`leaves.py` orders the leaves.

`Layers` processes larger parts on threads (`layered.py`), cut along layers of breadth-first
searches (`layers.py`); their elimination trees are merged into one (`merged_trees.py`).
"""

from .dissect import NestedDissection
from .layered import Layers

__all__ = ["Layers", "NestedDissection"]
