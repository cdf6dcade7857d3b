"""Poisson's equation in a disc, by linear finite elements: -Laplace u = 4, u = 0 on the circle.

The solution is 1 - x^2 - y^2.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp
from scipy.spatial import Delaunay

import frontal


def disc(rings: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points on rings around the origin, 6k on the k-th, and their triangulation."""
    k = np.repeat(np.arange(rings + 1), np.maximum(6 * np.arange(rings + 1), 1))
    first = np.maximum(3 * k * (k - 1) + 1, 0)
    angle = 2 * np.pi * (np.arange(k.size) - first) / np.maximum(6 * k, 1)
    points = k[:, None] / rings * np.column_stack([np.cos(angle), np.sin(angle)])
    return points, Delaunay(points).simplices


def stiffness(points: np.ndarray, triangles: np.ndarray) -> tuple[sp.csc_array, np.ndarray]:
    """Return the integrals of grad phi_i . grad phi_j, and of phi_i."""
    corners = points[triangles]
    edges = np.roll(corners, -1, axis=1) - np.roll(corners, 1, axis=1)  # each opposite a corner
    doubled = edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0]
    area = np.abs(doubled) / 2
    local = np.einsum("tia,tja->tij", edges, edges) / (4 * area[:, None, None])
    rows, cols = np.repeat(triangles, 3, axis=1), np.tile(triangles, 3)
    K = sp.coo_array((local.ravel(), (rows.ravel(), cols.ravel()))).tocsc()
    return K, np.bincount(triangles.ravel(), np.repeat(area / 3, 3))


def main(rings: int = 60, plot: bool = False) -> float:
    """Return the largest error at the nodes."""
    points, triangles = disc(rings)
    K, load = stiffness(points, triangles)
    radius = np.hypot(*points.T)
    inside = np.flatnonzero(radius < 1 - 1e-12)

    u = np.zeros(len(points))
    u[inside] = frontal.solve(K[inside][:, inside], 4 * load[inside])

    if plot:
        import matplotlib.pyplot as plt

        plt.tricontourf(*points.T, triangles, u, levels=30)
        plt.gca().set_aspect("equal")
        plt.savefig("poisson_disc.png")
    return float(np.abs(u - (1 - radius**2)).max())


if __name__ == "__main__":
    print(f"largest error: {main(plot=find_spec('matplotlib') is not None):.1e}")
