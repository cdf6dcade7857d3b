"""Factors L D L^H on a device, and what they are of."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

import frontal
from frontal.backend.protocol import panel_offsets
from frontal.gpu.sparse.backend import GpuBackend
from frontal.gpu.sparse.pattern import DevicePattern
from frontal.numeric.method import LDLH, LDLT

KINDS = [("f4", LDLT), ("f8", LDLT), ("c8", LDLT), ("c16", LDLT), ("c8", LDLH), ("c16", LDLH)]


def factored(device, a, method, ordering="auto", small=64, tiny=None, fewest=1):
    """The factor of a backend whose fronts up to `small` rows are done whole.

    `fewest` fronts of a level have a launch of their own.
    """
    pattern = sp.csc_array(abs(a).astype("f8"))
    pattern = pattern + pattern.T + sp.diags_array(np.full(a.shape[0], pattern.sum()))
    symbolic = replace(
        frontal.analyze(pattern, kind="spd", ordering=ordering).symbolic, method=method
    )
    entries = (abs(a) + sp.eye_array(a.shape[0])).tocsc()  # the diagonal is kept, zero or not
    given = sp.csc_array(
        (np.zeros(entries.nnz, a.dtype), entries.indices, entries.indptr), shape=a.shape
    )
    given.sort_indices()
    found = sp.csc_array(a, copy=True)
    found.sort_indices()
    column = np.repeat(np.arange(a.shape[0]), np.diff(found.indptr))
    everywhere = np.repeat(np.arange(a.shape[0]), np.diff(given.indptr)) * a.shape[0]
    place = np.searchsorted(everywhere + given.indices, column * a.shape[0] + found.indices)
    given.data[place] = found.data
    backend = GpuBackend(symbolic, device)
    backend.pattern = DevicePattern(device, symbolic.plan, method, small, fewest)
    return backend.factorize(given.data, None, tiny=tiny)


def parts(factor):
    """Of all fronts: L with ones, D, the rows of A in their order, and where the front begins."""
    plan, host = factor.symbolic.plan, factor.to_host()
    first = panel_offsets(plan, factor.symbolic.method)
    mirrored = np.conj if factor.symbolic.method.adjoint else np.asarray
    for s in range(plan.parent.size):
        begin, k = plan.start[s], plan.start[s + 1] - plan.start[s]
        m = plan.pointer[s + 1] - plan.pointer[s]
        panel = host.panels[first[s] : first[s] + k * (k + m)].reshape(k, k + m).T
        lower = np.tril(panel, -1) + np.eye(k + m, k)
        e = host.subdiagonal[begin : begin + k]
        d = np.diag(np.diag(panel)) + np.diag(e[: k - 1], -1) + np.diag(mirrored(e[: k - 1]), 1)
        assert e[k - 1] == 0
        assert (lower[np.arange(1, k), np.arange(k - 1)][e[: k - 1] != 0] == 0).all()
        order = np.arange(k)
        for i, j in enumerate(host.pivots[begin : begin + k]):
            order[[i, j]] = order[[j, i]]
        rows = plan.rows[plan.pointer[s] : plan.pointer[s + 1]]
        yield lower, d, np.concatenate([begin + order, rows]), begin


def product(factor):
    """L D L^H of all fronts, in elimination order, and the sum of its terms' sizes."""
    n, dtype = factor.symbolic.n, factor.dtype
    found, size = np.zeros((n, n), dtype), np.zeros((n, n))
    mirrored = np.conj if factor.symbolic.method.adjoint else np.asarray
    for lower, d, rows, _ in parts(factor):
        found[np.ix_(rows, rows)] += lower @ d @ mirrored(lower.T)
        size[np.ix_(rows, rows)] += abs(lower) @ abs(d) @ abs(lower.T)
    return found, size


def error(factor, a):
    """Largest entry of A - L D L^H, in roundings of A's largest or of the terms' sizes."""
    perm = factor.symbolic.perm
    found, size = product(factor)
    wanted = a[perm][:, perm].toarray()
    return np.abs(found - wanted).max() / size.max() / np.finfo(factor.dtype).eps


def residual(factor, a, width=2):
    """Normwise backward error of solutions, in roundings, plain and transposed."""
    dtype, perm = factor.dtype, factor.symbolic.perm
    b = np.random.default_rng(3).standard_normal((a.shape[0], width)).astype(dtype)
    matrix, worst = a[perm][:, perm], 0.0
    for transposed in (False, True):
        x = b.copy()
        factor.sweep(x, transposed)
        rest = np.abs((matrix.T if transposed else matrix) @ x - b).max()
        scale = sp.linalg.norm(a, np.inf) * np.abs(x).max() + np.abs(b).max()
        worst = max(worst, rest / scale / np.finfo(dtype).eps)
    return worst
