"""The CPU backend: compiled Python that calls BLAS and LAPACK, in threads."""
