"""The bugs of tests/mutants change files that are there, and name tests that are there."""

from __future__ import annotations

import subprocess

import pytest

from ..mutants.patches import ROOT, patches
from ..mutants.run import stale

PATCHES = patches()


def applies(patch) -> bool:
    """Whether a patch fits the tree."""
    try:
        patch.apply(ROOT, "--check")
    except subprocess.CalledProcessError:
        return False
    return True


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.name)
def test_their_tests_are_there(patch):
    file, *names = patch.kills.split("[")[0].split("::")
    text = (ROOT / file).read_text(encoding="utf-8")
    assert all(f"def {name}(" in text or f"class {name}" in text for name in names)
    assert all((ROOT / name).exists() for name in patch.changed)


def test_they_apply():
    """Each still changes the lines that it is about; whoever moves those mends the patch."""
    assert [patch.name for patch in PATCHES if not applies(patch)] == []


def test_compiled_code_is_stale_where_it_uses_what_changed():
    found = stale(ROOT, ["frontal/ordering/amd.py"])
    assert {"frontal.ordering.amd", "frontal.ordering.components"} <= found
    assert "frontal.factor.analysis" in found
    assert not {"frontal.cpu.lu", "frontal.cpu.cholesky", "frontal.symbolic.matching"} & found
    assert stale(ROOT, ["frontal/gpu/kernels/dense/gemv.cu"]) == set()
