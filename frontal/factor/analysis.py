"""Analysis: everything about a factorization that depends on the pattern of A alone."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from .._typing import MatrixLike, Untyped
from ..backend.protocol import Progress
from ..matrix.complete import to_canonical
from ..matrix.value_map import ValueMap
from . import analysis_file
from .analyzed import Analyzed
from .attempt import DeviceValues
from .diagnosis import require_singular
from .factor import Factor

if TYPE_CHECKING:
    from typing_extensions import Self


class Analysis(Analyzed):
    """The result of the symbolic phase: an ordering and a plan, reusable for any values.

    Attributes
    ----------
    n : int
        Order of the matrix.
    kind : {"spd", "quasidefinite", "symmetric", "hermitian", "general"}
        Kind that selects the method; ``"auto"`` has been resolved.
    method : {"cholesky", "signed_ldlh", "ldlt", "ldlh", "lu"}
    dtype : numpy.dtype
        Scalar type of the analyzed matrix; matrices of other types may be factorized too.
    perm : (n,) int32 array
        ``perm[k]`` is the column of A eliminated k-th.
    row_perm : (n,) int32 array
        ``row_perm[k]`` is the row of A that meets column ``perm[k]`` on the diagonal, before
        pivoting inside fronts; equal to `perm` unless a matching moved rows.
    ordering : frontal.ordering.Ordering
        The chosen ordering, its cost and the costs of all orderings tried.
    matching : frontal.symbolic.matching.Matching or None
        Row matching and scaling of a general matrix that needs one.
    plan : frontal.symbolic.plan.Plan
        Index arrays of the numeric phase; without fronts if `by_columns`.
    backend : str
        Backend that factorizations use, ``"auto"``, ``"cpu"`` or ``"gpu"``.
    seconds : dict of str to float
        Time of each stage.
    by_columns : bool
        LU of a thin matrix works by columns on the CPU, without fronts.
    frontal : Analysis
        The analysis with fronts: this one, unless it is `by_columns`.
    paired : bool
        Columns with tiny diagonal entries were paired instead of moving rows.
    """

    def factorize(
        self,
        A: MatrixLike,
        *,
        check_finite: bool = True,
        singular: str = "raise",
        progress: Progress | None = None,
        triangle: str | None = None,
        precision: str = "full",
        memory: str | float = "auto",
    ) -> Factor:
        """Factorize a matrix of the analyzed pattern.

        Parameters
        ----------
        A : sparse matrix or array, (n, n)
            Same pattern as the analyzed matrix, any values; the scalar type of A is the factor's.
            The values of a CuPy CSC or CSR matrix with sorted indices stay on the GPU.
            `Factor.refactorize` accepts new values in the order of ``A.data``.
        check_finite : bool
            Refuse NaN and infinity.
        singular : {"raise", "warn", "allow"}
            As for `frontal.factorize`.
        progress : callable, optional
            Called with (phase, done, total).
        triangle : {"lower", "upper"}, optional
            The only triangle that A stores, of a matrix of the analyzed pattern.
        precision : {"full", "mixed"}
            As for `frontal.factorize`.
        memory : {"auto", "device", "streamed"} or number
            As for `frontal.factorize`.

        Returns
        -------
        Factor

        Raises
        ------
        ValueError
            If the pattern differs, or if A is not Hermitian though ``kind="spd"`` states it.
        NotPositiveDefiniteError, SingularMatrixError
            If the factorization fails.
        FactorMemoryError
            If the factor does not fit; with the least sufficient memory.

        Examples
        --------
        >>> import frontal, numpy as np
        >>> from frontal.problems import poisson2d
        >>> A = poisson2d(10)
        >>> analysis = frontal.analyze(A)
        >>> factor = analysis.factorize(4 * A)
        >>> bool(np.allclose(factor.solve(A @ np.full(100, 4.0)), 1))
        True
        """
        require_singular(singular)  # before values are copied
        make = partial(
            Factor.from_matrix, analysis=self, progress=progress, singular=singular, memory=memory
        )
        plain = triangle is None and precision == "full" and memory in ("auto", "device")
        on_device = self._device_values(A) if plain else None
        if on_device is not None:  # values are checked on the device
            values = DeviceValues(on_device[0], check_finite, on_device[1])
            return make(values, renewed=True)
        convert = partial(to_canonical, A, triangle, kind="general", adjoint=self.adjoint)
        matrix = convert(check_finite=check_finite, ordered=True)
        matrix = self.matching_pattern(matrix)
        return make(matrix, precision=precision, renewed=True)

    def _device_values(self, A: Untyped) -> tuple[Untyped, ValueMap] | None:
        try:
            return self.engine.device_values(A)
        except MemoryError:  # the factorization reports it
            return None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the analysis to a file, for `load` in another process or on another machine.

        The file stores pattern, ordering and fronts, including fronts amended by numeric phases
        (`Factor.analysis`), and no values of a matrix except the scaling of a matching.

        Parameters
        ----------
        path : path
            Any name. An existing file is replaced after the new one is complete, and is unchanged
            if writing fails.

        Raises
        ------
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import frontal, pathlib, tempfile
        >>> from frontal.problems import poisson2d
        >>> A = poisson2d(10)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "poisson.analysis"
        >>> frontal.analyze(A).save(path)
        >>> frontal.Analysis.load(path).factorize(A).analysis.method
        'cholesky'
        """
        analysis_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an analysis that `save` wrote; its factors are bitwise the same.

        All contents are checked and none is executed: the file may be untrusted. `factorize`
        compares its pattern with that of each matrix, as for any analysis.

        Parameters
        ----------
        path : path

        Returns
        -------
        Analysis
            With the saved backend; `on` changes it.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            If the file is damaged, no analysis, or in the format of another version of frontal.
        """
        return analysis_file.load(cls, path)
