"""Public functions called again with stacks of a shape: noted launches, on other arrays."""

from __future__ import annotations

import ctypes
import importlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from frontal.gpu.dense import batched, batched_lstsq, batched_solve, batched_svd, call_cache
from frontal.gpu.dense.batched_products import gemm
from frontal.gpu.dense.lists import Batch
from frontal.gpu.runtime.launch_plan import disjoint

from ...emulation.borders import DTYPES
from .batched_tools import numbers, public_calls


def stack(n, dtype, seed, columns=None):
    a = numbers((3, n, columns or n), dtype, seed)
    if columns:
        return a
    return (a @ a.conj().swapaxes(1, 2) + n * np.eye(n)).astype(dtype)


class Elsewhere(np.ndarray):
    """An array whose device is, as CuPy's, an object without a hash."""

    device = property(lambda self: [])


def test_devices_without_a_hash_are_known_again(gpu):
    if gpu.device.cuda:
        held = gpu.put(stack(5, np.float64, 0))
    else:
        held = stack(5, np.float64, 0).view(Elsewhere)
    for _ in range(2):
        batched.cholesky(held, check=False)
    (found,) = call_cache._plans.values()
    assert isinstance(found, call_cache._CachedCall)


def calls(gpu, n, dtype, seed):
    """Public functions on arrays of their own for a seed."""
    a, g = stack(n, dtype, seed), stack(n, dtype, seed + 1) + stack(n, dtype, seed + 2, n)
    b, v = stack(n, dtype, seed, 4), numbers((3, n), dtype, seed)
    held = [gpu.put(x) for x in (a, g, b, v)]
    own = [gpu.put(x, "F") for x in (a, g, b, a)]  # to be overwritten
    return public_calls(*held) | {
        "r": lambda: (batched_svd.qr(held[1], "r"),),
        "square svd": lambda: batched_svd.svd(held[1], check=False),
        "least squares": lambda: batched_lstsq.lstsq(held[1], held[2], check=False),
        "in place": lambda: batched.cholesky(own[0], overwrite_a=True, check=False),
        "both": lambda: batched_solve.solve(own[1], own[2], False, True, True, check=False),
        "own sum": lambda: (batched.gemm(1.0, held[1], held[0], 2.0, own[3], overwrite_c=True),),
    }


CASES = [*((5, dtype) for dtype in DTYPES), (70, "f8")]


@pytest.mark.parametrize(("n", "dtype"), CASES)
def test_the_same_to_the_bit(gpu, n, dtype, monkeypatch):
    wanted, found = [], []
    for seed in (10, 20, 30):
        monkeypatch.setattr(call_cache, "_plans", {})  # each call is the first
        wanted.append({k: gpu.get(call()) for k, call in calls(gpu, n, dtype, seed).items()})
    known: dict = {}
    for seed in (1, 10, 20, 30):
        monkeypatch.setattr(call_cache, "_plans", known)
        found.append({k: call() for k, call in calls(gpu, n, dtype, seed).items()})
    assert {type(x) for x in known.values()} == {call_cache._CachedCall}
    for x, y in zip(found[1:], wanted, strict=True):  # all at the end: no call writes to another's
        for name, results in x.items():
            for result, one in zip(gpu.get(results), y[name], strict=True):
                assert result.dtype == one.dtype
                np.testing.assert_array_equal(result, one, err_msg=name)


def test_shapes_orders_types_and_options_are_told_apart(gpu):
    rng = np.random.default_rng(1)
    for _ in range(3):
        a = np.tril(rng.uniform(1, 2, (2, 6, 6)))
        b = rng.uniform(-1, 1, (2, 6, 2))
        for order in "CF":
            for dtype in (np.float32, np.float64):
                given, right = gpu.put(a.astype(dtype), order), gpu.put(b.astype(dtype))
                for trans in (0, 1):
                    x = gpu.get(batched.solve_triangular(given, right, trans, lower=True))
                    op = a.swapaxes(1, 2) if trans else a
                    np.testing.assert_allclose(x, np.linalg.solve(op, b), rtol=2e-3)
                unit = gpu.get(batched.solve_triangular(given, right, 0, True, True))
                d = np.diagonal(a, axis1=1, axis2=2)[:, None] * np.eye(6)
                np.testing.assert_allclose(unit, np.linalg.solve(a - d + np.eye(6), b), rtol=2e-3)


def test_what_is_overwritten_is_given_back_and_shares_no_memory(gpu):
    for seed in range(4):
        a, b = np.tril(stack(6, np.float64, seed)), stack(6, np.float64, 9)
        held = [gpu.put(a, "F"), gpu.put(b, "F"), gpu.put(b[:, 0])]
        for right, x in ((b, held[1]), (b[:, 0], held[2])):
            found = batched.solve_triangular(held[0], x, lower=True, overwrite_b=True)
            assert gpu.device.pointer(found) == gpu.device.pointer(x)
            assert found.shape == x.shape
            wanted = np.linalg.solve(a, right if right.ndim == 3 else right[..., None])
            np.testing.assert_allclose(gpu.get(x), wanted.reshape(right.shape))
    assert {type(x) for x in call_cache._plans.values()} == {call_cache._CachedCall}
    with pytest.raises(ValueError, match="shares memory with a"):
        batched.solve_triangular(held[0], held[0], lower=True, overwrite_b=True)


