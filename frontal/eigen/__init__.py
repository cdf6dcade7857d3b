"""Eigenvalues of symmetric and Hermitian matrices and pencils, by factors and ARPACK."""
