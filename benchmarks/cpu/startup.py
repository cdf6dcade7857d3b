"""Time what a user waits for first: `python -m benchmarks.cpu.startup`.

The import, the first call ever (an empty compilation cache) and the first call of a process whose
cache is there, for each method and dtype; and beside them a process that imports what any such
solver needs, with a context on the GPU where that is asked for, and runs one function that was
compiled before. Results go to results/startup.jsonl or startup_gpu.jsonl.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.device import about_in_a_process
from benchmarks.harness.processes import environment
from benchmarks.harness.records import RESULTS, Record, writer

SOLVE = """
import numpy as np
import scipy.sparse as sp
import frontal
D = sp.diags_array([-1.0, 2.0, -0.5 if {lu} else -1.0], offsets=[-1, 0, 1], shape=(40, 40))
I = sp.eye_array(40)
A = sp.csc_array(sp.kron(D, I) + sp.kron(I, D)).astype("{dtype}")
x = frontal.solve(A, np.ones(A.shape[0], dtype="{dtype}"), backend="{backend}")
assert abs(A @ x - 1).max() < 1e-3
"""
OTHERS = """
import scipy.sparse.linalg
import numba
@numba.njit(cache=True)
def f(x):
    return x + 1
f(1.0)
"""
CONTEXT = """
import cupy
cupy.zeros(10)
cupy.cuda.runtime.deviceSynchronize()
"""
AGAIN = 5  # runs of what is there already


def seconds(*given: str, **env: str) -> float:
    """Return the wall time of a Python process with some arguments."""
    variables = environment(**env)
    start = time.perf_counter()
    subprocess.run([sys.executable, *given], check=True, env=variables)
    return time.perf_counter() - start


def median(what: str, *given: str, **env: str) -> Record:
    """Return the record of some runs of a process, after one that is not counted."""
    seconds(*given, **env)
    took = sorted(seconds(*given, **env) for _ in range(AGAIN))
    return {"what": what, "seconds": took[AGAIN // 2], "min": took[0], "max": took[-1]}


def records(backend: str, dtypes: list[str]) -> Iterator[Record]:
    """Yield one record a measurement; each first call has cache folders of its own."""
    yield median("python", "-c", "pass")
    yield median("import", "-c", "import frontal")
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "others.py")  # Numba keeps code of files alone
        script.write_text(OTHERS + CONTEXT * (backend == "gpu"))
        yield median("a process without a solver", str(script))
    for dtype in dtypes:
        for method in ("cholesky", "lu"):
            code = "-c", SOLVE.format(dtype=dtype, lu=method == "lu", backend=backend)
            case = {"method": method, "dtype": dtype}
            with tempfile.TemporaryDirectory() as folder:
                env = {"FRONTAL_CACHE_DIR": folder, "CUPY_CACHE_DIR": folder + "/cupy"}
                yield {"what": "first call ever", "seconds": seconds(*code, **env)} | case
                yield median("first call of a process", *code, **env) | case


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", choices=("cpu", "gpu"), default="cpu")
    dtypes = ["float64", "complex128", "float32", "complex64"]
    parser.add_argument("--dtypes", nargs="+", default=dtypes)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    name = "startup_gpu.jsonl" if asked.backend == "gpu" else "startup.jsonl"
    output = asked.output or RESULTS / name
    about = {"gpu": about_in_a_process()} if asked.backend == "gpu" else {}
    with writer(output, **about) as store:
        for record in records(asked.backend, asked.dtypes):
            store(record)
            print(record, flush=True)


if __name__ == "__main__":
    main()
