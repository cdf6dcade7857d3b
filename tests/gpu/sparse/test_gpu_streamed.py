"""Factors by segments, with panels on the host: the same bits in less memory, however late."""

import copy
import pickle
import warnings
from contextlib import nullcontext

import numpy as np
import pytest

import frontal
import frontal.gpu.runtime.device
from frontal import problems

from ...conftest import fronts_cost
from ...emulation.compiling import COMPILER
from ...emulation.traffic import numeric, put
from ...matrices import path_laplacians, solid_system, weak_pivots
from .streamed_tools import KINDS, LATE, analyzed, choosing, emulated, least_of  # noqa: F401

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to emulate kernels with")


def check_same(one, other):
    """All that factors have and tell, bit by bit."""
    for a, b in zip(numeric(one).to_host(), numeric(other).to_host(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.diag(), other.diag())
    assert one.growth == other.growth
    assert one.slogdet() == other.slogdet()
    assert numeric(one).health() == numeric(other).health()
    assert numeric(one).largest_multiplier == numeric(other).largest_multiplier


CASES = [
    *((kind, "f8", late) for kind in KINDS for late in LATE),
    *((kind, "c16", "copies") for kind in KINDS),
    *(("spd", "c8", "kernels"), ("general", "f4", "kernels")),
]


@pytest.mark.parametrize(("kind", "dtype", "late"), CASES)
def test_the_same_bits_in_the_least_memory(use, kind, dtype, late):
    device, a = use(late), solid_system(kind, dtype)
    analysis = analyzed(a, kind)
    whole = analysis.factorize(a, memory="device")
    part = analysis.factorize(a, memory=least_of(analysis, dtype))
    pattern = numeric(part).pattern
    for some in (pattern.schedule.small, ~pattern.schedule.small):
        assert np.unique(pattern.segment[some]).size > 3
    b = np.random.default_rng(4).standard_normal((a.shape[0], 9)).astype(dtype)
    np.testing.assert_array_equal(part.solve(b), whole.solve(b))
    check_same(part, whole)
    for turn, scale in enumerate((2, 0.7, 3)):
        values = scale * a.data
        given = values if kind == "general" or turn == 1 else put(device, values)
        for factor in (part, whole):
            factor.refactorize(given)
        found, wanted = (factor.solve(b[:, turn], "NTH"[turn]) for factor in (part, whole))
        np.testing.assert_array_equal(found, wanted)
    check_same(part, whole)
    assert numeric(part).pattern is pattern


@pytest.mark.parametrize("kind", ["symmetric", "general"])
def test_copies_and_pickles(use, kind):
    use("kernels")
    a = solid_system(kind)
    analysis, b = analyzed(a, kind), np.cos(np.arange(512.0))
    limit = least_of(analysis)
    factor = analysis.factorize(a, memory=limit)
    first = factor.solve(b)
    twin, there = factor.copy(), copy.copy(factor)
    factor.refactorize(2 * a)
    for one in (twin, there):
        np.testing.assert_array_equal(one.solve(b), first)
        assert one._numbers.memory == limit
        assert numeric(one).storage.windows.host is not numeric(factor).storage.windows.host
    np.testing.assert_array_equal(twin.refactorize(2 * a).solve(b), factor.solve(b))
    for one in (pickle.loads(pickle.dumps(there)), there.to_cpu()):
        assert one.info["backend"] == "cpu"
        np.testing.assert_allclose(one.solve(b), first, rtol=1e-9)
        one.refactorize(2 * a)  # the limit was one of the device
    factor.free()
    with pytest.raises(frontal.FactorFreedError):
        factor.solve(b)
    np.testing.assert_array_equal(there.solve(b), first)
    with pytest.raises(ValueError, match="no profile"):
        there.profile()


def test_what_is_not_definite_goes_on_by_segments(use):
    use("kernels")
    a = solid_system("spd")
    bad = a.copy()
    bad.setdiag(np.where(np.arange(512) == 300, -1.0, a.diagonal()))
    analysis = analyzed(a, "spd")
    limit = 3 * least_of(analysis) // 2
    factor = analysis.factorize(a, memory=limit)
    first = factor.solve(np.ones(512))
    with pytest.raises(frontal.NotPositiveDefiniteError) as error:
        factor.refactorize(bad)
    assert error.value.column == 300
    with pytest.raises(frontal.FactorInvalidError):
        factor.solve(np.ones(512))
    np.testing.assert_array_equal(factor.refactorize(a).solve(np.ones(512)), first)
    with fronts_cost(1e-7):
        guess = frontal.analyze(a, backend="gpu", ordering="nesdis")
    part, whole = (guess.factorize(bad, memory=memory) for memory in (limit, "device"))
    assert part.analysis.method == "ldlt"
    assert numeric(part).pattern.count > 2
    assert part.inertia == whole.inertia == (511, 1, 0)
    check_same(part, whole)


@pytest.mark.parametrize("kind", ["general", "symmetric"])
def test_columns_go_to_other_fronts(use, kind):
    """A plan that is amended has segments of its own."""
    use()
    a = weak_pivots(1e-12) if kind == "general" else problems.stokes2d(14)
    given = {"ordering": np.arange(300)} if kind == "general" else {}
    first = weak_pivots(1.0) if kind == "general" else a
    with fronts_cost(1e-9) if given else nullcontext():
        analysis = frontal.analyze(first, kind=kind, backend="gpu", **given)
    part, whole = (analysis.factorize(a, memory=x) for x in ("streamed", "device"))
    assert part.analysis.amendments == whole.analysis.amendments == 1
    assert numeric(part).pattern.count > 1
    check_same(part, whole)
    b = np.ones(a.shape[0])
    np.testing.assert_array_equal(part.solve(b), whole.solve(b))


def test_null_vectors(use):
    use("kernels")
    a, options = path_laplacians(3, 20), {"singular": "allow"}
    analysis = frontal.analyze(a, kind="symmetric", backend="gpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        part, whole = (analysis.factorize(a, memory=x, **options) for x in ("streamed", "device"))
    np.testing.assert_array_equal(part.null_space(), whole.null_space())
    assert part.null_columns.size == 3
    assert part.rcond() == whole.rcond()


def test_mixed_precision(use):
    use("kernels")
    a, b, options = solid_system("general"), np.cos(np.arange(512.0)), {"precision": "mixed"}
    analysis = analyzed(a, "general")
    part, whole = (analysis.factorize(a, memory=x, **options) for x in ("streamed", "device"))
    for _ in range(2):
        np.testing.assert_array_equal(part.solve(b), whole.solve(b))
        part.refactorize(2 * a), whole.refactorize(2 * a)
    assert part.dtype == "f4"
    assert part.slogdet() == whole.slogdet()  # in double
    assert numeric(part).pattern.dtype == "f8"


def test_panels_come_once_for_all_columns(use):
    """Each way, if there is memory for their messages; and not what is on the device already."""
    device, a = use(), solid_system("spd")
    analysis = analyzed(a, "spd")
    for memory, columns in (("streamed", (1, 1, 9, 17)), (least_of(analysis), (1, 1))):
        factor = analysis.factorize(a, memory=memory)
        sizes, found = 8 * numeric(factor).pattern.places.length, []
        for count in columns:
            device.copied = 0
            factor.solve(np.ones((512, count)), refine=0)
            found.append(device.copied)
        again = sizes[2:].sum() + sizes[:-2].sum()  # the first two lie there in the end
        assert found == [sizes.sum() + sizes[:-2].sum(), *[again] * (len(columns) - 1)]
    assert sizes.size > 4
    device.copied = 0
    factor.solve(np.ones((512, 9)), refine=0)  # in some passes
    assert device.copied > again
    assert device.copied % again == 0


def test_no_graph_has_its_solves(use):
    device, a = use(), solid_system("spd")
    factor = analyzed(a, "spd").factorize(a, memory="streamed")
    b = put(device, np.ones((512, 1)))
    factor.solve(b, refine=0)
    device.is_capturing = True
    with pytest.raises(ValueError, match="panels of this factor are on the host"):
        factor.solve(b, refine=0)
