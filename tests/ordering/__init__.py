"""Tests of orderings."""
