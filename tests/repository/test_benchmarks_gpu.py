"""The GPU comparison's own parts: problems, plans, ratios, aims and tables, with no GPU."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io

import frontal
from benchmarks.gpu import compare, scratch, worker
from benchmarks.harness import cudss, grids
from benchmarks.harness.processes import environment, failure
from benchmarks.report import sparse
from benchmarks.report.tables import mean

SESSION = Path(compare.__file__).with_name("session.sh")


class Host:
    """NumPy in the place of a device."""

    class xp:  # noqa: N801
        ndarray = np.ndarray
        asarray = staticmethod(np.asarray)
        asnumpy = staticmethod(np.asarray)

    def synchronize(self):
        pass

    def free(self):
        return 100

    def taken(self, before):
        return before


def record(problem, solver, refactor, solve, **more):
    """A record as the benchmark writes it; times in milliseconds."""
    times = {"analysis": 2e3, "factor1": 9, "refactor": refactor, "solve1": solve, "solve16": 4}
    phases = {k: dict.fromkeys(("median", "min", "max"), v / 1e3) for k, v in times.items()}
    about = {"n": 900, "nnz_factor": 10000, "flops": 2e6, "memory": 2**20, "residual": 1e-16}
    about |= {"tflops": 2e6 / refactor / 1e9, "phases": phases, "resident": True}
    context = {"date": "2026-01-02T03:04:05", "commit": "abc", "gpu": {"device": "none"}}
    context |= {"versions": {"python": "3"}, "machine": {"cpu": "some"}}
    return {"problem": problem, "dtype": "d", "solver": solver} | about | context | more


# nnz of the stencils: 5 n² - 4 n, 7 n³ - 6 n², (3 n - 2)³, and that 9 times
@pytest.mark.parametrize(
    ("name", "rows", "nnz", "kind"),
    [
        ("p2d:9", 81, 369, "spd"),
        ("p3d:5", 125, 725, "spd"),
        ("p27:5", 125, 2197, "spd"),
        ("el27:4", 192, 9000, "spd"),
        ("cd2d:9", 81, 369, "general"),
        ("cd3d:5", 125, 725, "general"),
        ("hz3d:5", 125, 725, "symmetric"),
        ("ind3d:5", 125, 725, "symmetric"),
    ],
)
def test_grids(name, rows, nnz, kind):
    A, told = grids.make(name)
    assert (A.shape, A.nnz, told) == ((rows, rows), nnz, kind)
    assert A.has_sorted_indices
    assert A.dtype == (np.complex128 if name.startswith("hz") else np.float64)
    dense = A.toarray()
    assert (np.abs(dense - dense.T).max() == 0) == (kind != "general")
    if kind == "spd":
        np.linalg.cholesky(dense)
    small, _ = grids.make(grids.warm_up(name))
    assert 500 < small.shape[0] < 2000


def test_values_of_the_grids_made_here():
    def values(name):
        return sorted({complex(v) for v in np.round(grids.make(name)[0].data, 9)}, key=abs)

    assert values("p27:3") == [-1, 7.1, 11.1, 17.1, 26.1]  # neighbours of a corner to the centre
    assert values("hz3d:3") == [-1, 5.4 - 0.05j]
    A = grids.make("el27:2")[0].toarray()
    assert A[:3, :3] == pytest.approx(7.1 * grids.COUPLING)
    assert A[:3, 3:6] == pytest.approx(-grids.COUPLING)


def test_scalar_types_of_the_grids():
    found = {x: grids.make("p2d:3", x)[0].dtype.char for x in "sdcz"}
    assert found == {"s": "f", "d": "d", "c": "F", "z": "D"}
    assert {x: grids.make("hz3d:2", x)[0].dtype.char for x in "sdcz"} == {
        "s": "F",
        "d": "D",
        "c": "F",
        "z": "D",
    }
    for wrong in ("p2d", "p2d:x", "none:3"):
        with pytest.raises(ValueError, match="name:edge"):
            grids.split(wrong)


def test_numbers_of_cudss_by_name():
    config = {"reordering_alg": 0, "ir_n_steps": 5, "pivot_type": 7, "pivot_epsilon": 9}
    config |= {"hybrid_device_memory_limit": 12, "host_nthreads": 14, "use_superpanels": 20}
    config |= {"deterministic_mode": 24, "memory_optimization_setting": 29}
    assert {name: cudss.CONFIG.index(name) for name in config} == config
    data = {"lu_nnz": 1, "npivots": 2, "user_perm": 9, "memory_estimates": 13, "flops": 26}
    assert {name: cudss.DATA.index(name) for name in data} == data
    assert cudss.PHASES["analysis"] == 3
    assert cudss.PHASES["solve"] == 1008
    assert [cudss.TYPES.index(x) for x in ("general", "symmetric", "spd", "hpd")] == [0, 1, 3, 4]
    assert set(cudss.CONFIG_TYPES) <= set(cudss.CONFIG)
    assert cudss.matrix_type("spd", np.float32) == "spd"
    assert cudss.matrix_type("spd", np.complex64) == "hpd"
    with pytest.raises(ValueError, match="choose one of"):
        cudss.matrix_type("triangular", np.float64)


def test_what_cudss_is_given():
    A, _ = grids.make("cd2d:4")
    assert (cudss.stored(A, "general").toarray() == A.toarray()).all()
    half = cudss.stored(A, "symmetric")
    assert (half.toarray() == np.triu(A.toarray())).all()
    assert half.has_sorted_indices


def test_finding_cudss(tmp_path, monkeypatch):
    library, layer = tmp_path / "libcudss.so.1", tmp_path / "libcudss_mtlayer_gomp.so.1"
    monkeypatch.setenv(cudss.VARIABLE, str(library))
    assert cudss.find() is None
    library.touch()
    layer.touch()
    assert cudss.find() == library
    assert cudss.find("libcudss_mtlayer_gomp.so") == layer
    monkeypatch.delenv(cudss.VARIABLE)
    monkeypatch.setattr(cudss, "WHEELS", ("no-such-wheel",))
    assert cudss.find() is None


def test_phases_on_the_host(monkeypatch, tmp_path):
    monkeypatch.setattr(worker.Frontal, "backend", "cpu")
    monkeypatch.setattr(worker.Frontal, "ordering", "amd")
    order = tmp_path / "order.npy"
    entry = worker.Entry("p2d:12", "frontal", "d", 3, 9, str(order), scratch=0)
    found = worker.measure(entry, Host())
    assert "error" not in found
    assert set(found["phases"]) == {
        "analysis",
        "factor1",
        "refactor",
        "solve1",
        "solve16",
        "solve_refined",
    }
    assert found["phases"]["refactor"]["reps"] == 3
    assert max(found[k] for k in ("residual", "residual16", "residual_refined")) < 1e-13
    assert (found["resident"], found["memory"]) == (True, 100)
    assert found["tflops"] > 0
    assert sorted(np.load(order)) == list(range(found["n"]))
    json.dumps(found)


def test_phases_through_the_host():
    calls = []

    class Stub(worker.Frontal):
        def __init__(self):
            import frontal

            self.api, self.on_host = frontal, []

    def resident():
        calls.append("device")
        raise TypeError("no arrays of the device")

    stub = Stub()
    assert [stub._first_of("solve", resident, lambda: 7) for _ in range(2)] == [7, 7]
    assert (calls, stub.on_host) == (["device"], ["solve"])

    def singular():
        raise stub.api.errors.SingularMatrixError.numerical(3)

    with pytest.raises(stub.api.errors.SingularMatrixError):
        stub._first_of("refactor", singular, lambda: 7)


def test_plan(monkeypatch, capsys):
    given = ["--problems", "p2d:30", "hz3d:30", "--dtypes", "sd", "--match", "p2d|z?3d.* d "]
    options = compare.arguments([*given, "--solvers", "cudss", "frontal", "--same-ordering"])
    labels = [entry.label for entry in compare.plan(options, ["frontal", "cudss-same"])]
    assert labels[:2] == ["p2d:30 s frontal", "p2d:30 s cudss-same"]
    assert labels[4:] == ["hz3d:30 d frontal", "hz3d:30 d cudss-same"]
    monkeypatch.setattr("benchmarks.harness.cudss.find", lambda: None)
    assert compare.solvers(options) == ["frontal"]
    assert "skipped: cudss-same" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        compare.arguments(["--problems", "p4d:3"])


def test_a_run_writes_what_workers_answer(monkeypatch, tmp_path):
    replies = iter([{"residual": 1.0}, {"skipped": "too large"}, failure("Crash", "died")])
    monkeypatch.setattr(compare, "about_in_a_process", lambda: {"device": "none"})
    monkeypatch.setattr(compare, "answer", lambda module, job, timeout: next(replies))
    monkeypatch.setattr(compare, "summary", str)
    options = compare.arguments(["--output", str(tmp_path / "rows.jsonl")])
    todo = [compare.Entry("p2d:30", name) for name in ("frontal", "cupyx", "cudss")]
    assert len(compare.run(todo, options)) == 2
    rows = [json.loads(line) for line in options.output.read_text().splitlines()]
    assert [row["solver"] for row in rows] == ["frontal", "cudss"]
    assert rows[0]["parameters"]["reps"] == options.reps
    assert {"date", "gpu", "machine", "versions", "commit"} <= set(rows[0])


def test_ratios_and_means():
    rows = [
        record("p2d:300", "frontal", 9, 1),  # measured again below
        record("p2d:300", "frontal", 1, 0.2),
        record("p2d:300", "cudss", 2, 0.4),
        record("p3d:50", "frontal", 8, 2, resident=False),
        record("p3d:50", "cudss", 1, 1),
        {"problem": "p27:40", "dtype": "d", "solver": "frontal", "error": {"type": "Crash"}},
    ]
    results = sparse.Results(rows)
    assert results.ratio(("p2d:300", "d"), "refactor") == 0.5
    assert results.ratio(("p27:40", "d"), "refactor") is None
    assert results.ratio(("p2d:300", "d"), "solve1", "cudss-same") is None
    assert mean([4, 1, None]) == pytest.approx(2)
    assert mean([]) is None
    header, *lines, last = sparse.comparison(results, "cudss")
    assert {len(line) for line in (header, *lines, last)} == {10}
    assert " ".join(lines[0]) == "p2d:300 d 0.00200 0.00100 1.00 2.00 0.500 0.200 0.400 0.500"
    assert lines[1][0] == "p3d:50 *"
    assert lines[2][4:] == ["–"] * 6
    assert (last[6], last[9]) == ("2.00", "1.00")


def test_aims():
    assert all(aim.goal < aim.first for x in sparse.AIMS.values() for aim in x.values())
    assert all(set(x) == set(sparse.PHASES) for x in sparse.AIMS.values())
    rows = {
        (r[0], r[1]): r
        for r in sparse.aims(sparse.Results([record("p2d:300", "frontal", 0.8, 0.1)]))
    }
    assert rows["p2d:300", "refactor"][2:] == ["0.800", "1", "reached", "0.4", "short 2.00x"]
    assert rows["p2d:300", "solve"][4:] == ["reached", "0.12", "reached"]
    assert rows["p3d:50", "solve"][4] == "no result"


def test_sections(tmp_path):
    path = tmp_path / "gpu.jsonl"
    assert sparse.sections(path, path, path) == {}
    rows = [record("p2d:300", "frontal", 1, 0.2), record("p2d:300", "cudss-same", 2, 1, cudss="1")]
    rows.append({**rows[0], "problem": "p3d:30", "error": {"type": "Timeout", "message": ""}})
    path.write_text("\n".join(map(json.dumps, rows)))
    found = sparse.sections(path, *[path.with_name("none")] * 2)
    assert "| p2d:300 | d |" in found["Sparse systems on a GPU"]
    assert "Timeout" in found["Sparse systems on a GPU: details"]
    assert found["Sparse systems on a GPU: origin"].endswith("2026-01-02, commit abc.")
    for body in found.values():
        tables = [t for t in body.split("\n\n") if t.startswith("|")]
        assert all(len({line.count("|") for line in t.splitlines()}) == 1 for t in tables)
    assert "cudss-same refactor ms" in sparse.text(rows)


def test_the_entries_can_be_listed_without_a_gpu():
    command = [sys.executable, "-m", "benchmarks.gpu.compare", "--list", "--solvers", "frontal"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["p2d:30 d frontal", "p2d:300 d frontal"]


def test_files_are_problems_too(tmp_path, monkeypatch):
    """Of a folder, those with enough rows; the name in a record is the file's."""
    for edge in (2, 5):
        scipy.io.mmwrite(tmp_path / f"p{edge}.mtx", frontal.problems.poisson2d(edge))
    options = compare.arguments(["--matrices", str(tmp_path), "--smallest", "9"])
    assert options.output == sparse.REAL
    (entry,) = compare.plan(options, ["frontal"])
    assert entry.label == "p5 d frontal"
    monkeypatch.setattr(worker.Frontal, "backend", "cpu")
    monkeypatch.setattr(worker, "WARM_UPS", {"spd": "p2d"})
    found = worker.measure(replace(entry, reps=1, scratch=0), Host())
    assert (found["n"], found["kind"]) == (25, "spd")
    assert found["residual_refined"] < 1e-15


