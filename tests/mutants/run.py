"""Tests of the tests: apply each bug of this folder and check that its test fails.

    python -m tests.mutants.run [--jobs N] [--limit SECONDS] [NAME ...]

Each job applies its bugs in turn to a copy of the repository. A test must first pass without a
bug. A hang counts as a failure; an error of collection does not. A NAME is a pattern, such as
``amd_*``.

Compilation takes most of the time of a test of compiled code. Machine code cached by Numba stays
valid for unchanged modules, so a mutant starts with the cache of all modules except the edited
ones and their importers.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path

from .table import ROOT, Bug, StaleBugError, bugs

HANG_SECONDS = 300.0  # limit of a test with a bug
PASS_FACTOR = 4  # longer limit of a test without a bug, which may compile all modules
_IGNORED = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "*.log", "shared"
)
_OUTCOMES = {0: "SURVIVED", 1: "killed"}  # by the exit status of pytest


def module_name(path: Path, tree: Path) -> str:
    """Return the dotted name of the module that a file stores."""
    parts = path.relative_to(tree).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imports(path: Path, tree: Path) -> set[str]:
    """Return the names of the modules that a file imports.

    `from a import b` gives `a.b`, and also `a` if `b` is not a module.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            package = path.relative_to(tree).parts[: -node.level] if node.level else ()
            module = ".".join((*package, *([node.module] if node.module else [])))
            names |= {f"{module}.{alias.name}" for alias in node.names}
            folder = tree.joinpath(*module.split("."))
            if not all(is_module(folder / alias.name) for alias in node.names):
                names.add(module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def is_module(path: Path) -> bool:
    """Return whether a path without suffix is a module or a package."""
    return path.is_dir() or path.with_suffix(".py").is_file()


def stale_modules(tree: Path, files: Iterable[str]) -> set[str]:
    """Return the names of modules with stale machine code after a change of files.

    Stale are the changed modules and all modules that import a stale module.
    """
    modules = {
        module_name(path, tree): imports(path, tree) for path in (tree / "frontal").rglob("*.py")
    }
    stale = {module_name(tree / file, tree) for file in files if file.endswith(".py")}
    while True:
        importers = {name for name, names in modules.items() if names & stale} - stale
        if not importers:
            break
        stale |= importers
    return stale - {"frontal"}


class Tree:
    """A copy of the repository with a cache of machine code.

    Attributes
    ----------
    output : str
        Output of the last test, empty if it hung.
    """

    def __init__(self, folder: Path, limit: float) -> None:
        self.root, self.cache, self.limit = folder / "tree", folder / "compiled", limit
        shutil.copytree(ROOT, self.root, ignore=_IGNORED)  # keeps the times of Numba's cache keys
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("FRONTAL_", "PYTEST_"))},
            "FRONTAL_CACHE_DIR": str(self.cache),
            "FRONTAL_ALL_SCALARS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.output = ""
        self._passes: dict[str, bool] = {}  # by test, without a bug

    def test(self, name: str, limit: float) -> tuple[str, float]:
        """Run a test and return its outcome and its seconds."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["--hypothesis-seed=0", name]
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            self.output, _ = process.communicate(timeout=limit)
            outcome = "killed" if process.returncode < 0 else _OUTCOMES.get(process.returncode)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            outcome, self.output = "killed", ""
        return outcome or "BROKEN", time.perf_counter() - start

    def cache_folder(self) -> Path:
        """Return the folder of machine code of the present sources."""
        command = [sys.executable, "-c", "from frontal.compile.jit import _FOLDER; print(_FOLDER)"]
        output = subprocess.check_output(command, cwd=self.root, env=self.environment, text=True)
        return Path(output.strip())

    @contextlib.contextmanager
    def mutated(self, bug: Bug):
        """Apply a bug with the valid machine code, and restore the tree on exit."""
        before = self.cache_folder()
        times = {file: (self.root / file).stat().st_mtime_ns for file in bug.files}
        texts = {file: (self.root / file).read_bytes() for file in bug.files}
        stale = stale_modules(self.root, bug.files)
        bug.apply(self.root)
        after = self.cache_folder()
        if after != before and before.is_dir():
            _link(before, after, stale)
        try:
            yield
        finally:
            for file, text in texts.items():
                (self.root / file).write_bytes(text)
                os.utime(self.root / file, ns=(times[file], times[file]))
            if after != before:
                shutil.rmtree(after, ignore_errors=True)

    def run(self, bug: Bug) -> tuple[str, float]:
        """Return the outcome and the seconds of a bug.

        The outcome is BROKEN if the bug is stale, or if its test fails or is missing without it.
        """
        if bug.kills not in self._passes:
            outcome, _ = self.test(bug.kills, PASS_FACTOR * self.limit)
            self._passes[bug.kills] = outcome == "SURVIVED"
        if not self._passes[bug.kills]:
            return "BROKEN", 0.0
        try:
            with self.mutated(bug):
                return self.test(bug.kills, self.limit)
        except StaleBugError:
            return "BROKEN", 0.0


def _link(source: Path, target: Path, stale: set[str]) -> None:
    """Link the machine code of valid modules of `frontal` into another cache folder."""
    target.mkdir(parents=True)
    prefixes = tuple(f"{module}." for module in stale)
    for path in source.glob("frontal.*"):
        if not path.name.startswith(prefixes):
            os.link(path, target / path.name)


Report = Callable[[Bug, str, float, Tree], None]  # called with outcome and seconds of each bug


def run_all(selected: list[Bug], jobs: int, limit: float, report: Report) -> dict[Bug, str]:
    """Return the outcome of each bug.

    Bugs of one test run in one tree, which runs the test without a bug once.
    """
    selected = sorted(selected, key=lambda bug: (bug.kills, bug.name))
    groups = [list(group) for _, group in groupby(selected, key=lambda bug: bug.kills)]
    outcomes: dict[Bug, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        trees: queue.Queue[Tree] = queue.Queue()
        for job in range(jobs):
            trees.put(Tree(Path(folder) / str(job), limit))

        def run_group(group: list[Bug]) -> None:
            tree = trees.get()
            try:
                for bug in group:
                    outcomes[bug], seconds = tree.run(bug)
                    report(bug, outcomes[bug], seconds, tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            for future in [pool.submit(run_group, group) for group in groups]:
                future.result()
    return outcomes


def main() -> int:
    """Run the bugs selected on the command line; return 0 if all were killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", default=["*"], help="patterns of names of bugs")
    parser.add_argument("--jobs", type=int, default=1, help="number of concurrent tests")
    parser.add_argument("--limit", type=float, default=HANG_SECONDS, help="seconds of a hang")
    parser.add_argument("--verbose", action="store_true", help="show the output of the tests")
    options = parser.parse_args()
    selected = [bug for bug in bugs() if any(fnmatch(bug.name, name) for name in options.names)]
    width = max((len(bug.name) for bug in selected), default=0)

    def report(bug: Bug, outcome: str, seconds: float, tree: Tree) -> None:
        print(f"{outcome:8} {seconds:6.1f} s  {bug.name:{width}}  {bug.kills}", flush=True)
        if options.verbose:
            print(tree.output)

    outcomes = run_all(selected, options.jobs, options.limit, report)
    survivors = [bug for bug in selected if outcomes[bug] != "killed"]
    print(f"{len(selected) - len(survivors)} of {len(selected)} killed")
    for bug in survivors:
        print(f"{outcomes[bug]:8} {bug.name}: {bug.what}")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
