"""What systems of each kind compile: ``python -m tests.signatures`` writes `signatures.json`.

Each kind has a process with an empty cache: some minutes in all, and some more where kernels of a
GPU are emulated.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import types
from numba.core import event
from numba.core.dispatcher import Dispatcher
from numba.np.numpy_support import as_dtype

import frontal
from frontal import gpu
from frontal.cli import warm
from frontal.compile.cache import DiskCache
from frontal.compile.manifest import FILE, Item, Manifest, known
from frontal.gpu.runtime import device as devices
from frontal.gpu.runtime.staging import MIN_STAGED_BYTES, Staging

from .emulation.compiling import COMPILER
from .emulation.copies import FakeCuda
from .emulation.device import EmulatedDevice

DTYPES = ("float64", "complex128", "float32", "complex64")
TASKS = {task.name: task for task in (*warm.ORDERINGS, *warm.tasks(DTYPES, ["cpu", "gpu"]))}
RECORD = "--record"


def solve(task: warm.Task) -> None:
    """Do what a user does first with a system of a kind."""
    if task in warm.ORDERINGS:
        warm.run(task)
        return
    if task.backend == "gpu":  # what large systems need besides
        cuda, array = FakeCuda(), np.zeros(MIN_STAGED_BYTES)
        copies = Staging(cuda, 0, cuda.calls)
        copies.send([array], [array.ctypes.data], cuda.free)
        copies.fetch(array.ctypes.data, array, cuda.free)
        if task.what == "cholesky":
            frontal.factorize(warm.star_matrix(task), kind="spd", backend="gpu")
    A = warm._matrix(task)
    b = np.ones(A.shape[0], A.dtype)
    names = {"ldlt": "symmetric", "ldlh": "hermitian", "signed_ldlh": "quasidefinite"}
    kind = names.get(task.what, "auto")
    frontal.solve(A, b, kind=kind, backend=task.backend)
    frontal.factorize(A, kind=kind, backend=task.backend).refactorize(A).solve(b)
    if task.what == "lu" and task.backend == "cpu":
        A = warm.thin_matrix(task)
        frontal.factorize(A).refactorize(A).solve(np.ones(A.shape[0], A.dtype))


class UnknownTypeError(TypeError):
    """A type without a representation in the file: it holds an address, or is unsupported."""


class Table:
    """Types as lists, by index: the inverse of `Manifest.type`."""

    def __init__(self, rows: list[list[Any]] | None = None) -> None:
        self.rows = rows or []
        self._places = {json.dumps(row): place for place, row in enumerate(self.rows)}

    def place(self, kind: Any) -> int:
        """Return the index of a type; add it if it is missing."""
        row = self._row(kind)
        place = self._places.setdefault(json.dumps(row), len(self.rows))
        if place == len(self.rows):
            self.rows.append(row)
        return place

    def _row(self, kind: Any) -> list[Any]:
        if isinstance(kind, types.Array) and type(kind) is types.Array:
            flags = "" if kind.mutable else "r"
            flags += "" if kind.aligned else "u"
            return ["array", self.place(kind.dtype), kind.ndim, kind.layout, flags]
        if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
            return ["named", _name(kind.instance_class), *map(self.place, kind.types)]
        if isinstance(kind, types.BaseTuple):
            return ["tuple", *map(self.place, kind.types)]
        if isinstance(kind, types.Record):
            return ["record", *_fields(as_dtype(kind))]
        if isinstance(kind, types.Number | types.Boolean | types.NoneType):
            return [str(kind)]
        if type(kind).__name__ == "Reference":
            return ["borrowed", _name(type(kind)), self.place(kind.dtype)]
        if type(kind).__name__ == "MethodType":
            return ["method", _name(type(kind)), kind.method.name.upper()]
        raise UnknownTypeError(str(kind))


def _fields(dtype: np.dtype) -> list[tuple[str, str]]:
    fields = [(name, dtype[name].str) for name in dtype.names or ()]
    if np.dtype(fields) != dtype:
        raise UnknownTypeError(str(dtype))
    return fields


def _name(definition: Any) -> str:
    return f"{definition.__module__}:{definition.__qualname__}"


class Recorder(event.Listener):
    """Lists what is compiled, in the order in which that ends, and what it took."""

    def __init__(self) -> None:
        self.table, self.rows = Table(), []
        self._open: list[tuple[float, list[int], list[float]]] = []

    def on_start(self, event: Any) -> None:
        """Begin a function."""
        self._open.append((time.thread_time(), [], []))

    def on_end(self, event: Any) -> None:
        """List a function, or leave it to its caller where it has no place of its own."""
        began, needs, inside = self._open.pop()
        took = time.thread_time() - began
        row = self._row(event.data["dispatcher"], event.data["args"])
        if row is not None:
            self.rows.append([*row, round(max(took - sum(inside), 0.01), 2), sorted(set(needs))])
            inside, needs = [took], [len(self.rows) - 1]
        if self._open:
            self._open[-1][1].extend(needs)
            self._open[-1][2].extend(inside)

    def _row(self, of: Dispatcher, arguments: tuple[Any, ...]) -> list[Any] | None:
        name, module = of.py_func.__qualname__, sys.modules[of.py_func.__module__]
        outer: Any = getattr(module, name, None)
        called = hasattr(outer, "for_callers") and outer.for_callers() is of
        if not isinstance(of._cache, DiskCache) or not (called or outer is of):
            return None  # a function in another one
        try:
            places = [self.table.place(kind) for kind in arguments]
        except UnknownTypeError:
            return None
        return [_name(of.py_func) + called * ":called", places]


def record(kind: str) -> None:
    """Print what one kind compiles, on an emulated device where there is no GPU."""
    if TASKS[kind].backend == "gpu" and not gpu.available():
        emulated = EmulatedDevice()
        devices.device_of = lambda array=None: emulated
    recorder = Recorder()
    event.register("numba:compile", recorder)
    solve(TASKS[kind])
    json.dump([recorder.table.rows, recorder.rows], sys.stdout)


def recorded(kind: str) -> list[Any]:
    """What `record` prints in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        alone = {"FRONTAL_CACHE_DIR": folder, "FRONTAL_HELPERS": "0"}
        command = [sys.executable, "-m", "tests.signatures", RECORD, kind]
        done = subprocess.run(command, env=os.environ | alone, capture_output=True, check=True)
    return json.loads(done.stdout)


