"""What an analysis tells of memory, and what is taken."""

import tracemalloc

import pytest

import frontal
from frontal.problems import poisson3d


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_the_estimate_is_what_is_taken(kind, monkeypatch):
    """Within 3 %, as Python's allocator counts, from a matrix to its factor."""
    monkeypatch.setenv("FRONTAL_NUM_THREADS", "2")
    A, options = poisson3d(24), {"kind": kind, "backend": "cpu", "ordering": "dissection"}
    frontal.factorize(poisson3d(20), **options)  # compiles
    tracemalloc.start()
    try:
        analysis = frontal.analyze(A, **options)
        tracemalloc.reset_peak()
        factor = frontal.factorize(A, analysis)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    told = analysis.memory
    if kind == "general":  # room for delayed columns is reserved, not touched
        taken -= 2 * factor.info["memory"]
    assert taken == pytest.approx(told["total"], rel=0.03)
