"""Small systems that are hard on a solver: any of them by a seed and a number.

Kinds of problems from `frontal.problems`, and random ones, in a random order, badly scaled or not,
real or complex, single or double precision. Most are regular; some are singular, or nearly so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from frontal import problems

Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class System:
    """A x = b, and what it was made of."""

    A: sp.csc_array
    b: np.ndarray
    kind: str
    name: str
    told: str


def random_sparse(
    n: int, degree: float, dominant: bool, symmetric: bool, seed: int
) -> sp.csc_array:
    """Normal numbers at random places and on the diagonal, or on a random permutation."""
    rng = np.random.default_rng(seed)
    count, cols = int(degree * n), np.arange(n)
    rows = cols if dominant or symmetric else rng.permutation(n)
    i, j = np.r_[rows, rng.integers(0, n, count)], np.r_[cols, rng.integers(0, n, count)]
    values = rng.standard_normal(n + count)
    values[:n] *= degree + 2 if dominant else 1
    A = sp.csc_array(sp.coo_array((values, (i, j)), shape=(n, n)))
    return sp.csc_array(A + A.T) if symmetric else A


def dependent_rows(n: int, distance: float, degree: float, seed: int) -> sp.csc_array:
    """A random sparse matrix whose last row is the sum of others, but for a relative distance."""
    rng = np.random.default_rng(seed)
    A = sp.lil_array(random_sparse(n, degree, True, False, seed))
    others = rng.choice(n - 1, min(3, n - 1), replace=False)
    row = A[others].toarray().sum(axis=0)
    A[n - 1] = row * (1 + distance * rng.standard_normal(n))
    return sp.csc_array(A)


@dataclass(frozen=True)
class Maker:
    """A kind of problem: what makes it of about n unknowns, and how its options are drawn."""

    make: Callable[..., sp.csc_array]
    size: Callable[[int], int]
    options: dict[str, Draw] | Callable[[int, np.random.Generator], dict[str, Any]]


def decades(low: float, high: float) -> Draw:
    """A power of ten between two, rounded to three digits."""
    return lambda rng: float(f"{10.0 ** rng.uniform(low, high):.3g}")


def uniform(low: float, high: float, digits: int) -> Draw:
    return lambda rng: round(float(rng.uniform(low, high)), digits)


def integer(low: int, high: int) -> Draw:
    return lambda rng: int(rng.integers(low, high))


def chance(probability: float) -> Draw:
    return lambda rng: bool(rng.random() < probability)


def either(rng: np.random.Generator) -> bool:
    return bool(rng.integers(2))


def any_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def or_zero(draw: Draw) -> Draw:
    return lambda rng: draw(rng) if rng.integers(2) else 0.0


def at_least(least: int) -> Callable[[int], int]:
    return lambda n: max(n, least)


def edge(unknowns: int = 1) -> Callable[[int], int]:
    """Points along an edge of a grid with some unknowns a point."""
    return lambda n: max(2, int((n / unknowns) ** 0.5))


def _shifted(size: int, rng: np.random.Generator) -> dict[str, Any]:
    shape = (size, size + int(rng.integers(2)))
    mode = tuple(int(rng.integers(1, points + 1)) for points in shape)
    far = decades(-16, -1)(rng) * rng.choice([-1.0, 1.0]) if rng.random() < 0.8 else 0.0
    return {"n": shape, "mode": mode, "offset": float(far)}


MAKERS = {
    "interior_point": Maker(problems.interior_point, at_least(6),
        {"mu": decades(-10, -2), "quadratic": either, "seed": any_seed}),
    "optimal_control": Maker(problems.optimal_control, edge(3), {"beta": decades(-10, 0)}),
    "kkt": Maker(problems.kkt, at_least(3),
        {"regularization": or_zero(decades(-14, -2)),
         "spread": lambda rng: float(rng.integers(7)), "seed": any_seed}),
    "repeated_constraint": Maker(problems.repeated_constraint, at_least(6),
        {"repeats": integer(1, 4), "seed": any_seed}),
    "stokes2d": Maker(problems.stokes2d, edge(3), {"enclosed": chance(0.2)}),
    "oseen2d": Maker(problems.oseen2d, edge(3),
        {"reynolds": decades(0, 5), "enclosed": chance(0.2)}),
    "mna": Maker(problems.mna, at_least(8),
        {"frequency": or_zero(decades(-3, 3)), "seed": any_seed}),
    "circuit": Maker(problems.circuit, at_least(100), {"seed": any_seed}),
    "shifted_laplacian": Maker(problems.shifted_laplacian, edge(), _shifted),
    "near_skew": Maker(problems.near_skew, edge(),
        {"symmetric_part": decades(-16, -1), "seed": any_seed}),
    "graded": Maker(problems.graded, edge(), {"decades": uniform(1, 14, 1), "seed": any_seed}),
    "conditioned": Maker(problems.conditioned, at_least(1),
        {"condition": decades(8, 16), "symmetric": either,
         "dtype": lambda rng: str(rng.choice(["f8", "c16"])), "rounds": integer(1, 4),
         "seed": any_seed}),
    "zero_diagonal": Maker(problems.zero_diagonal, lambda n: n + n % 2,
        {"degree": uniform(2, 6, 1), "seed": any_seed}),
    "convdiff2d": Maker(problems.convdiff2d, edge(),
        {"velocity": lambda rng: (decades(-2, 6)(rng), decades(-2, 6)(rng))}),
    "helmholtz2d": Maker(problems.helmholtz2d, edge(), {"points": uniform(2, 12, 2)}),
    "random_sparse": Maker(random_sparse, at_least(1),
        {"degree": uniform(1, 6, 1), "dominant": either, "symmetric": either, "seed": any_seed}),
    "dependent_rows": Maker(dependent_rows, at_least(3),
        {"distance": decades(-18, -6), "degree": uniform(2, 5, 1), "seed": any_seed}),
}  # fmt: skip


LARGE = (500, 2000)  # unknowns of large systems: more than, at most


def system(seed: int, number: int) -> System:
    """The system of a number: always the same one for a seed."""
    rng = np.random.default_rng([seed, number])
    name = list(MAKERS)[number % len(MAKERS)]
    n = int(rng.integers(150, 400)) if rng.random() < 0.04 else int(2 * 75 ** rng.random())
    A, told = _made(name, n, rng)
    return _changed(A, name, [told], rng)


def large_system(seed: int, number: int) -> System:
    """The same for systems of more than 500 unknowns and at most 2000, most of them singular."""
    rng = np.random.default_rng([seed, number, *LARGE])
    name = list(MAKERS)[number % len(MAKERS)]
    low, high = LARGE
    wanted = n = int(rng.integers(low + 1, high + 1))
    for _ in range(20):
        A, told = _made(name, n, rng)
        if low < A.shape[0] <= high:
            break
        n = max(2, n * wanted // A.shape[0])
    told = [told]
    if rng.random() < 0.75:
        count = int(rng.integers(1, 4))
        A = _deficient(A, count, rng)
        told.append(f"{count} rows and columns repeated")
    return _changed(A, name, told, rng)


def _made(name: str, n: int, rng: np.random.Generator) -> tuple[sp.csc_array, str]:
    maker = MAKERS[name]
    size = maker.size(n)
    if callable(maker.options):
        options = maker.options(size, rng)
    else:
        options = {"n": size} | {key: draw(rng) for key, draw in maker.options.items()}
    return maker.make(**options), f"{name}({', '.join(f'{k}={v!r}' for k, v in options.items())})"


def _deficient(A: sp.csc_array, count: int, rng: np.random.Generator) -> sp.csc_array:
    """Rows and columns take the place of others, so that the rank drops and symmetry stays."""
    n = A.shape[0]
    chosen = rng.choice(n, 2 * count, replace=False)
    source = np.arange(n)
    source[chosen[:count]] = chosen[count:]
    return sp.csc_array(sp.csr_array(A)[source])[:, source]


def _changed(A: sp.csc_array, name: str, told: list[str], rng: np.random.Generator) -> System:
    """Turned, scaled, permuted or in single precision, with a right-hand side."""
    symmetric = abs(A - A.T).max() == 0 or abs(A - A.conj().T).max() == 0
    if A.dtype.kind != "c" and rng.random() < 0.3:
        hermitian = bool(rng.integers(2))
        A = problems.turned(A, any_seed(rng), hermitian=hermitian)
        told.append(f"turned, hermitian={hermitian}")
    if rng.random() < 0.35:
        A, decades = _scaled(A, symmetric and rng.random() < 0.7, rng)
        told.append(f"scaled by 1e±{decades:.1f}")
    A = problems.permuted(A, any_seed(rng), symmetric=bool(symmetric or rng.integers(2)))
    if rng.random() < 0.3:
        A = _single(A)
    kind = "general" if rng.random() < 0.25 else "auto"
    b, made = _right_hand_side(A, rng)
    told += [f"permuted, {A.dtype}, kind={kind}, {made}"]
    return System(A, b, kind, name, "; ".join(told))


def _scaled(A: sp.csc_array, alike: bool, rng: np.random.Generator) -> tuple[sp.csc_array, float]:
    """Rows and columns times powers of ten; a symmetric matrix stays so if they are alike."""
    n, decades = A.shape[0], rng.uniform(0.5, 8)
    row = 10.0 ** rng.uniform(-decades, decades, n)
    column = row if alike else 10.0 ** rng.uniform(-decades, decades, n)
    C = sp.coo_array(A)
    C.data = C.data * (row[C.coords[0]] * column[C.coords[1]])
    return sp.csc_array(C), decades


def _single(A: sp.csc_array) -> sp.csc_array:
    """In single precision, brought into its range first."""
    size = np.abs(A.data).max(initial=0.0)
    factor = 2.0 ** -np.round(np.log2(size)) if size > 1e15 else 1.0
    return (A * factor).astype(np.complex64 if A.dtype.kind == "c" else np.float32)


def _right_hand_side(A: sp.csc_array, rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """A times a random vector, computed in long double; else a random or a unit vector."""
    n, way = A.shape[0], rng.choice(["b = A x", "random b", "unit b"], p=[0.7, 0.2, 0.1])
    x = rng.standard_normal(n)
    if A.dtype.kind == "c":
        x = x + 1j * rng.standard_normal(n)
    if way == "b = A x":
        extended = np.result_type(A.dtype, np.longdouble)
        x = A.astype(extended) @ x.astype(extended)
    elif way == "unit b":
        x = np.eye(1, n, int(rng.integers(n)))[0]
    return x.astype(A.dtype), str(way)
