"""LU by columns, without fronts, for thin matrices in block triangular form."""
