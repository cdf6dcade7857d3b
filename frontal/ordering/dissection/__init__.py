"""Nested dissection: a graph falls apart by separators, level by level, down to leaves.

`Run` has parts on threads (`dissect.py`); one part is bisected by `bisect.py`, which coarsens
(`coarsen.py`), cuts the coarsest graph (`start.py`) and refines the separator on the way back
(`improve.py`). `leaves.py` orders what is dissected no further.
"""

from .dissect import Run

__all__ = ["Run"]
