"""The public functions `eigsh` and `eigvals_count`."""

from __future__ import annotations

import operator
import time

import numpy as np
from numpy.typing import ArrayLike

from .._typing import MatrixLike, Untyped
from ..errors import IllConditionedWarning, SolutionOverflowError, warn
from .interval import Slice, all_in, counted
from .nearest import at_shift, transformed, without_shift
from .pencil import Pencil
from .report import EigenInfo, MissingEigenvaluesError
from .ritz import Eigenpairs, Search, accepted
from .shifts import ShiftedFactors, is_definite

_WHICH = "LM", "SM", "LA", "SA", "BE"
_MODES = "normal", "buckling", "cayley"


def eigsh(
    A: MatrixLike,
    k: int = 6,
    M: MatrixLike | None = None,
    sigma: float | None = None,
    which: str = "LM",
    v0: ArrayLike | None = None,
    ncv: int | None = None,
    maxiter: int | None = None,
    *,
    tol: float = 0,
    return_eigenvectors: bool = True,
    mode: str = "normal",
    rng: Untyped = None,
    interval: tuple[float, float] | None = None,
    complete: bool = True,
    return_info: bool = False,
) -> Untyped:
    """Return eigenvalues and eigenvectors of A x = s M x, as `scipy.sparse.linalg.eigsh`.

    ARPACK iterates with factors of A - sigma M. With `interval` all eigenvalues in it are returned,
    and two inertias prove that none is missing.

    Parameters
    ----------
    A : sparse matrix or array, (n, n)
        Real symmetric or complex Hermitian; a dense array too. The computation is in double
        precision for all scalar types.
    k : int
        Number of eigenvalues; all for k >= n. Ignored with `interval`.
    M : sparse matrix or array, (n, n), optional
        Symmetric or Hermitian and positive definite; semidefinite if a factor of A - sigma M is
        used. By default the identity.
    sigma : float, optional
        The eigenvalues closest to sigma are wanted. If sigma is an eigenvalue, up to rounding, the
        factor is at a shift next to it. The distance is less than a hundredth of the distance of
        the k-th eigenvalue, or 1e-10 ``||A|| / ||M||`` if the k eigenvalues equal sigma. The
        eigenvalues are selected and counted around sigma itself.
    which : {"LM", "SM", "LA", "SA", "BE"}
        As in SciPy: largest or smallest magnitude, largest or smallest value, or both ends; with
        sigma this applies to 1 / (s - sigma). Without sigma, "SM" uses a factor of A, and so does
        "SA" if A is positive semidefinite.
    v0 : (n,) array, optional
        First vector; by default the same random vector in all calls.
    ncv, maxiter, tol
        As in SciPy; ignored with `interval`.
    return_eigenvectors : bool
    mode : {"normal", "buckling", "cayley"}
        As in SciPy.
    rng : int or numpy.random.Generator, optional
        Of the first vector.
    interval : (float, float), optional
        Return all eigenvalues in the closed interval; an end may be infinite if M is definite.
        Ends that are eigenvalues, up to rounding, belong to it.
    complete : bool
        With a shift and ``which="LM"``: prove by one or two more factorizations that no eigenvalue
        is closer to sigma than those returned, and search again if so. SciPy does not, and may
        miss copies of multiple eigenvalues.
    return_info : bool
        Return an `EigenInfo`, too.

    Returns
    -------
    w : (k,) array
        Eigenvalues, ascending.
    v : (n, k) array
        Eigenvectors as columns, M-orthonormal; if `return_eigenvectors`.
    info : EigenInfo
        If `return_info`.

    Raises
    ------
    ValueError, TypeError, NonFiniteInputError
        If an argument does not fit, A or M is not Hermitian, or M has negative eigenvalues.
    MissingEigenvaluesError
        If fewer eigenvalues were computed than counted.
    SingularMatrixError
        If A - s M is singular for all s, or no shift near sigma has accurate eigenpairs.
    SolutionOverflowError
        If a result exceeds the range of the scalar type of A and M.
    scipy.sparse.linalg.ArpackNoConvergence
        If ARPACK does not converge.

    Warns
    -----
    IllConditionedWarning
        If a backward error exceeds 100 eps, or `tol`.

    Examples
    --------
    >>> import frontal, frontal.linalg
    >>> A = frontal.problems.poisson2d(10)
    >>> w, v = frontal.linalg.eigsh(A, k=3, sigma=0)
    >>> w.round(4)
    array([0.162 , 0.3985, 0.3985])
    >>> w, v = frontal.linalg.eigsh(A, interval=(0, 1))
    >>> w.size, frontal.linalg.eigvals_count(A, 0, 1)
    (6, 6)
    """
    began = time.perf_counter()
    pencil = Pencil.from_matrices(A, M, scaled=mode == "normal")
    start = _first_vector(pencil, v0, rng)
    search = Search(_checked_k(k), which, start, ncv, maxiter, tol, mode)
    _check(search, sigma, interval, pencil.A.dtype)
    factors = ShiftedFactors(pencil, definite=mode == "buckling" or is_definite(pencil.M))
    if interval is None and search.k >= pencil.n and mode == "normal":
        interval = -np.inf, np.inf
    try:
        region, pairs = _computed(factors, search, sigma, interval, complete)
    except MissingEigenvaluesError as error:
        low, high = pencil.in_user_units(np.array(error.interval)).tolist()
        values = pencil.in_user_units(error.eigenvalues)
        vectors = pencil.normalized(error.eigenvectors)
        raise MissingEigenvaluesError((low, high), error.count, values, vectors) from None
    errors = pencil.backward_errors(*pairs)
    if errors.max(initial=0.0) > max(accepted(pencil), tol):
        _warn_of_errors(pencil, errors)
    outcome: list[Untyped] = [
        _cast(pencil.in_user_units(pairs.values), np.finfo(pencil.dtype).dtype)
    ]
    if return_eigenvectors:
        outcome.append(_cast(pencil.normalized(pairs.vectors), pencil.dtype))
    if return_info:
        outcome.append(_info(factors, region, errors, began))
    return tuple(outcome) if len(outcome) > 1 else outcome[0]


