"""Tests of what comes in: matrices, files, SciPy's functions."""
