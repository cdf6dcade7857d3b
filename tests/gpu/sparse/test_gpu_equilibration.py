"""Scalings that a device makes are those of the host, to the bit, wherever values come from."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
import frontal.gpu.runtime.device
from frontal import problems
from frontal.factor.analyzed import Analyzed
from frontal.factor.attempt import wanted_scaling
from frontal.gpu.sparse.factorize import equilibration
from frontal.gpu.sparse.factorize.entries import PatternEntries
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.matrix.canonical import canonical
from frontal.numeric.method import LDLH, LDLT, LU
from frontal.symbolic.matching import maximum_product_matching
from frontal.symbolic.phase import SymbolicOptions
from frontal.symbolic.scaling import UNEVEN, UNEVEN_BELOW, ScalingRequest, scaled, scaling_of

from ...emulation.borders import DTYPES
from ...emulation.traffic import forget, put

pytestmark = pytest.mark.usefixtures("gpu_backend")

N = 49


def random_matrix(method, dtype, spread, seed=0):
    """Entries of a grid's pattern from 2^-spread to 2^spread, some of them zero or subnormal."""
    rng = np.random.default_rng(seed)
    a = sp.csc_array(problems.poisson2d(7)).astype(dtype)
    size = rng.uniform(1, 2, a.nnz) * 2.0 ** rng.integers(-spread, spread + 1, a.nnz)
    size[rng.random(a.nnz) < 0.1] = 0
    size[rng.random(a.nnz) < 0.05] = np.finfo(dtype).tiny / 3
    a.data = (size * rng.choice([-1, 1], a.nnz)).astype(a.real.dtype).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a.data *= rng.choice(np.array([1, 1j, 0.6 + 0.8j], dtype), a.nnz)
    if method.one_triangle:
        lower, diagonal = sp.tril(a, -1), sp.diags_array(a.diagonal().real.astype(dtype))
        mirrored = lower.conj().T if method.adjoint else lower.T
        full = sp.csc_array(problems.poisson2d(7)).astype(dtype)
        full.data = np.asarray((lower + mirrored + diagonal).toarray())[
            full.indices, np.repeat(np.arange(N), np.diff(full.indptr))
        ]
        a = full
    a[10, 10] = 1
    return a


def entries_of(device, a, method):
    analysis = Analyzed.from_matrix(
        canonical(a, kind="general"), method, SymbolicOptions("natural")
    )
    return PatternEntries(analysis.symbolic, DevicePattern(device, analysis.plan, method))


@pytest.mark.parametrize(
    ("matched", "spread"), [(False, 3), (False, 1000), (True, 40), (True, 1000)]
)
@pytest.mark.parametrize("method", [LU, LDLT, LDLH], ids=lambda method: method.name)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scalings_and_values_are_those_of_the_host(device, dtype, method, matched, spread):
    spread = min(spread, 120) if np.finfo(dtype).bits == 32 else spread
    a = random_matrix(method, dtype, spread)
    entries, matrix = entries_of(device, a, method), canonical(a, kind="general")
    matching = maximum_product_matching(matrix.A) if matched else None
    if matched and spread == 1000:
        matching.row_scale[:9], matching.col_scale[5:30] = 2.0**-1020, 2.0**1000
    values, out = device.upload(matrix.data), device.upload(np.zeros_like(matrix.data))
    wanted = ScalingRequest(matching, plain=not matched)
    made = equilibration.Equilibration(entries, wanted, values, out)
    other = matrix.data[::-1].copy() if method == LU else 2 * matrix.data
    for data in (matrix.data, other, matrix.data):  # at last it is a graph
        device.copy(data, values)
        made()
        given = entries.symbolic.with_values(data)
        scaling = scaling_of(given, wanted, method.one_triangle)
        row, column = (device.download(x) for x in made.scales)
        np.testing.assert_array_equal(row, scaling.row)
        np.testing.assert_array_equal(column, scaling.column)
        of = given.indptr, given.indices, data, scaling.row, scaling.column
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(device.download(out), scaled(*of))
    assert not made.uneven
    assert made.fits(wanted, values, out)
    assert not made.fits(ScalingRequest(matching, plain=matched), values, out)
    assert not made.fits(wanted, out, values)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_factors_that_are_no_numbers(device, dtype):
    a = random_matrix(LU, dtype, 100)
    entries, rng = entries_of(device, a, LU), np.random.default_rng(1)
    row, column = 2.0 ** rng.choice([-1022, -600, -5, 0, 7, 600, 1022], (2, N))
    values, out = device.upload(a.data), device.upload(np.zeros(a.nnz, dtype))
    scales = device.upload(row), device.upload(column)
    equilibration.scaled(entries, scales, values, out)()
    with np.errstate(all="ignore"):
        wanted = scaled(a.indptr, a.indices, a.data, row, column)
    np.testing.assert_array_equal(device.download(out), wanted)
    assert (wanted == 0).sum() > (a.data == 0).sum()


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_values_that_are_factorized_in_single(device, dtype):
    a = random_matrix(LU, dtype, 30)
    entries, matrix = entries_of(device, a, LU), canonical(a, kind="general")
    single = np.dtype("f4" if dtype == "f8" else "c8")
    values, out = device.upload(matrix.data), device.upload(np.zeros(a.nnz, single))
    made = equilibration.Equilibration(entries, ScalingRequest(plain=True), values, out)
    made()
    scaling = scaling_of(matrix, ScalingRequest(plain=True), False)
    of = matrix.indptr, matrix.indices, matrix.data, scaling.row, scaling.column
    np.testing.assert_array_equal(device.download(out), scaled(*of).astype(single))


