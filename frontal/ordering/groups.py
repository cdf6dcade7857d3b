"""The members of groups: children of nodes, nodes of a quotient graph."""

from __future__ import annotations

import numpy as np

from ..compile.jit import jit


@jit
def members_of(group):
    """Return the extents of the members of each group, and the members, ascending.

    ``group[i]`` is the group of i, below ``group.size``; negative for none.
    """
    pointer = np.zeros(group.size + 1, np.int64)
    for g in group:
        if g >= 0:
            pointer[g + 1] += 1
    for g in range(group.size):
        pointer[g + 1] += pointer[g]
    cursor = pointer[:-1].copy()
    members = np.empty(pointer[-1], np.int32)
    for i in range(group.size):
        g = group[i]
        if g >= 0:
            members[cursor[g]] = i
            cursor[g] += 1
    return pointer, members
