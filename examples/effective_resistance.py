"""Resistance between the ends of each wire of a network: many right-hand sides in one solve.

Foster's theorem (1949): in a connected network of n nodes, the products of the wires' conductances
and the resistances between their ends add up to n - 1.
"""

from importlib.util import find_spec

import networkx as nx
import numpy as np
import scipy.sparse as sp

import frontal
from frontal.problems import graph_laplacian


def main(plot: bool = False) -> tuple[float, int]:
    """Return Foster's sum and the number of nodes minus one."""
    network = nx.connected_watts_strogatz_graph(1000, 6, 0.1, seed=1)
    n, tail, head = len(network), *np.array(network.edges).T

    # node 0 is grounded: without it the Laplacian is positive definite
    factor = frontal.factorize(graph_laplacian(network, shift=0.0)[1:, 1:], kind="spd")

    # a column for each wire: one ampere enters at its tail and leaves at its head
    wires = np.arange(tail.size)
    ends, ones = np.concatenate([tail, head]), np.repeat([1.0, -1.0], tail.size)
    currents = sp.csc_array((ones, (ends, np.tile(wires, 2))), shape=(n, tail.size))
    voltages = np.vstack([np.zeros(tail.size), factor.solve(currents[1:].toarray())])

    resistance = voltages[tail, wires] - voltages[head, wires]

    if plot:
        import matplotlib.pyplot as plt

        x, y = np.transpose(list(nx.circular_layout(network).values()))
        order = np.argsort(resistance)  # the largest on top: wires with few parallel paths
        ends = np.stack([tail, head])[:, order]
        colors = plt.get_cmap("viridis_r")(resistance[order] / resistance.max())
        plt.gca().set_prop_cycle(color=colors)
        plt.plot(x[ends], y[ends], lw=0.5)
        plt.gca().set_aspect("equal")
        plt.title("wires by the resistance between their ends")
        plt.savefig("effective_resistance.png")
    return float(resistance.sum()), n - 1


if __name__ == "__main__":
    print("{:.12f} = {}".format(*main(plot=find_spec("matplotlib") is not None)))
