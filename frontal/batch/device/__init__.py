"""Batches of systems of one pattern on a GPU, as a forest."""
