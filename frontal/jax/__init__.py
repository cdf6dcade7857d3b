"""Sparse solves and determinants in JAX, with derivatives: ``pip install 'frontal[jax]'``.

>>> # import jax, frontal.jax
>>> # x = frontal.jax.solve(A, b)          # A: BCOO or BCSR
>>> # jax.grad(lambda data: loss(frontal.jax.solve(BCOO((data, indices), shape=shape), b)))(data)

`solve` and `logdet` work in functions that are transformed by `jit`, `grad`, `jvp`, `vmap` and
`scan`; solutions have derivatives of any order. The factors are on the host, or on a GPU through
the host, and are found again by the values of their matrices.
"""

from .solve import logdet, solve

__all__ = ["logdet", "solve"]
