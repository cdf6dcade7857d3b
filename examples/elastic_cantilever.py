"""A steel cantilever bends under a load at its free end: three unknowns at each node.

Beam theory (Timoshenko) predicts the deflection F l^3 / (3 E I) + F l / (k G A).
"""

from importlib.util import find_spec

import numpy as np

import frontal
from frontal.problems import elasticity3d

E, NU, FORCE = 210e9, 0.3, 1e3  # Pa, 1, N
LENGTH, HEIGHT = 1.0, 0.1  # m, of a square cross-section


def main(cells: int = 8, plot: bool = False) -> float:
    """Return the deflection of the free end divided by that of beam theory."""
    h = HEIGHT / cells
    shape = (round(LENGTH / h), cells + 1, cells + 1)  # free nodes, without the clamped nodes
    A = elasticity3d(shape, E, NU, h)

    load = np.zeros((*shape, 3))
    load[-1, :, :, 2] = -FORCE / (cells + 1) ** 2
    u = frontal.solve(A, load.ravel(), kind="spd").reshape(load.shape)

    inertia, area, shear_modulus = HEIGHT**4 / 12, HEIGHT**2, E / (2 + 2 * NU)
    bending = FORCE * LENGTH**3 / (3 * E * inertia)
    shear = FORCE * LENGTH / (5 / 6 * shear_modulus * area)

    if plot:
        import matplotlib.pyplot as plt

        side = u[:, cells // 2]  # a cut along the middle
        x, z = np.meshgrid(h * np.arange(1, shape[0] + 1), h * np.arange(shape[2]), indexing="ij")
        moved = x + 300 * side[..., 0], z + 300 * side[..., 2]
        plt.pcolormesh(*moved, np.linalg.norm(side, axis=-1), shading="gouraud")
        plt.gca().set_aspect("equal")
        plt.title("displacements drawn 300 times as large")
        plt.savefig("elastic_cantilever.png")
    return float(-u[-1, :, :, 2].mean() / (bending + shear))


if __name__ == "__main__":
    print(f"deflection / beam theory: {main(plot=find_spec('matplotlib') is not None):.3f}")
