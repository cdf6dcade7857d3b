"""No verdict remembers: each factor and each solution is judged as a fresh one would be."""

from __future__ import annotations

import contextlib
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

import frontal
from frontal import linalg
from frontal.factor.analyzed import Analyzed
from frontal.factor.diagnosis import Diagnosis

from ..conftest import SCALARS
from ..sequences import DOUBTFUL, HARMLESS, chain, sequence

SAID = {"nothing": 0, "warned": 1, "raised": 2}


def judged(act):
    """What is said, and the result."""
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        try:
            result = act()
        except np.linalg.LinAlgError:
            return "raised", None
    ill = any(issubclass(w.category, frontal.IllConditionedWarning) for w in log)
    return "warned" if ill else "nothing", result


def op(A, trans):
    return {"N": A, "T": A.T, "H": A.conj().T}[trans]


def worse(said):
    return max(said, key=SAID.__getitem__)


def fresh(analysis, A, bs, trans):
    """What is said of each right-hand side by a factor that has seen no other."""
    out = []
    for b in bs:
        made, factor = judged(lambda: analysis.factorize(A))
        solved = "raised" if factor is None else judged(lambda f=factor, b=b: f.solve(b, trans))[0]
        out.append(worse([made, solved]))
    return out


def by_refactorize(factor, A, bs, trans):
    """What one factor says of each right-hand side, and the solutions."""
    renewed, _ = judged(lambda: factor.refactorize(A))
    if renewed == "raised":
        return [("raised", None)] * len(bs)
    found = [judged(lambda b=b: factor.solve(b, trans)) for b in bs]
    return [(worse([renewed, said]), x) for said, x in found]


def require(found, wanted, X):
    """No word is missing, and what passes without one is a solution."""
    for (said, x), least, exact in zip(found, wanted, X, strict=True):
        assert SAID[said] >= SAID[least]
        if said == "nothing":
            assert np.abs(x - exact).max() <= 0.03 * np.abs(exact).max()


@pytest.mark.parametrize("family", DOUBTFUL)
@pytest.mark.parametrize("dtype", SCALARS)
def test_refactorize_says_what_a_fresh_factor_says(family, dtype):
    for seed, trans in enumerate("NTH"):
        steps = list(sequence(family, seed, np.dtype(dtype)))
        analysis = frontal.analyze(steps[0][0], backend="cpu")
        made = [judged(partial(analysis.factorize, A))[1] for A, _, _ in steps]
        factor = next((one for one in made if one is not None), None)
        for A, bs, X in steps if factor is not None else ():
            if trans != "N":
                wide = X.astype(np.result_type(dtype, "f8"))  # single rounds what is exact
                bs = [(op(A, trans) @ x).astype(dtype) for x in wide]
            wanted = fresh(analysis, A, bs, trans)
            require(by_refactorize(factor, A, bs, trans), wanted, X)


@pytest.mark.parametrize("family", DOUBTFUL)
def test_solver_and_splu_say_what_a_fresh_factor_says(family):
    for A, bs, X in (steps := list(sequence(family, 3, np.dtype("f8")))):
        wanted = fresh(frontal.analyze(steps[0][0], backend="cpu"), A, bs, "N")
        made, lu = judged(lambda A=A: linalg.splu(A))
        found = [
            ("raised", None) if lu is None else judged(lambda lu=lu, b=b: lu.solve(b)) for b in bs
        ]
        require([(worse([made, said]), x) for said, x in found], wanted, X)
    solver = frontal.Solver(backend="cpu")
    for A, bs, X in steps:
        wanted = fresh(frontal.analyze(A, backend="cpu"), A, bs, "N")
        require([judged(lambda A=A, b=b: solver(A, b)) for b in bs], wanted, X)


@pytest.mark.parametrize("dtype", ["f8", "c8"])
@pytest.mark.parametrize("family", DOUBTFUL)
def test_batches_say_what_a_fresh_factor_says(family, dtype):
    """As many warnings, and the same failures; once more with values in another order."""
    steps = list(sequence(family, 4, np.dtype(dtype)))
    values, first = np.stack([A.data for A, _, _ in steps]), steps[0][0]
    analysis = frontal.analyze(first, backend="cpu")
    said = np.array([fresh(analysis, A, bs[:1], "N")[0] for A, bs, _ in steps])
    b = np.stack([bs[0] for _, bs, _ in steps])
    factors = None
    for order in (np.arange(len(steps)), np.arange(len(steps))[::-1]):
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            if factors is None:
                factors = frontal.factorize_batch(first, values[order], backend="cpu", check=False)
            else:
                factors.refactorize(values[order], check=False)
            good = factors.status == 0
            with contextlib.suppress(np.linalg.LinAlgError):
                factors.solve(b[order])
        ill = sum(issubclass(w.category, frontal.IllConditionedWarning) for w in log)
        assert ill >= (said[order][good] != "nothing").sum()
        assert not good[said[order] == "raised"].all() or not (said == "raised").any()


