"""Systems that stay on the device: solutions, errors, new values, and how little moves."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal.cpu.host_system import host_system

from ...emulation.borders import DTYPES, eps, op, random
from ...emulation.traffic import Sparse, forget, put
from ...matrices import grid_system

pytestmark = pytest.mark.usefixtures("gpu_backend")


@pytest.mark.parametrize("kind", ["spd", "general"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_residuals_and_errors_are_those_of_the_host(device, kind, dtype):
    a = grid_system(kind, dtype)
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    rng = np.random.default_rng(1)
    wide = np.dtype(dtype).char.replace("f", "d").replace("F", "D")
    for work in {np.dtype(dtype), np.dtype(wide)}:
        for trans in "NTH":
            for k in (1, 3, 5):
                b, x = (np.asfortranarray(random(rng, (81, k), work)) for _ in range(2))
                host, there = (
                    host_system(factor._numbers.factor, trans, work),
                    factor._numbers.factor.system(trans, work),
                )
                wanted, told = host.measure(x, b)
                up = factor._numbers.factor.upload
                found, errors = there.measure(up(x), up(b))
                size = eps(work) * 20 * np.abs(wanted).max()
                np.testing.assert_allclose(
                    factor._numbers.factor.download(found), wanted, atol=size
                )
                for name in ("residual", "solution", "rhs", "norm", "componentwise", "rowwise"):
                    np.testing.assert_allclose(
                        getattr(errors, name), getattr(told, name), rtol=200 * eps(dtype)
                    )
                np.testing.assert_allclose(errors.normwise, told.normwise, rtol=1e-4)
                merits = (e.merit(host.limits) for e in (errors, told))
                np.testing.assert_allclose(*merits, rtol=1e-4)


@pytest.mark.parametrize("kind", ["spd", "general"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_are_where_right_hand_sides_are(device, kind, dtype):
    a = grid_system(kind, dtype)
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    rng = np.random.default_rng(2)
    for trans in "NTH":
        for shape in ((81,), (81, 1), (81, 5)):
            for work in (dtype, "f8", "c16"):
                b = random(rng, shape, work)
                x, info = factor.solve(put(device, b), trans, return_info=True)
                assert type(x) is device.xp.ndarray
                y = factor.solve(b, trans)
                assert type(y) is np.ndarray
                x = device.download(x)
                assert x.shape == y.shape == shape
                assert x.dtype == y.dtype == np.result_type(dtype, work)
                np.testing.assert_array_equal(x, y)
                matrix_ = op(a, trans).astype(x.dtype)
                scale = abs(matrix_).sum(1).max() * np.abs(x).max() + np.abs(b).max()
                assert np.abs(matrix_ @ x - b).max() <= 10 * eps(x.dtype) * scale
                assert info.backward_error <= 4 * eps(x.dtype)
                assert info.componentwise_error <= 1000 * eps(x.dtype)
                direct = factor.solve(b, trans, refine=0)  # what refinement would make good
                assert np.abs(direct - y).max() <= 1e4 * eps(dtype) * np.abs(y).max()


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_the_same_refinement_as_on_the_host(device, kind):
    """A factor in single precision takes several steps to a solution in double precision."""
    a = grid_system(kind, "f4", 12)
    there = frontal.factorize(a, kind=kind, backend="gpu")
    here = there.to_cpu()
    b = np.random.default_rng(3).standard_normal((144, 3)) * [1, 1e-5, 1e5]
    for steps in (None, 0, 1, 2):
        x, found = there.solve(b, refine=steps, return_info=True)
        y, wanted = here.solve(b, refine=steps, return_info=True)
        assert found.refinement_steps == wanted.refinement_steps
        assert steps is not None or found.refinement_steps >= 1
        size = np.abs(y).max(axis=0)
        np.testing.assert_allclose(x / size, y / size, atol=1e-5 if steps == 0 else 1e-9)


def test_columns_that_need_no_correction_keep_theirs(device):
    factor = frontal.factorize(grid_system("spd", "f8"), kind="spd", backend="gpu")
    system = factor._numbers.factor.system("N", np.dtype("f8"))
    x, trial = (np.asfortranarray(np.full((81, 3), value)) for value in (1.0, 2.0))
    up, down = factor._numbers.factor.upload, factor._numbers.factor.download
    kept = down(system.chosen(np.array([True, False, True]), up(trial), up(x)))
    np.testing.assert_array_equal(kept, np.tile([2.0, 1.0, 2.0], (81, 1)))


def test_blocks_of_right_hand_sides(device, monkeypatch):
    factor = frontal.factorize(grid_system("spd", "f8"), kind="spd", backend="gpu")
    b = np.random.default_rng(4).standard_normal((81, 11))
    wanted, told = factor.solve(b, return_info=True)
    monkeypatch.setattr(frontal.gpu.sparse.solve.system, "_MAX_BLOCK_ENTRIES", 1)
    monkeypatch.setattr(frontal.gpu.sparse.solve.system, "_MIN_WIDTH", 4)
    factor = factor.copy()  # what is known of its systems is not copied
    x, info = factor.solve(b, return_info=True)
    np.testing.assert_array_equal(x, wanted)
    assert info.backward_error == told.backward_error
    assert factor.solve(np.ones((81, 0))).shape == (81, 0)
    assert factor.solve(put(device, np.ones((81, 0)))).shape == (81, 0)


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_little_moves(device, traffic, kind):
    """New values on the device, and a solution there, move counts and norms, not arrays."""
    a = grid_system(kind, "f8")
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    values, b = put(device, 3 * a.data), put(device, np.ones(81))
    factor.refactorize(values).solve(b)  # the first time, the rows of the pattern are found
    forget(traffic, factor)
    factor.refactorize(values)
    assert traffic["up"] == []
    assert traffic["down"] == [*[2] * (kind == "general"), 14] * (not device.cuda)
    forget(traffic, factor)
    x = factor.solve(b)
    assert traffic["up"] == []
    assert sum(traffic["down"]) < 81  # with the factor's condition number
    forget(traffic, factor)
    factor.solve(b)
    assert traffic["up"] == []
    assert set(traffic["down"]) == {8}
    assert len(traffic["kernels"]) < 12 * len(traffic["down"])
    np.testing.assert_allclose(3 * a @ device.download(x), 1, rtol=1e-10)
    forget(traffic, factor)
    factor.solve(b, refine=0)
    assert traffic["down"] == traffic["up"] == []


@pytest.mark.parametrize("form", ["csc", "csr", "coo"])
def test_new_values_of_the_host_move_once(device, traffic, form):
    """For Cholesky the device puts them in order, and looks at them."""
    a = grid_system("spd", "c16")
    factor = frontal.factorize(a.asformat(form), backend="gpu")
    given = (3 * a).asformat(form)
    values = given.data if form == "coo" else given
    factor.refactorize(values)
    forget(traffic, factor)
    factor.refactorize(values)
    assert traffic["up"] == [a.nnz]
    assert traffic["down"] == [14] * (not device.cuda)
    np.testing.assert_allclose(3 * a @ factor.solve(np.ones(81)), 1, rtol=1e-9)
    given.data[1] += 0.1
    factor.refactorize(given.data)
    assert factor.analysis.method == "lu"
    np.testing.assert_allclose(given @ factor.solve(np.ones(81)), 1, rtol=1e-9)
    given.data[5] = np.nan
    with pytest.raises(frontal.NonFiniteInputError):
        factor.refactorize(given.data)
    with pytest.raises(ValueError, match="pattern differs"):
        frontal.factorize(a, backend="gpu").refactorize(a + sp.eye_array(81, k=3))


@pytest.mark.parametrize("kind", ["spd", "general"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_new_values_on_the_device(device, kind, dtype):
    a = grid_system(kind, dtype)
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    values = put(device, 2 * a.data)
    assert factor.refactorize(values) is factor
    values[...] = 0  # a copy was taken
    b = random(np.random.default_rng(6), (81, 2), dtype)
    for trans in "NTH":
        x = factor.solve(b, trans)
        scale = abs(a).sum(1).max() * np.abs(x).max() + 1
        assert np.abs(2 * op(a, trans) @ x - b).max() <= 20 * eps(dtype) * scale
    np.testing.assert_allclose(factor.A.toarray(), 2 * a.toarray())
    wanted = np.linalg.slogdet(2 * a.toarray().astype("c16"))
    np.testing.assert_allclose(factor.slogdet(), wanted, rtol=2e3 * eps(dtype))
    other = {"f4": "f8", "f8": "f4", "c8": "c16", "c16": "c8"}[dtype]
    factor.refactorize(put(device, a.data.astype(other)))
    assert factor.dtype == other
    assert factor._numbers.factor.storage.panels.dtype == other
    x = factor.solve(b, refine=0)
    scale = abs(a).sum(1).max() * np.abs(x).max() + 1
    assert np.abs(a @ x - b).max() <= 100 * max(eps(dtype), eps(other)) * scale


def test_unsymmetric_entry_beside_a_penalty_on_a_device(device):
    a = grid_system("spd", "f8").tolil()
    a[40, 40] = 1e17
    a = a.tocsc()
    factor = frontal.factorize(a, backend="gpu")
    assert factor.analysis.method == "cholesky"
    factor.refactorize(put(device, 2 * a.data))
    assert factor.analysis.method == "cholesky"
    a.data[a.indptr[40]] *= 0.5  # an entry beside the penalty
    factor.refactorize(put(device, a.data))
    assert factor.analysis.method == "lu"
    np.testing.assert_allclose(a @ factor.solve(np.ones(81)), 1, rtol=1e-9)


def test_values_on_the_device_have_a_scaling_of_their_own(device):
    a = grid_system("general", "f8")
    factor = frontal.factorize(a, kind="general", backend="gpu")
    before = factor._numbers.factor.scaling
    for most in (2, 20):
        rows = 2.0 ** np.random.default_rng(0).integers(-most, most, 81)
        changed = sp.csc_array(sp.diags_array(rows) @ a)
        factor.refactorize(put(device, changed.data))
        assert (factor.info["backend"], factor.analysis.amendments) == ("gpu", 0)
        x, info = factor.solve(changed @ np.ones(81), return_info=True)
        np.testing.assert_allclose(x, 1, rtol=1e-8)
        assert info.componentwise_error < 1e-12
        np.testing.assert_array_equal(factor._numbers.factor.scaling.row * rows, before.row)


@pytest.mark.parametrize("kind", ["spd", "general"])
@pytest.mark.parametrize("form", ["csc", "csr"])
def test_matrices_on_the_device(device, traffic, form, kind):
    a = grid_system(kind, "f8")
    factor = frontal.factorize(a, kind=kind, backend="gpu")
    given = Sparse(device, (5 * a).asformat(form))
    factor.refactorize(given)
    forget(traffic, factor)
    factor.refactorize(given)
    assert traffic["up"] == []
    assert max(traffic["down"], default=0) <= 14
    np.testing.assert_allclose(5 * a @ factor.solve(np.ones(81)), 1, rtol=1e-9)
    other = Sparse(device, sp.eye_array(81, k=3, format=form) + (5 * a).asformat(form))
    assert factor._numbers.factor.entries.order_of(other) is None


def test_values_by_rows_of_an_unsymmetric_pattern(device):
    """Of a symmetric one the order by columns is its own inverse."""
    a = grid_system("general", "f8")
    a = sp.csc_array(a - sp.triu(a, 2))
    factor = frontal.factorize(a, kind="general", backend="gpu")
    factor.refactorize(Sparse(device, (2 * a).tocsr()))
    np.testing.assert_allclose(2 * a @ factor.solve(np.ones(81), refine=0), 1, rtol=1e-6)


def test_a_matrix_of_order_one_and_a_diagonal_one(device):
    for a in (sp.csc_array([[2.0]]), sp.csc_array(sp.diags_array(np.arange(1.0, 70.0)))):
        for kind in ("spd", "general"):
            factor = frontal.factorize(a, kind=kind, backend="gpu")
            b = np.ones(a.shape[0])
            np.testing.assert_allclose(a @ device.download(factor.solve(put(device, b))), 1)
            assert factor.refactorize(put(device, a.data)).growth > 0


def test_long_rows_are_read_by_whole_warps(device):
    n = 3000
    ones = np.ones(n)
    a = sp.diags_array(2 * ones).tolil()
    a[0, :], a[:, 0] = 1.0 / n, 1.0 / n
    a[0, 0] = 2.0
    factor = frontal.factorize(sp.csc_array(a), kind="general", backend="gpu")
    assert factor._numbers.factor.entries.lanes == 32
    assert factor._numbers.factor.entries.by_rows(np.dtype("f8"))[3] == 32
    np.testing.assert_allclose(sp.csc_array(a) @ factor.solve(ones), 1, rtol=1e-12)
    x, up = np.asfortranarray(np.cos(np.arange(n))[:, None]), factor._numbers.factor.upload
    for trans, matrix in (("N", a.tocsr()), ("T", a.T.tocsr())):
        rest, errors = factor._numbers.factor.system(trans, x.dtype).measure(up(x), up(2 * x))
        np.testing.assert_allclose(device.download(rest), 2 * x - matrix @ x, atol=1e-13)
        assert errors.norm == pytest.approx(abs(matrix).sum(1).max(), rel=1e-12)


@pytest.mark.parametrize("kind", ["spd", "general"])
def test_entries_of_the_inverse_are_on_the_host(device, kind):
    a = grid_system(kind, "f8")
    factor, inverse = frontal.factorize(a, kind=kind, backend="gpu"), np.linalg.inv(a.toarray())
    assert factor.info["backend"] == "gpu"
    np.testing.assert_allclose(factor.diag_inv(), inverse.diagonal(), rtol=1e-12)
    np.testing.assert_allclose(factor.selected_inverse("factor")[[3], [3]], inverse[3, 3])
    assert factor.trace_inv(a) == pytest.approx(81, rel=1e-12)