def uneven(dtype, far):
    """A matrix of which so many entries are far below 1, and one on the diagonal."""
    a = sp.csc_array(problems.convdiff2d(7)).astype(dtype)
    below = np.flatnonzero(a.indices != np.repeat(np.arange(N), np.diff(a.indptr)))
    a.data[below] = 1
    a.data[below[:far]] *= 2.0**-11
    a[3, 3] = 0.05 * np.finfo(dtype).eps ** 0.5  # times 8, as its column is scaled
    return a


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_uneven_is_told(device, dtype):
    """More than a hundredth of the entries, and a diagonal entry that is tiny."""
    entries, found = entries_of(device, uneven(dtype, 0), LU), []
    for far in range(5):
        for tiny in (1, 5):
            a = uneven(dtype, far)
            a[3, 3] *= tiny
            values, out = device.upload(a.data), device.upload(a.data)
            made = equilibration.Equilibration(entries, ScalingRequest(), values, out)
            made()
            row, column = (device.download(x) for x in made.scales)
            size = abs(sp.diags_array(row) @ a.astype("c16") @ sp.diags_array(column)).tocsc()
            few = (size.data < UNEVEN_BELOW).sum() <= UNEVEN * a.nnz
            least = size.diagonal().min()
            assert made.uneven == (not few and least < np.finfo(dtype).eps ** 0.5)
            matched = scaling_of(canonical(a, kind="general"), ScalingRequest(), False)
            assert made.uneven == (not np.array_equal(row, matched.row))
            found.append(made.uneven)
    assert any(found[::2])
    assert not all(found[::2])
    assert not any(found[1::2])


@pytest.mark.parametrize("kind", ["general", "symmetric"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_have_one_scaling_from_everywhere(device, traffic, kind, dtype):
    """From the host or the device, at first or anew, on the CPU too; and nothing else moves."""
    method = LU if kind == "general" else LDLT
    a, b, c = (random_matrix(method, dtype, 5, seed) for seed in range(3))
    for given in a, b, c:
        given.setdiag(given.diagonal() + 40)
    here = frontal.factorize(a, kind=kind, backend="cpu")
    there = frontal.factorize(a, kind=kind, backend="gpu")

    def scalings():
        return [x._numbers.factor.scaling for x in (here, there)]

    assert len({id(x) for x in scalings()}) == 2
    assert scalings()[0] == scalings()[1]
    for turn, (values, on_device) in enumerate([(b, False), (c, True), (a, False), (b, True)]):
        here.refactorize(values)
        new = put(device, values.data) if on_device else values.data
        forget(traffic, there)
        there.refactorize(new)
        if turn > 1:  # graphs
            assert traffic["down"] == [2, 14] * (not device.cuda)
            assert traffic["up"] == [a.nnz] * (not on_device)
        assert there.info["backend"] == "gpu"
        assert scalings()[0] == scalings()[1]
        twin = there.copy()
        there.refactorize(3 * values)
        assert twin._numbers.factor.scaling == scalings()[0]
        right = np.ones(N, dtype)
        np.testing.assert_allclose(
            values @ twin.solve(right, refine=0), right, atol=1e4 * EPS[dtype]
        )
        there.refactorize(values)


EPS = {x: float(np.finfo(x).eps) for x in DTYPES}


@pytest.mark.parametrize("on_device", [False, True])
def test_uneven_values_get_the_scaling_of_a_matching(device, on_device):
    a = sp.csc_array(problems.convdiff2d(7) + 4 * sp.eye_array(N))
    here = frontal.factorize(a, kind="general", backend="cpu")
    there = frontal.factorize(a, kind="general", backend="gpu")
    assert there.analysis.matching is None
    for far in (0, 3, 0):
        b = sp.csc_array(a)
        if far:
            b.data = uneven("f8", far).data
        here.refactorize(b)
        there.refactorize(put(device, b.data) if on_device else b.data)
        scaling = there._numbers.factor.scaling
        assert scaling == here._numbers.factor.scaling
        plain = scaling_of(canonical(b, kind="general"), ScalingRequest(plain=True), False)
        assert (scaling == plain) == (not far)
        np.testing.assert_allclose(b @ there.solve(b @ np.ones(N)), b @ np.ones(N), atol=1e-11)


def test_values_that_are_no_numbers_need_no_matching(device):
    a = sp.csc_array(problems.convdiff2d(7) + 4 * sp.eye_array(N))
    there = frontal.factorize(a, kind="general", backend="gpu")
    b = uneven("f8", 3)
    b.data[7] = np.nan
    with pytest.raises(frontal.NonFiniteInputError):
        there.refactorize(b.data)
    assert wanted_scaling(frontal.analyze(problems.poisson2d(7), backend="cpu")) is None
