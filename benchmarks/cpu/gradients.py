"""Gradients beside a refactorization: `python -m benchmarks.cpu.gradients`.

Wall times of a step with new values, the sum of the solution and its gradient for the values and
the right-hand side, by the methods of `Factor`, by `frontal.torch` and `frontal.jax`, by SciPy's
factors of the matrix and of its transpose, and by JAX's own sparse solve; and of log det A with its
gradient. Libraries that are not installed are left out. Ratios are to `refactorize` of the same
build in the same process; each round measures all calls in turn.
One thread works, or as many as FRONTAL_NUM_THREADS says. Results go to results/gradients.jsonl.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec

from benchmarks.harness.processes import on_threads
from benchmarks.harness.rounds import ratios_of, run, times_in_turn

os.environ |= on_threads(int(os.environ.get("FRONTAL_NUM_THREADS", "1")))  # before NumPy is loaded

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

import frontal
from frontal.problems import from_name

PROBLEMS = (
    "poisson2d:30",
    "poisson2d:100",
    "poisson2d:300",
    "poisson3d:20",
    "poisson3d:30",
    "elasticity3d:10",
    "convdiff3d:20",
)
LIBRARIES = "torch", "jax"
Steps = dict[str, Callable[[], object]]


def scipy_step(A: sp.csc_array, b: np.ndarray) -> np.ndarray:
    """Return the gradient by factors of A and of its transpose."""
    x = splu(A).solve(b)
    y = splu(A.T.tocsc()).solve(np.ones_like(b))
    return -y[A.indices] * np.repeat(x, np.diff(A.indptr))


def torch_steps(A: sp.csc_array, b: np.ndarray, kind: str) -> Steps:
    """Return the step by `frontal.torch`."""
    import torch

    import frontal.torch

    torch.set_num_threads(int(os.environ["FRONTAL_NUM_THREADS"]))
    rows = sp.csr_array(A)
    index = torch.tensor(rows.indptr), torch.tensor(rows.indices)
    pattern = frontal.torch.Pattern(*index, kind=kind, keep=1)
    values, rhs, turn = torch.tensor(rows.data), torch.tensor(b, requires_grad=True), [1.0]

    def step() -> object:
        turn[0] += 1e-3  # new values in each step
        scaled = (values * turn[0]).requires_grad_()
        pattern.solve(scaled, rhs).sum().backward()
        return scaled.grad

    return {"frontal.torch": step}


def jax_steps(A: sp.csc_array, b: np.ndarray, kind: str) -> Steps:
    """Return the step by `frontal.jax` and by JAX's own solve."""
    import jax
    from jax.experimental.sparse import BCSR
    from jax.experimental.sparse.linalg import spsolve

    import frontal.jax

    jax.config.update("jax_enable_x64", True)
    rows = sp.csr_array(A)
    data, indices, indptr = (jax.numpy.asarray(x) for x in (rows.data, rows.indices, rows.indptr))
    turn = [1.0]

    @jax.jit
    @jax.grad
    def ours(values: jax.Array) -> jax.Array:
        matrix = BCSR((values, indices, indptr), shape=A.shape)
        return frontal.jax.solve(matrix, b, kind=kind).sum()

    @jax.jit
    @jax.grad
    def theirs(values: jax.Array) -> jax.Array:
        return spsolve(values, indices, indptr, b).sum()

    def step(gradient: Callable[[jax.Array], jax.Array]) -> object:
        turn[0] += 1e-3
        return jax.block_until_ready(gradient(data * turn[0]))

    return {"frontal.jax": lambda: step(ours), "jax spsolve": lambda: step(theirs)}


def measured(problem: str, rounds: int) -> dict[str, object]:
    """Times of one matrix, and their ratios to a refactorization."""
    A = sp.csc_array(from_name(problem))
    b, ones = np.ones(A.shape[0]), np.ones(A.shape[0])
    factor = frontal.factorize(A)
    method = factor.info["method"]
    kind = "spd" if method == "cholesky" else "general"

    def step() -> object:
        factor.refactorize(A.data)
        return factor.solve_vjp(factor.solve(b), ones)

    def logarithm() -> object:
        factor.refactorize(A.data)
        return factor.logdet(), factor.logdet_vjp()

    calls: Steps = {
        "refactorize": lambda: factor.refactorize(A.data),
        "solve": lambda: factor.solve(b),
        "gradient of x": step,
        "gradient of log det": logarithm,
        "scipy splu twice": lambda: scipy_step(A, b),
    }
    found = [name for name in LIBRARIES if find_spec(name)]
    for name, steps in ("torch", torch_steps), ("jax", jax_steps):
        if name in found:
            calls |= steps(A, b, kind)
    if method != "cholesky":
        del calls["gradient of log det"]  # the determinant need not be positive
    return {
        "problem": problem,
        "n": A.shape[0],
        "method": method,
        "threads": int(os.environ["FRONTAL_NUM_THREADS"]),
        **ratios_of(times_in_turn(calls, rounds), "refactorize"),
        "peers": {name: version(name) for name in ("scipy", *found)},
    }


if __name__ == "__main__":
    run(__doc__, "gradients.jsonl", PROBLEMS, measured)
