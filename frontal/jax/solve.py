"""`solve` and `logdet` for JAX's sparse matrices, by callbacks to the host.

JAX derives all derivatives of a solution by itself, from the product with A.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.sparse import BCOO, BCSR

from .._typing import Untyped
from ..batch.recent import require_options
from ..matrix.canonical import require_kind
from ..numeric.linear_system import require_trans
from .host import logdet_on_host, solve_on_host

_DTYPES = "float32", "float64", "complex64", "complex128"


def solve(
    A: BCOO | BCSR, b: jax.Array, trans: str = "N", *, kind: str = "auto", **options: Untyped
) -> jax.Array:
    """Solve op(A) x = b; x can be differentiated any number of times for A's data and b.

    A singular matrix raises an error when the solution is computed. In a function under `jit` JAX
    reports it as ``JaxRuntimeError``, whose text has the message.

    Parameters
    ----------
    A : BCOO or BCSR (n, n)
        Without batch axes or dense axes: `jax.vmap` over its data solves a batch together. Indices
        in any order, perhaps repeated or padded.
    b : array (n,) or (n, k)
        Of A's type.
    trans : {"N", "T", "H"}
        op(A): the matrix, its transpose or its adjoint.
    kind : str
        As for `frontal.factorize`. "spd", "symmetric" and "hermitian" promise that A has this
        symmetry.
    **options
        ``ordering`` and ``backend`` of `frontal.factorize`.

    Returns
    -------
    x : array of b's shape

    Raises
    ------
    ValueError, TypeError
        If shapes or types do not fit, or if float64 numbers would become float32 because
        ``jax_enable_x64`` is off.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, frontal.jax
    >>> from jax.experimental.sparse import BCOO
    >>> A = BCOO.fromdense(jnp.array([[2.0, 1.0], [0.0, 4.0]]))
    >>> @jax.jit
    ... def total(data):
    ...     A_of_data = BCOO((data, A.indices), shape=A.shape)
    ...     return frontal.jax.solve(A_of_data, jnp.ones(2), kind="general").sum()
    >>> [round(x, 5) for x in jax.grad(total)(A.data).tolist()]
    [-0.1875, -0.125, -0.03125]
    """
    require_kind(kind)
    require_options(options)
    require_trans(trans)
    values, rows, columns, n = _entries(A)
    b = _same_type(b, values)
    if b.ndim not in (1, 2) or b.shape[0] != n:
        raise ValueError(f"b has shape {b.shape} and A {A.shape}: b must be ({n},) or ({n}, k)")
    if trans == "H":
        values, trans = values.conj(), "T"
    if trans == "T":
        rows, columns = columns, rows
    options = {"kind": kind, **options}
    x = _solved(values, rows, columns, b if b.ndim == 2 else b[:, None], options)
    return x if b.ndim == 2 else x[:, 0]


def logdet(A: BCOO | BCSR, *, kind: str = "auto", **options: Untyped) -> jax.Array:
    """Return the natural logarithm of det A, which has derivatives of first order.

    Its gradient has the entries of the inverse in A's pattern.

    Parameters
    ----------
    A, kind, **options
        As for `solve`.

    Returns
    -------
    logarithm : real scalar array

    Raises
    ------
    ValueError, TypeError
        As for `solve`. If the determinant is not positive, when it is computed.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, frontal.jax
    >>> from jax.experimental.sparse import BCOO
    >>> indices = jnp.array([[0, 0], [1, 1]])
    >>> gradient = jax.grad(lambda data: frontal.jax.logdet(BCOO((data, indices), shape=(2, 2))))
    >>> [round(x, 6) for x in gradient(jnp.array([2.0, 4.0])).tolist()]
    [0.5, 0.25]
    """
    require_kind(kind)
    require_options(options)
    values, rows, columns, n = _entries(A)
    host = partial(logdet_on_host, n=n, options={"kind": kind, **options})
    real = values.real.dtype

    @jax.custom_jvp
    def logarithm(values: jax.Array) -> jax.Array:
        result = jax.ShapeDtypeStruct((), real)
        value = partial(host, gradient=False)
        return jax.pure_callback(value, result, values, rows, columns, vmap_method="expand_dims")

    @logarithm.defjvp
    def _(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
        (values,), (change,) = primals, tangents
        result = jax.ShapeDtypeStruct(values.shape, values.dtype)
        slope = jax.pure_callback(
            partial(host, gradient=True), result, values, rows, columns, vmap_method="expand_dims"
        )
        return logarithm(values), (slope.conj() * change).sum().real

    return logarithm(values)


def _entries(A: BCOO | BCSR) -> tuple[jax.Array, jax.Array, jax.Array, int]:
    """Return values, rows and columns of A, and its order; padding has indices of at least n."""
    if not isinstance(A, BCOO | BCSR):
        raise TypeError(
            f"A is {type(A).__name__}, but a BCOO or BCSR matrix is needed. Try: BCOO.fromdense(A)"
        )
    if A.n_batch or A.n_dense or A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError(
            f"A has shape {A.shape} with {A.n_batch} batch and {A.n_dense} dense axes, but one "
            "square matrix is needed. Try: jax.vmap over its data"
        )
    n, values = A.shape[0], A.data
    if isinstance(A, BCOO):
        return _checked(values), A.indices[:, 0], A.indices[:, 1], n
    place = jnp.arange(A.indices.shape[0])
    rows = jnp.searchsorted(A.indptr, place, side="right") - 1  # n for what the extents leave out
    return _checked(values), rows.astype(A.indices.dtype), A.indices, n


def _checked(values: Untyped) -> jax.Array:
    """Return values as an array of JAX, which must not round them."""
    wanted = np.dtype(values.dtype)
    array = jnp.asarray(values)
    if array.dtype != wanted and wanted in (np.float64, np.complex128):
        raise TypeError(
            f"{wanted} numbers become {array.dtype} in JAX as it is configured. Try: "
            "jax.config.update('jax_enable_x64', True)"
        )
    if array.dtype not in _DTYPES:
        raise TypeError(f"numbers are {array.dtype}; choose {', '.join(_DTYPES)}")
    return array


def _same_type(b: Untyped, values: jax.Array) -> jax.Array:
    b = _checked(b) if hasattr(b, "dtype") else jnp.asarray(b)
    if b.dtype != values.dtype:
        raise TypeError(f"b has dtype {b.dtype}, but A has {values.dtype}")
    return b


def _solved(
    values: jax.Array,
    rows: jax.Array,
    columns: jax.Array,
    b: jax.Array,
    options: dict[str, Untyped],
) -> jax.Array:
    """Return the solution for b (n, k)."""

    def product(x: jax.Array) -> jax.Array:
        terms = values[:, None] * x.at[columns].get(mode="fill", fill_value=0)
        return jnp.zeros_like(x).at[rows].add(terms, mode="drop")

    def solution(trans: str, _: Untyped, rhs: jax.Array) -> jax.Array:
        result = jax.ShapeDtypeStruct(rhs.shape, rhs.dtype)
        host = partial(solve_on_host, trans=trans, options=options)
        arguments = jax.lax.stop_gradient(values), rows, columns, rhs
        return jax.pure_callback(host, result, *arguments, vmap_method="expand_dims")

    return jax.lax.custom_linear_solve(product, b, partial(solution, "N"), partial(solution, "T"))
