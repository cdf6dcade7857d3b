"""Batches of sparse systems: with one pattern, or with several."""
