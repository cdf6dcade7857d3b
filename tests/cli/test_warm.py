"""`frontal warm`: after it, nothing that users do waits for a compiler."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from frontal import gpu
from frontal.cli import commands, warm
from frontal.compile import jit, worker

from .test_cli import ROOT, run

SESSION = """
import sys, warnings
import numpy as np, scipy.sparse as sp
from numba.core.dispatcher import Dispatcher
import frontal
from frontal import problems
from frontal.cli import warm
from frontal.ordering.components import Components
from frontal.ordering.dissection.dissect import NestedDissection
from frontal.ordering.graph import adjacency

def compiled():
    modules = [m for name, m in sys.modules.items() if name.startswith("frontal")]
    found = [d for m in modules for d in vars(m).values() if isinstance(d, Dispatcher)]
    return {(d.py_func.__module__, d.py_func.__qualname__, s) for d in found for s in d.overloads}

warnings.simplefilter("ignore")
for task in (warm.ANALYSIS, warm.DISSECTION, *warm.tasks(["float64", "complex128"], ["cpu"])):
    warm.run(task)
before = compiled()
assert len(before) > 50
shifted = problems.shifted_laplacian(12, offset=0.1)
for A in (
    problems.poisson2d(40), shifted, *map(problems.turned, (shifted, problems.poisson2d(9))),
    problems.helmholtz2d(12), problems.convdiff2d(12), problems.convdiff2d(12).astype(complex),
    problems.stokes2d(8), problems.zero_diagonal(200), problems.circuit(200),
):
    b = np.ones(A.shape[0], A.dtype)
    factor = frontal.factorize(A, ordering="dissection")
    for rhs in (b, np.ones((b.size, 3)), np.asfortranarray(np.tile(b[:, None], 5)), b.real):
        factor.solve(rhs)
    for values in (2 * A, A.tocsr(), A.data.copy()):
        factor.refactorize(values).solve(b, "T")
    factor.slogdet(), factor.L, factor.rcond(), factor.copy()
    frontal.linalg.spsolve(A, b)
A = problems.circuit(400)
b, factor = np.ones((A.shape[0], 3)), frontal.factorize(A, backend="cpu")
assert factor.analysis.by_columns
factor.solve(b), factor.refactorize(2 * A).solve(b[:, 0], "T")
factor.L, factor.rcond(), factor.slogdet()
L = sp.csc_array(sp.tril(problems.poisson2d(9)))
frontal.analyze(sp.csc_array(sp.kron(shifted, np.ones((2, 2)))), backend="cpu")
frontal.factorize(L, kind="spd", triangle="lower").refactorize(2 * L, triangle="lower")
with NestedDissection(Components(adjacency(problems.poisson3d(45))), threads=2) as shared:
    shared.result()
print(*sorted(map(str, compiled() - before)), sep="\\n")
"""


def test_nothing_is_compiled_after_it():
    done = subprocess.run(
        [sys.executable, "-c", SESSION], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr


def test_processes_beside_each_other():
    done = run("--json", "--dtypes", "float64", "--backend", "cpu", "--jobs", 2,
               command=("-m", "frontal.warm"))  # fmt: skip
    report = json.loads(done.stdout)
    assert report["tasks"].keys() == {
        "cpu analysis", "cpu dissection", "cpu layers",
        *(f"cpu {m} float64" for m in ("ldlt", "lu", "signed_ldlh", "cholesky")),
    }  # fmt: skip
    assert report["folder"] == str(jit._FOLDER)
    assert report["files"] > 100
    assert (report["processes"], report["devices"]) == (2, [])


def test_one_process_and_kernels(monkeypatch, capsys):
    """Without a second process, and where there is a GPU: what is done, and told."""
    ran, told = [], []
    monkeypatch.setattr(warm, "run", lambda task: ran.append(task.name) or 0.5)
    monkeypatch.setattr(gpu, "devices", lambda: ["A GPU"])
    marked = []
    monkeypatch.setattr(worker, "mark_done", marked.append)
    report = warm.warm(["complex64"], jobs=1, progress=lambda *of: told.append(of))
    methods = [f"{m} complex64" for m in ("ldlh", "ldlt", "lu", "signed_ldlh", "cholesky")]
    there = [f"{backend} {m}" for backend in ("gpu", "cpu") for m in methods]
    assert ran == ["cpu analysis", "cpu dissection", "cpu layers", *there] == [*report["tasks"]]
    assert told == [("compiling", k, 13) for k in range(14)]
    assert marked == ["cpu dissection", "cpu layers", *there]
    assert commands.main(["warm", "--jobs", "1", "--dtypes", "float32"]) == 0
    shown = capsys.readouterr().out
    assert "gpu lu float32" in shown
    assert "A GPU" in shown


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_matrices_are_what_they_stand_for(dtype):
    for task in warm.tasks([dtype], ["cpu"]):
        A = warm._matrix(task)
        assert A.dtype == dtype
        small, real = 1e-5 * abs(A).max(), A.dtype.kind == "f"
        symmetric, hermitian = abs(A - A.T).max() < small, abs(A - A.conj().T).max() < small
        assert symmetric == (task.what != "lu" if real else task.what == "ldlt")
        assert hermitian == (task.what not in (("lu",) if real else ("lu", "ldlt")))
        assert np.iscomplexobj(A) == (np.any(A.data.imag != 0))


def test_what_cannot_be_done(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(warm, "run", lambda task: 0.0)
    assert commands.main(["warm", "--jobs", "0"]) == 1
    assert "--jobs is 0; give a positive number" in capsys.readouterr().err
    if not gpu.available():
        assert commands.main(["warm", "--backend", "gpu"]) == 1
        assert "CuPy" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(jit, "_FOLDER", tmp_path / "file" / "inside")
    assert commands.main(["warm"]) == 1
    assert "set FRONTAL_CACHE_DIR to a folder that is writable" in capsys.readouterr().err
