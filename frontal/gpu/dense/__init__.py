"""Batches of dense matrices on the device: BLAS 3, factorizations and their solves."""