def _computed(
    factors: ShiftedFactors,
    search: Search,
    sigma: float | None,
    interval: tuple[float, float] | None,
    complete: bool,
) -> tuple[Slice | None, Eigenpairs]:
    """Return eigenpairs, and the interval that was counted if one is requested."""
    pencil = factors.pencil
    if interval is not None:
        region = _counted(factors, interval)
        return region, all_in(factors, region, search.v0)
    if sigma is None:
        pairs = without_shift(factors, search, complete)
    elif search.mode != "normal":
        pairs = transformed(factors, float(sigma), search)
    else:
        pairs = at_shift(factors, pencil.shift_of(sigma), search, complete)
    if pairs.values.size < search.k:
        raise ValueError(
            f"k is {search.k}, but M has so low a rank that only {pairs.values.size} eigenvalues "
            f"are finite. Try: k={pairs.values.size}"
        )
    return None, pairs


def _counted(factors: ShiftedFactors, interval: tuple[float, float]) -> Slice:
    low, high = interval
    return counted(factors, (factors.pencil.end_of(low), factors.pencil.end_of(high)))


def eigvals_count(
    A: MatrixLike, a: float, b: float, M: MatrixLike | None = None, *, return_info: bool = False
) -> Untyped:
    """Return the number of eigenvalues of A x = s M x in the closed interval from a to b.

    It is the difference of the numbers of negative eigenvalues of A - a M and of A - b M, which
    Sylvester's law of inertia reads from two factorizations; no eigenvalue is computed.

    Parameters
    ----------
    A, M : sparse matrices or arrays, (n, n)
        As for `eigsh`. M may be semidefinite: only finite eigenvalues are counted.
    a, b : float
        An end that is an eigenvalue, up to rounding, belongs to the interval. An end may be
        infinite if M is definite.
    return_info : bool
        Return an `EigenInfo`, too, with the ends that were used.

    Returns
    -------
    count : int
        Multiple eigenvalues count as often as their multiplicity.
    info : EigenInfo
        If `return_info`.

    Raises
    ------
    ValueError, TypeError, NonFiniteInputError, SingularMatrixError
        As `eigsh`.

    Examples
    --------
    >>> import frontal, numpy as np
    >>> from frontal.linalg import eigvals_count
    >>> eigvals_count(frontal.problems.poisson2d(10), 4, np.inf)
    55
    """
    began, pencil = time.perf_counter(), Pencil.from_matrices(A, M)
    factors = ShiftedFactors(pencil, definite=is_definite(pencil.M))
    region = _counted(factors, (a, b))
    info = _info(factors, region, np.empty(0), began)
    return (region.size, info) if return_info else region.size


