"""The selected inverse: entries of Z = A^-1 in the pattern of L + U, from the roots down.

Takahashi, Fagan, Chin (1973); Erisman, Tinney, "On computing certain elements of the inverse of a
sparse matrix", Communications of the ACM 18 (1975); by fronts as in Lin, Yang, Meza, Lu, Ying, E,
"SelInv", ACM TOMS 37 (2011). It takes twice the operations of the factorization.
"""

from __future__ import annotations

import numpy as np

from ...backend.host_memory import require_available
from ...backend.protocol import HostFactor, panel_offsets
from ...compile.jit import jit
from ...errors import FactorMemoryError
from ...symbolic.phase import Symbolic
from ..blas import routines
from ..blas_limit import single_threaded_blas
from ..by_reference import keep_alive, reference
from .entries import GATHERED, SKIPPED, WantedEntries, copy_entries, needed_fronts
from .front import gather, invert_general, invert_symmetric
from .layout import InverseLayout
from .workspace import InverseWorkspace, place_of


def selected_entries(
    symbolic: Symbolic, host: HostFactor, wanted: WantedEntries, count: int
) -> np.ndarray:
    """Return entries of the inverse of the factorized matrix, by one thread.

    Parameters
    ----------
    symbolic : Symbolic
        Symbolic phase of the factor, with fronts.
    host : HostFactor
        The factor, by panels, without replaced pivots.
    wanted : WantedEntries
        See `locate`.
    count : int
        Number of entries, those outside of all fronts included.

    Returns
    -------
    values : (count,) array
        Entries outside of all fronts are zero.

    Raises
    ------
    FactorMemoryError
        If the inverses of fronts do not fit; no memory has been allocated.
    """
    values = np.zeros(count, host.panels.dtype)
    if wanted.pointer[-1] == 0:
        return values
    work = _workspace(symbolic, host, wanted, values)
    with single_threaded_blas():
        _run(work)
    return values


def _workspace(
    symbolic: Symbolic, host: HostFactor, wanted: WantedEntries, values: np.ndarray
) -> InverseWorkspace:
    plan, method, dtype = symbolic.plan, symbolic.method, host.panels.dtype
    layout = InverseLayout.for_plan(plan)
    below = 2 * layout.diagonal
    scratch = below + method.panels * layout.below
    required = (layout.entries + scratch) * dtype.itemsize
    require_available(required)
    try:
        arena, memory = np.empty(layout.entries, dtype), np.empty(scratch, dtype)
    except MemoryError as error:
        raise FactorMemoryError.from_error(error, required) from error
    return InverseWorkspace(
        plan=plan,
        routines=routines(dtype),
        panels=host.panels,
        pivots=host.pivots,
        subdiagonal=host.subdiagonal.astype(dtype, copy=False),
        panel=panel_offsets(plan, method),
        arena=arena,
        block=layout.block,
        scratch=memory,
        below=below,
        wanted=wanted,
        values=values,
        info=np.zeros(1, np.int32),
        two_panels=not method.one_triangle,
        unit=method.pivots,
        indefinite=method.indefinite,
        conjugate=method.adjoint and method.one_triangle and dtype.kind == "c",
    )


@jit
def _run(fields):
    work = reference(fields)
    states = needed_fronts(fields.plan, fields.wanted)
    for s in range(states.size - 1, -1, -1):
        if states[s] == SKIPPED:
            continue
        place, mirrored = place_of(work, s), states[s] == GATHERED
        if place.m > 0:
            gather(work, s, place)
        if work.two_panels:
            invert_general(work, place)
        else:
            invert_symmetric(work, place, mirrored)
        copy_entries(
            work.wanted, s, work.arena, place.inverse, place.k + place.m, work.conjugate,
            work.values,
        )  # fmt: skip
    keep_alive(fields)
