"""Lists of matrices of different sizes, as lists and as `Batch`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import frontal
from frontal.gpu.dense import (
    batched,
    batched_lstsq,
    batched_products,
    batched_solve,
    batched_svd,
    call_cache,
)
from frontal.gpu.dense.lists import Batch

from .batched_tools import numbers, public_calls

PACKAGE = Path(frontal.__file__).parent
SIZES = {
    "small": (5, 1, 0, 33, 12),
    "tiny": (8, 3, 8, 20, 1),
    "panels": (70, 150, 9, 150, 33),
}


def inputs(sizes, dtype, seed):
    """Definite matrices, any others, right-hand sides, vectors."""
    definite, others, right, vectors = [], [], [], []
    for i, n in enumerate(sizes):
        a = numbers((n, n), dtype, seed + i)
        others.append(a + 2 * np.eye(n, dtype=dtype))
        definite.append((a @ a.conj().T + n * np.eye(n)).astype(dtype))
        right.append(numbers((n, 3), dtype, seed + i + 50))
        vectors.append(numbers((n,), dtype, seed + i + 90))
    return definite, others, right, vectors


def put(gpu, given, order):
    mixed = [order if order != "mixed" else "CF"[i % 2] for i in range(len(given[0]))]
    return [[gpu.put(x, o) for x, o in zip(xs, mixed, strict=True)] for xs in given]


CASES = [
    ("small", "f8", "C"),
    ("small", "c8", "F"),
    ("tiny", "f8", "mixed"),
    ("tiny", "f4", "mixed"),
    ("tiny", "c8", "F"),
    ("tiny", "c16", "F"),
    ("panels", "f8", "C"),
]


@pytest.mark.parametrize(("sizes", "dtype", "order"), CASES)
def test_a_batch_gives_what_each_gives_alone(gpu, sizes, dtype, order):
    """As a list and as a batch, for the first, the second and the third time; the same bits."""
    for round_, seed in enumerate((10, 20, 30)):
        host = inputs(SIZES[sizes], dtype, seed)
        given = put(gpu, host, order)
        kept, call_cache._plans = call_cache._plans, {}
        wanted = {}
        for name, call in public_calls(*given).items():
            call_cache._plans = {}  # each call is the first
            wanted[name] = call()
        call_cache._plans = kept
        for kind in (list, Batch):
            for name, call in public_calls(*map(kind, given)).items():
                for found, x in zip(call(), wanted[name], strict=True):
                    if not isinstance(x, Batch):
                        np.testing.assert_array_equal(gpu.get(found), gpu.get(x), err_msg=name)
                        continue
                    assert isinstance(found, Batch), name
                    for y, z in zip(found, x, strict=True):
                        where = f"{name} {kind.__name__} {round_}"
                        np.testing.assert_array_equal(gpu.get(y), gpu.get(z), err_msg=where)
        for xs, ys in zip(host, given, strict=True):
            for x, y in zip(xs, ys, strict=True):
                np.testing.assert_array_equal(x, gpu.get(y))
    noted = [x for x in call_cache._plans.values() if x is not True]
    assert len(noted) > 10
    assert {type(x) for x in noted} == {call_cache._CachedCall}


def test_no_function_of_python_is_called_for_each_matrix(gpu):
    """A list costs what CuPy takes to tell of its arrays and to make others, and no more."""
    found: list[dict[str, int]] = []
    for times in (1, 7):
        given = put(gpu, inputs((5, 1, 9) * times, "f8", 4), "F")
        found.append({name: python_calls(call) for name, call in public_calls(*given).items()})
    assert found[0] == found[1]
    assert max(found[0].values()) < 100


def python_calls(call):
    """Functions of the package that a call which came before calls, and resumed generators."""
    for _ in range(2):
        call()
    names = []

    def note(frame, event, _):
        if event == "call" and str(PACKAGE) in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(names)


def test_solutions_by_numpy(gpu):
    _, others, _, vectors = inputs(SIZES["panels"], "f8", 3)
    a, b = Batch([gpu.put(x) for x in others]), Batch([gpu.put(x) for x in vectors])
    for _ in range(3):
        for x, y, z in zip(batched_solve.solve(a, b), others, vectors, strict=True):
            np.testing.assert_allclose(gpu.get(x), np.linalg.solve(y, z), rtol=1e-8)
        for x, y in zip(batched.inv(a), others, strict=True):
            np.testing.assert_allclose(gpu.get(x) @ y, np.eye(len(y)), atol=1e-9)


def test_entries_that_change_are_seen(gpu):
    arrays = [gpu.put(np.eye(n)) for n in (2, 5, 40)]
    batch = Batch(arrays)
    for k in range(1, 5):
        for a in arrays:
            a[...] = gpu.put(k * np.eye(len(a)))
        for x in batched.inv(batch):
            np.testing.assert_allclose(gpu.get(x), np.eye(len(x)) / k)


def test_a_batch_is_a_sequence(gpu):
    arrays = [gpu.put(numbers((n, n + 1), "f8", n), "F") for n in (2, 0, 3)]
    batch = Batch(arrays)
    assert len(batch) == 3
    assert batch[2] is arrays[2]
    assert batch.dtype == np.float64
    assert (batch.ndim, Batch([a[:, 0] for a in arrays]).ndim) == (2, 1)
    made = batched_products.gemm(1.0, batch, batch, trans_b=1)
    assert [x.shape for x in made] == [(2, 2), (0, 0), (3, 3)]
    assert made[-1].shape == (3, 3)
    assert [x.shape for x in made[1:]] == [(0, 0), (3, 3)]
    np.testing.assert_allclose(gpu.get(made[2]), gpu.get(arrays[2]) @ gpu.get(arrays[2]).T)
    assert "3 matrices of float64" in repr(made)
    with pytest.raises(IndexError):
        made[3]
    empty = batched.inv(Batch([]))
    assert len(empty) == 0


def test_what_is_no_batch(gpu):
    with pytest.raises(TypeError, match="one dtype"):
        Batch([gpu.put(np.eye(2)), gpu.put(np.eye(2, dtype="f4"))])
    with pytest.raises(TypeError, match="asarray"):
        Batch([gpu.put(np.eye(2)), 3])
    with pytest.raises(ValueError, match="vectors"):
        Batch([gpu.put(np.eye(2)), gpu.put(np.ones(2))])
    two, three = Batch([gpu.put(np.eye(2))] * 2), Batch([gpu.put(np.eye(3))] * 3)
    for _ in range(3):
        with pytest.raises(ValueError, match="pass both as lists"):
            batched_solve.solve(two, three)
        with pytest.raises(ValueError, match="rows"):
            batched.solve_triangular(two, Batch([gpu.put(np.eye(3))] * 2))
        with pytest.raises(ValueError, match="square"):
            batched.inv(Batch([gpu.put(np.ones((2, 3)))]))
        with pytest.raises(TypeError, match="int32 pivots"):
            batched.lu_solve((two, Batch([gpu.put(np.ones(2))] * 2)), two)


@pytest.mark.parametrize("kind", [list, Batch])
def test_what_may_be_overwritten_is_given_back(gpu, kind):
    """Where columns are contiguous, as in the documentation: no array is made."""
    sizes = (3, 1, 40)
    for _ in range(3):
        a = [gpu.put(4 * np.eye(n), "F") for n in sizes]
        b = [gpu.put(np.ones(n)) for n in sizes]
        c = batched.cholesky(kind(a), overwrite_a=True)
        x = batched.cho_solve((c, False), kind(b), overwrite_b=True)
        assert {type(c), type(x)} == {Batch}
        assert all(y is z for y, z in zip([*c, *x], [*a, *b], strict=True))
        for y, z in zip(a, b, strict=True):
            np.testing.assert_allclose(gpu.get(y), 2 * np.eye(len(y)))
            np.testing.assert_allclose(gpu.get(z), 0.25)
    by_rows = [gpu.put(4 * np.eye(n) + np.triu(np.ones((n, n)), 1), "C") for n in sizes]
    c = batched.cholesky(kind(by_rows), overwrite_a=True)
    assert not any(y is z for y, z in zip(c, by_rows, strict=True))
    with pytest.raises(ValueError, match="matrices 0 and 1 share memory"):
        batched.inv(kind([a[2], a[2]]), overwrite_a=True)


def test_decompositions_take_a_batch_as_a_list(gpu):
    host = [numbers((n, n), "f8", n) + 2 * np.eye(n) for n in (2, 5, 17)]
    a = Batch([gpu.put(x) for x in host])
    for s, x in zip(batched_svd.svdvals(a), host, strict=True):
        np.testing.assert_allclose(gpu.get(s), np.linalg.svd(x, compute_uv=False))
    for q, r, x in zip(*batched_svd.qr(a), host, strict=True):
        np.testing.assert_allclose(gpu.get(q) @ gpu.get(r), x, atol=1e-12)
    b = Batch([gpu.put(np.ones(len(x))) for x in host])
    x, *_ = batched_lstsq.lstsq(a, b)
    np.testing.assert_allclose(gpu.get(x[1]), np.linalg.solve(host[1], np.ones(5)))
