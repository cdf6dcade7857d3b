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

Options = dict[str, Any]
Made = tuple[Callable[..., sp.csc_array], Options]


@dataclass(frozen=True)
class System:
    """A x = b, and what it was made of."""

    A: sp.csc_array
    b: np.ndarray
    kind: str
    name: str
    told: str


def _decades(rng: np.random.Generator, low: float, high: float) -> float:
    return float(f"{10.0 ** rng.uniform(low, high):.3g}")


def _edge(n: int, unknowns: int = 1, least: int = 2) -> int:
    """Points along an edge of a grid with about n unknowns."""
    return max(least, int((n / unknowns) ** 0.5))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


def _interior_point(n: int, rng: np.random.Generator) -> Made:
    options = {"mu": _decades(rng, -10, -2), "quadratic": bool(rng.integers(2))}
    return problems.interior_point, {"n": max(n, 6), "seed": _seed(rng)} | options


def _optimal_control(n: int, rng: np.random.Generator) -> Made:
    return problems.optimal_control, {"n": _edge(n, 3), "beta": _decades(rng, -10, 0)}


def _kkt(n: int, rng: np.random.Generator) -> Made:
    regularization = _decades(rng, -14, -2) if rng.integers(2) else 0.0
    options = {"regularization": regularization, "spread": float(rng.integers(7))}
    return problems.kkt, {"n": max(n, 3), "seed": _seed(rng)} | options


def _repeated(n: int, rng: np.random.Generator) -> Made:
    options = {"repeats": int(rng.integers(1, 4)), "seed": _seed(rng)}
    return problems.repeated_constraint, {"n": max(n, 6)} | options


def _stokes(n: int, rng: np.random.Generator) -> Made:
    return problems.stokes2d, {"n": _edge(n, 3), "enclosed": bool(rng.random() < 0.2)}


def _oseen(n: int, rng: np.random.Generator) -> Made:
    options = {"reynolds": _decades(rng, 0, 5), "enclosed": bool(rng.random() < 0.2)}
    return problems.oseen2d, {"n": _edge(n, 3)} | options


def _mna(n: int, rng: np.random.Generator) -> Made:
    frequency = _decades(rng, -3, 3) if rng.integers(2) else 0.0
    return problems.mna, {"n": max(n, 8), "frequency": frequency, "seed": _seed(rng)}


def _circuit(n: int, rng: np.random.Generator) -> Made:
    return problems.circuit, {"n": max(n, 100), "seed": _seed(rng)}


def _shifted(n: int, rng: np.random.Generator) -> Made:
    edge = _edge(n)
    shape = (edge, edge + int(rng.integers(2)))
    mode = tuple(int(rng.integers(1, size + 1)) for size in shape)
    offset = _decades(rng, -16, -1) * rng.choice([-1.0, 1.0]) if rng.random() < 0.8 else 0.0
    return problems.shifted_laplacian, {"n": shape, "mode": mode, "offset": float(offset)}


def _near_skew(n: int, rng: np.random.Generator) -> Made:
    options = {"symmetric_part": _decades(rng, -16, -1), "seed": _seed(rng)}
    return problems.near_skew, {"n": _edge(n)} | options


def _graded(n: int, rng: np.random.Generator) -> Made:
    options = {"decades": round(float(rng.uniform(1, 14)), 1), "seed": _seed(rng)}
    return problems.graded, {"n": _edge(n)} | options


def _conditioned(n: int, rng: np.random.Generator) -> Made:
    options = {"condition": _decades(rng, 8, 16), "symmetric": bool(rng.integers(2))}
    options |= {"dtype": str(rng.choice(["f8", "c16"])), "rounds": int(rng.integers(1, 4))}
    return problems.conditioned, {"n": n, "seed": _seed(rng)} | options


def _zero_diagonal(n: int, rng: np.random.Generator) -> Made:
    options = {"degree": round(float(rng.uniform(2, 6)), 1), "seed": _seed(rng)}
    return problems.zero_diagonal, {"n": n + n % 2} | options


def _convection(n: int, rng: np.random.Generator) -> Made:
    velocity = (_decades(rng, -2, 6), _decades(rng, -2, 6))
    return problems.convdiff2d, {"n": _edge(n), "velocity": velocity}


def _waves(n: int, rng: np.random.Generator) -> Made:
    return problems.helmholtz2d, {"n": _edge(n), "points": round(float(rng.uniform(2, 12)), 2)}


def _random(n: int, rng: np.random.Generator) -> Made:
    options = {"degree": round(float(rng.uniform(1, 6)), 1), "dominant": bool(rng.integers(2))}
    options |= {"symmetric": bool(rng.integers(2)), "seed": _seed(rng)}
    return random_sparse, {"n": n} | options


def _dependent(n: int, rng: np.random.Generator) -> Made:
    options = {"distance": _decades(rng, -18, -6), "degree": round(float(rng.uniform(2, 5)), 1)}
    return dependent_rows, {"n": max(n, 3), "seed": _seed(rng)} | options


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


MAKERS = {
    "interior_point": _interior_point,
    "optimal_control": _optimal_control,
    "kkt": _kkt,
    "repeated_constraint": _repeated,
    "stokes2d": _stokes,
    "oseen2d": _oseen,
    "mna": _mna,
    "circuit": _circuit,
    "shifted_laplacian": _shifted,
    "near_skew": _near_skew,
    "graded": _graded,
    "conditioned": _conditioned,
    "zero_diagonal": _zero_diagonal,
    "convdiff2d": _convection,
    "helmholtz2d": _waves,
    "random_sparse": _random,
    "dependent_rows": _dependent,
}


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
    make, options = MAKERS[name](n, rng)
    return make(**options), f"{name}({', '.join(f'{k}={v!r}' for k, v in options.items())})"


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
        A = problems.turned(A, _seed(rng), hermitian=hermitian)
        told.append(f"turned, hermitian={hermitian}")
    if rng.random() < 0.35:
        A, decades = _scaled(A, symmetric and rng.random() < 0.7, rng)
        told.append(f"scaled by 1e±{decades:.1f}")
    A = problems.permuted(A, _seed(rng), symmetric=bool(symmetric or rng.integers(2)))
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
