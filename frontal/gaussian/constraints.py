"""Linear constraints C x = e of Gaussian fields, which may also fix the null space of a precision.

With a basis N of the null space of Q, equal to the identity in the null columns, each field is
x = w + N a for a field w that is zero there and has a proper precision. The constraint is rotated
into C1, C2 so that C2 N = 0. Then C1 x = e1 determines a, and C2 w = e2 conditions w by kriging
(Rue, Held, "Gaussian Markov Random Fields", 2005, sections 2.3.3 and 3.2).
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from ..factor.factor import Factor


class Constraint:
    """The fields w + N a with C x = e, for w of proper precision outside of the null columns.

    Attributes
    ----------
    C, e : (k, n), (k,) arrays
    logdet : float
        log det of the precision within the constrained subspace, less that of w.
    """

    def __init__(
        self, C: np.ndarray, e: np.ndarray, basis: np.ndarray, rest: np.ndarray, factor: Factor
    ) -> None:
        """Prepare the projection.

        Parameters
        ----------
        C, e : arrays
            See `dense_constraint`.
        basis : (n, r) array
            N.
        rest : (n - r,) int array
            The columns outside of the null columns.
        factor : Factor
            Of the precision of w in these.
        """
        self.C, self.e, self._rest, self._factor = C, e, rest, factor
        r = basis.shape[1]
        rotation, triangle = _rotation(C @ basis)
        C, e = rotation.conj().T @ C, rotation.conj().T @ e
        self._fixing, self._fixed = C[:r, rest], e[:r]
        self._motion = sl.solve_triangular(triangle.T, basis.T, lower=True).T  # N R^-1
        self._kriging, self._value = C[r:, rest], e[r:]
        self._gain = factor.solve(np.asfortranarray(self._kriging.conj().T))
        schur = self._kriging @ self._gain
        gram = self.C @ self.C.conj().T
        try:
            self._root = np.linalg.cholesky(0.5 * (schur + schur.conj().T))
            gram_root = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError as error:
            raise _dependent() from error
        _require_rank(gram)
        self._whitened = sl.solve_triangular(self._root, self._gain.conj().T, lower=True).conj().T
        logs = (np.log(np.abs(np.diag(a))).sum() for a in (triangle, self._root, gram_root))
        fixing, kriging, rows = logs
        self.logdet = float(2 * (fixing + kriging - rows))

    def natural(self, b: np.ndarray) -> np.ndarray:
        """Return the linear term of w from that of x, for columns of b (n, p)."""
        return b[self._rest] - self._fixing.conj().T @ (self._motion.conj().T @ b)

    def fields(self, W: np.ndarray, homogeneous: bool = False) -> np.ndarray:
        """Return x for each unconditioned w in the rows of W; C x = 0 if `homogeneous`."""
        value, fixed = (0.0, 0.0) if homogeneous else (self._value, self._fixed)
        miss = W @ self._kriging.T - value
        W = W - sl.cho_solve((self._root, True), miss.T).T @ self._gain.T
        X = np.zeros((W.shape[0], self.C.shape[1]), W.dtype)
        X[:, self._rest] = W
        return X + (fixed - W @ self._fixing.T) @ self._motion.T

    def covariance_of(self, B: np.ndarray) -> np.ndarray:
        """Return the product of the covariance of x and B (n, p)."""
        W = self._factor.solve(np.asfortranarray(self.natural(B)))
        return self.fields(W.T, homogeneous=True).T

    def variances(self) -> np.ndarray:
        """Return the diagonal of the covariance, (n,)."""
        inside = self._factor.diag_inv() - (np.abs(self._whitened) ** 2).sum(axis=1)
        variances = np.zeros(self.C.shape[1])
        variances[self._rest] = np.real(inside)
        if not self._fixed.size:
            return variances
        covariance = self._factor.solve(np.asfortranarray(self._fixing.conj().T))
        covariance -= self._whitened @ (self._whitened.conj().T @ self._fixing.conj().T)
        motion, square = self._motion, self._fixing @ covariance
        variances[self._rest] -= 2 * np.real(motion[self._rest] * covariance.conj()).sum(axis=1)
        return variances + np.real((motion @ square) * motion.conj()).sum(axis=1)

    def holds(self, X: np.ndarray) -> np.ndarray:
        """Return whether C x = e, to half of the digits, for vectors of X (..., n)."""
        eps = np.finfo(X.dtype).eps
        miss = np.abs(X @ self.C.T - self.e)
        size = np.abs(X) @ np.abs(self.C.T) + np.abs(self.e)
        return (miss <= np.sqrt(eps) * size).all(axis=-1)


def _rotation(motions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unitary factor, (k, k), and the triangle, (r, r), of C N.

    Raises
    ------
    ValueError
        If the constraint does not fix all null vectors.
    """
    k, r = motions.shape
    if r == 0:
        return np.eye(k, dtype=motions.dtype), np.empty((0, 0), motions.dtype)
    values = np.linalg.svd(motions, compute_uv=False) if k else np.zeros(1)
    if k < r or not values.min() > _negligible(values.max(), motions):
        raise ValueError(
            f"the precision matrix has a null space of dimension {r}, which the constraint does "
            "not fix completely: C N has a smaller rank for the null vectors N. Try: a row of C "
            "for each free motion, such as the sum over each connected part of the field"
        )
    rotation, triangle = np.linalg.qr(motions, mode="complete")
    return rotation, triangle[:r]


def _negligible(largest: float, M: np.ndarray) -> float:
    return float(largest) * 100 * np.finfo(M.dtype).eps * max(M.shape)


def _require_rank(gram: np.ndarray) -> None:
    """Raise if the rows of C, scaled to length 1, are dependent to working precision."""
    length = np.sqrt(np.real(np.diag(gram)))
    values = np.linalg.eigvalsh(gram / np.outer(length, length)) if gram.size else np.ones(1)
    if not values.min() > _negligible(values.max(), gram):
        raise _dependent()


def _dependent() -> ValueError:
    return ValueError(
        "the rows of the constraint are linearly dependent. Try: remove rows that repeat others"
    )