def _cast(results: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return results in the scalar type of the user's matrices."""
    with np.errstate(over="ignore"):
        cast = results.astype(dtype)
    if not np.isfinite(cast).all():
        raise SolutionOverflowError(str(dtype))
    return cast


def _checked_k(k: object) -> int:
    number = operator.index(k)  # type: ignore[arg-type]
    if number < 1:
        raise ValueError(f"k is {number}; it must be at least 1")
    return number


def _first_vector(pencil: Pencil, v0: ArrayLike | None, rng: Untyped) -> np.ndarray:
    """Return v0, or a random vector, in the scalar type of the computation."""
    if v0 is None:
        generator = np.random.default_rng(0 if rng is None else rng)
        return generator.uniform(-1.0, 1.0, pencil.n).astype(pencil.A.dtype)
    vector = np.asarray(v0)
    if vector.shape != (pencil.n,):
        raise ValueError(f"v0 has shape {vector.shape}; it must be ({pencil.n},)")
    if not np.isfinite(vector).all() or np.iscomplexobj(vector) > np.iscomplexobj(pencil.A):
        raise ValueError("v0 has an entry that is NaN or infinite, or complex though A is real")
    return vector.astype(np.result_type(vector, pencil.A.dtype))


def _check(
    search: Search, sigma: float | None, interval: tuple[float, float] | None, dtype: np.dtype
) -> None:
    """Raise ValueError if options contradict each other."""
    if search.which not in _WHICH:
        raise ValueError(f"which is {search.which!r}; choose one of {', '.join(_WHICH)}")
    if search.mode not in _MODES:
        raise ValueError(f"mode is {search.mode!r}; choose one of {', '.join(_MODES)}")
    if dtype.kind == "c" and (search.which == "BE" or search.mode != "normal"):
        raise ValueError("a complex A has neither which='BE' nor a mode other than 'normal'")
    if sigma is not None and not (np.isreal(sigma) and np.isfinite(sigma)):
        raise ValueError(f"sigma is {sigma}; it must be real and finite")
    if search.mode != "normal" and not sigma:
        raise ValueError(f"mode={search.mode!r} needs a sigma other than 0")
    if interval is not None and (sigma is not None or search[1] != "LM" or search.mode != "normal"):
        raise ValueError("interval excludes sigma, which and mode: it selects the eigenvalues")


def _info(
    factors: ShiftedFactors, region: Slice | None, errors: np.ndarray, began: float
) -> EigenInfo:
    in_user_units = factors.pencil.in_user_units
    ends = None if region is None else in_user_units(np.array([region.low, region.high])).tolist()
    return EigenInfo(
        count=None if region is None else region.size,
        interval=None if ends is None else (ends[0], ends[1]),
        shifts=tuple(in_user_units(np.array(factors.shifts)).tolist()),
        backward_errors=errors,
        seconds=time.perf_counter() - began,
    )


def _warn_of_errors(pencil: Pencil, errors: np.ndarray) -> None:
    large = int((errors > accepted(pencil)).sum())
    warn(
        f"{large} of {errors.size} eigenpairs have backward errors up to {errors.max():.1e}, above "
        f"{accepted(pencil):.1e}. Likely causes: (a) sigma is too close to an eigenvalue, (b) A or "
        "M is scaled badly. Try: another sigma, or another unit of the unknowns",
        IllConditionedWarning,
    )