def test_solves_with_checks_are_compared_with_those_of_a_peer_without():
    rows = [record("p2d:300", "frontal", 1, 0.2), record("p2d:300", "cudss", 2, 0.4)]
    rows[0]["phases"]["solve_refined"] = {"median": 0.8e-3}
    assert sparse.Results(rows).ratios("solve_refined") == [pytest.approx(2)]


def scratched(problem, solver, seconds, memory, **more):
    """A record with a whole solve from scratch; of its time, half is analysis."""
    found = record(problem, solver, 1, 0.2, scratch_memory=memory * 2**20, **more)
    parts = {"": 1, "_analysis": 0.5, "_factor": 0.3, "_solve": 0.2}
    times = {f"scratch{k}": {"median": seconds * share} for k, share in parts.items()}
    return found | {"phases": found["phases"] | times}


def test_the_whole_from_scratch_on_the_host(monkeypatch):
    monkeypatch.setattr(worker.Frontal, "backend", "cpu")
    monkeypatch.setattr(worker.Frontal, "ordering", "amd")
    found = worker.measure(worker.Entry("p2d:12", "frontal", reps=5, scratch=3), Host())
    assert "error" not in found
    phases = found["phases"]
    assert [phases[x]["reps"] for x in ("scratch", "scratch_factor", "analysis")] == [3, 3, 1]
    parts = [phases[f"scratch_{x}"]["min"] for x in ("analysis", "factor", "solve")]
    assert 0 < sum(parts) <= phases["scratch"]["max"]
    assert found["residual_scratch"] < 1e-13
    assert found["scratch_memory"] == 100
    assert found["factor_memory"] > 0
    assert found["scratch_ordering"] in ("amd", "nesdis", "metis")
    none = worker.measure(worker.Entry("p2d:12", "frontal", reps=1, scratch=0), Host())
    assert "scratch_memory" not in none


