"""Errors and warnings: what happened, the likely causes, and what to try."""

from __future__ import annotations

import math
import sys
import warnings
from pathlib import Path

import numpy as np

from .machine.resources import available_memory
from .messages import double_precision, listed, named_columns

_PACKAGE = str(Path(__file__).parent)


class FrontalError(Exception):
    """Base class of all errors of this package, except for misuse of an argument.

    Examples
    --------
    >>> import frontal, scipy.sparse as sp
    >>> try:
    ...     frontal.solve(sp.csc_array([[1.0, 2.0], [2.0, 4.0]]), [1.0, 1.0])
    ... except frontal.FrontalError as error:
    ...     print(type(error).__name__)
    SingularMatrixError
    """


class SingularMatrixError(FrontalError, np.linalg.LinAlgError, RuntimeError):
    """The matrix has no inverse, because of its pattern or its values.

    Attributes
    ----------
    column : int or None
        A column without a pivot, in the numbering of the matrix.
    rank : int or None
        Rank of the pattern or of the nonzero entries, which is an upper bound, or of the values to
        working precision. None if no accurate solution could be computed, for an unknown reason.
    null_columns : (n - rank,) int array or None
        Linear combinations of the other columns; if the pattern or stored zeros make the matrix
        singular, the columns that cannot be matched to a row. None if the rank is None.
    """

    def __init__(
        self,
        message: str,
        *,
        column: int | None = None,
        rank: int | None = None,
        null_columns: np.ndarray | None = None,
    ) -> None:
        super().__init__(message)
        self.column = column
        self.rank = rank
        self.null_columns = null_columns

    @classmethod
    def structural(cls, n: int, null_columns: np.ndarray) -> SingularMatrixError:
        """Return the error for a pattern that no regular matrix has."""
        rank, column = n - null_columns.size, int(null_columns[0])
        return cls(
            f"the matrix is structurally singular: its pattern has rank {rank} of {n}, and "
            f"column {column} cannot be matched to a row. Likely causes: (a) an empty row or "
            "column, (b) an unknown that no equation contains, or an equation without unknowns, "
            "(c) entries lost in the assembly. Try: add the missing equation or boundary "
            "condition, or remove the unknown",
            column=column,
            rank=rank,
            null_columns=null_columns,
        )

    @classmethod
    def stored_zeros(cls, n: int, null_columns: np.ndarray) -> SingularMatrixError:
        """Return the error for a regular pattern and stored zeros that make A singular."""
        rank, column = n - null_columns.size, int(null_columns[0])
        return cls(
            "the matrix is singular because of stored zeros: its pattern has full structural rank, "
            f"but its nonzero entries have rank {rank} of {n} at most, and column {column} cannot "
            "be matched to a row in which it is not zero. Likely causes: (a) values that have not "
            "been computed yet, (b) coefficients that vanish, (c) an unknown that no equation "
            "contains. Try: analyze(A), which needs the pattern only, and its factorize(A) once "
            "values are known; or remove the unknown",
            column=column,
            rank=rank,
            null_columns=null_columns,
        )

    @classmethod
    def of_rank(cls, n: int, null_columns: np.ndarray) -> SingularMatrixError:
        """Return the error for values of lower rank, up to rounding."""
        count = null_columns.size
        are = "are linear combinations" if count > 1 else "is a linear combination"
        return cls(
            f"the matrix is singular to working precision: its rank is {n - count} of {n}, and "
            f"{named_columns(null_columns)} {are} of the others. Likely causes: "
            "(a) boundary conditions are missing, so that a constant or a rigid motion is free, "
            "(b) equations repeat each other. Try: fix these unknowns, remove dependent equations, "
            "or use singular='allow' if the right-hand side is in the range of the matrix",
            column=int(null_columns[0]),
            rank=n - count,
            null_columns=null_columns,
        )

    @classmethod
    def numerical(
        cls, column: int | None, detail: str = "", *, dtype: np.dtype | str | None = None
    ) -> SingularMatrixError:
        """Return the error for a matrix without accurate solution, not proved to be singular."""
        where = "" if column is None else f" at column {column}"
        remedies = ["fix one unknown of each free motion", "remove dependent equations"]
        return cls(
            f"the matrix is singular to working precision{where}{': ' * bool(detail)}{detail}. "
            "Likely causes: (a) boundary conditions are missing, so that a constant or a rigid "
            "motion is free, (b) equations repeat each other, (c) rows or columns differ in scale "
            "by more than the precision. Try: "
            f"{listed([*remedies, 'scale the matrix', *double_precision(dtype)])}",
            column=column,
        )


