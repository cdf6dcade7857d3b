"""Inertias of generated systems: those of their eigenvalues, or refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems

SYSTEMS = {
    "kkt": problems.kkt(300),
    "regularized": problems.kkt(300, regularization=1e-8, spread=4.0),
    "early interior point": problems.interior_point(240, 1e-2, True),
    "late interior point": problems.interior_point(240, 1e-10, False),
    "control": problems.optimal_control(11, beta=1e-6),
    "stokes": problems.stokes2d(11),
    "circuit": problems.mna(400, sources=40),
    "shifted": problems.shifted_laplacian((19, 20), (7, 3), 1e-6),
    "near an eigenvalue": problems.shifted_laplacian((19, 20), (7, 3), 1e-13),
    "zero diagonal": problems.zero_diagonal(400),
    "graded": problems.graded(19, decades=9),
    "condition": problems.conditioned(200, 1e9, symmetric=True),
}
REFUSED = {"near an eigenvalue", "condition"}


def signs(A):
    """Numbers of positive and negative eigenvalues, and of others; of the scaled matrix."""
    dense = A.toarray().astype(np.result_type(A.dtype, np.float64))
    for _ in range(10):
        d = 1 / np.sqrt(np.abs(dense).max(axis=1))
        dense = dense * np.outer(d, d)
    values = np.linalg.eigvalsh(dense)
    unsure = 10 * values.size * np.finfo(values.dtype).eps * np.abs(values).max()
    return int((values > unsure).sum()), int((values < -unsure).sum())


def checked(A, name=""):
    """Whether the inertia is told; what is told is right."""
    positive, negative = signs(A)
    kind = "hermitian" if A.dtype.kind == "c" else "symmetric"
    factor = frontal.factorize(A, kind=kind, backend="cpu", singular="allow")
    try:
        found, told = factor.inertia, True
    except frontal.InertiaUncertainError as error:
        found, told = error, False
    rest = A.shape[0] - positive - negative  # eigenvalues that are small for `eigvalsh`
    for ours, sure in ((found.positive, positive), (found.negative, negative)):
        assert ours <= sure + rest, name
        assert ours >= sure or not told, name
    return told


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_inertia_is_that_of_eigenvalues(dtype):
    for name, A in SYSTEMS.items():
        if dtype == "c16":
            A = problems.turned(A, 3, hermitian=True)
        told = checked(problems.permuted(A, 5, symmetric=True), name)
        assert told or name in REFUSED, name


def test_single_precision_is_right_or_refused():
    told = [checked(A.astype("f4"), name) for name, A in SYSTEMS.items() if name != "graded"]
    assert sum(told) >= 5


def test_large_pivots_of_a_small_eigenvalue():
    """Rounded to single precision an eigenvalue is 1e-8, and pivots are much larger."""
    for seed in range(8):
        A = problems.shifted_laplacian((8, 8), (4, 4), 0.0).astype("f4")
        assert not checked(problems.permuted(A, seed, symmetric=True))
    B = sp.csc_array(problems.shifted_laplacian((8, 8), (4, 4), 0.3).astype("f4"))
    assert checked(B)
