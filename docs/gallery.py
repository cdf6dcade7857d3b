"""The gallery: each example runs, and its systems are solved by SciPy too: docs/gallery/*.md.

What an example asks of frontal is recorded with its time, and then asked of `scipy.sparse.linalg`:
`spsolve` for `solve`, `splu` for a factorization, its ``solve`` for each right-hand side. A batch
is recorded as one call for each of its systems.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import multiprocessing
import os
import platform
import runpy
import sys
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu, spsolve

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
FOLDER = DOCS / "gallery"
SCIPY_SECONDS = 10.0  # limit for the systems of one example
ORDER = (
    *("poisson_disc", "elastic_cantilever", "helmholtz_scattering", "convection_diffusion"),
    *("transient_heat", "newton_diffusion", "gmrf", "marginal_variances", "effective_resistance"),
    "structure_modes",
)


class Recorder:
    """What is asked of frontal while it records, and the seconds that it takes."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, Any, str]] = []  # what, matrix or factor, b, trans
        self.seconds = 0.0
        self._inside = False
        self._numbers = weakref.WeakKeyDictionary()  # of factors; of batches a list
        self._patterns = weakref.WeakKeyDictionary()  # of batches: a matrix, or the list of all

    @contextlib.contextmanager
    def recording(self):
        """Take the place of frontal's functions."""
        import frontal
        from frontal.factor.analysis import Analysis

        places = [(frontal, "solve"), (frontal, "analyze"), (frontal, "factorize")]
        places += [
            (Analysis, "factorize"),
            (frontal.Factor, "solve"),
            (frontal.Factor, "refactorize"),
            (frontal, "factorize_batch"),
            (frontal, "solve_batch"),
            (frontal.BatchFactor, "solve"),
            (frontal.BatchFactor, "refactorize"),
        ]
        kept = [(owner, name, getattr(owner, name)) for owner, name in places]
        try:
            for owner, name, function in kept:
                of_class = isinstance(owner, type)
                setattr(owner, name, self._timed(function, name, of_class))
            yield self
        finally:
            for owner, name, function in kept:
                setattr(owner, name, function)

    def _timed(self, function: Callable, name: str, of_class: bool) -> Callable:
        @functools.wraps(function)
        def called(*args: Any, **options: Any) -> Any:
            if self._inside:
                return function(*args, **options)
            self._inside, began = True, time.perf_counter()
            try:
                result = function(*args, **options)
            finally:
                self.seconds += time.perf_counter() - began
                self._inside = False
            self._note(name, of_class, args, options, result)
            return result

        return called

    def _note(self, name: str, of_class: bool, args: tuple, options: dict, result: Any) -> None:
        from frontal import BatchFactor

        if name == "factorize_batch":
            self._note_batch(result, args[0], _argument(args, options, 1, "values"), None)
        elif name == "solve_batch":
            values = _argument(args, options, 1, "values")
            b = _argument(args, options, 2, "b")
            x = result[0] if options.get("return_info") else result
            matrices = _matrices(args[0], values)
            for matrix, one in zip(
                matrices, _of_each(b, len(x), matrices[0].shape[0]), strict=True
            ):
                self.calls.append(("solve", matrix, one, "N"))
        elif of_class and isinstance(args[0], BatchFactor):
            if name == "refactorize":
                where = _argument(args, options, 2, "where")
                self._note_batch(args[0], self._patterns[args[0]], args[1], where)
            else:
                self._note_solves(args[0], args[1], _argument(args, options, 2, "trans", "N"))
        elif name == "solve" and of_class:
            trans = _argument(args, options, 2, "trans", "N")
            self.calls.append(("factor.solve", self._numbers[args[0]], args[1], trans))
        elif name == "solve":
            self.calls.append(("solve", args[0], args[1], "N"))
        elif name in ("factorize", "refactorize"):
            matrix = args[of_class]
            values_alone = np.ndim(matrix) == 1  # of the pattern of the factor
            self._numbers[result] = self._factorized(result.A.copy() if values_alone else matrix)

    def _factorized(self, A: Any) -> int:
        """Record a factorization; return its number."""
        self.calls.append(("factorize", A, None, ""))
        return sum(call[0] == "factorize" for call in self.calls) - 1

    def _note_batch(self, batch: Any, A: Any, values: Any, where: Any) -> None:
        """Record the factorizations of a batch, of the systems that have a factor."""
        self._patterns[batch] = A
        numbers = self._numbers.setdefault(batch, [None] * len(batch))
        taken = np.ones(len(batch), bool) if where is None else np.asarray(where)
        sound = batch.status == 0
        for i, matrix in enumerate(_matrices(A, values)):
            if taken[i]:
                numbers[i] = self._factorized(matrix) if sound[i] else None

    def _note_solves(self, batch: Any, b: Any, trans: str) -> None:
        """Record the solves with a batch, of the systems that have a factor."""
        A, numbers = self._patterns[batch], self._numbers[batch]
        n = (A[0] if isinstance(A, list | tuple) else A).shape[0]
        for number, one in zip(numbers, _of_each(b, len(batch), n), strict=True):
            if number is not None:
                self.calls.append(("factor.solve", number, one, trans))


