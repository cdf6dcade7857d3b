"""Tests of the tests: put each bug of this folder in, and see that its test fails.

    python -m tests.mutants.run [--jobs N] [--limit SECONDS] [NAME ...]

A copy of the tree takes the bugs one after the other. A test first has to pass without them; a
hang counts as a failure, an error of collection does not. Names are patterns, such as ``amd_*``.

Most of the time of a test of compiled code is compilation. What Numba keeps is good for all trees
that differ in other files only, so a mutant begins with all of it but that of the edited files and
of those that import them.
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
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path

from .patches import ROOT, Bug, StaleBugError, bugs

LIMIT = 300.0
_LEFT_OUT = shutil.ignore_patterns(
    ".*", "__pycache__", "*.egg-info", "build", "dist", "*.log", "shared"
)
_OUTCOMES = {0: "SURVIVED", 1: "killed"}


def dotted(path: Path, tree: Path) -> str:
    """The name of the module that a file is."""
    parts = path.relative_to(tree).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imported(path: Path, tree: Path) -> set[str]:
    """Names of what a file imports: modules, and what may be modules or names in them."""
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
    """Whether there is a module or a package of such a path, without its suffix."""
    return path.is_dir() or path.with_suffix(".py").is_file()


def stale(tree: Path, changed: Iterable[str]) -> set[str]:
    """Names of the modules whose compiled code may differ once some files have changed."""
    modules = {
        dotted(path, tree): imported(path, tree) for path in (tree / "frontal").rglob("*.py")
    }
    last = {dotted(tree / name, tree) for name in changed if name.endswith(".py")}
    while True:
        more = {name for name, names in modules.items() if names & last} - last
        if not more:
            break
        last |= more
    return last - {"frontal"}


class Tree:
    """A copy of the repository, with what Numba compiled of it."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.root, self.compiled, self.limit = folder / "tree", folder / "compiled", limit
        shutil.copytree(ROOT, self.root, ignore=_LEFT_OUT)  # keeps times, by which Numba knows them
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("FRONTAL_", "PYTEST_"))},
            "FRONTAL_CACHE_DIR": str(self.compiled),
            "FRONTAL_ALL_SCALARS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.sound: dict[str, bool] = {}

    def test(self, name: str, limit: float) -> tuple[str, float]:
        """Outcome and seconds of a test."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
        command += ["--hypothesis-seed=0", name]
        began = time.perf_counter()
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
        return outcome or "BROKEN", time.perf_counter() - began

    def folder(self) -> Path:
        """Where the tree as it is now keeps compiled code."""
        ask = [sys.executable, "-c", "from frontal._jit import _FOLDER; print(_FOLDER)"]
        told = subprocess.check_output(ask, cwd=self.root, env=self.environment, text=True)
        return Path(told.strip())

    @contextlib.contextmanager
    def patched(self, bug: Bug):
        """The tree with a bug, and with what is still good of the compiled code."""
        before = self.folder()
        kept = {name: (self.root / name).stat().st_mtime_ns for name in bug.changed}
        texts = {name: (self.root / name).read_bytes() for name in bug.changed}
        gone = stale(self.root, bug.changed)
        bug.apply(self.root)
        after = self.folder()
        if after != before and before.is_dir():
            _link(before, after, gone)
        try:
            yield
        finally:
            for name, text in texts.items():
                (self.root / name).write_bytes(text)
                os.utime(self.root / name, ns=(kept[name], kept[name]))
            if after != before:
                shutil.rmtree(after, ignore_errors=True)

    def run(self, bug: Bug) -> tuple[str, float]:
        """Outcome and seconds of a bug."""
        if bug.kills not in self.sound:
            self.sound[bug.kills] = self.test(bug.kills, 4 * self.limit)[0] == "SURVIVED"
        if not self.sound[bug.kills]:
            return "BROKEN", 0.0  # the test fails, or is not there, without any bug
        try:
            with self.patched(bug):
                return self.test(bug.kills, self.limit)
        except StaleBugError:
            return "BROKEN", 0.0


def _link(source: Path, target: Path, gone: set[str]) -> None:
    """Links to compiled code of all modules but some, and not of tests."""
    target.mkdir(parents=True)
    left_out = tuple(f"{module}." for module in gone)
    for path in source.glob("frontal.*"):
        if not path.name.startswith(left_out):
            os.link(path, target / path.name)


def run_all(chosen: list[Bug], jobs: int, limit: float, told) -> dict[Bug, str]:
    """Outcome of each bug; those of one test go to one tree, which has run it without them."""
    chosen = sorted(chosen, key=lambda bug: (bug.kills, bug.name))
    groups = [list(group) for _, group in groupby(chosen, key=lambda bug: bug.kills)]
    outcomes: dict[Bug, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        trees: queue.Queue[Tree] = queue.Queue()
        for job in range(jobs):
            trees.put(Tree(Path(folder) / str(job), limit))

        def work(group: list[Bug]) -> None:
            tree = trees.get()
            try:
                for bug in group:
                    outcomes[bug], seconds = tree.run(bug)
                    told(bug, outcomes[bug], seconds, tree)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            for done in [pool.submit(work, group) for group in groups]:
                done.result()
    return outcomes


def main() -> int:
    """Run what the command line asks for; 0 if all was killed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", default=["*"], help="patterns of names of bugs")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at once")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of a hang")
    parser.add_argument("--verbose", action="store_true", help="show the output of the tests")
    options = parser.parse_args()
    chosen = [bug for bug in bugs() if any(fnmatch(bug.name, name) for name in options.names)]
    width = max((len(bug.name) for bug in chosen), default=0)

    def told(bug: Bug, outcome: str, seconds: float, tree: Tree) -> None:
        print(f"{outcome:8} {seconds:6.1f} s  {bug.name:{width}}  {bug.kills}", flush=True)
        if options.verbose:
            print(tree.output)

    outcomes = run_all(chosen, options.jobs, options.limit, told)
    left = [bug for bug in chosen if outcomes[bug] != "killed"]
    print(f"{len(chosen) - len(left)} of {len(chosen)} killed")
    for bug in left:
        print(f"{outcomes[bug]:8} {bug.name}: {bug.what}")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
