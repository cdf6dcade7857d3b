"""Linear elasticity in three dimensions, by trilinear finite elements."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .tensor import Size, csc, grid_shape, hat_functions, q1_products


def elasticity3d(
    n: Size, E: float = 1.0, nu: float = 0.3, h: float = 1.0, clamped: bool = True
) -> sp.csc_array:
    """Return the elasticity of a box of cubes, one face clamped: ``-div sigma(u)``.

    ``sigma = lambda tr(e) I + 2 mu e``, ``e = (grad u + grad u^T) / 2``, with trilinear (Q1)
    elements integrated exactly. With ``G_ab = int d_a phi_i d_b phi_j`` the 3 x 3 block of two
    nodes is ``lambda G_ab + mu G_ba + mu delta_ab sum_c G_cc``. Symmetric positive definite;
    without the clamp semidefinite, with the six rigid motions as null space.

    Parameters
    ----------
    n : int or (int, int, int)
        Free nodes along each axis. The clamped nodes, one more along the first axis, are omitted.
    E, nu : float
        Young's modulus and Poisson's ratio, ``-1 < nu < 0.5``.
    h : float
        Edge of a cube.
    clamped : bool
        Whether the face before the first nodes is clamped; otherwise there is no such face.

    Returns
    -------
    (3 n^3, 3 n^3) csc_array of float64
        About 243 n^3 entries. Unknown ``3 i + a`` is the displacement of node i along axis a.

    Raises
    ------
    ValueError
        If the material is not stable or an axis has fewer than two nodes.

    Examples
    --------
    >>> A = elasticity3d(4)
    >>> A.shape, A.nnz
    ((192, 192), 9000)
    """
    if not (E > 0 and -1 < nu < 0.5):
        raise ValueError(f"E > 0 and -1 < nu < 0.5 needed, not E={E!r}, nu={nu!r}")
    shape = grid_shape(n, 3, smallest=2)
    axes = [hat_functions(shape[0] - 1 + clamped, h, clamped)]
    axes += [hat_functions(size - 1, h) for size in shape[1:]]
    lame, mu = E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))
    G = [[q1_products(axes, a, b) for b in range(3)] for a in range(3)]
    pattern = G[0][0]  # the same for all: blocks are full, with stored zeros, as in mesh codes
    blocks = np.empty((pattern.nnz, 3, 3))
    trace = G[0][0].data + G[1][1].data + G[2][2].data
    for a in range(3):
        for b in range(3):
            blocks[:, a, b] = lame * G[a][b].data + mu * G[b][a].data + mu * (a == b) * trace
    return csc(sp.bsr_array((blocks, pattern.indices, pattern.indptr)).tocsc())
