"""Copies of a factor, their way from the GPU to the host, and the end of one."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .errors import FactorFreedError

if TYPE_CHECKING:
    import numpy as np

    from .analysis import Analysis
    from .backend import NumericFactor
    from .gpu.system import ResidentSystem
    from .matrix import Canonical

Self = TypeVar("Self", bound="LifeCycle")


class Freed:
    """What takes the place of memory that was given back: whatever is asked of it is an error."""

    def __getattr__(self, name: str) -> Any:
        raise FactorFreedError


class LifeCycle:
    """The part of `Factor` that copies it and gives its memory back."""

    analysis: Analysis
    _numeric: NumericFactor
    _resident: ResidentSystem | None
    _matrix: Canonical | None
    _dtype: np.dtype

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
        if self._resident is not None and not self._freed:
            self._resident.factor.free()
        self._begin(None, self._dtype)
        self._matrix = self._numeric = self._resident = cast(Any, Freed())

    @property
    def _freed(self) -> bool:
        return isinstance(self._numeric, Freed)

    def _require(self) -> None:
        if self._freed:
            raise FactorFreedError

    def _twin(self: Self) -> Self:
        self._require()
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __copy__(self: Self) -> Self:
        return self.copy()

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds everything on the host."""
        self._require()
        return {**self.__dict__, "_matrix": self.matrix, "_resident": None}

    def __enter__(self: Self) -> Self:
        self._require()
        return self

    def __exit__(self, *_: object) -> None:
        self.free()