class FakeLibrary:
    """cuDSS as a list of the calls made."""

    def __init__(self, *given, **options):
        self.calls, self.given, self.options = [], given, options

    def __getattr__(self, name):
        return lambda *_: self.calls.append(name) or [7, 9, 0, 0]


def test_cudss_from_scratch_keeps_its_handle(monkeypatch):
    made = []
    monkeypatch.setattr(cudss, "new_handle", lambda: made.append("handle") or 5)
    solvers = [FakeLibrary(), FakeLibrary()]
    left = iter(solvers)
    monkeypatch.setattr(cudss, "Solver", lambda *a, **k: _told(next(left), k))
    A, kind = grids.make("p2d:5")
    Host.xp.zeros_like = staticmethod(np.zeros_like)
    samples = {}
    solver = scratch.CuDSS(A, kind, Host(), 4)
    found = scratch.measure(solver, np.ones(25), Host(), samples, 1)
    assert made == ["handle"]
    assert found["factor_memory"] == 7
    assert all(s.options["handle"] == 5 and s.options["threads"] == 4 for s in solvers)
    assert (solvers[0].options["half"].toarray() == np.triu(A.toarray())).all()
    assert solvers[1].calls == ["analyze", "factorize", "solve", "get", "close"]
    assert {k: len(v) for k, v in samples.items()} == dict.fromkeys(
        ("scratch", "scratch_analysis", "scratch_factor", "scratch_solve"), 1
    )


