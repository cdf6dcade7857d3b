"""LU factorization of a front."""
