"""All vibration modes of a steel cantilever in a band of frequencies, proved complete.

The cross-section is a square, so bending modes come in pairs of equal frequency. The lowest pair
obeys beam theory (Euler, Bernoulli): f = 1.8751^2 / (2 pi) (E I / (rho A l^4))^(1/2).
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

from frontal.linalg import eigsh, eigvals_count
from frontal.problems import elasticity3d

E, NU, DENSITY = 210e9, 0.3, 7850.0  # Pa, 1, kg / m^3
LENGTH, HEIGHT = 1.0, 0.1  # m, of a square cross-section
BAND = 0.0, 3000.0  # Hz


def main(cells: int = 4, plot: bool = False) -> tuple[int, int, float, float]:
    """Return modes counted and computed, the gap of the first pair, and f1 over beam theory's."""
    h = HEIGHT / cells
    shape = (round(LENGTH / h), cells + 1, cells + 1)  # free nodes, without the clamped nodes
    stiffness = elasticity3d(shape, E, NU, h)
    along, across = np.ones(shape[0]), np.ones(shape[1])
    along[-1] = across[0] = across[-1] = 0.5  # shares of a node on the surface
    node_mass = DENSITY * h**3 * along[:, None, None] * np.outer(across, across)
    mass = sp.csc_array(sp.diags_array(np.repeat(node_mass.ravel(), 3)))

    low, high = (2 * np.pi * np.array(BAND)) ** 2
    count = eigvals_count(stiffness, low, high, mass)
    values, modes = eigsh(stiffness, M=mass, interval=(low, high))
    frequencies = np.sqrt(values) / (2 * np.pi)

    stiffness_of_beam = E * HEIGHT**4 / 12 / (DENSITY * HEIGHT**2 * LENGTH**4)
    beam = 1.8751**2 / (2 * np.pi) * np.sqrt(stiffness_of_beam)

    if plot:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(3, 3, figsize=(10, 5), sharex=True, sharey=True)
        x, z = np.meshgrid(h * np.arange(1, shape[0] + 1), h * np.arange(shape[2]), indexing="ij")
        for axis, f, mode in zip(axes.flat, frequencies, modes.T, strict=False):
            u = 0.1 * (mode / abs(mode).max()).reshape(*shape, 3)[:, 0]
            size = np.linalg.norm(u, axis=-1)
            axis.pcolormesh(x + u[..., 0], z + u[..., 2], size, shading="gouraud")
            axis.set_title(f"{f:.0f} Hz")
        plt.savefig("structure_modes.png")
    gap = float(frequencies[1] / frequencies[0] - 1)
    return count, frequencies.size, gap, float(frequencies[0] / beam)


if __name__ == "__main__":
    results = main(plot=find_spec("matplotlib") is not None)
    print("{} modes counted, {} computed; gap of a pair {:.0e}, f1 / beam {:.3f}".format(*results))
