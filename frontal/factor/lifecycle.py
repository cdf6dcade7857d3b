"""Copies of a factor, their way from the GPU to the host, its end, and what a failure leaves."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ..errors import FactorFreedError, FactorInvalidError, FrontalError

if TYPE_CHECKING:
    import numpy as np

    from ..gpu.sparse.system import ResidentSystem
    from ..matrix import Canonical
    from ..protocol import NumericFactor
    from ..symbolic.scaling import Scaling
    from .analysis import Analysis

Self = TypeVar("Self", bound="LifeCycle")


class Gone:
    """What takes the place of numbers that are no more: whatever is asked of it is an error."""

    error: type[FrontalError]

    def __getattr__(self, name: str) -> Any:
        raise self.error


class Freed(Gone):
    """In the place of memory that was given back."""

    error = FactorFreedError


class Invalid(Gone):
    """In the place of numbers that were being overwritten when something went wrong."""

    error = FactorInvalidError


class Last(NamedTuple):
    """What the last successful factorization leaves to the next: memory, scaling, method."""

    analysis: Analysis
    scaling: Scaling | None
    numeric: NumericFactor
    resident: ResidentSystem | None


class LifeCycle:
    """The part of `Factor` that copies it and gives its memory back."""

    analysis: Analysis
    _numeric: NumericFactor
    _resident: ResidentSystem | None
    _matrix: Canonical | None
    _scaling: Scaling | None
    _dtype: np.dtype
    _last: Last | None = None  # while there is no factor

    if TYPE_CHECKING:

        @property
        def matrix(self) -> Canonical: ...
        def _begin(self, matrix: Canonical | None, dtype: np.dtype) -> None: ...

    def copy(self: Self) -> Self:
        """An independent factor where this one is: refactorizing one leaves the other alone."""
        twin = self._twin()
        if self._resident is None:
            plan = self.analysis.plan
            twin._numeric = copy.deepcopy(self._numeric, {id(plan): plan})
        else:
            numeric = self._resident.factor.copy()
            twin._numeric, twin._resident = numeric, self._resident.with_factor(numeric)
        return twin

    def to_cpu(self: Self) -> Self:
        """An independent factor on the CPU, which needs no GPU any more.

        Examples
        --------
        >>> import frontal
        >>> from frontal.problems import poisson2d
        >>> frontal.factorize(poisson2d(4)).to_cpu().info["backend"]
        'cpu'
        """
        if self._resident is None:
            twin = self.copy()
        else:
            twin = self._twin()
            twin._matrix, twin._resident = self.matrix, None
            twin._numeric = self._resident.factor.to_cpu()
        twin.analysis = self.analysis.on_cpu()
        return twin

    def free(self) -> None:
        """Give the memory of the factor and of the values back; later use is an error.

        A factor on the GPU gives it to CuPy's pool. A factor that is not freed keeps it for as long
        as anything refers to it; in a ``with`` block it is freed at the end.

        Examples
        --------
        >>> import frontal
        >>> from frontal.problems import poisson2d
        >>> with frontal.factorize(poisson2d(4)) as factor:
        ...     x = factor.solve([1.0] * 16)
        >>> factor.solve([1.0] * 16)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        frontal.errors.FactorFreedError: the factor has been freed. ...
        """
        if self._state == "freed":
            return
        last = self._last_numbers()
        if last.resident is not None:
            cast(Any, last.numeric).free()
        self._put(Freed())
        self._last = None

    def _put(self, gone: Gone) -> None:
        """Take all numbers away."""
        self._begin(None, self._dtype)
        self._matrix = self._numeric = self._resident = cast(Any, gone)

    def _last_numbers(self) -> Last:
        """What can be overwritten."""
        if self._last is not None:
            return self._last
        self._require()
        resident = self._resident and self._resident.renewed(None)  # without the old values
        return Last(self.analysis, self._scaling, self._numeric, resident)

    @contextmanager
    def _overwriting(self) -> Iterator[Last]:
        """Where new numbers are computed in place: if that fails, there is no factor."""
        last = self._last = self._last_numbers()
        self._put(Invalid())  # whatever interrupts from here on
        try:
            yield last
        except BaseException:
            self._put(Invalid())
            self.analysis, self._scaling = last.analysis, last.scaling
            raise
        self._last = None

    @property
    def _state(self) -> str:
        """``"freed"``, ``"invalid"``, or nothing for a factor."""
        gone = self._numeric
        return type(gone).__name__.lower() if isinstance(gone, Gone) else ""

    def _require(self) -> None:
        if isinstance(self._numeric, Gone):
            raise self._numeric.error

    def _twin(self: Self) -> Self:
        self._require()
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _last=None)
        return twin

    def __copy__(self: Self) -> Self:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds everything on the host."""
        self._require()
        return {**self.__dict__, "_matrix": self.matrix, "_resident": None, "_last": None}

    def __enter__(self: Self) -> Self:
        self._require()
        return self

    def __exit__(self, *_: object) -> None:
        self.free()
