"""The command line, run as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import gpu
from frontal.cli import commands as cli
from frontal.cli import show
from frontal.io import read_vector, write_matrix, write_vector
from frontal.matrix.canonical import KINDS

from ..matrices import tridiagonal

ROOT = Path(__file__).resolve().parents[2]
A = tridiagonal(50, -1.0, 4.0, -2.0)
WITHOUT_RICH = (
    "import sys; sys.modules['rich'] = None; from frontal.cli import main; sys.exit(main())"
)


def run(*arguments, code=0, command=("-m", "frontal")):
    """Run a command line in a fresh process and check its exit code."""
    done = subprocess.run(
        [sys.executable, *command, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def matrix(tmp_path):
    path = tmp_path / "A.mtx.gz"
    write_matrix(path, A)
    return path


# --- solve -----------------------------------------------------------------------------------


def test_solve_with_ones(matrix):
    done = run("solve", matrix)
    assert done.stderr == ""
    assert done.stdout.startswith("n = 50, nnz = 148: lu, ")
    assert "error against ones" in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("name", ["x.mtx", "x.mtx.gz", "x.npy", "x.txt"])
@pytest.mark.parametrize("columns", [1, 2])
def test_solve_writes_the_solution(tmp_path, matrix, name, columns, capsys):
    b = np.random.default_rng(1).standard_normal((50, columns)).squeeze()
    write_vector(tmp_path / "b.mtx", b)
    assert (
        cli.main(["solve", str(matrix), str(tmp_path / "b.mtx"), "-o", str(tmp_path / name)]) == 0
    )
    x = read_vector(tmp_path / name)
    assert x.shape == b.shape
    np.testing.assert_allclose(A @ x, b, atol=1e-14)
    assert "error against ones" not in capsys.readouterr().out


def test_solve_as_json(matrix):
    done = run("solve", matrix, "--json", "--ordering", "natural", "--kind", "general")
    report = json.loads(done.stdout)
    assert done.stderr == ""
    assert report["n"] == 50
    assert report["ordering"] == "natural"
    assert report["method"] == "lu"
    assert report["backend"] == "cpu"
    assert report["backward_error"] < 1e-15
    assert report["error_against_ones"] < 1e-13
    assert {"read", "ordering", "factorization", "solve"} <= set(report["seconds"])


def test_solve_reports(capsys):
    assert cli.main(["solve", "poisson2d:12", "--report"]) == 0
    out = capsys.readouterr().out
    for words in ("cholesky", "backward error", "memory", "factorization", "total"):
        assert words in out


def test_a_complex_model_problem(capsys):
    assert cli.main(["solve", "helmholtz2d:12", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["dtype"] == "complex128"
    assert report["error_against_ones"] < 1e-10


# --- analyze, info, help ---------------------------------------------------------------------


def test_analyze(capsys):
    done = run("analyze", "poisson2d:30", command=("-m", "frontal"))
    for words in ("tree depth", "Fronts", "contribution", "Orderings tried", "amd", "Time"):
        assert words in done.stdout
    assert cli.main(["analyze", "poisson2d:30", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    analysis = frontal.analyze(frontal.problems.from_name("poisson2d:30"))
    assert report["n"] == sum(c["columns"] for c in report["size_classes"]) == 900
    assert report["fronts"] == sum(c["fronts"] for c in report["size_classes"])
    assert sum(c["flops_share"] for c in report["size_classes"]) == pytest.approx(1)
    assert report["fronts"] == analysis.n_fronts
    assert report["tree_depth"] == analysis.levels
    assert report["nnz_factor"] == analysis.nnz_factor
    assert report["memory"]["total"] == analysis.memory["total"]
    assert "amd" in [tried["ordering"] for tried in report["orderings"]]


def test_analyze_an_empty_matrix(tmp_path, capsys):
    write_matrix(tmp_path / "A.npz", sp.csc_array((0, 0)))
    assert cli.main(["analyze", str(tmp_path / "A.npz")]) == 0
    assert cli.main(["solve", str(tmp_path / "A.npz")]) == 0
    assert "n = 0" in capsys.readouterr().out


def test_info(capsys):
    report = json.loads(run("info", "--json").stdout)
    assert report["versions"]["frontal"] == frontal.__version__
    assert report["versions"]["numpy"] == np.__version__
    assert report["threads"] >= 1
    assert any("blas" in pool["library"] or "mkl" in pool["library"] for pool in report["blas"])
    assert isinstance(report["devices"], list)
    assert cli.main(["info"]) == 0
    assert "BLAS" in capsys.readouterr().out


def test_help_and_version_load_no_library():
    blocked = "import sys; sys.modules.update(numpy=None, scipy=None, numba=None); "
    code = blocked + "from frontal.cli import main; sys.exit(main())"
    assert "analyze" in run("--help", command=("-c", code)).stdout
    assert "--ordering" in run("solve", "--help", command=("-c", code)).stdout
    assert run("--version", command=("-c", code)).stdout.strip() == frontal.__version__


def test_the_choices_are_those_of_the_library():
    assert set(cli.KINDS) <= set(KINDS)
    assert {*cli.ORDERINGS} == {*frontal.ordering.METHODS} - {"given"}


# --- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "{tmp}/none.mtx"], "none.mtx"),
        (["solve", "{tmp}/a.xyz"], "unknown file extension"),
        (["solve", "{tmp}/broken.mtx"], "broken.mtx"),
        (["solve", "{tmp}/singular.mtx"], "singular"),
        (["solve", "{tmp}/wide.mtx"], "square"),
        (["solve", "{tmp}/nan.mtx"], "A[1, 1] is nan"),
        (["solve", "{tmp}/singular.mtx", "--kind", "spd"], "not positive definite"),
        (["solve", "{tmp}/good.mtx", "{tmp}/wide.mtx"], "b has shape"),
        (["solve", "{tmp}/good.mtx", "-o", "{tmp}/x.xyz"], "unknown file extension"),
        (["solve", "atlantis:3"], "atlantis"),
        (["analyze", "{tmp}/none.mtx"], "none.mtx"),
    ],
)
def test_errors_are_one_line(tmp_path, capsys, arguments, message):
    write_matrix(tmp_path / "good.mtx", sp.csc_array(np.diag([1.0, 2, 3])))
    write_matrix(tmp_path / "singular.mtx", sp.csc_array(np.ones((3, 3))))
    write_matrix(tmp_path / "wide.mtx", sp.csc_array(np.ones((2, 3))))
    write_matrix(tmp_path / "nan.mtx", sp.csc_array(np.diag([1.0, np.nan])))
    (tmp_path / "broken.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 9\n")
    assert cli.main([part.format(tmp=tmp_path) for part in arguments]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("frontal: error: ")
    assert message in err
    assert err.count("\n") == 1


def test_errors_of_a_process(tmp_path):
    assert "none.mtx" in run("solve", tmp_path / "none.mtx", code=1).stderr
    for arguments in ([], ["fly"], ["solve"], ["solve", "A.mtx", "--kind", "odd"], ["info", "x"]):
        done = run(*arguments, code=2)
        assert done.stdout == ""
        assert "usage: frontal" in done.stderr


@pytest.mark.skipif(gpu.available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there(capsys):
    assert cli.main(["solve", "poisson2d:5", "--backend", "gpu"]) == 1
    assert "pip install 'cupy-cuda13x[ctk]'" in capsys.readouterr().err


def test_warnings_are_one_line(tmp_path, capsys):
    write_matrix(tmp_path / "A.mtx", sp.csc_array([[1.0, 1.0], [1.0, 1.0 + 1e-14]]))
    assert cli.main(["solve", str(tmp_path / "A.mtx")]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("n = 2")
    assert err.startswith("frontal: warning: the matrix is nearly singular")
    assert err.count("\n") == 1


# --- terminals -------------------------------------------------------------------------------


def on_a_terminal(arguments, command, *streams):
    """Run with some streams on a pseudo-terminal; return what it shows and the piped rest."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    pipes = {name: theirs if name in streams else subprocess.PIPE for name in ("stdout", "stderr")}
    process = subprocess.Popen(
        [sys.executable, *command, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"},
        **pipes,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # how Linux says that the other side has closed it
            break
        if not part:
            break
        shown += part
    rest = process.communicate(timeout=300)[0 if "stderr" in streams else 1]
    os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode(), (rest or b"").decode()


def test_progress_bars_go_to_a_terminal():
    pytest.importorskip("rich")
    arguments = ["solve", "poisson2d:30", "--json"]
    shown, out = on_a_terminal(arguments, ("-m", "frontal"), "stderr")
    for phase in ("reading", "ordering", "symbolic"):
        assert phase in shown
    assert json.loads(out)["n"] == 900
    shown, err = on_a_terminal(["analyze", "poisson2d:30"], ("-m", "frontal"), "stdout")
    assert "━" in shown
    assert "Fronts" in shown
    assert err == ""


def test_without_rich():
    command = ("-c", WITHOUT_RICH)
    shown, out = on_a_terminal(["solve", "poisson2d:30"], command, "stderr")
    assert "frontal: ordering" in shown
    assert out.startswith("n = 900")
    shown, err = on_a_terminal(["analyze", "poisson2d:30"], command, "stdout")
    assert "Fronts" in shown
    assert err == ""


def test_sizes_in_words():
    counts = {0: "0", 999: "999", 1000: "1 k", 999_999: "1000 k", 2.5e12: "2.5 T", 3e15: "3000 T"}
    assert {value: show.count(value) for value in counts} == counts
    sizes = {1023: "1023 B", 1024: "1 KiB", 3 * 2**29: "1.5 GiB", 2**50: "1048576 GiB"}
    assert {value: show.size(value) for value in sizes} == sizes


def test_a_profile_needs_a_gpu(capsys):
    assert (
        cli.main(["bench", "poisson2d:5", "--profile", "--peers", "none", "--backend", "cpu"]) == 1
    )
    assert "on a GPU" in capsys.readouterr().err
