"""Arguments of the public batched module: strides, overwriting, aliases, failures."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from frontal.errors import BatchError
from frontal.gpu.dense import batched
from frontal.gpu.dense.operands import leading_dimension

from .batched_tools import close, each, matrices, numbers, one

# --- memory ------------------------------------------------------------------------------------


def test_any_strides(gpu):
    whole = numbers((3, 20, 24), np.float64)
    held = gpu.put(whole)
    for part in (
        lambda x: x[:, ::2, ::-1][:, :, :10],
        lambda x: x[::-1, 1:11, 3:13],
        lambda x: x[:, :10, :20:2],
    ):
        a = part(whole)
        for x, y in each(gpu.get(batched.gemm(1.0, part(held), part(held))), a):
            close(x, y @ y)
        cut = [part(held)[i] for i in range(3)]
        for x, y in each(gpu.get(batched.gemm(1.0, cut, cut)), a):
            close(x, y @ y)


def test_leading_dimensions_and_broadcasts(gpu):
    whole = numbers((12, 30), np.float64)
    held = gpu.put(whole, "F")
    lu, _ = batched.lu_factor(held[2:9, 3:10], overwrite_a=True)
    assert gpu.device.pointer(lu) == gpu.device.pointer(held[2:9, 3:10])
    close(gpu.get(lu), scipy.linalg.lu_factor(whole[2:9, 3:10])[0])
    inside = np.zeros_like(whole, bool)
    inside[2:9, 3:10] = True
    np.testing.assert_array_equal(gpu.get(held)[~inside], whole[~inside])
    same = gpu.xp.broadcast_to(gpu.put(numbers((4, 4), np.float64)), (3, 4, 4))
    product = gpu.get(batched.gemm(1.0, same, same))
    np.testing.assert_array_equal(product[0], product[2])


def test_columns_that_overlap_are_refused():
    memory = np.zeros(40)
    for rows, step in ((4, 2), (4, 3), (2, 1)):
        overlapping = np.lib.stride_tricks.as_strided(memory, (rows, 3), (8, 8 * step))
        with pytest.raises(ValueError, match=f"columns overlap: {step} elements apart"):
            leading_dimension(overlapping)
    assert leading_dimension(memory.reshape(4, 10).T[:7]) == 10


@pytest.mark.parametrize("kind", ["list", "stack"])
def test_shared_outputs_are_refused(gpu, kind):
    x = gpu.put(one(6, None, np.float64, True, 0), "F")
    a = [x, x] if kind == "list" else gpu.xp.broadcast_to(x, (2, 6, 6))
    with pytest.raises(ValueError, match="share memory"):
        batched.inv(a, overwrite_a=True)
    found = gpu.get(batched.inv(a))
    np.testing.assert_array_equal(found[0], found[1])


def test_blocks_of_one_matrix_may_be_overwritten_apart(gpu):
    whole = numbers((8, 8), np.float64) + 4 * np.eye(8)
    held = gpu.put(whole, "F")
    blocks = [held[:4, :4], held[4:, 4:], held[4:, :4]]
    batched.inv(blocks, overwrite_a=True)
    found = gpu.get(held)
    close(found[4:, 4:], np.linalg.inv(whole[4:, 4:]), 10)
    close(found[4:, :4], np.linalg.inv(whole[4:, :4]), 1e4)
    np.testing.assert_array_equal(found[:4, 4:], whole[:4, 4:])
    with pytest.raises(ValueError, match="matrices 0 and 1"):
        batched.inv([held[:4, :4], held[3:7, 3:7]], overwrite_a=True)
    # a block solved by its neighbour, as in a front
    held = gpu.put(whole, "F")
    batched.solve_triangular(held[:4, :4], held[:4, 4:], lower=True, overwrite_b=True)
    close(
        gpu.get(held)[:4, 4:],
        scipy.linalg.solve_triangular(whole[:4, :4], whole[:4, 4:], lower=True),
        10,
    )


def test_aliased_inputs_are_refused(gpu):
    a = gpu.put(matrices("stack", np.float64), "F")
    with pytest.raises(ValueError, match="c would be overwritten and shares memory with b"):
        batched.gemm(1.0, gpu.put(matrices("stack", np.float64), "F"), a, 1.0, a, overwrite_c=True)
    with pytest.raises(ValueError, match="shares memory with a"):
        batched.solve_triangular(a, a, overwrite_b=True)


# --- what is refused or fails ------------------------------------------------------------------


def test_failing_matrices_are_named_and_the_others_kept(gpu):
    a = matrices("list", np.float64, definite=True)
    a[3][20, 20] = -1.0
    a[4][:, :] = np.nan
    with pytest.raises(
        BatchError, match="2 of 5 matrices: matrix 3 at column 20, matrix 4 at column 0"
    ) as e:
        batched.cholesky(gpu.put(a), lower=True)
    assert isinstance(e.value, np.linalg.LinAlgError)
    assert e.value.indices.tolist() == [3, 4]
    assert e.value.columns.tolist() == [20, 0]
    close(gpu.get(e.value.result)[0], np.linalg.cholesky(a[0]))
    c, info = batched.cholesky(gpu.put(a), lower=True, check=False)
    assert gpu.get(info).tolist() == [0, 0, 0, 21, 1]
    close(gpu.get(c)[0], np.linalg.cholesky(a[0]))


@pytest.mark.parametrize("routine", [batched.lu_factor, batched.inv])
def test_singular_matrices(gpu, routine):
    a = matrices("stack", np.float64)
    a[1][:, 4] = 0.0
    with pytest.raises(BatchError, match="1 of 3 matrices: matrix 1 at column 4") as caught:
        routine(gpu.put(a))
    assert len(caught.value.result) in (2, 3)
    *_, info = routine(gpu.put(a), check=False)
    assert gpu.get(info).tolist() == [0, 5, 0]


@pytest.mark.parametrize("dtype", [np.int64, np.float16, bool])
def test_other_types_are_refused(gpu, dtype):
    with pytest.raises(TypeError, match="float32, float64, complex64"):
        batched.inv(gpu.put(np.eye(3).astype(dtype)))


def test_arguments_that_do_not_fit(gpu):
    a, b = gpu.put(np.eye(3)), gpu.put(np.eye(3, dtype=np.float32))
    stack = gpu.put(np.stack([np.eye(3)] * 2))
    for wrong, error, match in [
        (lambda: batched.inv([a, b]), TypeError, "one dtype"),
        (lambda: batched.gemm(1.0, a, b), TypeError, "one dtype"),
        (lambda: batched.inv("a"), TypeError, "cupy.ndarray"),
        (lambda: batched.inv([a, [1.0]]), TypeError, "cupy.asarray"),
        (lambda: batched.inv(a[0]), ValueError, "2-D for a matrix, not 1-D"),
        (lambda: batched.inv([a, a[0]]), ValueError, "not 1-D, 2-D"),
        (lambda: batched.inv([a, a[:2]]), ValueError, "matrix 1 is 2 x 3"),
        (lambda: batched.gemm(1.0, a, [a]), ValueError, "list of 1"),
        (lambda: batched.gemm(1.0, [a, a], [a]), ValueError, "list of 2"),
        (lambda: batched.gemm(1.0, a, a[:2]), ValueError, "2 rows in op.b., not 3"),
        (lambda: batched.gemm(1.0, a, a, 1.0), ValueError, "c, which is not given"),
        (lambda: batched.gemm(1.0, a, a, 1.0, a[:2]), ValueError, "c: matrix 0 has 2 rows"),
        (lambda: batched.gemm(1.0, a, a, trans_a=3), ValueError, "trans must be"),
        (lambda: batched.herk(1.0, a.astype(complex), trans=1), ValueError, "0 or 2"),
        (lambda: batched.gemv(1.0, a, a), ValueError, "x must be 1-D"),
        (lambda: batched.gemv(1.0, a, a[0, :2]), ValueError, "x: matrix 0 has 2 entries"),
        (lambda: batched.solve_triangular(stack, stack[:1]), ValueError, "stack of 1"),
        (lambda: batched.lu_solve((a, a), a), TypeError, "piv"),
        (lambda: batched.lu_solve((a, a[0].astype(np.int32)[:2]), a), ValueError, "piv"),
    ]:
        with pytest.raises(error, match=match):
            wrong()


def test_nothing_to_do(gpu):
    for found in (batched.cholesky([]), *batched.lu_factor([]), batched.gemm(1.0, [], [])):
        assert list(found) == []
    empty = gpu.put(np.zeros((0, 3, 3)))
    assert batched.inv(empty).shape == (0, 3, 3)
    assert batched.lu_factor(empty)[1].shape == (0, 3)
    assert batched.inv(gpu.put(np.zeros((0, 0)))).shape == (0, 0)
    assert batched.gemm(1.0, gpu.put(np.zeros((2, 0))), gpu.put(np.zeros((0, 3)))).shape == (2, 3)