@pytest.mark.parametrize("family", HARMLESS)
@pytest.mark.parametrize("precision", ["full", "mixed"])
def test_harmless_sequences_pass_without_a_word(family, precision):
    for seed, trans in enumerate("NNN" if family is HARMLESS[0] else "NTH"):
        steps = list(sequence(family, seed, np.dtype("f8")))
        first = steps[0][0]
        factor = frontal.factorize(first, backend="cpu", precision=precision)
        for A, bs, X in steps:
            if trans != "N":
                bs = [op(A, trans) @ x for x in X]
            for (said, x), exact in zip(by_refactorize(factor, A, bs, trans), X, strict=True):
                assert said == "nothing"
                assert np.abs(x - exact).max() <= 1e-9 * np.abs(exact).max()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("together", [False, True])
def test_harmful_right_hand_side_is_told_beside_a_harmless_one(order, together):
    [(A, bs, _)] = sequence(DOUBTFUL[2], 1, np.dtype("f8"))
    pair = [bs[0], bs[2]]
    factor = frontal.factorize(A, backend="cpu")
    if together:
        said = judged(lambda: factor.solve(np.column_stack([pair[i] for i in order])))[0]
        assert said == "warned"
        return
    said = [judged(lambda i=i: factor.solve(pair[i]))[0] for i in order]
    assert said == [("nothing", "warned")[i] for i in order]


def test_certificate_bounds_condition_of_diagonally_dominant_matrices():
    """And holds for no others: a bound by the comparison matrix is never less than the norm."""
    from frontal.numeric.condition import certificate

    rng = np.random.default_rng(0)
    for seed in range(20):
        n = 12
        D = rng.standard_normal((n, n)) * (rng.random((n, n)) < 0.4)
        D += np.diag(np.sign(rng.standard_normal(n)) * rng.uniform(0.5, 6, n))
        A, sums = sp.csc_array(D), np.abs(D).sum(axis=1)
        exact = (np.abs(np.linalg.inv(D)) @ sums).max()
        z = np.linalg.solve(np.abs(np.diag(np.diag(D))) - np.abs(D - np.diag(np.diag(D))), sums)
        of = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data
        found = certificate(*of, False, sums, z)
        rows = sp.csr_array(A)
        turned = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data
        assert certificate(*turned, True, sums, z) == pytest.approx(found, rel=1e-12)
        assert found >= exact * (1 - 1e-12)
        assert (found < np.inf) == bool((z > 0).all()), seed


def in_other_units(rng):
    """A chain of stiff springs with free ends, which a constraint holds: A, b and x = 1 / units."""
    n = 8
    D = np.zeros((n, n))
    D[: n - 1, : n - 1] = 2.0**20 * chain(np.ones(n - 2))
    D[0, n - 1] = D[n - 1, 0] = 1
    rows, columns = np.nonzero((D != 0) | np.eye(n, dtype=bool))
    p, q = 2.0 ** rng.integers(-20, 20, (2, n))
    values = (p[:, None] * D * q)[rows, columns]
    return sp.csc_array((values, (rows, columns)), shape=D.shape), p * D.sum(axis=1), 1 / q


@pytest.mark.filterwarnings("ignore::frontal.PerformanceWarning")
@pytest.mark.parametrize("way", ["refactorize", "factorize", "batch"])
def test_values_are_matched_anew_where_a_pivot_leaves_doubts(way):
    """By a matching of values in other units a pivot is next to nothing, though A is regular."""
    rng = np.random.default_rng(103)
    (first, b_first, _), (A, b, x) = (in_other_units(rng) for _ in range(2))
    analysis = frontal.analyze(first, kind="general", backend="cpu")
    factor = analysis.factorize(first) if way == "refactorize" else analysis

    def batched():
        values = np.stack([first.data, A.data])
        factors = frontal.factorize_batch(first, values, kind="general", backend="cpu")
        return factors.solve(np.stack([b_first, b]))

    def single():
        return (factor.refactorize if way == "refactorize" else factor.factorize)(A).solve(b)

    said, found = judged(batched if way == "batch" else single)
    assert said == "nothing"
    assert np.abs((found[1] if way == "batch" else found) - x).max() <= 1e-9 * np.abs(x).max()


def test_a_matching_that_helps_nothing_is_not_sought_again(monkeypatch):
    matched, analyze = [], Analyzed.from_matrix.__func__

    def of(*given, **more):
        matched.append(given)
        return analyze(*given, **more)

    monkeypatch.setattr(Diagnosis, "is_doubtful", lambda *_: True)
    monkeypatch.setattr(Analyzed, "from_matrix", classmethod(of))
    rng = np.random.default_rng(103)
    first = in_other_units(rng)[0]
    factor = frontal.factorize(first, kind="general", backend="cpu", memory=2**30)
    for _ in range(3):
        A, b, x = in_other_units(rng)
        with warnings.catch_warnings(record=True):
            found = factor.refactorize(A).solve(b)
        np.testing.assert_allclose(found, x, rtol=1e-6)
        assert len(matched) == 2


@pytest.mark.parametrize("flipped", [False, True])
def test_certificate_is_likely_with_dominant_rows_alone(flipped):
    """Nine tenths of the rows suffice."""
    from frontal.numeric.condition import may_certify

    D = np.diag(np.full(20, 2.0)) - np.diag(np.ones(19), 1) - np.diag(np.ones(19), -1)
    for weak, likely in (0, True), (2, True), (3, False):
        D[range(weak), range(weak)] = 1.99
        A = sp.csr_array(D) if flipped else sp.csc_array(D)
        of = A.indptr.astype(np.int64), A.indices.astype(np.int32), A.data
        assert may_certify(*of, np.abs(D).sum(axis=1)) == likely
