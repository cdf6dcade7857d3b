"""Solutions and derivatives in JAX, beside dense algebra and JAX's own checks."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.batch.recent import RecentPatterns
from frontal.factor.factor import Factor

from ..gradient_tools import N, system, vectors

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
from jax.experimental.sparse import BCOO, BCSR  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

from frontal import jax as adapter  # noqa: E402


def prepared(dtype="f8"):
    """A solution as a function of values and b, values, b, and the dense matrix of values."""
    A, rng = system("general", dtype)
    A = BCOO.from_scipy_sparse(A.tocoo())
    b = jnp.asarray(vectors(rng, N, dtype))

    def solution(values, b, trans="N"):
        return adapter.solve(BCOO((values, A.indices), shape=A.shape), b, trans)

    def dense(values):
        return jnp.zeros((N, N), values.dtype).at[A.indices[:, 0], A.indices[:, 1]].add(values)

    return solution, A.data, b, dense


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivatives_of_two_orders(dtype, trans):
    solution, values, b, dense = prepared(dtype)
    matrix = {"N": dense(values), "T": dense(values).T, "H": dense(values).conj().T}[trans]
    wanted = np.linalg.solve(matrix, b)
    for rhs, x in (b, wanted), (jnp.stack([b, 2 * b], 1), np.stack([wanted, 2 * wanted], 1)):
        np.testing.assert_allclose(solution(values, rhs, trans), x, rtol=1e-12, atol=1e-13)
        check = lambda v, r: solution(v, r, trans)  # noqa: E731
        check_grads(check, (values, rhs), order=2, modes=["fwd", "rev"])


def test_transforms():
    solution, values, b, dense = prepared()
    V = jnp.stack([values, 2 * values, values + 0.1])
    B = jnp.stack([b, b[::-1], 2 * b])

    def reference(values, b):
        return jnp.linalg.solve(dense(values), b)

    for transform in (
        lambda f: jax.jit(f)(values, b),
        lambda f: jax.hessian(lambda v: (f(v, b) ** 2).sum())(values),
        lambda f: jax.jacfwd(f, (0, 1))(values, b),
        lambda f: jax.jacrev(f, (0, 1))(values, b),
        lambda f: jax.vmap(f, (None, 0))(values, B),
        lambda f: jax.vmap(f, (0, None), 1)(V, b),
        lambda f: jax.vmap(f)(V, B),
        lambda f: jax.vmap(jax.vmap(f, (None, 0)), (0, None))(V, B),
        lambda f: jax.vmap(jax.vmap(f, (0, None)), (None, 0))(V, B),
        lambda f: jax.jit(jax.vmap(jax.grad(lambda v, r: f(v, r).sum(), (0, 1))))(V, B),
        lambda f: jax.lax.scan(lambda x, v: (f(v, x), x), b, V),
        lambda f: jax.grad(lambda v: jax.lax.scan(lambda x, v: (f(v, x), x), b, v)[0].sum())(V),
        lambda f: jax.linearize(f, values, b)[1](values, b),
    ):
        found, wanted = (jax.tree.leaves(transform(f)) for f in (solution, reference))
        for a, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, w, rtol=1e-10, atol=1e-11)


def test_gradients_take_no_factorization(monkeypatch):
    monkeypatch.setattr("frontal.jax.host._recent", RecentPatterns())
    solution, values, b, _ = prepared()
    counts, later = [], Factor.refactorize
    monkeypatch.setattr(Factor, "refactorize", lambda *given: counts.append(1) or later(*given))
    step = jax.jit(jax.value_and_grad(lambda v: (solution(v, b) ** 2).sum()))
    for scale in 1.0, 2.0:  # two factors are kept
        step(scale * values)
    for k, scale in enumerate((3.0, 4.0, 5.0)):
        step(scale * values)
        assert len(counts) == k + 1


def test_padding_repeats_and_other_orders():
    A, rng = system("general", "f8")
    dense, b = A.toarray(), rng.standard_normal(N)
    wanted = np.linalg.solve(dense, b)
    padded = [form.fromdense(dense, nse=A.nnz + 5) for form in (BCOO, BCSR)]
    twice = BCOO.from_scipy_sparse(A.tocoo()) * 0.5
    twice = BCOO(
        (jnp.tile(twice.data, 2)[::-1], jnp.tile(twice.indices, (2, 1))[::-1]), shape=A.shape
    )
    for one in *padded, twice:
        for trans, matrix in ("N", dense), ("T", dense.T):
            x = np.linalg.solve(matrix, b)
            np.testing.assert_allclose(adapter.solve(one, b, trans), x, rtol=1e-11, atol=1e-12)
        jitted = jax.jit(adapter.solve)(one, b)  # whose indices are not known at first
        np.testing.assert_allclose(jitted, wanted, rtol=1e-11, atol=1e-12)

    def total(data, A=padded[1]):
        return adapter.solve(BCSR((data, A.indices, A.indptr), shape=A.shape), b).sum()

    gradient = jax.grad(total)(padded[1].data)
    assert not gradient[A.nnz :].any()


def test_kinds_and_single_precision():
    A, rng = system("spd", "f8")
    b = jnp.asarray(rng.standard_normal(N))
    matrix = BCSR.from_scipy_sparse(A.tocsr())
    wanted = np.linalg.solve(A.toarray(), b)
    np.testing.assert_allclose(adapter.solve(matrix, b, kind="spd"), wanted, rtol=1e-12, atol=1e-13)
    single = BCSR.from_scipy_sparse(A.tocsr().astype("f4"))
    x = adapter.solve(single, b.astype("f4"))
    assert x.dtype == jnp.float32
    np.testing.assert_allclose(x, wanted, rtol=1e-4, atol=1e-5)


def test_a_parameter_found_by_newton_steps():
    """Second derivatives of a misfit that depends on a parameter through many entries."""
    A = sp.coo_array(frontal.problems.poisson2d(8))
    A.sum_duplicates()
    indices = jnp.asarray(np.stack(A.coords, 1))
    diagonal = jnp.asarray((A.coords[0] == A.coords[1]).astype(float))

    def solution(c):
        matrix = BCOO((A.data + c * diagonal, indices), shape=A.shape)
        return adapter.solve(matrix, jnp.ones(64), kind="spd")

    wanted = solution(2.0)

    def misfit(c):
        return ((solution(c) - wanted) ** 2).sum()

    c = 1.5
    for _ in range(8):
        c = c - jax.grad(misfit)(c) / jax.hessian(misfit)(c)
    assert abs(c - 2.0) < 1e-8


def test_logarithms_of_determinants():
    A, _ = system("spd", "f8")
    A = BCOO.from_scipy_sparse(A.tocoo())
    V = jnp.stack([A.data, 2 * A.data])

    def logarithm(values):
        return adapter.logdet(BCOO((values, A.indices), shape=A.shape), kind="general")

    def reference(values):
        full = jnp.zeros((N, N)).at[A.indices[:, 0], A.indices[:, 1]].add(values)
        return jnp.linalg.slogdet(full)[1]

    check_grads(logarithm, (A.data,), order=1, modes=["fwd", "rev"])
    for transform in (
        lambda f: jax.jit(jax.value_and_grad(f))(A.data),
        lambda f: jax.vmap(f)(V),
        lambda f: jax.jit(jax.vmap(jax.grad(f)))(V),
        lambda f: jax.vmap(jax.vmap(jax.grad(f)))(V[None]),
    ):
        found, wanted = (jax.tree.leaves(transform(f)) for f in (logarithm, reference))
        for a, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, w, rtol=1e-11, atol=1e-12)
    lower = BCOO.fromdense(jnp.array([[2.0, 1.0], [0.5, 3.0]]))

    def unsymmetric(values):
        return adapter.logdet(BCOO((values, lower.indices), shape=(2, 2)))

    V = jnp.stack([lower.data, lower.data])
    np.testing.assert_allclose(jax.vmap(jax.grad(unsymmetric))(V)[0], jax.grad(unsymmetric)(V[0]))
    padded = BCSR.fromdense(A.todense(), nse=A.nse + 3)
    np.testing.assert_allclose(adapter.logdet(padded), reference(A.data), rtol=1e-12)
    with pytest.raises(Exception, match="JVP"):  # not zero in silence
        jax.hessian(logarithm)(A.data)
    odd = BCOO.fromdense(jnp.diag(jnp.array([1.0, 1.0, -1.0])))
    with pytest.raises(Exception, match="not positive"):
        jax.block_until_ready(adapter.logdet(odd))


def test_errors():
    solution, values, b, _ = prepared()
    eye = BCOO.fromdense(jnp.eye(3))
    with pytest.raises(Exception, match="singular"):
        jax.block_until_ready(solution(0 * values, b))
    np.testing.assert_allclose(adapter.solve(eye, jnp.ones(3)), 1.0)  # works afterwards
    with pytest.raises(TypeError, match="b has dtype float32, but A has float64"):
        adapter.solve(eye, jnp.ones(3, jnp.float32))
    with pytest.raises(ValueError, match=r"b has shape \(2,\)"):
        adapter.solve(eye, jnp.ones(2))
    with pytest.raises(ValueError, match="one square matrix"):
        adapter.solve(BCOO.fromdense(jnp.ones((2, 3))), jnp.ones(2))
    with pytest.raises(TypeError, match="a BCOO or BCSR matrix is needed"):
        adapter.solve(np.eye(3), jnp.ones(3))
    with pytest.raises(ValueError, match="trans is 'C'"):
        adapter.solve(eye, jnp.ones(3), "C")
    with pytest.raises(TypeError, match="unexpected option 'triangle'"):
        adapter.solve(eye, jnp.ones(3), triangle="lower")
    with pytest.raises(TypeError, match="numbers are int64; choose float32"):
        adapter.solve(eye.astype(int), jnp.ones(3, int))
    with pytest.raises(ValueError, match="kind is 'positive'"):
        adapter.solve(eye, jnp.ones(3), kind="positive")


def test_matrices_of_a_batch_have_one_pattern():
    data, rows = jnp.ones(3), jnp.stack([jnp.arange(3)] * 2, 1)

    def solution(indices):
        return adapter.solve(BCOO((data, indices), shape=(3, 3)), data)

    with pytest.raises(Exception, match="different index arrays"):
        jax.block_until_ready(jax.vmap(solution)(jnp.stack([rows, rows[::-1]])))


def test_double_precision_is_not_lost_in_silence():
    jax.config.update("jax_enable_x64", False)
    try:
        data, indices = np.ones(3), jnp.stack([jnp.arange(3)] * 2, 1)
        with pytest.raises(TypeError, match="float64 numbers become float32"):
            adapter.solve(BCOO((jnp.ones(3), indices), shape=(3, 3)), data)
    finally:
        jax.config.update("jax_enable_x64", True)
