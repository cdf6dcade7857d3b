"""Derivatives of solutions by factors on a GPU, for vectors on either side."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import frontal

from ...emulation.traffic import put
from ...gradient_tools import KINDS, N, check, system

pytestmark = pytest.mark.usefixtures("gpu_backend")


@pytest.fixture
def there(device, monkeypatch):
    """Return a function that puts arrays on the device, where solutions count as they do."""
    monkeypatch.setattr(device, "holds", lambda array: isinstance(array, device.xp.ndarray))
    return partial(put, device)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_and_types(there, kind, dtype):
    A, _ = system(kind, dtype)
    for trans in "NTH":
        check(A, kind, trans, N if trans == "N" else (N, 3), backend="gpu", where=there)


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_on_the_host(kind):
    check(system(kind, "f8")[0], kind, "N", N, backend="gpu")


def test_complex_vectors_of_a_real_matrix(there):
    A, _ = system("general", "f8")
    for trans in "NTH":
        check(A, "general", trans, (N, 2), backend="gpu", vector="c16", where=there)


def test_orders_of_values(there):
    A, where = system("symmetric", "f8")[0], there
    check(sp.csr_array(A), "symmetric", "N", N, backend="gpu", where=where)
    check(sp.csc_array(sp.tril(A)), "symmetric", "N", N, backend="gpu", triangle="lower")
    coo = A.tocoo()
    twice = (np.tile(coo.row, 2), np.tile(coo.col, 2))
    halves = sp.coo_array((np.tile(coo.data / 2, 2), twice), shape=A.shape)
    check(halves, "general", "N", N, backend="gpu", where=where)


@pytest.mark.parametrize("form", [sp.csc_array, sp.csr_array])
def test_derivatives_stay_on_the_device(there, traffic, form):
    """The gradient for A does not move, and coordinates are sent once."""
    A, rng = system("general", "f8")
    factor = frontal.factorize(form(A), kind="general", backend="gpu")
    b, x_bar = (there(rng.standard_normal(N)) for _ in range(2))
    x = factor.solve(b)
    factor.solve_vjp(x, x_bar)
    for moved in traffic["up"], traffic["down"]:
        moved.clear()
    values_bar, _ = factor.solve_vjp(x, x_bar)
    assert A.nnz not in traffic["up"] + traffic["down"]
    assert values_bar.size == A.nnz
