"""Marginal variances of a Gaussian field, before and after a survey along two roads.

The variances are the diagonal of the inverse of the precision matrix (kappa^2 - Laplace)^2, a
Matern field (Lindgren, Rue and Lindstroem 2011); each observation adds to the precision's diagonal.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

import frontal
from frontal.problems import poisson2d


def main(n: int = 80, plot: bool = False) -> tuple[float, float, float]:
    """Return the number of observations, the trace of the hat matrix, and the variance left."""
    K = poisson2d(n) + 0.01 * sp.eye_array(n * n)
    Q = sp.csc_array(K @ K)
    prior = frontal.factorize(Q, kind="spd")
    before = prior.diag_inv()

    along = np.arange(0, n, 2)
    places = np.unique(np.concatenate([along * n + n // 3, (n // 2) * n + along]))
    noise = 0.25 * before.max()  # variance of an observation
    M = sp.csr_array((np.ones(places.size), (np.arange(places.size), places)), (places.size, n * n))
    posterior = frontal.factorize(sp.csc_array(Q + M.T @ M / noise), kind="spd")
    after = posterior.diag_inv()
    leverage = posterior.quadratic_diag(M) / noise  # the diagonal of the hat matrix

    if plot:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, 2, figsize=(9, 4))
        titles = ("deviation before", "and after the survey")
        for axis, variance, title in zip(axes, (before, after), titles, strict=True):
            axis.imshow(np.sqrt(variance).reshape(n, n), vmin=0, vmax=np.sqrt(before.max()))
            axis.set_title(title)
        axes[1].plot(places % n, places // n, "w.", markersize=2)
        plt.savefig("marginal_variances.png")
    return float(places.size), float(leverage.sum()), float(after.sum() / before.sum())


if __name__ == "__main__":
    results = main(plot=find_spec("matplotlib") is not None)
    print("{:.0f} observations, {:.2f} degrees of freedom, variance left: {:.3f}".format(*results))
