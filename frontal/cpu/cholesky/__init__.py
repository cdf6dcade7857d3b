"""Cholesky factorization of a front."""
