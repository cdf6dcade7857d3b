"""Heat spreads in a plate with cold edges: one factor, many time steps.

Crank and Nicolson: (M + dt/2 K) u' = (M - dt/2 K) u. Each step is one solve with the same factor.
"""

from importlib.util import find_spec

import numpy as np

import frontal
from frontal.problems import heat2d, poisson2d


def main(n: int = 127, steps: int = 100, plot: bool = False) -> float:
    """Return the largest error at the end divided by the largest temperature."""
    h, dt = 1 / (n + 1), 2e-4
    x, y = np.meshgrid(*[h * np.arange(1, n + 1)] * 2, indexing="ij")

    def exact(t: float) -> np.ndarray:
        slow = np.sin(np.pi * x) * np.sin(np.pi * y) * np.exp(-2 * np.pi**2 * t)
        fast = np.sin(3 * np.pi * x) * np.sin(2 * np.pi * y) * np.exp(-13 * np.pi**2 * t)
        return slow + fast

    K = poisson2d(n)
    factor = frontal.factorize(heat2d(n, dt / 2))  # M + dt/2 K with M = h^2 I
    u = exact(0).ravel()
    history = [u]
    for _ in range(steps):
        u = factor.solve(h**2 * u - dt / 2 * (K @ u))
        history.append(u)

    if plot:
        import matplotlib.pyplot as plt

        _, axes = plt.subplots(1, 4, figsize=(12, 3))
        for axis, step in zip(axes, (0, steps // 20, steps // 5, steps), strict=True):
            axis.imshow(history[step].reshape(n, n).T, origin="lower", vmin=-1, vmax=1.5)
            axis.set_title(f"t = {step * dt:.3f}")
        plt.savefig("transient_heat.png")
    end = exact(steps * dt).ravel()
    return float(np.abs(u - end).max() / end.max())


if __name__ == "__main__":
    print(f"largest relative error: {main(plot=find_spec('matplotlib') is not None):.1e}")
