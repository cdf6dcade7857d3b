"""What a team of threads shares while it factorizes; see `phases`."""

from __future__ import annotations

import numpy as np

# Entries of the shared array, after those of `phases`.
INTERRUPT, PROGRESS, FAILURE, PERTURBED, WEAK = np.arange(7, 12)
PANELS_END, NAMES_END = np.arange(
    12, 14
)  # where free room begins, for panels and for names of columns
# Kinds of phases: whole subtrees, and the parts of a large front.
SUBTREES, ASSEMBLE, SOLVE, RESTORE, UPDATE, PANEL, UPPER_PANEL, BLOCK = np.arange(8)
NO_FAILURE = (1 << 62) - 1  # what FAILURE holds until a column fails
CRAMPED = 0  # what it holds when there was no room for what fronts take over from others
NO_UNSTABLE_PIVOT = (
    1 << 62
) - 1  # what WEAK holds until a tile finds pivots too small for their columns