class SolutionOverflowError(FrontalError, OverflowError):
    """The solution overflows its scalar type.

    Attributes
    ----------
    dtype : str
        The scalar type.
    """

    def __init__(self, dtype: str) -> None:
        super().__init__(dtype)
        self.dtype = dtype

    def __str__(self) -> str:
        return (
            f"the solution is too large for {self.dtype}. Likely causes: (a) the matrix and the "
            "right-hand side are in units that do not fit together, (b) the matrix is nearly "
            f"singular. Try: {listed(['scale the right-hand side', *double_precision(self.dtype)])}"
        )


class NotPositiveDefiniteError(FrontalError, np.linalg.LinAlgError):
    """Cholesky was requested by ``kind="spd"``, and a pivot is not positive.

    Attributes
    ----------
    column : int or None
        The column of that pivot, in the numbering of the matrix.
    """

    def __init__(self, column: int | None = None) -> None:
        super().__init__(column)
        self.column = column

    what = "positive definite", "is not positive"
    causes = (
        "Likely causes: (a) the matrix is indefinite or has the opposite sign, (b) it is singular, "
        "for example without boundary conditions, (c) rounding, if it is nearly singular. Try: "
        "kind='symmetric' or kind='hermitian' (LDL^T or LDL^H of an indefinite matrix)"
    )

    def __str__(self) -> str:
        wanted, reason = self.what
        where = "" if self.column is None else f": the pivot of column {self.column} {reason}"
        return f"the matrix is not {wanted}{where}. {self.causes}"


class InertiaUncertainError(FrontalError, ArithmeticError):
    """Eigenvalues or pivots are too close to zero to determine their signs.

    Attributes
    ----------
    positive, negative : int
        Numbers of eigenvalues whose sign is certain.
    unknown : int
        Number of the other eigenvalues: of either sign, or zero.
    """

    def __init__(self, positive: int, negative: int, unknown: int) -> None:
        super().__init__(positive, negative, unknown)
        self.positive, self.negative, self.unknown = positive, negative, unknown

    def __str__(self) -> str:
        return (
            f"at least {self.positive} eigenvalues are positive and {self.negative} negative; the "
            f"signs of {self.unknown} are not known. Likely causes: (a) the matrix is singular, or "
            "nearly so, (b) pivots were replaced. Try: add a small shift to the matrix, or read "
            "the certain counts from the attributes"
        )


_BATCH_CAUSES = {  # by routine: the likeliest cause, and what to try
    "cholesky": ("it is not positive definite", "lu_factor, which needs no definiteness"),
    "svd": ("an iteration has not converged", "a scaled matrix"),
    "bidiagonalize": ("it is too large for its type", "a scaled matrix"),
}


class BatchError(FrontalError, np.linalg.LinAlgError):
    """Some matrices of a batch have no factor or inverse; the others have one.

    Attributes
    ----------
    indices : (f,) int array
        The matrices that failed.
    columns : (f,) int array
        The first column without a pivot of each, from 0.
    result : object
        What the call would have returned; the matrices not named in ``indices`` are complete.
    """

    _SHOWN = 5

    def __init__(
        self, routine: str, count: int, indices: np.ndarray, columns: np.ndarray, result: object
    ) -> None:
        super().__init__(routine, count, indices, columns)
        self.routine, self.count = routine, count
        self.indices, self.columns, self.result = indices, columns, result

    def __str__(self) -> str:
        pairs = list(zip(self.indices.tolist(), self.columns.tolist(), strict=True))
        shown = ", ".join(f"matrix {i} at column {j}" for i, j in pairs[: self._SHOWN])
        more = f" and {len(pairs) - self._SHOWN} more" if len(pairs) > self._SHOWN else ""
        if self.routine in ("factorize_batch", "solve"):
            return (
                f"{self.routine} failed for {len(pairs)} of {self.count} systems: {shown}{more}. "
                "Likely causes: (a) they are singular, or not positive definite with kind='spd', "
                "(b) NaN or infinity in them. Results of the others are in .result, the numbers of "
                "failed systems in .indices, their columns in .columns (-1 if unknown). Try: "
                "check=False for `status` without an error, or frontal.factorize of one of them "
                "for details"
            )
        cause, remedy = _BATCH_CAUSES.get(self.routine, ("it is singular", "a scaled matrix"))
        return (
            f"{self.routine} failed for {len(pairs)} of {self.count} matrices: {shown}{more}. "
            f"Likely causes: (a) {cause}, (b) NaN or infinity in it. Results of the others are in "
            ".result, the numbers of failed matrices in .indices, their columns in .columns. Try: "
            f"check=False for `info` without an error, or {remedy}"
        )


