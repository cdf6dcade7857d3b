"""A Gaussian Markov random field: its density, samples, and a map from few observations.

The precision matrix (kappa^2 - Laplace)^2 gives a Matern field (Lindgren, Rue and Lindstroem 2011).
With Pr Q Pc = L L^H, Pc L^-H z has the covariance Q^-1 if z is white noise.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve_triangular

import frontal
from frontal.problems import poisson2d


def sample(factor: frontal.Factor, rng: np.random.Generator) -> np.ndarray:
    """Return a random vector with the factorized matrix as its precision."""
    z = rng.standard_normal(factor.shape[0])
    return spsolve_triangular(factor.L.conj().T.tocsr(), z, lower=False)[factor.perm_c]


def main(n: int = 64, plot: bool = False) -> tuple[float, float, float]:
    """Return log det Q, x' Q x / n^2 of a sample x, and the relative error of the map."""
    rng = np.random.default_rng(0)
    K = poisson2d(n) + 0.005 * sp.eye_array(n * n)
    Q = K @ K
    prior = frontal.factorize(Q, kind="spd")
    truth = sample(prior, rng)

    places = rng.choice(n * n, 400, replace=False)
    noise = 0.5
    seen = truth[places] + noise * rng.standard_normal(400)
    weight = np.zeros(n * n)
    weight[places] = noise**-2
    posterior = frontal.factorize(Q + sp.diags_array(weight), kind="spd")
    rhs = np.zeros(n * n)
    rhs[places] = seen / noise**2
    mean = posterior.solve(rhs)

    if plot:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, 2, figsize=(9, 4))
        titles = ("a sample of the field", "its map from the points")
        for axis, field, title in zip(axes, (truth, mean), titles, strict=True):
            axis.imshow(field.reshape(n, n), vmin=truth.min(), vmax=truth.max())
            axis.set_title(title)
        axes[1].plot(places % n, places // n, "w.", markersize=2)
        plt.savefig("gmrf.png")
    error = np.sqrt(np.mean((mean - truth) ** 2)) / truth.std()
    return prior.logdet(), float(truth @ (Q @ truth)) / n**2, float(error)


if __name__ == "__main__":
    results = main(plot=find_spec("matplotlib") is not None)
    print("log det {:.3f}, mean square {:.3f}, relative error of the map {:.2f}".format(*results))