def _told(fake, options):
    fake.options = options
    return fake


def test_where_ours_is_behind(tmp_path):
    rows = [
        scratched("p2d:300", "frontal", 3, 100),
        scratched("p2d:300", "cudss", 1, 80),
        scratched("p3d:30", "frontal", 1, 50),
        scratched("p3d:30", "cudss", 2, 80),
        record("p3d:50", "frontal", 2, 0.2),
        record("p3d:50", "cudss", 1, 0.4, memory=2**21),
        record("p3d:50", "frontal", 2, 0.2, dtype="s"),  # without a rival
    ]
    path = tmp_path / "gpu.jsonl"
    assert sparse.sections(path, path, path) == {}
    assert sparse.summary(sparse.beside_cudss(path)) == "No results yet."
    path.write_text("\n".join(map(json.dumps, rows)))
    found = sparse.sections(path, *[path.with_name("none")] * 2)
    body = found["Sparse systems on a GPU: from scratch"]
    assert "| p2d:300 | d | 900 | 3.00 | 1.00 | 3.00 | 1.50 | 0.500 | 3.00 | 900 | 300 |" in body
    assert "| p3d:50 | d | 900 | – | – | – |" in body
    assert "Behind cuDSS in from scratch (1 of 2 problems): p2d:300 3.00x." in body
    assert "Behind cuDSS in refactorization (1 of 3 problems): p3d:50 2.00x." in body
    assert "Behind cuDSS in memory (1 of 2 problems): p2d:300 1.25x." in body
    assert "Nowhere behind in solve (3 problems), memory with 16 right-hand sides (3" in body
    assert body.endswith(sparse.summary(sparse.beside_cudss(path)))
    for table in (t for t in body.split("\n\n") if t.startswith("|")):
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_the_problems_of_the_session_are_known():
    script = SESSION.read_text(encoding="utf-8")
    listed = script.split('problems="')[1].split('"')[0].split()
    assert {"p3d:80", "p3d:126", "p2d:2000"} < set(listed)
    assert all(grids.split(name) for name in listed)
    assert subprocess.run(["bash", "-n", str(SESSION)]).returncode == 0