def _argument(args: tuple, options: dict, place: int, name: str, default: Any = None) -> Any:
    return args[place] if len(args) > place else options.get(name, default)


def _matrices(A: Any, values: Any) -> list:
    """The matrices of a batch: given as a list, or by their values in the order of A.data."""
    if isinstance(A, list | tuple):
        pairs = zip(A, values if values is not None else [None] * len(A), strict=True)
        return [one if new is None else _with_values(one, new) for one, new in pairs]
    return [_with_values(A, one) for one in values]


def _with_values(A: Any, values: Any) -> Any:
    made = A.copy()
    made.data = np.array(values)
    return made


def _of_each(b: Any, count: int, n: int) -> list:
    """The right-hand sides of each system of a batch."""
    if isinstance(b, list | tuple):
        return list(b)
    b = np.asarray(b)
    own = b.ndim == 3 or b.shape == (count, n)
    return list(b) if own else [b] * count


def scipy_seconds(calls: list) -> float:
    """Time of SciPy for the same."""
    factors = []
    total = 0.0
    for what, of, b, trans in calls:
        A = None if what == "factor.solve" else sp.csc_array(of)
        b = None if b is None else np.asarray(b)
        began = time.perf_counter()
        if what == "solve":
            spsolve(A, b)
        elif what == "factorize":
            factors.append(splu(A))
        else:
            factors[of].solve(b, trans)
        total += time.perf_counter() - began
    return total


def _of_scipy(pipe: Connection, calls: list) -> None:
    pipe.send("loaded")
    pipe.send(scipy_seconds(calls))


def by_scipy(calls: list, limit: float) -> str:
    """Return SciPy's seconds; its process is ended after `limit` seconds."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_of_scipy, args=(there, calls), daemon=True)
    process.start()
    there.close()
    here.recv()
    told = f"{here.recv():.3g}" if here.poll(limit) else f"more than {limit:.3g}"
    process.kill()
    return told


def run(name: str, scipy_limit: float) -> dict[str, Any]:
    """Run an example twice, with pictures: the first time compiles what is not compiled yet."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    path = EXAMPLES / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.main()
    recorder, printed = Recorder(), io.StringIO()
    look = matplotlib.rc_context({"savefig.bbox": "tight"})
    with recorder.recording(), contextlib.redirect_stdout(printed), look:
        runpy.run_path(str(path), run_name="__main__")  # draws, in this folder
    plt.close("all")
    drawn = Path(f"{name}.png").exists()
    return {
        "text": path.read_text(encoding="utf-8"),
        "told": example.__doc__ or "",
        "printed": printed.getvalue().strip(),
        "picture": drawn,
        "ours": recorder.seconds,
        "scipy": by_scipy(recorder.calls, scipy_limit),
        "calls": _counted(recorder.calls),
    }


