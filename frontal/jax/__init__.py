"""Sparse solves in JAX, with derivatives of any order: ``pip install 'frontal[jax]'``.

>>> # import jax, frontal.jax
>>> # x = frontal.jax.solve(A, b)          # A: BCOO or BCSR
>>> # jax.grad(lambda data: loss(frontal.jax.solve(BCOO((data, indices), shape=shape), b)))(data)

`solve` works in functions that are transformed by `jit`, `grad`, `jvp`, `vmap`, `hessian` and
`scan`. The factors are on the host, or on a GPU through the host, and are found again by the values
of their matrices.
"""

from .solve import solve

__all__ = ["solve"]
