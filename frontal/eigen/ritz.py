"""Eigenpairs near a shift: ARPACK or a dense eigensolver, then a Rayleigh-Ritz projection."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator
from scipy.sparse.linalg import eigsh as arpack

from ..factor.factor import Factor
from ..numeric.linear_system import eps_of
from .pencil import Pencil

MAX_DENSE = 64  # columns: up to here a dense eigensolver takes less time than ARPACK
_ACCEPTED = 100  # roundings of a backward error
_PRECISE = 32  # roundings of a backward error that needs no correction
_MAX_ITERATIONS = 3  # inverse iterations of computed vectors
_MIN_COMPONENT = 1e-8  # smaller eigenvalues of a Gram matrix come from dependent vectors
_MIN_RECIPROCAL = 1e-12  # relative: smaller reciprocals are those of infinite eigenvalues


Solve = Callable[[np.ndarray], np.ndarray]


class Search(NamedTuple):
    """What ARPACK is to search, and how; see `scipy.sparse.linalg.eigsh`."""

    k: int
    which: str = "LM"
    v0: np.ndarray | None = None
    ncv: int | None = None
    maxiter: int | None = None
    tol: float = 0.0
    mode: str = "normal"


def accepted(pencil: Pencil) -> float:
    """Return the largest backward error of an eigenpair that needs no warning."""
    return _ACCEPTED * eps_of(pencil.A.dtype)


class Eigenpairs(NamedTuple):
    """Eigenvalues, ascending, and M-orthonormal eigenvectors as columns."""

    values: np.ndarray
    vectors: np.ndarray

    def chosen(self, index: np.ndarray) -> Eigenpairs:
        """Return some of the pairs."""
        return Eigenpairs(self.values[index], self.vectors[:, index])


def near_shift(
    pencil: Pencil,
    factor: Factor,
    shift: float,
    search: Search,
    *,
    definite: bool,
    locked: np.ndarray | None = None,
    incomplete: bool = False,
) -> Eigenpairs:
    """Return eigenpairs near a shift.

    Parameters
    ----------
    pencil : Pencil
    factor : Factor
        Of A - shift M.
    shift : float
    search : Search
    definite : bool
        Whether M is positive definite.
    locked : (n, p) array, optional
        M-orthonormal eigenvectors to which the search is restricted to be M-orthogonal. They take
        part in the projection, so that the result has their pairs, too.
    incomplete : bool
        Return the pairs that converged if others did not.

    Raises
    ------
    scipy.sparse.linalg.ArpackNoConvergence
        If some pairs did not converge, and all of them must; or if none did.
    """
    solve = partial(factor.solve, refine=0)
    if not is_dense(pencil.n, search.k):
        V = _arpack_vectors(pencil, solve, shift, search, locked, incomplete)
        return _iterated(pencil, solve, V, definite)
    if locked is not None:
        search = search._replace(k=search.k + locked.shape[1])
    pairs = _iterated(pencil, solve, _dense_vectors(pencil, solve, search), definite)
    if not definite:
        return pairs
    error = pencil.backward_errors(*pairs).max(initial=0.0)
    if pairs.values.size >= min(search.k, pencil.n) and error <= max(accepted(pencil), search.tol):
        return pairs
    # one reciprocal so large that the others have no digits
    return _dense_pairs(pencil, shift, search)


def _iterated(pencil: Pencil, solve: Solve, V: np.ndarray, definite: bool) -> Eigenpairs:
    """Return the pairs of vectors after as many inverse iterations as their errors need.

    An iteration removes errors far from the shift, and null vectors of M.
    """
    limit, pairs = _PRECISE * eps_of(V.dtype), None
    if definite:
        pairs = rayleigh_ritz(pencil, V)
        error = pencil.backward_errors(*pairs).max(initial=0.0)
        if error <= limit:
            return pairs
    for _ in range(_MAX_ITERATIONS):
        start = V if pairs is None else pairs.vectors
        iterated = rayleigh_ritz(pencil, solve(np.asfortranarray(pencil.mass_times(start))))
        if pairs is not None and iterated.values.size < pairs.values.size:
            break
        pairs = iterated
        if pencil.backward_errors(*pairs).max(initial=0.0) <= limit:
            break
    assert pairs is not None
    return pairs


def _dense_pairs(pencil: Pencil, shift: float, search: Search) -> Eigenpairs:
    """Return eigenpairs selected by 1 / (s - shift) from those of LAPACK; M is definite."""
    M = None if pencil.M is None else pencil.M.toarray()
    values, vectors = scipy.linalg.eigh(pencil.A.toarray(), M)
    with np.errstate(divide="ignore", over="ignore"):
        reciprocals = 1 / (values - shift)
    order = np.argsort(reciprocals, kind="stable")
    index = np.sort(order[selected(reciprocals[order], search.k, search.which)])
    return Eigenpairs(values[index], vectors[:, index])


def is_dense(n: int, k: int) -> bool:
    """Return whether a dense eigensolver is used: for small n, and for almost all eigenvalues."""
    return n <= MAX_DENSE or (k >= n - 1 and n <= 8 * MAX_DENSE)


def rayleigh_ritz(pencil: Pencil, V: np.ndarray) -> Eigenpairs:
    """Return the best eigenpairs in the span of vectors; fewer if the vectors are dependent."""
    if not V.size:
        return Eigenpairs(np.empty(0), V)
    mass = pencil.mass_times(V)
    norms = np.sqrt(np.maximum(np.einsum("ij,ij->j", V.conj(), mass).real, 0))
    V = np.asfortranarray(V[:, norms > 0] / norms[norms > 0])
    gram = V.conj().T @ pencil.mass_times(V)
    # by divide and conquer: LAPACK's default, MRRR, loses digits for matrices near the identity
    size, basis = scipy.linalg.eigh((gram + gram.conj().T) / 2, driver="evd")
    independent = size > _MIN_COMPONENT
    V = V @ (basis[:, independent] / np.sqrt(size[independent]))
    projected = V.conj().T @ (pencil.A @ V)
    values, rotation = scipy.linalg.eigh((projected + projected.conj().T) / 2, driver="evd")
    return Eigenpairs(values, V @ rotation)


def _arpack_vectors(
    pencil: Pencil,
    solve: Solve,
    shift: float,
    search: Search,
    locked: np.ndarray | None,
    incomplete: bool,
) -> np.ndarray:
    """Return the vectors that ARPACK computes, behind the locked ones."""
    if locked is None:
        locked = np.empty((pencil.n, 0), pencil.A.dtype)
    locked_mass = pencil.mass_times(locked).conj().T

    def inverse(x: np.ndarray) -> np.ndarray:
        y = solve(x.ravel())
        return y - locked @ (locked_mass @ y) if locked.size else y

    operator = LinearOperator(pencil.A.shape, inverse, dtype=pencil.A.dtype)
    try:
        _, V = arpack(pencil.A, M=pencil.M, sigma=shift, OPinv=operator, **search._asdict())
    except ArpackError as error:
        if not incomplete:
            raise
        has_pairs = isinstance(error, ArpackNoConvergence)
        V = error.eigenvectors if has_pairs else locked[:, :0]
    return np.hstack([locked, V])


def _dense_vectors(pencil: Pencil, solve: Solve, search: Search) -> np.ndarray:
    """Return eigenvectors of M^1/2 (A - shift M)^-1 M^1/2, multiplied by (A - shift M)^-1 M^1/2."""
    root = np.eye(pencil.n, dtype=pencil.A.dtype, order="F")
    if pencil.M is not None:
        size, basis = scipy.linalg.eigh(pencil.M.toarray())
        root = np.asfortranarray((basis * np.sqrt(np.maximum(size, 0))) @ basis.conj().T)
    solved = solve(root)
    operator = root @ solved
    reciprocals, vectors = scipy.linalg.eigh((operator + operator.conj().T) / 2)
    finite = np.abs(reciprocals) > _MIN_RECIPROCAL * np.abs(reciprocals).max(initial=0.0)
    wanted = selected(reciprocals[finite], search.k, search.which)
    return solved @ vectors[:, finite][:, wanted]


def selected(values: np.ndarray, k: int, which: str) -> np.ndarray:
    """Return the positions of k values by ARPACK's rule, ascending; values ascend.

    Examples
    --------
    >>> selected(np.array([-3.0, 1.0, 2.0, 5.0]), 3, "BE").tolist()
    [0, 2, 3]
    """
    n = values.size
    if which in ("LM", "SM"):
        order = np.argsort(np.abs(values), kind="stable")
    elif which == "BE":
        low = k // 2
        order = np.concatenate([np.arange(low, n), np.arange(low)])
    else:
        order = np.arange(n)
    return np.sort(order[:k] if which in ("SM", "SA") else order[max(0, n - k) :])
