"""A first factorization of an analyzed pattern: values go to the device as they are, once."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import problems
from frontal.errors import FactorMemoryError, PerformanceWarning
from frontal.gpu.runtime import slab
from frontal.gpu.sparse import pattern

from ...emulation.device import arrays_in
from ...emulation.traffic import Sparse
from ...matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend")


def same(one, other):
    """Whether two factors have the same bits."""
    one, other = (x._numbers.factor.to_host() for x in (one, other))
    return all(np.array_equal(x, y) for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
@pytest.mark.parametrize(("kind", "dtype"), [("spd", "f8"), ("spd", "c16"), ("general", "f4")])
def test_the_same_factor_as_from_scratch(device, traffic, kind, dtype, form):
    a = grid_system(kind, dtype)
    wanted = frontal.factorize(a, kind=kind, backend="gpu")
    analysis = frontal.analyze(a, kind=kind, backend="gpu")
    traffic["up"].clear()
    factor = analysis.factorize(a.asformat(form))
    lists = 2 if kind == "general" else 0  # of all entries
    assert traffic["up"].count(a.nnz) == 2 + lists  # and indices, too
    assert same(factor, wanted)
    assert factor._order.format == form
    given = (2 * a).asformat(form)
    factor.refactorize(given.data)
    np.testing.assert_allclose(factor.A.toarray(), 2 * a.toarray())
    if kind == "spd":
        assert factor._numbers.factor.hermitian


def test_values_of_the_device_stay_there(device, traffic):
    a = grid_system("general", "f8")
    analysis = frontal.analyze(a, kind="general", backend="gpu")
    given = Sparse(device, a)
    given.dtype = a.dtype
    traffic["down"].clear()
    factor = analysis.factorize(given)
    assert max(traffic["down"]) <= 14
    given.data[...] = 0  # which is the caller's
    np.testing.assert_array_equal(factor.A.toarray(), a.toarray())
    assert same(factor, frontal.factorize(a, kind="general", backend="gpu"))


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_first_factor_uploads_lists_and_columns_at_once(device, monkeypatch, kind):
    """With the values there are two uploads; lists made on threads give the same bits by more."""
    a, later, factors = grid_system(kind, "f8"), device.later, []
    for threaded, least, most in ((1 << 19, 2, 2), (0, 4, 9)):
        monkeypatch.setattr(pattern, "_MIN_THREADED_ENTRIES", threaded)
        analysis, uploads = frontal.analyze(a, kind=kind, backend="gpu"), []

        def counted(arrays, piece=None, uploads=uploads):
            uploads.append(len(arrays))
            return later(arrays, piece)

        monkeypatch.setattr(device, "later", counted)
        factors.append(analysis.factorize(a))
        factors[-1]._numbers.factor.pattern.finish()
        assert least <= len(uploads) <= most
    assert same(*factors)


def test_joined_arrays_lie_where_the_device_reads_them():
    arrays = [np.arange(5.0), np.empty((0, 9), np.int32), np.arange(6, dtype="u1").reshape(2, 3)]
    arrays.append(np.arange(70) * 1j)
    kinds = slab.kinds_of(arrays)
    starts = slab.starts_of(kinds)
    assert starts[-1] == slab.bytes_of(kinds)
    found = arrays_in(slab.joined(arrays, starts), kinds)
    for array, copy, start in zip(arrays, found, starts[:-1], strict=True):
        assert start % slab.ALIGNMENT == 0
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("option", ["singular", "precision", "memory"])
def test_no_value_moves_for_a_choice_that_there_is_not(device, traffic, option):
    a = grid_system("spd", "f8")
    analysis = frontal.analyze(a, backend="gpu")
    traffic["up"].clear()
    with pytest.raises(ValueError, match=f"{option} is 'some'; choose"):
        analysis.factorize(a, **{option: "some"})
    assert not traffic["up"]


def test_later_changes_are_not_seen(device):
    a = grid_system("spd", "f8")
    factor = frontal.analyze(a, backend="gpu").factorize(a)
    before = a.copy()
    a.data[:] = 0
    np.testing.assert_array_equal(factor.A.toarray(), before.toarray())
    np.testing.assert_allclose(before @ factor.solve(np.ones(81)), 1, rtol=1e-9)


def test_what_has_another_pattern_or_kind_is_refused(device):
    a = grid_system("spd", "f8")
    analysis = frontal.analyze(a, kind="spd", backend="gpu")
    other = a.copy()
    other.indices[1] = 5
    tall = sp.csc_array((a.data, a.indices, a.indptr), shape=(90, 81))
    for bad, told in ((other, "pattern differs"), (tall, "square"), (a.data, "two dimensions")):
        with pytest.raises(ValueError, match=told):
            analysis.factorize(bad)
    with pytest.raises(ValueError, match="pattern differs"):  # by rows it is not that of A
        frontal.analyze(sp.csc_array(a + sp.eye_array(81, k=13)), backend="gpu").factorize(
            sp.csr_array(a + sp.eye_array(81, k=-13))
        )
    b = a.copy()
    b.data[1] += 0.1
    with pytest.raises(ValueError, match="requires"):
        analysis.factorize(b)
    assert frontal.analyze(a, backend="gpu").factorize(b).analysis.method == "lu"
    b.data[1] = np.nan
    with pytest.raises(frontal.NonFiniteInputError):
        analysis.factorize(b)
    with pytest.raises(frontal.NotPositiveDefiniteError):
        analysis.factorize(-1 * a)
    assert frontal.analyze(a, backend="gpu").factorize(-1 * a).analysis.method == "ldlt"


@pytest.mark.parametrize("backend", ["gpu", "auto"])
def test_memory_is_asked_for_before_any_is_taken(device, traffic, monkeypatch, backend):
    a = problems.poisson2d(20)
    monkeypatch.setattr("frontal.backend.choose._faster", lambda dtype, flops: "gpu")
    analysis = frontal.analyze(a, backend=backend)
    least = analysis.memory["total"]
    monkeypatch.setattr(device, "free_memory", lambda: least - 1)
    traffic["up"].clear()
    if backend == "gpu":
        with pytest.raises(FactorMemoryError) as error:
            analysis.factorize(a, memory="device")
        assert (error.value.required, error.value.available) == (least, least - 1)
    else:
        monkeypatch.setattr(device, "free_memory", lambda: 1000)
        with pytest.warns(PerformanceWarning, match="too small"):
            assert analysis.factorize(a).info["backend"] == "cpu"
    assert not traffic["up"]
    monkeypatch.setattr(device, "free_memory", lambda: least)
    assert analysis.factorize(a).info["backend"] == "gpu"
