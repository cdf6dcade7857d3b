"""User input in one form: sorted compressed columns for matrices, dense blocks for vectors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike
from scipy.sparse import SparseEfficiencyWarning

from .._typing import MatrixLike, OnDevice, Sparse, Untyped, for_scipy, is_on_cupy, is_sparse
from ..errors import NonFiniteInputError, warn
from ..machine.lockfree_property import cached_property
from ..machine.threads import columnwise
from ..numeric.method import Method
from . import norms
from .csc import CORRUPT, UNSORTED, inspect
from .exact import refuse_inexact, refuse_masked
from .norms import first_non_finite
from .symmetry import UNSYMMETRIC, check_promise, compare_triangles, is_symmetric, method_of
from .validate import checked
from .value_map import ValueMap, as_stored, order_of

KINDS = {
    "auto": "auto",
    "spd": "spd",
    "posdef": "spd",
    "hpd": "spd",
    "positive definite": "spd",
    "symmetric": "symmetric",
    "hermitian": "hermitian",
    "quasidefinite": "quasidefinite",
    "general": "general",
}


@dataclass(frozen=True, eq=False, init=False)
class Canonical:
    """A square matrix in compressed columns: sorted rows, no duplicates, explicit zeros stored.

    Attributes
    ----------
    indptr : (n + 1,) int64 array
        Column j is ``indices[indptr[j]:indptr[j + 1]]``.
    indices : (nnz,) int32 array
    data : (nnz,) array
        float32, float64, complex64 or complex128. May be the user's array, so read only.
    n : int
    method : Method
        Cholesky if it is to be tried, LDL^T or LDL^H for other symmetric matrices, else LU.
    hermitian : bool
        Whether A == A^H exactly.
    order : ValueMap, optional
        Map from the values of the user's matrix, if requested.
    owned : bool
        No array is shared with the user, so none changes.
    """

    indptr: np.ndarray = field(repr=False)
    indices: np.ndarray = field(repr=False)
    data: np.ndarray = field(repr=False)
    n: int
    method: Method
    hermitian: bool
    order: ValueMap | None = field(default=None, repr=False)
    owned: bool = field(default=False, repr=False)

    def __init__(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        data: np.ndarray,
        n: int,
        method: Method,
        hermitian: bool,
        order: ValueMap | None = None,
        owned: bool = False,
    ) -> None:
        # one update of the dict: a frozen dataclass sets fields one by one, slow for small systems
        values = {"indptr": indptr, "indices": indices, "data": data, "n": n, "method": method}
        self.__dict__.update(values, hermitian=hermitian, order=order, owned=owned)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.n, self.n

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the entries."""
        return self.data.dtype

    def suits(self, method: Method) -> bool:
        """Return whether A has the symmetry that the method assumes, up to rounding."""
        if method.panels == 2 or (
            self.hermitian and (method.adjoint or self.data.dtype.kind != "c")
        ):
            return True
        return is_symmetric(self.indptr, self.indices, self.data, method.adjoint)

    @cached_property
    def A(self) -> sp.csc_array:
        """The matrix as a SciPy array that shares memory."""
        return sp.csc_array((self.data, self.indices, self.indptr), shape=self.shape)

    @cached_property
    def norms(self) -> tuple[float, float]:
        """Infinity norm and 1-norm of A."""
        return norms.norms(self.indptr, self.indices, self.data)

    def __getstate__(self) -> dict[str, object]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def known(self, method: Method, norms: tuple[float, float]) -> Canonical:
        """Return the matrix with the method that factorizes it and with known norms."""
        matrix = self if method is self.method else replace(self, method=method)
        matrix.__dict__["norms"] = norms
        return matrix

    def refuse_non_finite(self) -> None:
        """Raise for the first entry, in column order, that is NaN or infinite."""
        check_finite_entries(self.indptr, self.indices, self.data)


