"""Tests of the symbolic phase."""
