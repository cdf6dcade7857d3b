"""Matrices with a hub, whose trees have a parent of many leaves."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from frontal.numeric.method import LDLH, LDLT

from ...matrices import with_phases


def hub_system(kind: str, dtype: Any = "f8", leaves: int = 300, hub: int = 45) -> sp.csc_array:
    """Return a matrix whose natural order gives a front with a child for each leaf, below a root.

    A leaf has one column and is adjacent to the first column of the hub and another one, every
    tenth also to one of the root, which has 40 columns. The last column of the hub has no leaves.
    Diagonals dominate.

    Parameters
    ----------
    kind
        "spd" (Hermitian), "symmetric" (indefinite), or "general".
    dtype
        Scalar type of the values.
    leaves, hub
        Columns of the leaves and of the hub.
    """
    rng, n = np.random.default_rng(9), leaves + hub + 40
    leaf, other = np.arange(leaves), leaves + rng.integers(1, hub - 1, leaves)
    root = leaves + hub + rng.integers(0, 10, leaves // 10)
    row = np.concatenate([np.full(leaves, leaves), other, root])
    column = np.concatenate([leaf, leaf, leaf[: root.size] * 10])
    upper = np.triu(np.ones((hub + 40, hub + 40)), 1)
    upper[:hub, hub + 10 :] = 0  # the hub is adjacent to ten columns of the root
    i, j = upper.nonzero()
    row, column = np.append(row, leaves + j), np.append(column, leaves + i)
    below = sp.csc_array((rng.uniform(-1, 1, row.size), (row, column)), shape=(n, n))
    above = sp.csc_array((rng.uniform(-1, 1, row.size), (column, row)), shape=(n, n))
    above = above if kind == "general" else below.T
    size = 1 + (abs(below) + abs(above)).sum(axis=1)
    size = size * rng.choice([-1, 1], n) if kind == "symmetric" else size
    a = sp.csc_array(below + above + sp.diags_array(size))
    return with_phases(a, dtype, LDLT if kind == "symmetric" else LDLH)