def canonical(
    A: MatrixLike,
    *,
    kind: str = "auto",
    check_finite: bool = True,
    dtype: DTypeLike | None = None,
    ordered: bool = False,
) -> Canonical:
    """Convert a matrix to canonical form.

    Parameters
    ----------
    A : (n, n) sparse matrix or array of any format, CuPy's too, or dense array
        Duplicate entries are summed, explicit zeros stay in the pattern. A is never modified.
        Sorted columns (or rows, if A is real and symmetric) of a supported scalar type are not
        copied: later changes of ``A.data`` change ``data``, so a caller that stores the values must
        copy them.
    kind : str
        ``"auto"``, ``"spd"`` (also ``"posdef"``, ``"hpd"``, ``"positive definite"``),
        ``"symmetric"``, ``"hermitian"`` or ``"general"``. The promised symmetry is checked up to
        rounding, on both triangles. ``"auto"`` becomes ``"spd"`` for a Hermitian matrix with a
        positive diagonal, ``"hermitian"`` or ``"symmetric"`` if A is that, up to rounding.
    check_finite : bool
        Refuse NaN and infinity.
    dtype : data type, optional
        Scalar type of the result, by default that of A. Integers and bool become float64, float16
        becomes float32.
    ordered : bool
        Return the value map of A in `Canonical.order`, too.

    Raises
    ------
    ValueError
        If A is not a square matrix, its index arrays are corrupt, it has masked entries or
        integers that float64 cannot hold, `kind` is unknown or its promise is broken.
    TypeError
        For longdouble, object and other scalar types that BLAS does not support.
    NonFiniteInputError
        If an entry is NaN or infinite; it names the first one.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> A = sp.coo_array(([2, 1, 1, 1, 1], ([0, 1, 1, 0, 1], [0, 1, 1, 1, 0])))
    >>> matrix = canonical(A)
    >>> matrix.method.name, matrix.indptr, matrix.indices, matrix.data
    ('cholesky', array([0, 2, 4]), array([0, 1, 0, 1], dtype=int32), array([2., 1., 1., 2.]))
    """
    require_kind(kind)
    matrix = two_dimensional(A)
    n = matrix.shape[0]
    if matrix.shape[1] != n:
        raise ValueError(
            f"the matrix must be square, its shape is {matrix.shape}. Try: frontal.lstsq for a "
            "least-squares solution"
        )
    work = working_dtype(matrix.dtype, "A")
    if dtype is not None:
        wanted = working_dtype(np.dtype(dtype), "the result")
        if not np.can_cast(work, wanted, "same_kind"):
            raise TypeError(f"A has dtype {matrix.dtype}, which {wanted} cannot hold")
        work = wanted
    compressed = matrix.format in ("csr", "csc")  # `inspect` scans these, but after bool sums
    matrix = checked(matrix, "A", scan=not compressed or matrix.dtype.kind == "b")
    indptr, indices, data = _sorted_columns(matrix, work)
    refuse_inexact(matrix.data, "A")
    stored = ordered and as_stored(matrix, indices)
    structure = compare_triangles(indptr, indices, data, True)
    if matrix.format == "csr" and (structure == UNSYMMETRIC or data.dtype.kind == "c"):
        by_rows = sp.csr_array((data, indices, indptr), shape=matrix.shape)
        indptr, indices, data = _arrays(by_rows.tocsc(), work)
    if check_finite:
        check_finite_entries(indptr, indices, data)
    if structure == UNSYMMETRIC:
        check_promise(KINDS[kind], indptr, indices, data)
    method = method_of(KINDS[kind], structure, indptr, indices, data)
    order = order_of(A, matrix, indptr, indices, stored) if ordered else None
    return Canonical(indptr, indices, data, n, method, structure != UNSYMMETRIC, order)


def require_kind(kind: str) -> None:
    """Raise ValueError if `kind` is unknown."""
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; choose one of {', '.join(map(repr, KINDS))}")


def on_device(x: object) -> bool:
    """Return whether x is an array on a device, of CuPy or any other library."""
    return hasattr(x, "__cuda_array_interface__")


def prepare_rhs(
    b: MatrixLike, n: int, dtype: DTypeLike, *, check_finite: bool = True
) -> tuple[np.ndarray, Callable[[np.ndarray], Untyped]]:
    """Return right-hand sides as one dense block, and a function that restores their form.

    Parameters
    ----------
    b : array-like (n,) or (n, k) of any layout, or sparse
        CuPy's arrays too. Never modified.
    n : int
        Order of the matrix.
    dtype : data type
        Scalar type of the matrix.
    check_finite : bool
        Refuse NaN and infinity.

    Returns
    -------
    B : (n, k) array in Fortran order
        In the common type of `dtype` and b. It may share memory with b: read only.
    restore : callable
        Converts a solution (n, k) to the shape and type of b: (n,) stays (n,), (n, 1) stays (n, 1),
        sparse stays sparse (by columns), and for an array on a device the result is copied there.

    Raises
    ------
    ValueError
        If the shapes do not fit, or b has masked entries or integers that float64 cannot hold.
    TypeError
        For longdouble, object and other scalar types that BLAS does not support.
    NonFiniteInputError
        If an entry is NaN or infinite.

    Examples
    --------
    >>> B, restore = prepare_rhs([1, 2, 3], 3, np.float32)
    >>> B.shape, B.dtype, restore(B).shape
    ((3, 1), dtype('float64'), (3,))
    """
    plain = type(b) is np.ndarray
    if not plain and is_on_cupy(b):
        host, back = prepare_rhs(b.get(), n, dtype, check_finite=check_finite)
        return host, lambda X: to_device(back(X))
    values, restore = b, np.asarray
    if not plain:
        refuse_masked(b, "b")
    if not plain and sp.issparse(b):
        sparse = checked(b, "b")
        refuse_inexact(sparse.data, "b")
        by_columns: type = sp.csc_array if isinstance(b, sp.sparray) else sp.csc_matrix
        restore = by_columns if sparse.ndim == 2 else sp.coo_array
        values = sparse.astype(working_dtype(sparse.dtype, "b")).toarray()
    values, work = np.asarray(values), np.dtype(dtype)
    if values.dtype != work:
        work = working_dtype(np.result_type(work, values.dtype), "b")
        refuse_inexact(values, "b")
    if values.ndim not in (1, 2) or values.shape[0] != n:
        raise ValueError(
            f"b has shape {values.shape} and the matrix {(n, n)}: b must be ({n},) or ({n}, k)"
        )
    single = values.ndim == 1
    B = values.reshape(n, 1) if single else values
    if B.dtype != work or not B.flags.f_contiguous or not B.flags.writeable:
        B = columnwise(B, work)  # compiled code has another type for read-only arrays
    if check_finite:
        check_finite_rhs(B, values.ndim)
    if restore is np.asarray:
        return B, _first_column if single else restore
    return B, lambda X: restore(X[:, 0] if single else X)


