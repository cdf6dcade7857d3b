"""Errors of a least-squares solution that are measured without its factor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp


@dataclass(frozen=True)
class Certificate:
    """Residual norms, optimalities and backward errors of k solutions, (k,) each."""

    residual_norm: np.ndarray
    optimality: np.ndarray
    backward_error: np.ndarray

    @property
    def worst(self) -> float:
        """The largest backward error."""
        return float(self.backward_error.max(initial=0))


def certify(
    A: sp.csc_array, norm: float, damp: float, x: np.ndarray, b: np.ndarray, closer: np.ndarray
) -> Certificate:
    """Measure solutions of min |A x - b|^2 + damp^2 |x|^2.

    Each backward error is the least of three upper bounds of |E| / |A| for which x solves the
    problem with A + E: by the residual r with E = -r r^H A / |r|^2, by E = r x^H / |x|^2 that makes
    the system compatible (both of Stewart, "Research, development, and LINPACK", 1977), and by a
    vector s nearly orthogonal to the range of A: E = (r - s) x^H / |x|^2 makes s the residual, and
    the first bound for A + E follows.

    Parameters
    ----------
    A : (m, n) sparse array
    norm : float
        2-norm of A.
    damp : float
    x : (n, k) array
    b : (m, k) array
    closer : (m, k) array
        Vectors s.
    """
    r = b - A @ x
    adjoint = A.conj().T
    gradient = adjoint @ r - damp**2 * x
    lengths = np.hypot(_norms(r), damp * _norms(x))
    whole = float(np.hypot(norm, damp))
    with np.errstate(all="ignore"):
        optimality = _ratio(_norms(gradient), whole * lengths)
        compatible = _ratio(lengths, whole * _norms(x))
        change = r - closer
        inner = (change.conj() * closer).sum(axis=0).conj() / _norms(x) ** 2
        remaining = adjoint @ closer - damp**2 * x + x * np.where(np.isfinite(inner), inner, 0)
        size = np.hypot(_norms(closer), damp * _norms(x))
        both = _ratio(_norms(change), whole * _norms(x)) + _ratio(_norms(remaining), whole * size)
    backward = np.minimum(np.minimum(optimality, compatible), both)
    backward[~np.isfinite(x).all(axis=0)] = np.inf
    return Certificate(lengths, optimality, backward)


def _norms(X: np.ndarray) -> np.ndarray:
    return np.linalg.norm(X, axis=0)


def _ratio(errors: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return errors over sizes; 0 for no error, infinity for NaN."""
    ratio = np.where(errors == 0, 0.0, errors / sizes)
    return np.where(np.isnan(ratio), np.inf, ratio)
