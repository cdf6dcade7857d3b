"""A power grid with one line out in each case: Newton's method for a batch of 100 load flows.

Complex voltages V satisfy V conj(Y V) = S. The admittances Y differ in one line; the pattern of the
Jacobian, of order 4608, is the same. The Jacobian is a COO matrix; its duplicates are summed.
"""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp

import frontal


def main(cases: int = 100, edge: int = 48, plot: bool = False) -> tuple[int, float, float]:
    """Return the Newton steps, the largest mismatch of power, and the lowest voltage."""
    n, rng, grid = edge * edge, np.random.default_rng(0), np.arange(edge**2).reshape(edge, edge)
    start = np.concatenate([grid[:, :-1].ravel(), grid[:-1].ravel()])
    end = np.concatenate([grid[:, 1:].ravel(), grid[1:].ravel()])
    power = -rng.uniform(0, 1.2e-3, n) * (1 + 0.3j)  # loads; bus 0 supplies them
    lines = np.tile((1 - 10j) * rng.uniform(1, 3, start.size), (cases, 1))
    lines[np.arange(1, cases), rng.choice(start.size, cases - 1, replace=False)] = 0

    row, column = np.concatenate([start, end] * 2), np.concatenate([end, start, start, end])
    y, count = np.concatenate([-lines, -lines, lines, lines], axis=1), row.size
    to_bus = sp.csr_array((np.ones(count), (np.arange(count), row)), shape=(count, n))
    i, j = np.append(row, np.arange(n)), np.append(column, np.arange(n))
    place = np.concatenate([i, i, i + n, i + n]), np.concatenate([j, j + n, j, j + n])

    angle, size, factors, steps = np.zeros((cases, n)), np.ones((cases, n)), None, 0
    while True:
        V = size * np.exp(1j * angle)
        part = V[:, row] * (y * V[:, column]).conj()
        S = part @ to_bus
        mismatch = np.where(np.arange(n), S - power, 0)  # the voltage of bus 0 is fixed
        worst = float(abs(mismatch).max())
        if worst < 1e-10 or steps == 10:
            break
        part[:, row == 0] = 0
        by_angle = np.concatenate([-1j * part, 1j * S], axis=1)
        by_size = np.concatenate([part / size[:, column], S / size], axis=1)
        by_angle[:, count], by_size[:, count] = 1, 1j
        values = np.concatenate([by_angle.real, by_size.real, by_angle.imag, by_size.imag], axis=1)
        J = sp.coo_array((values[0], place), shape=(2 * n, 2 * n))
        factors = factors.refactorize(values) if factors else frontal.factorize_batch(J, values)
        change = factors.solve(-np.concatenate([mismatch.real, mismatch.imag], axis=1))
        angle, size, steps = angle + change[:, :n], size + change[:, n:], steps + 1

    if plot:
        import matplotlib.pyplot as plt

        plt.plot(np.sort(size.min(axis=1)), ".")
        plt.savefig("grid_contingencies.png")
    return steps, worst, float(size.min())


if __name__ == "__main__":
    taken, left, lowest = main(plot=find_spec("matplotlib") is not None)
    print(f"{taken} steps; mismatch {left:.1e}; lowest voltage {lowest:.3f}")
