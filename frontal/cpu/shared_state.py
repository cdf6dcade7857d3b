"""Words that the threads of a team share during a factorization; see `tile_queue`."""

from __future__ import annotations

import numpy as np

# Entries of the shared array, after those of `tile_queue`.
INTERRUPT, PROGRESS, FAILURE, PERTURBED, WEAK = np.arange(7, 12)
PANELS_END, NAMES_END = np.arange(12, 14)  # first free entries of panels and of column names
REPLACED_BEFORE_SCHUR = 14  # PERTURBED before the elimination of a Schur complement
# Kinds of phases: subtrees, and the steps of a large front.
SUBTREES, ASSEMBLE, SOLVE, RESTORE, UPDATE, PANEL, UPPER_PANEL, BLOCK = np.arange(8)
NO_FAILURE = (1 << 62) - 1  # value of FAILURE until a column fails
CRAMPED = 0  # value of FAILURE when delayed columns do not fit; ~s if front s lacks pivots
NO_UNSTABLE_PIVOT = (1 << 62) - 1  # value of WEAK until a tile finds an unstable pivot
