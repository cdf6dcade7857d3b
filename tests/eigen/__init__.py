"""Tests of eigenvalues: near shifts, in intervals, counts."""
