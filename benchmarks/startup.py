"""Time what a user waits for first: `python benchmarks/startup.py`.

The import, the first call ever (an empty compilation cache) and the first call of a process whose
cache is there, for each method and dtype. Results go to results/startup.jsonl.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from harness import RESULTS, ROOT, commit, machine, now, versions

SOLVE = """
import numpy as np
import scipy.sparse as sp
import frontal
D = sp.diags_array([-1.0, 2.0, -0.5 if {lu} else -1.0], offsets=[-1, 0, 1], shape=(40, 40))
I = sp.eye_array(40)
A = sp.csc_array(sp.kron(D, I) + sp.kron(I, D)).astype("{dtype}")
x = frontal.solve(A, np.ones(A.shape[0], dtype="{dtype}"))
assert abs(A @ x - 1).max() < 1e-3
"""


def seconds(code: str, **env: str) -> float:
    """Return the wall time of a Python process that runs the code."""
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code], check=True, env=os.environ | env | {"PYTHONPATH": str(ROOT)}
    )
    return time.perf_counter() - start


def records():
    """Yield one record a measurement; each first call has a cache folder of its own."""
    empty, imported = (
        sorted(seconds(code) for _ in range(7)) for code in ("pass", "import frontal")
    )
    yield {"what": "python", "seconds": empty[3], "min": empty[0], "max": empty[-1]}
    yield {"what": "import", "seconds": imported[3], "min": imported[0], "max": imported[-1]}
    for dtype in ("float64", "complex128", "float32", "complex64"):
        for method in ("cholesky", "lu"):
            code = SOLVE.format(dtype=dtype, lu=method == "lu")
            with tempfile.TemporaryDirectory() as folder:
                first, then = (seconds(code, FRONTAL_CACHE_DIR=folder) for _ in range(2))
            case = {"method": method, "dtype": dtype}
            yield {"what": "first call ever", "seconds": first} | case
            yield {"what": "first call of a process", "seconds": then} | case


def main() -> None:
    context = {"machine": machine(), "versions": versions(), "commit": commit(), "date": now()}
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "startup.jsonl").open("w") as stream:
        for record in records():
            stream.write(json.dumps(record | context) + "\n")
            print({k: v for k, v in record.items() if k not in context}, flush=True)


if __name__ == "__main__":
    main()
