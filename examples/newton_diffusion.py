"""Newton's method for a conductivity that grows with the temperature: -div((1 + u^2) grad u) = f.

All Jacobians have one pattern: analyze it once, factorize their values in each step.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

import frontal


def main(n: int = 80, plot: bool = False) -> tuple[int, float, float]:
    """Return the number of Newton steps, the size of the last step and the largest error."""
    h = 1 / (n + 1)
    x, y = np.meshgrid(*[np.pi * h * np.arange(1, n + 1)] * 2, indexing="ij")
    exact = (np.sin(x) * np.sin(y)).ravel()
    squared_gradient = (np.cos(x) * np.sin(y)) ** 2 + (np.sin(x) * np.cos(y)) ** 2
    f = 2 * np.pi**2 * exact * (1 + exact**2 - squared_gradient.ravel())

    # differences and means of the two nodes of each face, zero outside the domain
    line = sp.eye_array(n + 1, n) - sp.eye_array(n + 1, n, k=-1)
    identity = sp.eye_array(n)
    D = sp.vstack([sp.kron(line, identity), sp.kron(identity, line)]).tocsr()
    mean = abs(D) / 2

    def residual(u: np.ndarray) -> np.ndarray:
        return D.T @ ((1 + (mean @ u) ** 2) * (D @ u)) - h**2 * f

    def jacobian(u: np.ndarray) -> sp.csc_array:
        conductivity = sp.diags_array(1 + (mean @ u) ** 2)
        slope = sp.diags_array(2 * (mean @ u) * (D @ u))
        return (D.T @ (conductivity @ D + slope @ mean)).tocsc()

    u, sizes = np.zeros(n * n), [np.inf]
    # the first Jacobian happens to be symmetric, the others are not
    analysis = frontal.analyze(jacobian(u), kind="general", reuse=10)
    while sizes[-1] > 1e-10:
        change = analysis.factorize(jacobian(u)).solve(-residual(u))
        u += change
        sizes.append(float(np.abs(change).max()))

    if plot:
        import matplotlib.pyplot as plt

        _, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
        left.contourf(x, y, u.reshape(n, n), levels=30)
        left.set_title("temperature")
        right.semilogy(range(1, len(sizes)), sizes[1:], "o-")
        right.set(title="size of each Newton step", xlabel="step")
        plt.savefig("newton_diffusion.png")
    return len(sizes) - 1, sizes[-1], float(np.abs(u - exact).max())


if __name__ == "__main__":
    found = main(plot=find_spec("matplotlib") is not None)
    print("{} steps, the last of size {:.1e}; largest error {:.1e}".format(*found))
