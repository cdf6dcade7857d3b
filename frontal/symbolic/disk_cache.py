"""Symbolic phases cached on disk, in the folder that ``FRONTAL_ANALYSIS_CACHE`` names.

A file is named by a hash of all inputs of its content, including the sources of this package.
Several processes may share a folder: files are written atomically, and damaged files are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..compile.jit import SOURCES
from ..files.archive import Archive, write
from ..files.atomic_write import UNFINISHED
from ..machine.resources import MACHINES, thread_count
from ..matrix.canonical import Canonical
from ..numeric.method import Method
from ..ordering import metis
from .phase import Begin, SymbolicOptions, SymbolicOutcome
from .preprocess import looks_at_values
from .schur import schur_phase
from .serialize import FORMAT, read_outcome, record
from .stage_timer import StageTimer

log = logging.getLogger("frontal")

KIND = "frontal symbolic phase"
MIN_CACHED_COLUMNS = 2000  # columns; smaller matrices are analyzed in the time of reading a file
_ENDING = ".analysis"
_BYTES = 10**9  # default limit of the folder in bytes
_FORGOTTEN = 3600.0  # seconds after which an unfinished file is removed


def cached_symbolic_phase(
    matrix: Canonical,
    method: Method,
    choices: SymbolicOptions,
    machine: Callable[[float], str],
    clock: StageTimer,
    ahead: Begin | None = None,
) -> SymbolicOutcome:
    """Return `schur_phase`, from the cache folder if it is stored there."""
    folder = os.environ.get("FRONTAL_ANALYSIS_CACHE") if matrix.n >= MIN_CACHED_COLUMNS else None
    if not folder:
        return schur_phase(matrix, method, choices, machine, clock, ahead)
    limit = _limit()
    clock.start("cache")
    key = _key(matrix, method, choices, machine)
    path = Path(folder) / f"{key}{_ENDING}"
    outcome = _read(path, key, matrix)
    if outcome is None:
        outcome = schur_phase(matrix, method, choices, machine, clock, ahead)
        clock.start("cache")
        _store(path, key, outcome, limit)
    clock.stop()
    return outcome


def _limit() -> int:
    """Return ``FRONTAL_ANALYSIS_CACHE_BYTES``, or 1 GB by default."""
    asked = os.environ.get("FRONTAL_ANALYSIS_CACHE_BYTES")
    if not asked:
        return _BYTES
    if not asked.strip().isdigit() or int(asked) < 1:
        raise ValueError(
            f"FRONTAL_ANALYSIS_CACHE_BYTES is {asked!r}; give a positive integer of bytes"
        )
    return int(asked)


def _key(
    matrix: Canonical, method: Method, choices: SymbolicOptions, machine: Callable[[float], str]
) -> str:
    """Return a hash of all inputs of a symbolic phase."""
    values = looks_at_values(matrix, method)
    values |= method.scaling and choices.schur is not None  # a part of A may need a matching
    machines = machine(0.0), machine(np.inf), repr(MACHINES)
    environment = thread_count(), metis.available()  # both decide which orderings are tried
    chosen = choices.ordering, choices.reuse, choices.pairs, choices.alone
    chosen += (choices.schur is None,)
    about = SOURCES, FORMAT, matrix.n, method.name, machines, environment, chosen, values
    digest = hashlib.blake2b(repr(about).encode(), digest_size=20)
    arrays = [matrix.indptr, matrix.indices]
    arrays += [x for x in (choices.perm, choices.signs, choices.schur) if x is not None]
    if values:
        arrays.append(matrix.data)
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _read(path: Path, key: str, matrix: Canonical) -> SymbolicOutcome | None:
    """Return the content of a file, or None if the file is missing or invalid."""
    try:
        with Archive(path) as archive:
            if archive.header.get("kind") != KIND or archive.header.get("key") != key:
                raise ValueError("it belongs to another pattern or version")
            outcome = read_outcome(archive)
        symbolic = outcome.symbolic
        if not (
            np.array_equal(symbolic.indptr, matrix.indptr)
            and np.array_equal(symbolic.indices, matrix.indices)
        ):
            raise ValueError("it belongs to another pattern")
        with contextlib.suppress(OSError):  # the file may belong to another user
            os.utime(path)  # mark as recently used
        return outcome
    except FileNotFoundError:
        return None
    except (OSError, MemoryError) as error:
        log.info("analyzing again: %s cannot be read: %s", path, error)
    except Exception as error:  # a damaged file may cause any exception
        log.warning("analyzing again and removing %s: %s", path, error)
        _remove(path)
    return None


def _store(path: Path, key: str, outcome: SymbolicOutcome, limit: int) -> None:
    """Write a file, and remove the least recently used files above the limit."""
    header, arrays = record(outcome)
    if sum(array.nbytes for array in arrays.values()) > limit:
        log.info("the analysis is not stored: it is larger than FRONTAL_ANALYSIS_CACHE_BYTES")
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, {"kind": KIND, "key": key, **header}, arrays)
        _evict_oldest(path.parent, limit)
    except OSError as error:
        log.info("the analysis is not stored: %s", error)


def _evict_oldest(folder: Path, limit: int) -> None:
    """Remove the least recently used files until the remaining ones are within the limit."""
    files = []
    for path in folder.iterdir():
        try:
            status = path.stat()
        except FileNotFoundError:  # removed by another process
            continue
        if path.suffix == _ENDING:
            files.append((status.st_mtime_ns, status.st_size, path))
        elif path.suffix == UNFINISHED and time.time() - status.st_mtime > _FORGOTTEN:
            _remove(path)
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= limit:
            break
        _remove(path)
        total -= size


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        log.info("%s cannot be removed: %s", path, error)
