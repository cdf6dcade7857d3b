"""Many small reactors in one batch: implicit time steps by Newton's method for all reactors.

Each reactor has the same 150 reactions A + B -> C + D of 54 species, at its own temperature. All
Jacobians have one pattern; reactors that have converged take no further Newton step.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

import frontal


def main(reactors: int = 200, steps: int = 25, plot: bool = False) -> tuple[float, float]:
    """Return the largest loss of matter, and the share of Newton steps that masks saved."""
    n, reactions, rng = 54, 150, np.random.default_rng(0)
    four = np.array([rng.permutation(n)[:4] for _ in range(reactions)]).T
    a, b = four[:2]
    temperature = np.linspace(0.7, 1.4, reactors)[:, None]
    rate = 30 * np.exp(-rng.uniform(1, 6, reactions) / temperature)

    # a reaction changes four species, at a rate that depends on two; duplicate entries are summed
    sign, number = np.array([-1.0, -1.0, 1.0, 1.0]), np.tile(np.arange(reactions), 4)
    change = sp.csr_array((sign.repeat(reactions), (number, four.ravel())), shape=(reactions, n))
    row = np.concatenate([four.ravel(), four.ravel(), np.arange(n)])
    column = np.concatenate([np.tile(a, 4), np.tile(b, 4), np.arange(n)])

    c = rng.uniform(0, 1, (1, n)).repeat(reactors, axis=0)
    matter, history, dt = c.sum(axis=1), [c], 0.002
    factors, made, spared = None, 0, 0
    for _ in range(steps):
        new, active = c.copy(), np.ones(reactors, bool)
        while active.any():
            slopes = [-dt * np.kron(sign, rate * new[:, other]) for other in (b, a)]
            values = np.concatenate([*slopes, np.ones((reactors, n))], axis=1)
            if factors is None:
                A = sp.coo_array((values[reactors // 2], (row, column)), shape=(n, n))
                factors = frontal.factorize_batch(A, values)
            else:
                factors.refactorize(values, where=active)
            residual = new - c - dt * ((rate * new[:, a] * new[:, b]) @ change)
            correction = np.where(active[:, None], factors.solve(-residual), 0)
            made, spared = made + active.sum(), spared + (~active).sum()
            new, active = new + correction, active & (abs(correction).max(axis=1) > 1e-10)
        c, dt = new, 1.3 * dt
        history.append(c)

    if plot:
        import matplotlib.pyplot as plt

        plt.plot([state[-1, :16] for state in history])  # the hottest reactor
        plt.savefig("chemical_reactors.png")
    return float(abs(c.sum(axis=1) / matter - 1).max()), float(spared / (made + spared))


if __name__ == "__main__":
    lost, saved = main(plot=find_spec("matplotlib") is not None)
    print(f"matter lost: {lost:.1e}; Newton steps saved: {saved:.0%}")
