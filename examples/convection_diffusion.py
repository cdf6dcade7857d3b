"""A pollutant drifts with the wind: LU of an unsymmetric matrix, and a transposed solve.

-eps Laplace u + w . grad u = source. One transposed solve gives the influence of every possible
source on a given place, instead of one solve for each source.
"""

from importlib.util import find_spec

import numpy as np

import frontal
from frontal.problems import convdiff2d


def main(n: int = 200, plot: bool = False) -> tuple[float, float]:
    """Return the pollution at the station, by the system and by the transposed system."""
    h, eps, wind = 1 / (n + 1), 0.005, np.array([1.0, 0.4])
    x, y = np.mgrid[1 : n + 1, 1 : n + 1] * h
    A = convdiff2d(n, wind * h / eps) * (eps / h**2)
    factor = frontal.factorize(A)

    source = np.exp(-((x - 0.2) ** 2 + (y - 0.3) ** 2) / 0.002).ravel()
    pollution = factor.solve(source)

    station = np.exp(-((x - 0.8) ** 2 + (y - 0.6) ** 2) / 0.002).ravel()
    influence = factor.solve(station, trans="T")

    if plot:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, 2, figsize=(9, 4))
        titles = ("pollution by the source", "influence on the station")
        for axis, field, title in zip(axes, (pollution, influence), titles, strict=True):
            axis.contourf(x, y, field.reshape(n, n), levels=30)
            axis.set_title(title)
        plt.savefig("convection_diffusion.png")
    return float(station @ pollution), float(influence @ source)


if __name__ == "__main__":
    print("{:.12f} = {:.12f}".format(*main(plot=find_spec("matplotlib") is not None)))
