"""Files of analyses: `Analysis.save` and `Analysis.load`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, cast

import numpy as np

from .. import __version__
from ..files.archive import Archive, Header, write
from ..files.declared_sizes import named
from ..ordering import METHODS
from ..symbolic.phase import SymbolicOptions, SymbolicOutcome
from ..symbolic.serialize import (
    FORMAT,
    check_header,
    is_any_of,
    is_count,
    is_nonnegative,
    read_fronts,
    read_outcome,
    record,
    record_fronts,
    with_schur,
)
from ..symbolic.validate import check_permutation
from .analyzed import Analyzed

if TYPE_CHECKING:
    from ..symbolic.preprocess import Pairs
    from ..symbolic.serialize import Test

KIND = "frontal analysis"
_FIRST_PREFIX = "first_"  # arrays of the analysis before its amendments
_BACKENDS = "auto", "cpu", "gpu"

Kept = TypeVar("Kept", bound=Analyzed)


def _are_seconds(x: object) -> bool:
    return isinstance(x, dict) and all(map(is_nonnegative, x.values()))


_HEADER: dict[str, Test] = {
    "dtype": is_any_of("float32", "float64", "complex64", "complex128"),
    "backend": is_any_of(*_BACKENDS),
    "seconds": _are_seconds,
    "fallback": is_any_of(True, False),
    "amendments": is_count,
    "first_backend": is_any_of(None, *_BACKENDS),
    "chosen": is_any_of(*METHODS),
    "reuse": is_nonnegative,
    "pairs": is_any_of("auto", "all", "none"),
    "regularize": is_any_of(True, False),
}


class _AnalysisHeader(TypedDict):
    """The checked header."""

    dtype: str
    backend: str
    seconds: dict[str, float]
    fallback: bool
    amendments: int
    first_backend: str | None
    chosen: str
    reuse: int
    pairs: Pairs
    regularize: bool


def save(analysis: Analyzed, path: str | os.PathLike[str]) -> None:
    """Write an analysis to a file; see `Analysis.save`."""
    choices, first = analysis.choices, analysis.first
    fields = (getattr(analysis, name) for name in SymbolicOutcome._fields)
    header, arrays = record(SymbolicOutcome(*fields))
    more: Header = {
        "kind": KIND,
        "format": FORMAT,
        "version": __version__,
        "dtype": analysis.dtype.name,
        "backend": analysis.backend,
        "seconds": analysis.seconds,
        "fallback": analysis.fallback,
        "amendments": analysis.amendments,
        "first_backend": first.backend if first else None,
        "chosen": choices.ordering,
        "reuse": choices.reuse if isinstance(choices.reuse, int) else float(choices.reuse),
        "pairs": choices.pairs,
        "regularize": choices.regularize,
    }
    if choices.perm is not None:
        arrays["chosen_perm"] = choices.perm.astype(np.int64)
    if first is not None:
        arrays |= record_fronts(first.symbolic, _FIRST_PREFIX)
    write(Path(path), more | header, arrays)


def load(cls: type[Kept], path: str | os.PathLike[str]) -> Kept:
    """Read an analysis from a file; see `Analysis.load`."""
    path = Path(path)
    with named(path), _opened(path) as archive:
        header = archive.header
        if header.get("kind") != KIND:
            raise ValueError("the file contains no analysis. Try: a file written by Analysis.save")
        if header.get("format") != FORMAT:
            raise ValueError(
                f"the analysis has format {header.get('format')}, saved by frontal "
                f"{header.get('version')}, but frontal {__version__} reads format {FORMAT}. Try: "
                "analyze the matrix again, or load the file with the version that saved it"
            )
        return _analysis(cls, archive)


def _opened(path: Path) -> Archive:
    """Open the archive in a file; report format errors as "not written by Analysis.save"."""
    try:
        return Archive(path)
    except (MemoryError, OSError):
        raise
    except Exception as error:
        what = "the file was not written by Analysis.save, or is damaged"
        raise ValueError(f"{what}: {error}. Try: save the analysis again") from error


def _analysis(cls: type[Kept], archive: Archive) -> Kept:
    check_header(archive.header, _HEADER)
    header = cast(_AnalysisHeader, archive.header)
    outcome = read_outcome(archive)
    analysis = cls(
        **outcome._asdict(),
        dtype=np.dtype(header["dtype"]),
        backend=header["backend"],
        seconds=header["seconds"],
        choices=_choices(archive, header, outcome),
        fallback=header["fallback"],
    )
    if outcome.symbolic.schur is not None and header["backend"] != "cpu":
        raise ValueError("its header is inconsistent: a Schur complement is computed on the CPU")
    backend = header["first_backend"]
    if (backend is None) != (header["amendments"] == 0):
        raise ValueError("its header is inconsistent: amendments and first_backend disagree")
    if backend is None:
        return analysis
    symbolic = outcome.symbolic
    pattern = symbolic.indptr, symbolic.indices
    first = read_fronts(archive, symbolic.n, symbolic.method, pattern, _FIRST_PREFIX)
    if symbolic.schur is not None:
        first = with_schur(first, symbolic.schur)
    before = replace(analysis, symbolic=first, backend=backend)
    return replace(analysis, first=before, amendments=header["amendments"])


def _choices(
    archive: Archive, header: _AnalysisHeader, outcome: SymbolicOutcome
) -> SymbolicOptions:
    perm = None
    if header["chosen"] == "given":
        perm = archive.vector("chosen_perm", np.int64)
        check_permutation("chosen_perm", perm, outcome.symbolic.n)
    symbolic, signs = outcome.symbolic, None
    if symbolic.signs.size:
        signs = np.empty_like(symbolic.signs)
        signs[symbolic.perm] = symbolic.signs
    chosen = header["chosen"], perm, header["reuse"], header["pairs"]
    more = {"regularize": header["regularize"], "schur": symbolic.schur}
    return SymbolicOptions(*chosen, signs=signs, **more)
