"""One job per process: problems × solvers × threads, results as JSON lines."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import peers

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
ROOT = HERE.parent  # the sources measured are those beside this folder
MATRICES = ROOT.parent / "shared" / "matrices"  # larger real matrices, where present
THREAD_VARIABLES = (
    "FRONTAL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
)
PACKAGES = ("numpy", "scipy", "numba", "pymetis", "mkl", "pypardiso", "scikit-sparse")


@dataclass(frozen=True)
class Job:
    """One solver on one problem (``name:size`` or a Matrix Market file) in a process of its own.

    ``reps`` repetitions of each phase, fewer once ``budget`` seconds are spent on it;
    ``refactorizations`` is what the analysis is told to expect; ``only_scratch`` times no phase
    but the whole.
    """

    problem: str
    solver: str
    threads: int = 1
    reps: int = 5
    budget: float = 4.0
    refactorizations: int = 10
    only_scratch: bool = False

    @property
    def label(self) -> str:
        return f"{label(self.problem)} {self.solver} {self.threads}t"


def label(problem: str) -> str:
    """Return the name under which a problem is listed: its own, or the file's without suffixes."""
    return problem if not is_file(problem) else Path(problem).name.split(".mtx")[0]


def is_file(problem: str) -> bool:
    """Tell a Matrix Market file from a generated ``name:size``."""
    return problem.endswith((".mtx", ".mtx.gz"))


def jobs(
    problems: Iterable[str], solvers: Sequence[str], threads: Sequence[int], **options
) -> list[Job]:
    """Return the product, solvers innermost: what is compared runs within minutes of each other.

    A solver without threads of its own has jobs on one thread only.
    """
    pairs = [(s, t) for t in threads for s in solvers if t == 1 or peers.SOLVERS[s].threaded]
    return [Job(p, s, t, **options) for p in problems for s, t in pairs]


def run(job: Job, timeout: float) -> dict:
    """Measure one job in a fresh process; a crash or a timeout is a result too."""
    env = os.environ | dict.fromkeys(THREAD_VARIABLES, str(job.threads))
    env |= {"PYTHONPATH": str(ROOT), "MKL_DYNAMIC": "FALSE"} | peers.SOLVERS[
        job.solver
    ].environment()
    command = [sys.executable, str(HERE / "worker.py"), json.dumps(asdict(job))]
    try:
        done = subprocess.run(command, env=env, timeout=timeout, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        return failure("Timeout", f"not done after {timeout:g} s")
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return failure("Crash", f"exit status {done.returncode}: {last}")
    return json.loads(lines[-1])


def failure(kind: str, message: str) -> dict:
    return {"error": {"type": kind, "message": message}}


def run_all(todo: list[Job], timeout: float, output: Path, append: bool) -> None:
    """Run the jobs one after the other; write a line as each ends."""
    output.parent.mkdir(parents=True, exist_ok=True)
    context = {"machine": machine(), "versions": versions(), "commit": commit()}
    with output.open("a" if append else "w") as stream:
        for i, job in enumerate(todo):
            result = run(job, timeout)
            if result.get("skipped"):
                continue
            record = {"problem": label(job.problem), "solver": job.solver, "threads": job.threads}
            parameters = {k: v for k, v in asdict(job).items() if k not in record}
            record |= result | {"parameters": parameters | {"timeout": timeout}}
            record |= {"date": now()} | context
            stream.write(json.dumps(record) + "\n")
            stream.flush()
            print(f"[{i + 1}/{len(todo)}] {job.label:44} {summary(record)}", flush=True)


def summary(record: dict) -> str:
    """Return a record in one line."""
    if "error" in record:
        return "{type}: {message}".format(**record["error"])[:120]
    times = ", ".join(f"{k} {v['median']:.3g}" for k, v in record["phases"].items())
    return f"{times}; residual {record['residual']:.1e}"


def load(path: Path) -> list[dict]:
    """Return the records of a JSON lines file, none where it is absent."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def machine() -> dict:
    """Return the processor's name, its usable cores, memory and system."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [x for x in cpuinfo.read_text().splitlines() if x.startswith("model name")]
        model = names[0].split(":", 1)[1].strip() if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model,
        "cores": cores,
        "memory_gib": round(memory, 1),
        "system": platform.system() + " " + platform.machine(),
    }


def versions() -> dict:
    """Return the versions of Python and of the packages that are installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Return the commit measured, marked when tracked source files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "frontal")
    return (git("rev-parse", "--short", "HEAD") or "none") + ("+changes" if changed else "")


def origin(records: Iterable[dict]) -> str:
    """Return the last day of some records and the commits that they measured, oldest first."""
    ordered = sorted(records, key=lambda r: r["date"])
    commits = list(dict.fromkeys(r["commit"] for r in ordered))
    return f"{ordered[-1]['date'][:10]}, commit{'s' * (len(commits) > 1)} {', '.join(commits)}"


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