class NonFiniteInputError(FrontalError, ValueError):
    """NaN or infinity in the matrix or the right-hand side.

    Attributes
    ----------
    index : tuple of int
        Position of the first such entry, in column order.
    """

    def __init__(self, name: str, index: tuple[int, ...], value: complex) -> None:
        super().__init__(name, index, value)
        self.name, self.index, self.value = name, index, value

    causes = (
        "Likely causes: (a) a division by zero or an overflow while the values were computed, "
        "(b) memory that was never filled"
    )

    @property
    def entry(self) -> str:
        """The entry and its value, such as ``A[0, 1] is nan``."""
        place = ", ".join(str(i) for i in self.index)
        return f"{self.name}[{place}] is {self.value}"

    def __str__(self) -> str:
        return (
            f"{self.entry}. {self.causes}. check_finite=False skips this check, but then no result "
            "is reliable"
        )


class FactorMemoryError(FrontalError, MemoryError):
    """The factor does not fit into the available memory, or into a limit.

    Attributes
    ----------
    required, available : int
        Bytes: the least known to be sufficient, and the available memory.
    """

    def __init__(self, required: int, available: int) -> None:
        super().__init__(required, available)
        self.required, self.available = required, available

    @classmethod
    def from_error(cls, error: MemoryError, required: int = 0) -> FactorMemoryError:
        """Return the error for a failed allocation of at least `required` bytes."""
        if isinstance(error, cls):
            return error
        available = available_memory() or 0
        shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
        if shape is not None and dtype is not None:  # attributes of NumPy's error
            required = max(required, math.prod(shape) * dtype.itemsize)
        return cls(max(required, available + 1), available)

    def __str__(self) -> str:
        return (
            f"the factorization needs {self.required / 2**30:.2f} GiB and "
            f"{self.available / 2**30:.2f} GiB are available. Likely causes: (a) an ordering with "
            "much fill, (b) other programs or earlier factors hold the memory, (c) a limit of the "
            "address space (ulimit -v), part of which threads and BLAS use. Try: "
            "ordering='dissection' or ordering='nesdis', precision='mixed' for a matrix in double "
            "precision (half the memory), memory='auto' instead of a limit (panels that do not "
            "fit on a GPU are stored on the host), backend='cpu' if the GPU is too small "
            "(backend='auto' falls back to it), free() of factors that are no longer needed"
        )


class FactorFreedError(FrontalError, ValueError):
    """A factor was used after its memory was freed."""

    def __init__(self) -> None:
        super().__init__()

    def __str__(self) -> str:
        return (
            "the factor has been freed. Likely causes: (a) free() was called, (b) its with block "
            "has ended. Try: factorize again (the analysis is still valid), or free it later"
        )


class StaleFactorError(FrontalError, ValueError):
    """A derivative was requested of a solution by earlier values of the factor."""


class FactorInvalidError(FrontalError, ValueError):
    """A factor was used during a `Factor.refactorize`, or after one that failed.

    Attributes
    ----------
    state : {"failed", "running", "unknown"}
        State of the `Factor.refactorize` that has overwritten the factor.
    """

    def __init__(self, state: str = "unknown") -> None:
        super().__init__(state)
        self.state = state

    def __str__(self) -> str:
        failed = "the new values could not be factorized, as that call reported"
        if self.state == "running":
            return (
                "the factor is being refactorized by another thread, which overwrites it. Nothing "
                "has failed. Try: wait for that call to return, or give each thread a copy() of "
                "the factor"
            )
        if self.state == "failed":
            return (
                "the factor is invalid: the last refactorize failed after it began to overwrite "
                f"the factor. Likely causes: (a) {failed}, (b) it was interrupted. Try: "
                "refactorize again with other values (the analysis remains valid), or make a "
                "copy() of the factor before"
            )
        return (
            "the factor is invalid: a refactorize has overwritten it and has not completed. "
            f"Likely causes: (a) another thread is refactorizing it, (b) {failed}, (c) it was "
            "interrupted. Try: wait for the other thread, refactorize again, or make a copy() of "
            "the factor before"
        )


class OrderingTimeout(FrontalError, TimeoutError):  # noqa: N818 - a public name, as TimeoutError's
    """The time limit of an ordering has passed."""

    @classmethod
    def after(cls, seconds: float | None, ordering: str, advice: str) -> OrderingTimeout:
        """Return the error of an ordering that has had some seconds; `advice` ends the message."""
        return cls(
            f"{ordering} did not end in time ({seconds:.3g} s were left). Likely causes: (a) the "
            "graph is larger than the time limit allows; (b) other work keeps the processor busy. "
            f"Try: a larger time limit, or the ordering 'amd'{advice}"
        )


class IllConditionedWarning(RuntimeWarning):
    """The solution may be inaccurate: A is nearly singular, or a backward error stays large."""


class PerformanceWarning(UserWarning):
    """The result is accurate but was computed by a slower method than requested."""


class TriangleWarning(UserWarning):
    """One triangle is stored: A is solved as it is, but half of a symmetric matrix may be meant."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside of this package, which the user can change."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
