"""SciPy's own tests of spsolve, splu and factorized, with the drop-ins in their place."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .scipy_suite import DIFFERS, SUITE

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(not importlib.util.find_spec(SUITE), reason="SciPy comes without its tests")
def test_scipys_tests_pass_but_for_what_differs():
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "-p", f"{__package__}.scipy_suite"]
    command = [sys.executable, "-m", "pytest", *options, "--pyargs", SUITE]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    outcome = run.stdout.splitlines()[-1]
    assert run.returncode == 0, run.stdout[-5000:]
    assert f"{len(DIFFERS)} xfailed" in outcome
    passed = re.search(r"(\d+) passed", outcome)
    assert passed
    assert int(passed[1]) > 100
