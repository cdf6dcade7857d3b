"""Patterns of PyTorch: which factor a gradient uses, determinants, batches, checks of input."""

import copy
import pickle

import numpy as np
import pytest

import frontal
from frontal.factor.factor import Factor

from ..gradient_tools import N
from .tools import adapter, prepared, random, torch

gradcheck = torch.autograd.gradcheck


@pytest.fixture
def factorizations(monkeypatch):
    """The numbers of first and of later factorizations."""
    counts = {"first": 0, "later": 0}
    first, later = Factor.from_matrix.__func__, Factor.refactorize

    def counted_first(cls, *given, **named):
        counts["first"] += 1
        return first(cls, *given, **named)

    def counted_later(self, *given, **named):
        counts["later"] += 1
        return later(self, *given, **named)

    monkeypatch.setattr(Factor, "from_matrix", classmethod(counted_first))
    monkeypatch.setattr(Factor, "refactorize", counted_later)
    return counts


@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_logarithms_of_determinants(dtype):
    _, values, _, csr = prepared("spd", dtype)
    pattern = adapter.Pattern(torch.tensor(csr.indptr), torch.tensor(csr.indices), kind="general")
    dense = torch.tensor(csr.toarray()).requires_grad_()
    wanted = torch.linalg.slogdet(dense).logabsdet
    wanted.backward()
    if dtype == "f8":  # a change of one complex entry leaves the determinant complex
        values.requires_grad_()
        assert gradcheck(pattern.logdet, values, check_forward_ad=True)
    for layout in "csr", "csc", "coo":
        A = getattr(dense.detach(), f"to_sparse_{layout}")().requires_grad_()
        logarithm = adapter.logdet(A, kind="spd")
        torch.testing.assert_close(logarithm, wanted.detach())
        (2 * logarithm).backward()
        G = A.grad.to_dense()
        torch.testing.assert_close(G, 2 * torch.where(dense.detach() != 0, dense.grad, 0))


def test_logarithms_of_determinants_of_a_batch():
    pattern, values, _, _ = prepared("spd")
    batch = torch.stack([values.detach(), 2 * values.detach()]).requires_grad_()
    logarithms = pattern.logdet(batch)
    torch.testing.assert_close(logarithms[1] - logarithms[0], torch.tensor(N * np.log(2)))
    logarithms.sum().backward()
    torch.testing.assert_close(batch.grad[0], 2 * batch.grad[1])
    mapped = torch.func.vmap(torch.func.grad(pattern.logdet))(batch.detach())
    torch.testing.assert_close(mapped, batch.grad)
    odd = adapter.Pattern(torch.arange(4), torch.arange(3))
    with pytest.raises(ValueError, match="not positive"):
        odd.logdet(torch.tensor([[1.0, 1.0, 1.0], [1.0, 1.0, -1.0]]).double())
    with pytest.raises(ValueError, match="not positive"):
        odd.logdet(torch.tensor([1.0, 1.0, -1.0]).double())


def test_second_derivatives_of_determinants_are_refused():
    """And are not zero in silence, by whichever mode."""
    pattern, values, _, _ = prepared("spd")
    (gradient,) = torch.autograd.grad(
        pattern.logdet(values.requires_grad_()), values, create_graph=True
    )
    with pytest.raises(RuntimeError, match="second derivatives of log det A"):
        gradient.sum().backward()
    with pytest.raises(RuntimeError, match="second derivatives of log det A"):
        torch.func.hessian(pattern.logdet)(values.detach())
    with pytest.raises(RuntimeError, match="second derivatives of log det A"):
        torch.func.jacrev(torch.func.jacfwd(pattern.logdet))(values.detach())


def test_gradients_take_no_factorization(factorizations):
    pattern, values, rng, _ = prepared()
    b, one, two = random(rng, N), values.clone(), 2 * values
    one.requires_grad_(), two.requires_grad_()
    first, second = pattern.solve(one, b), pattern.solve(two, b)
    assert factorizations == {"first": 2, "later": 0}
    first.sum().backward()  # in the order of the forward passes, and with the last factor first
    second.sum().backward()
    torch.testing.assert_close(one.grad, 4 * two.grad)
    pattern.solve(two.detach(), b, "T")
    assert factorizations == {"first": 2, "later": 0}
    pattern.solve(3 * values, b)
    assert factorizations == {"first": 2, "later": 1}
    first = pattern.solve(one, b)  # overwritten meanwhile
    assert factorizations == {"first": 2, "later": 2}


def test_gradients_are_of_the_values_of_their_forward_pass(factorizations):
    """More forward passes than factors: they are computed again, not taken for each other."""
    pattern, values, rng, _ = prepared(keep=1)
    b = random(rng, N)
    several = [(scale * values).requires_grad_() for scale in (1.0, 2.0, 4.0)]
    solutions = [pattern.solve(v, b) for v in several]
    for x in (solutions[1], solutions[0], solutions[2]):
        x.sum().backward()
    for scale, v in zip((1.0, 2.0, 4.0), several, strict=True):
        torch.testing.assert_close(v.grad * scale**2, several[0].grad)
    assert factorizations["first"] == 1


