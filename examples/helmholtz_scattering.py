"""A plane wave meets a disc that reflects it: a complex symmetric, indefinite system.

The scattered wave satisfies Helmholtz' equation, cancels the incoming wave on the disc, and leaves
through the boundary of the box. In the open plane it is a series of Hankel functions. Most of the
error is reflection by the boundary, which is transparent at right angles only.
"""

from importlib.util import find_spec

import numpy as np
from scipy.special import hankel1, jv

import frontal
from frontal.problems import helmholtz2d


def series(k: float, radius: float, r: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return the wave scattered by a sound-soft disc in the whole plane."""
    m = np.arange(-40, 41)[:, None]
    terms = 1j**m * jv(m, k * radius) / hankel1(m, k * radius) * np.exp(1j * m * angle)
    return -np.sum(terms * hankel1(m, k * r), axis=0)


def main(n: int = 300, plot: bool = False) -> float:
    """Return the relative error of the scattered wave on a circle around the disc."""
    points = 25  # cells in a wavelength: the box is 12 wavelengths wide
    x, y = (np.mgrid[:n, :n].reshape(2, -1) - (n - 1) / 2) / points
    r, angle = np.hypot(x, y), np.arctan2(y, x)
    incoming = np.exp(2j * np.pi * x)

    A = helmholtz2d(n, points)
    on_disc = r < 1
    scattered = -incoming
    b = -A[:, on_disc] @ scattered[on_disc]
    scattered[~on_disc] = frontal.solve(A[~on_disc][:, ~on_disc], b[~on_disc])

    if plot:
        import matplotlib.pyplot as plt

        plt.imshow((incoming + scattered).real.reshape(n, n).T, vmin=-2, vmax=2, cmap="RdBu")
        plt.savefig("helmholtz_scattering.png")
    ring = np.abs(r - 3) < 0.5 / points
    expected = series(2 * np.pi, 1.0, r[ring], angle[ring])
    return float(np.linalg.norm(scattered[ring] - expected) / np.linalg.norm(expected))


if __name__ == "__main__":
    print(f"relative error: {main(plot=find_spec('matplotlib') is not None):.3f}")