def read(kind: str) -> list[Any]:
    """What the file has of a kind, or of the analysis of all, in the form of `record`."""
    listed, items = known()
    mine = [k for k, item in enumerate(items) if kind in item.kinds]
    if not mine:
        systems = {
            name
            for item in items
            for name in item.kinds
            if name not in {task.name for task in warm.ORDERINGS}
        }
        mine = [k for k, item in enumerate(items) if systems <= {*item.kinds}]
    places = {k: place for place, k in enumerate(mine)}
    rows = [
        [*items[k][:3], [places[need] for need in items[k].needs if need in places]] for k in mine
    ]
    return [listed, rows]


def merged(found: dict[str, list[Any]]) -> tuple[Table, list[Item]]:
    """The lists of all kinds as one."""
    table, items, places = Table(), [], {}
    for kind, (listed, rows) in found.items():
        old, mine = Manifest(listed, []), []
        for function, arguments, seconds, needs in rows:
            now = tuple(table.place(old.type(place)) for place in arguments)
            place = places.setdefault((function, now), len(items))
            mine.append(place)
            if place == len(items):
                items.append(Item(function, now, 0.0, (), ()))
            was = items[place]
            called = {*was.needs, *(mine[need] for need in needs if mine[need] < place)}
            items[place] = was._replace(
                seconds=max(was.seconds, seconds),
                needs=tuple(sorted(called)),
                kinds=tuple(dict.fromkeys((*was.kinds, kind))),
            )
    return table, items


def write(rows: list[list[Any]], items: list[Item]) -> None:
    """Replace the file, one item a line."""
    kinds = sorted({kind for item in items for kind in item.kinds})
    listed = [[*item[:4], [kinds.index(kind) for kind in item.kinds]] for item in items]
    parts = (
        '{"kinds": ' + json.dumps(kinds),
        '"types": [\n' + ",\n".join(map(json.dumps, rows)) + "]",
        '"items": [\n' + ",\n".join(map(json.dumps, listed)) + "]}\n",
    )
    FILE.write_text(",\n".join(parts), encoding="utf-8")


def main() -> None:
    """Record all kinds, as many at once as there are cores; a GPU's only if it can be emulated."""
    there = gpu.available() or COMPILER is not None
    of = [recorded if there or task.backend == "cpu" else read for task in TASKS.values()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(TASKS, pool.map(lambda do, kind: do(kind), of, TASKS), strict=True))
    table, items = merged(found)
    write(table.rows, items)


if __name__ == "__main__":
    record(sys.argv[2]) if sys.argv[1:2] == [RECORD] else main()