def test_arrays_that_share_memory(gpu):
    rng = np.random.default_rng(2)
    for first in (4, 3, 4, 3):
        whole = rng.uniform(1, 2, (3, 5, 9)) + np.eye(5, 9)
        held, part = gpu.put(whole), slice(first, first + 4)
        a, b = whole[..., :5], whole[..., part]
        x = gpu.get(batched.solve_triangular(held[..., :5], held[..., part], lower=True))
        np.testing.assert_allclose(x, np.linalg.solve(np.tril(a), b))
        np.testing.assert_array_equal(gpu.get(held), whole)


@pytest.mark.parametrize("kind", ["stack", "batch"])
def test_an_array_given_twice_is_noted_and_told_from_two(gpu, kind):
    for seed in range(4):
        one, other = (stack(6, np.float64, 10 * seed + k) for k in range(2))
        a, b = (gpu.put(x) if kind == "stack" else Batch(list(gpu.put(x))) for x in (one, other))
        for x, y, right in ((a, a, one), (a, b, other), (b, b, other), (b, a, one)):
            left = one if x is a else other
            for found, wanted in zip(gemm(1.0, x, y), left @ right, strict=True):
                np.testing.assert_allclose(gpu.get(found), wanted, rtol=1e-13)
            for found in batched_solve.solve(x, x) if y is x else ():
                np.testing.assert_allclose(gpu.get(found), np.eye(6), atol=1e-12)
    assert {type(x) for x in call_cache._plans.values()} == {call_cache._CachedCall}
    assert len(call_cache._plans) == 3


def test_refusals_are_the_same_the_third_time(gpu):
    a, b = gpu.put(np.ones((2, 3, 3))), gpu.put(np.ones((2, 4, 1)))
    for _ in range(3):
        with pytest.raises(ValueError, match="rows"):
            batched.solve_triangular(a, b)
        with pytest.raises(ValueError, match="trans must be"):
            batched.solve_triangular(a, b, trans=[])
        with pytest.raises(ValueError, match="pass both as lists"):
            batched.solve_triangular(a, [b[0], b[1]])
        with pytest.raises(ValueError, match="must be square"):
            batched.cholesky(gpu.put(np.ones((2, 3, 4))))


def is_noted(gpu, copied):
    """Copy four arrays by a function of the device and two arrays; whether that is noted."""

    def work(device, a, overwrite):
        out = device.xp.empty(a.shape, a.dtype)
        copied(device, a, out)
        return (out,)

    given = [np.full((2, 2, 2), float(k)) for k in range(4)]
    found = [call_cache.cached_call(work, "a", (gpu.put(a),), ())[0] for a in given]
    for copy, a in zip(found, given, strict=True):
        np.testing.assert_array_equal(gpu.get(copy), a)
    (plan,) = call_cache._plans.values()
    assert plan is False or isinstance(plan, call_cache._CachedCall)
    return plan is not False


def test_what_cannot_be_noted_is_done_all_the_same(gpu):
    assert not is_noted(gpu, lambda device, a, out: device.xp.copyto(out, a))


def test_few_shapes_are_known_at_once(gpu, monkeypatch):
    monkeypatch.setattr(call_cache, "_MAX_SHAPES", 3)
    for n in range(1, 6):
        for _ in range(3):
            batched.inv(gpu.put(np.eye(n)[None]))
    assert [key[4][0] for key in call_cache._plans] == [(1, n, n) for n in (3, 4, 5)]


def test_threads_do_not_meet(gpu):
    if not gpu.device.cuda:
        pytest.skip("threads of the host share the emulated fibers")
    stacks = [stack(7, np.float64, seed) for seed in range(12)]
    held = [gpu.put(a) for a in stacks]
    for a in held[:3]:
        batched.cholesky(a)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda a: batched.cholesky(a, lower=True, check=False)[0], held * 3))
        found = list(pool.map(lambda a: batched.cholesky(a, lower=True, check=False)[0], held * 3))
    for x, a in zip(found, stacks * 3, strict=True):
        np.testing.assert_allclose(gpu.get(x), np.linalg.cholesky(a))


def copied_by_addresses(device, a, out):
    """Copy 64 bytes as a function of cuBLAS would, which takes addresses."""

    def copied(source, target):
        if device.cuda:
            cuda = importlib.import_module("cupy").cuda  # what the recorder does not see
            stream = cuda.get_current_stream().ptr
            cuda.runtime.memcpyAsync(target, source, 64, 3, stream)
        else:
            ctypes.memmove(target, source, 64)

    device.call(copied, (device.pointer(a), device.pointer(out)))


def test_work_of_a_library_is_noted(gpu):
    assert is_noted(gpu, copied_by_addresses)


def test_arrays_that_begin_behind_others_are_not_apart():
    """Of negative strides: the pointer is that of the first element, not of the lowest."""
    whole = np.arange(10.0)
    turned, low, high = whole[5:1:-1], whole[:3], whole[6:]

    def are_apart(*arrays):
        return disjoint([x.__array_interface__["data"][0] for x in arrays], arrays)

    assert are_apart(turned, high)
    assert are_apart(low, high)
    assert not are_apart(turned, low)
    assert are_apart(turned, whole[:2])


def test_uploaded_addresses_make_no_record(gpu):
    """They are others the next time."""

    def uploaded(device, a, out):
        device.upload(np.array([device.pointer(a)], np.uint64))
        copied_by_addresses(device, a, out)

    assert not is_noted(gpu, uploaded)
