"""Sparse systems on a GPU beside cuDSS: one by one, from scratch, and batches."""
