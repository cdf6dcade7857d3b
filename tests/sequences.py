"""Sequences of matrices of one pattern and right-hand sides, each with its exact solution.

Every family is a way in which a verdict on earlier values, or on an earlier right-hand side, may be
wrong for the next one. Entries and solutions are small whole numbers times powers of two, so that
b = A x is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp

Step = tuple[np.ndarray, np.ndarray]  # A, dense, and solutions, one a row
Family = Callable[[np.random.Generator], list[Step]]


def chain(stiffness: np.ndarray) -> np.ndarray:
    """Springs in a row, without supports."""
    k = np.asarray(stiffness, float)
    return np.diag(np.r_[k, 0] + np.r_[0, k]) - np.diag(k, 1) - np.diag(k, -1)


def whole(rng: np.random.Generator, n: int, count: int = 1) -> np.ndarray:
    """Solutions of whole numbers."""
    return rng.integers(1, 9, (count, n)).astype(float)


def doubling(m: int, t: float) -> np.ndarray:
    """Upper bidiagonal, pivots 1: the condition number is t^m for t > 1, and small for t < 1."""
    return np.eye(m) - np.diag(np.full(m - 1, float(t)), 1)


def fading_support(rng):
    """A chain on a foundation that weakens in steps of 4: nearly singular in the end."""
    n = int(rng.integers(10, 24))
    stiffness = 2.0 ** -np.arange(24, 56, 2)
    return [(chain(np.ones(n - 1)) + m * np.eye(n), np.ones((1, n))) for m in stiffness]


def weak_link_that_moves(rng):
    """A chain held at one end, with one weak link, which is another one in each step."""
    n, steps = int(rng.integers(12, 24)), []
    for weak in 2.0 ** -np.arange(12, 52, 4):
        k = np.ones(n - 1)
        k[rng.integers(n - 1)] = weak
        D = chain(k)
        D[0, 0] += 1
        steps.append((D, whole(rng, n)))
    return steps


def harmful_block_unseen(rng):
    """A harmless block beside one of condition 2^m, which the first right-hand side leaves out."""
    m = int(rng.integers(54, 62))
    D = np.zeros((m + 5, m + 5))
    D[:5, :5], D[5:, 5:] = 2 * np.eye(5) + np.diag(np.ones(4), 1), doubling(m, 2)
    unmet, met = np.r_[np.ones(5), np.zeros(m)], np.r_[np.zeros(5), whole(rng, m)[0]]
    small = np.r_[np.zeros(5), 2.0 ** -np.arange(m)]
    return [(D, np.stack([unmet, small, met, unmet]))]


def good_and_bad_values(rng):
    """Equal pivots; values that are harmful and harmless in turn."""
    n = int(rng.integers(54, 62))
    return [(doubling(n, t), whole(rng, n)) for t in (0.5, 2, 0.5, 2, 2, 0.5)]


def signs_that_alternate(rng):
    """Rows of alternating sign: no vector of equal signs meets what A makes small."""
    m = int(rng.integers(54, 62))
    signs = (-1.0) ** np.arange(m)
    return [(signs[:, None] * doubling(m, t), np.stack([np.ones(m), signs])) for t in (0.5, 2)]


def dependent_row(rng):
    """A row nears the sum of two others in steps of 8."""
    n = int(rng.integers(8, 20))
    D = rng.integers(-8, 9, (n, n)) * (rng.random((n, n)) < 0.3) + 9.0 * np.eye(n)
    i, j, k = rng.permutation(n)[:3]
    steps = []
    for d in 2.0 ** -np.arange(9, 52, 3):
        E = D.copy()
        E[i] = D[j] + D[k]
        E[i, i] += d
        steps.append((E, whole(rng, n)))
    return steps


def contacts(rng):
    """A bar between contacts that open and close; open ones leave it on a weak foundation."""
    n, m, steps = int(rng.integers(6, 12)), int(rng.integers(1, 4)), []
    K = 2.0 ** rng.integers(0, 20) * chain(np.ones(n - 1))
    K += 2.0 ** -rng.integers(10, 30) * np.eye(n)
    B = np.eye(n)[rng.permutation(n)[:m]]
    for _ in range(8):
        closed = rng.random(m) < 0.4
        C = np.diag(np.where(closed, 0.0, 1.0))
        D = np.block([[K, B.T * closed], [B * closed[:, None], C]])
        steps.append((D, whole(rng, n + m)))
    return steps


def units_of_rows_and_columns(rng):
    """A matrix that is harmless in units of its own, others in each step."""
    n, steps = int(rng.integers(6, 20)), []
    D = rng.integers(-4, 5, (n, n)) * (rng.random((n, n)) < 0.3) + 40.0 * np.eye(n)
    for _ in range(5):
        p, q = 2.0 ** rng.integers(-20, 20, (2, n))
        steps.append((p[:, None] * D * q, whole(rng, n) / q))
    return steps


def penalties(rng):
    """Two unknowns held by penalties that grow beyond all digits, with convection beside."""
    n = int(rng.integers(6, 20))
    D = 2 * chain(np.ones(n - 1)) + np.eye(n)
    D += 0.25 * (np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1))
    held, steps = rng.permutation(n)[:2], []
    for penalty in 2.0 ** np.arange(16, 90, 8):
        E, x = D.copy(), np.zeros((1, n))
        E[held, held] = penalty
        x[0, held[0]] = 3  # so that b is exact
        steps.append((E, x))
    return steps


def point_loads(rng):
    """One harmless matrix, and solutions that are large in one place after the other."""
    n = int(rng.integers(10, 30))
    return [(4 * chain(np.ones(n - 1)) + np.eye(n), 2.0**20 * np.eye(n)[rng.permutation(n)[:6]])]


DOUBTFUL: list[Family] = [
    fading_support,
    weak_link_that_moves,
    harmful_block_unseen,
    good_and_bad_values,
    signs_that_alternate,
    dependent_row,
    contacts,
]
HARMLESS: list[Family] = [units_of_rows_and_columns, penalties, point_loads]


def sequence(
    family: Family, seed: int, dtype: np.dtype
) -> Iterator[tuple[sp.csc_array, list[np.ndarray], np.ndarray]]:
    """Matrices by columns, of one pattern and a scalar type, with right-hand sides and solutions.

    Complex ones are turned by powers of i, which round nothing; what overflows a type is left out.
    """
    rng = np.random.default_rng(seed)
    steps = family(rng)
    n, complex_ = steps[0][0].shape[0], np.dtype(dtype).kind == "c"
    turn = 1j ** rng.integers(0, 4, n) if complex_ else np.ones(n)
    pattern = np.eye(n, dtype=bool).astype(float)
    for D, _ in steps:
        pattern += D != 0
    A = sp.csc_array(pattern)
    columns = np.repeat(np.arange(n), np.diff(A.indptr))
    for D, solutions in steps:
        values = D[A.indices, columns] * (turn[A.indices] * turn[columns].conj())
        X = solutions * turn
        with np.errstate(all="ignore"):
            given = [((turn[:, None] * D * turn.conj()) @ x).astype(dtype) for x in X]
            data = values.astype(dtype)
        if np.isfinite(data).all() and all(np.isfinite(b).all() for b in given):
            yield sp.csc_array((data, A.indices, A.indptr), shape=A.shape), given, X.astype(dtype)
