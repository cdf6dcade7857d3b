"""`frontal bench`: phases, other solvers in processes of their own, the chart."""

from __future__ import annotations

import json
import multiprocessing
from importlib.util import find_spec

import numpy as np
import pytest

from frontal.cli import bench, peers
from frontal.cli import commands as cli
from frontal.problems import from_name

BENCH = ("bench", "poisson2d:20", "--repeat", "1", "--backend", "cpu")


class Quiet:
    """A solver that ends without a word."""

    def __init__(self, *_):
        raise SystemExit


class Broken(Quiet):
    """A solver that fails as only foreign code does."""

    def __init__(self, *_):
        raise ZeroDivisionError("phase 22")


def test_every_phase_beside_scipy(capsys, tmp_path):
    picture = tmp_path / "chart.svg"
    assert cli.main([*BENCH, "--json", "--peers", "superlu", "--plot", str(picture)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert set(report["milliseconds"]) >= {"analysis", "first", "refactorize", "solve"}
    assert all(least <= most for _, least, most in report["milliseconds"].values())
    assert set(report["peers"]) == {"superlu"}
    found = report["peers"]["superlu"]
    assert max(report["backward_error"], found["backward_error"]) < 1e-15
    assert set(found["milliseconds"]) == set(bench.PHASES)
    assert bench.ours(report["milliseconds"])["first"] > report["milliseconds"]["first"][0]
    assert picture.stat().st_size > 5000
    bench.tables(report | {"peers": {"superlu": found, "pardiso": {"failed": "no licence"}}})
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines if line.strip()}
    assert len(rows["superlu"].split()) == len(rows["frontal"].split()) == 5
    assert rows["pardiso"].endswith("no licence")


def test_only_what_is_there_and_fits():
    assert set(cli.PEERS) == set(peers.PEERS)
    there = {name for name, known in peers.PEERS.items() if all(map(find_spec, known.modules))}
    assert set(peers.installed("spd")) == there
    assert "cholmod" not in peers.installed("general")


def test_unknown_peers_are_named(capsys):
    assert cli.main([*BENCH, "--peers", "umfpack"]) == 1
    assert "superlu, cholmod" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("made", "told"), [(Broken, "ZeroDivisionError: phase 22"), (Quiet, "without a result")]
)
def test_a_peer_that_fails_is_a_row(made, told, monkeypatch):
    monkeypatch.setitem(peers.PEERS, "superlu", peers._PeerEntry(made, ()))
    here, there = multiprocessing.Pipe(duplex=False)
    A = from_name("poisson2d:3")
    try:
        peers._measure(there, "superlu", A, np.ones(9), "spd", 1, 1)
    except SystemExit:
        there.close()
    assert told in peers._outcome(here, 5)["failed"]


def test_a_peer_that_takes_too_long_is_ended():
    A = from_name("poisson2d:3")
    options = {"repeat": 1, "seconds": 0.01, "threads": 1}
    [(name, found)] = peers.compare(["superlu"], A, np.ones(9), "spd", **options)
    assert (name, found["failed"]) == ("superlu", "not finished after 0.01 s")
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("name", ["poisson2d:9", "helmholtz2d:9", "stokes2d:6", "convdiff2d:9"])
@pytest.mark.parametrize("peer", [p for p in peers.PEERS if p != "cudss"])
def test_peers_solve(peer, name):
    """Those that are installed, in this process."""
    kind = {"p": "spd", "c": "general"}.get(name[0], "symmetric")
    if peer not in peers.installed(kind):
        pytest.skip(f"{peer} is not installed, or does not take {kind} matrices")
    A = from_name(name)
    b = A @ np.ones(A.shape[0], A.dtype)
    solver = peers.PEERS[peer].make(A, b, kind)
    solver.first()
    solver.refactorize()
    assert peers.backward_error(A, solver.solve(), b) < 1e-14