def _first_column(X: np.ndarray) -> np.ndarray:
    return X[:, 0]


def check_finite_rhs(B: np.ndarray, ndim: int, name: str = "b") -> None:
    """Raise for the first entry, in column order, that is NaN or infinite."""
    p = first_non_finite(B.reshape(-1, order="F"))
    if p >= 0:
        index = (p % B.shape[0], p // B.shape[0])
        raise NonFiniteInputError(name, index[:ndim], B[index].item())


def working_dtype(dtype: np.dtype, name: str) -> np.dtype:
    """Return the BLAS type that holds `dtype`: float64 for integers and bool, float32 for float16.

    Raises
    ------
    TypeError
        If no BLAS type holds it.
    """
    if dtype.kind in "biu":
        return np.dtype(np.float64)
    if dtype.kind == "f" and dtype.itemsize <= 8:
        return np.dtype(np.float32 if dtype.itemsize < 8 else np.float64)
    if dtype.kind == "c" and dtype.itemsize <= 16:
        return np.dtype(np.complex64 if dtype.itemsize < 16 else np.complex128)
    raise TypeError(
        f"{name} has dtype {dtype}; float32, float64, complex64 and complex128 are supported, "
        "integers, bool and float16 are converted"
    )


def to_device(x: np.ndarray | Sparse) -> OnDevice:
    """Return x on CuPy's current device."""
    if sp.issparse(x):
        return sys.modules["cupyx"].scipy.sparse.csc_matrix(x)
    return sys.modules["cupy"].asarray(x)


def two_dimensional(A: MatrixLike) -> Sparse:
    """Return A as a SciPy sparse matrix or array with two dimensions."""
    matrix = A.get() if is_on_cupy(A) else for_scipy(A)
    refuse_masked(matrix, "A")
    if not is_sparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        working_dtype(matrix.dtype, "A")
        raise ValueError(f"the matrix must have two dimensions, its shape is {matrix.shape}")
    if is_sparse(matrix):
        return matrix
    work = working_dtype(matrix.dtype, "A")
    refuse_inexact(matrix, "A")
    warn(
        f"A is a dense array of shape {matrix.shape}; its zeros are dropped. Try: a sparse format, "
        "which needs no search for zeros",
        SparseEfficiencyWarning,
    )
    return sp.csc_array(matrix.astype(work, copy=False))


def _sorted_columns(A: Sparse, work: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return compressed columns of A, or of A^T if A is CSR, sorted and without duplicates."""
    if A.dtype.kind == "b":  # True + True is True, as in A.toarray()
        A = A.copy() if A.format in ("csr", "csc") else A.tocsc()
        A.sum_duplicates()
    elif A.format in ("coo", "dia", "bsr") and A.dtype != work:
        A = A.astype(work)  # before the sum of duplicates: small integers overflow
    if A.format not in ("csr", "csc"):
        A = A.tocsc()
    indptr, indices, data = _arrays(A, work)
    order = inspect(indptr, indices)
    if order == CORRUPT:
        checked(A, "A")  # raises with a more precise message, usually
        raise ValueError("the index arrays of A are corrupt")
    if order == UNSORTED:
        columns = sp.csc_array((data, indices, indptr), shape=A.shape, copy=True)
        columns.sum_duplicates()
        indptr, indices, data = _arrays(columns, work)
    return indptr, indices, data


def _arrays(A: Sparse, work: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the arrays of CSC or CSR in the types of `Canonical`, copied only if these differ."""
    indptr = np.ascontiguousarray(A.indptr, dtype=np.int64)
    nnz = min(max(int(indptr[-1]), 0), A.indices.size, A.data.size)
    indices = A.indices[:nnz]
    if indices.dtype != np.int32 and nnz:
        limit = np.iinfo(np.int32).max
        if A.shape[0] > limit:
            raise ValueError(f"the matrix has {A.shape[0]} rows, at most {limit} are supported")
        indices = np.clip(indices, -1, limit)  # an index that would wrap around stays out of range
    return (
        indptr,
        np.ascontiguousarray(indices, dtype=np.int32),
        np.ascontiguousarray(A.data[:nnz], dtype=work),
    )


def check_finite_entries(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> None:
    """Raise for the first entry, in column order, that is NaN or infinite."""
    p = first_non_finite(data)
    if p >= 0:
        j = int(np.searchsorted(indptr, p, "right")) - 1
        raise NonFiniteInputError("A", (int(indices[p]), j), data[p])
