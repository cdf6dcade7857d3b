"""The GPU ladder's own parts: what it counts, plans, checks and reports, with no GPU."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

from benchmarks.dense.checks import CHECKS, LIMIT, residual
from benchmarks.dense.svd import _unpacked
from benchmarks.harness.cases import SHAPES, SIZES, Case, cases
from benchmarks.harness.processes import environment
from benchmarks.harness.records import load
from benchmarks.report import dense
from frontal import gpu


def test_cases():
    found = cases(["potrf", "gemv_n"], "dz", [256], SHAPES)
    assert [c.label for c in found[:4]] == [
        "dpotrf fixed 256x1000",
        "dpotrf uniform 256x3000",
        "dpotrf gaussian 256x3000",
        "zpotrf fixed 256x1000",
    ]
    assert len(cases(SIZES, "d", [], SHAPES)) > 100
    n = np.array([1, 2, 100])
    d, z = Case("potrf", "d", "fixed", 100, 3), Case("potrf", "z", "fixed", 100, 3)
    assert d.flops(n) == pytest.approx(1 + 5 + 338350)
    assert z.flops(n) == 4 * d.flops(n)
    assert d.bytes(n) == 8 * (2 + 6 + 10100)
    for shape in ("uniform", "gaussian"):
        sizes = Case("potrf", "d", shape, 64, 3000).sizes()
        assert sizes.min() >= 1
        assert sizes.max() <= 64
        assert abs(sizes.mean() - 32.5) < 1.5


def operands(routine, n, dtype):
    rng = np.random.default_rng(n)

    def draw():
        x = rng.uniform(-1, 1, (n, n))
        return (x + 1j * rng.uniform(-1, 1, (n, n)) if np.dtype(dtype).kind == "c" else x).astype(
            dtype
        )

    a, b, c = (draw() for _ in "abc")
    np.fill_diagonal(a, n + 1)
    np.fill_diagonal(c, 1)
    low = np.tril(a)
    if routine == "potrf":
        return {"a": a}, np.linalg.cholesky(low + np.tril(a, -1).conj().T), None
    if routine == "getrf":
        factor, pivots = scipy.linalg.lu_factor(b)
        return {"a": b}, factor, pivots
    if routine in ("gebrd", "svd"):
        u, s, vh = np.linalg.svd(b)
        middle = [s[:, None], np.zeros((n, int(routine == "gebrd")))]
        return {"a": b}, np.hstack([u, *middle, vh]).astype(dtype), None
    result = {
        "inv": lambda: np.linalg.inv(a),
        "gemm": lambda: a @ b + c,
        "herk": lambda: a @ a.conj().T + np.tril(c),
        "trsm": lambda: scipy.linalg.solve(low, b.conj().T).conj().T,
        "gemv_n": lambda: a @ b + c,
        "gemv_t": lambda: a.T @ b + c,
        "potrs": lambda: scipy.linalg.cho_solve((low, True), b),
        "getrs": lambda: scipy.linalg.lu_solve((a, np.arange(n)), b),
    }[routine]()
    return {"a": a, "b": b, "c": c}, result.astype(dtype), None


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_residuals_tell_right_from_wrong(n, dtype):
    for routine in CHECKS:
        source, result, pivots = operands(routine, n, dtype)
        assert residual(routine, source, result, pivots) < LIMIT, routine
        wrong = result.copy()
        wrong[-1, 0] += 0.1 * np.linalg.norm(result) + 0.3
        assert residual(routine, source, wrong, pivots) > LIMIT, routine
        wrong[-1, 0] = np.nan
        assert residual(routine, source, wrong, pivots) == 1e99, routine


def test_what_lapack_leaves_of_a_bidiagonalization_is_unpacked():
    """[1 0; 0 H] in place of P, for which LAPACK has the vector in the first row."""
    v, u = np.array([1.0, 0.5, -0.25]), np.array([1.0, 0.75])
    q, p = np.eye(3), np.eye(3)
    q -= 2 / (v @ v) * np.outer(v, v)
    p[1:, 1:] -= 2 / (u @ u) * np.outer(u, u)
    b, packed = np.diag([3.0, 2.0, 1.0]) + np.diag([0.5, 0.25], 1), np.zeros((3, 3))
    packed[1:, 0], packed[0, 2] = v[1:], u[1]
    values = np.array([b.diagonal(), [0.5, 0.25, 0]])
    tau = np.array([[2 / (v @ v), 0, 0], [2 / (u @ u), 0, 0]])
    assert residual("gebrd", {"a": q @ b @ p.T}, _unpacked(packed, values, tau)) < 1


def test_reference_and_ratios(tmp_path):
    source = "MAGMA 2.10 built for sm_90, measured on an H200, 2026-11"
    assert {r["source"] for r in load(dense.REFERENCE)} == {source}
    about = {"routine": "potrf", "dtype": "d", "batch": 1000, "ok": True, "date": "2026-11-21"}
    about |= {"gpu": {"device": "some"}, "commit": "abc", "roofline": 0.5}
    path = tmp_path / "ladder.jsonl"
    rows = [("fixed", 256, "ours", 9000.0), ("fixed", 256, "vendor", 4000.0)]
    rows += [("fixed", 128, "ours", 5000.0), ("uniform", 256, "ours", 4500.0)]
    records = [about | {"shape": s, "n": n, "rung": r, "gflops": g} for s, n, r, g in rows]
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    found = {text: (values, state) for text, _, values, state in dense.aims(path)}
    values, state = found["potrf over the better of cuSOLVER and MAGMA"]
    assert (values, state) == ("128: 1.64, 256: 1.47", "reached")
    assert found["potrf uniform over MAGMA"][0] == "256: 1.40"
    assert found["getrf uniform over MAGMA"][1] == "no result"
    assert 0.6 < dense.Results(path).over_fixed("potrf", 256) < 0.9
    parts = dense.sections(path)
    assert "| 256 | 9,000 | 6,140 | 4,000 | 50 % |" in parts["GPU: potrf, float64, GF/s"]
    assert source in parts["GPU: origin"]


@pytest.mark.skipif(gpu.available(), reason="there is a GPU")
def test_entries_that_fail_are_recorded_and_the_run_goes_on(tmp_path):
    path = tmp_path / "x.jsonl"
    command = [sys.executable, "-m", "benchmarks.dense.ladder", "--routines", "potrf"]
    command += ["--sizes", "8", "--output", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert {"ceilings", "ours", "vendor", "host"} <= {r["rung"] for r in records}
    assert all("worker died" in r["error"]["message"] for r in records)
    assert "dpotrf fixed 8x10000" in done.stdout