def _counted(calls: list) -> str:
    """How often what was asked, in words."""
    names = {"solve": "solution", "factorize": "factorization", "factor.solve": "solve"}
    parts = []
    for what, word in names.items():
        found = [call for call in calls if call[0] == what]
        columns = sum(
            1 if call[2] is None or call[2].ndim == 1 else call[2].shape[1] for call in found
        )
        times = columns if what == "factor.solve" else len(found)
        if times:
            plural = "" if times == 1 else "s"
            of = " from scratch" if what == "solve" else ""
            parts.append(f"{times} {word}{plural}{of}")
    return ", ".join(parts)


def page(name: str, found: dict[str, Any]) -> str:
    """The page of an example."""
    first, _, rest = found["told"].partition("\n")
    parts = [f"# {title(first)}", _prose(f"{first}\n{rest}")]
    if found["picture"]:
        parts.append(f"![The picture that the example draws]({name}.png)")
    if found["calls"]:
        parts.append(
            "| | seconds |\n| --- | ---: |\n"
            f"| frontal: {found['calls']} | {found['ours']:.3g} |\n"
            f"| the same by `scipy.sparse.linalg` | {found['scipy']} |"
        )
    parts.append(f"It prints:\n\n```text\n{found['printed']}\n```")
    parts.append(f"```python\n{found['text'].rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def title(first: str) -> str:
    """The heading: the docstring's first line up to its colon or end."""
    return first.split(":")[0].rstrip(".")


def _prose(text: str) -> str:
    """A docstring as Markdown: it has no marks of its own but stars of formulas."""
    return text.strip().replace("*", r"\*").replace("_", r"\_").replace("'", "’")


def machine() -> str:
    """What the times were taken on, in words."""
    model = platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        model = next((x.split(":")[1].strip() for x in lines if x.startswith("model name")), model)
    from frontal.machine.resources import thread_count

    threads = thread_count()
    return f"{model}, {threads} thread{'s' * (threads > 1)}"


def index(found: dict[str, dict[str, Any]]) -> str:
    """The page with all examples."""
    cards = []
    for name, one in found.items():
        heading = title(one["told"].split("\n")[0])
        image = f":img-top: {name}.png\n" if one["picture"] else ""
        times = f"{one['ours']:.3g} s; SciPy takes {one['scipy']} s" if one["calls"] else ""
        link = f":link: {name}\n:link-type: doc\n{image}"
        cards.append(f":::{{grid-item-card}} {heading}\n{link}\n{times}\n:::")
    names = "\n".join(found)
    return (
        "# Gallery\n\nWhole programs, each under 60 lines. They ran when these pages were made, on "
        f"{machine()}: the times are what each spent in frontal, once compiled, and what SciPy's "
        "SuperLU took for the same systems, once each; other work on the machine is in them. The "
        "[benchmarks](../benchmarks/index.md) are measured with more care.\n\n"
        "::::{grid} 1 2 2 3\n:gutter: 3\n\n" + "\n\n".join(cards) + "\n::::\n\n"
        f"```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    )


def main(scipy_limit: float = SCIPY_SECONDS) -> None:
    """Write the pages of all examples; SciPy gets so many seconds for each."""
    FOLDER.mkdir(exist_ok=True)
    names = [*ORDER, *sorted({p.stem for p in EXAMPLES.glob("*.py")} - set(ORDER))]
    os.chdir(FOLDER)
    sys.path.insert(0, str(EXAMPLES.parent))
    found = {name: run(name, scipy_limit) for name in names if (EXAMPLES / f"{name}.py").exists()}
    for name, one in found.items():
        (FOLDER / f"{name}.md").write_text(page(name, one), encoding="utf-8")
    (FOLDER / "index.md").write_text(index(found), encoding="utf-8")


if __name__ == "__main__":
    main()