def test_values_that_changed_in_place_are_not_differentiated():
    pattern, values, rng, _ = prepared()
    changing = values.clone().requires_grad_()
    scaled = 1.0 * changing
    x = pattern.solve(scaled, random(rng, N))
    with torch.no_grad():
        scaled.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


def test_a_singular_matrix_between_others_leaves_the_pattern_usable():
    pattern, values, rng, _ = prepared()
    b = random(rng, N)
    wanted = pattern.solve(values, b)
    for _ in range(3):
        with pytest.raises(frontal.SingularMatrixError):
            pattern.solve(0 * values, b)
    torch.testing.assert_close(pattern.solve(values, b), wanted)


def test_forward_mode_inside_of_forward_mode_is_refused():
    """PyTorch computes it wrongly, for its own functions too."""
    pattern, values, rng, _ = prepared()
    b, change = random(rng, N), random(rng, values.numel())

    def along(function):
        return lambda v: torch.func.jvp(function, (v,), (change,))[1]

    def total(v):
        return pattern.solve(v, b).sum()

    with pytest.raises(RuntimeError, match="forward mode inside of forward mode"):
        along(along(total))(values)
    with pytest.raises(RuntimeError, match="forward mode inside of forward mode"):
        torch.func.jacfwd(torch.func.jacfwd(total))(values)
    once = torch.func.grad(along(total))(values)  # one of both by reverse mode
    torch.testing.assert_close(once, along(torch.func.grad(total))(values))


def test_a_pattern_has_its_own_indices():
    columns, values = torch.tensor([0, 1, 1]), torch.tensor([2.0, 1.0, 4.0], requires_grad=True)
    pattern = adapter.Pattern(torch.tensor([0, 2, 3]), columns)
    x = pattern.solve(values, torch.ones(2))
    columns[:2] = torch.tensor([1, 0])
    x.sum().backward()
    torch.testing.assert_close(values.grad, torch.tensor([-0.1875, -0.125, -0.03125]))


def test_batches_of_values_by_rows():
    """Gradients of unsymmetric matrices in a batch, of single entries in two parts, and of none."""
    pattern, values, _, csr = prepared()
    rows, columns = (torch.tensor(np.tile(index, 2)) for index in csr.tocoo().coords)
    halves = adapter.Pattern.from_coordinates(N, rows, columns)
    positive = values * torch.sign(torch.linalg.det(torch.tensor(csr.toarray())))
    for one, given in (pattern, positive), (halves, torch.cat([positive, positive]) / 2):
        given = given.clone().requires_grad_()
        (single,) = torch.autograd.grad(one.logdet(given), given)
        batch = torch.stack([given, 2 * given]).detach().requires_grad_()
        one.logdet(batch).sum().backward()
        torch.testing.assert_close(batch.grad, torch.stack([single, single / 2]))
        assert one.logdet(batch[:0]).shape == (0,)
        assert one.solve(batch[:0], torch.ones(0, N).double()).shape == (0, N)


def test_patterns_are_copied_and_forget_batches_of_other_sizes():
    pattern, values, rng, _ = prepared()
    b = random(rng, N)
    wanted = pattern.solve(values, b)
    torch.testing.assert_close(copy.deepcopy(pattern).solve(values, b), wanted)
    torch.testing.assert_close(pickle.loads(pickle.dumps(pattern)).solve(values, b), wanted)
    for count in range(1, 6):
        pattern.solve(values.expand(count, -1).clone(), b.expand(count, -1))
    (factors,) = pattern._factors.values()
    assert [size for size, _ in factors._batches._known] == [4, 5]


def test_bad_patterns_and_options():
    i = torch.tensor
    for bad, error in (
        (lambda: adapter.Pattern(i([0, 1, 2]), i([0, 1, 1, 0])), "ascend from 0 to 4"),
        (lambda: adapter.Pattern(i([0, 2, 1, 3]), i([0, 1, 2])), "ascend"),
        (lambda: adapter.Pattern(i([0, 1]), i([1])), r"in range\(1\)"),
        (lambda: adapter.Pattern.from_coordinates(2, i([0]), i([-1])), r"in range\(2\)"),
        (lambda: adapter.Pattern.from_coordinates(2, i([0]), i([0, 1])), "equal length"),
    ):
        with pytest.raises(ValueError, match=error):
            bad()
    with pytest.raises(TypeError, match="indices are integers"):
        adapter.Pattern.from_coordinates(2, i([0.0]), i([0.0]))
    with pytest.raises(TypeError, match="unexpected option 'triangle'; there are ordering and"):
        adapter.Pattern(i([0, 1]), i([0]), triangle="lower")
    with pytest.raises(TypeError, match=r"values are torch.int64; choose torch.float32"):
        adapter.Pattern(i([0, 1]), i([0])).solve(i([1]), i([1]))
    eye = torch.eye(3, dtype=torch.float64).to_sparse_csr()
    for _ in range(2):  # options that are arrays are compared
        adapter.solve(eye, torch.ones(3).double(), ordering=np.arange(3))
