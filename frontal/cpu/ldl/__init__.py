"""LDL^T and LDL^H factorization of a front."""
