"""Solutions and derivatives in PyTorch, beside dense algebra and PyTorch's own checks."""

import numpy as np
import pytest
import scipy.sparse as sp

import frontal

from ..gradient_tools import N
from .tools import adapter, prepared, random, torch

forward_ad = torch.autograd.forward_ad
gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
CUDA = torch.cuda.is_available() and frontal.gpu.available()


@pytest.mark.parametrize("trans", "NTH")
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivatives_of_two_orders(dtype, trans):
    pattern, values, rng, csr = prepared(dtype=dtype)
    b = random(rng, N, dtype=dtype)
    dense = torch.tensor(csr.toarray())
    wanted = torch.linalg.solve({"N": dense, "T": dense.T, "H": dense.mH}[trans], b)
    torch.testing.assert_close(pattern.solve(values, b, trans), wanted)
    inputs = values.requires_grad_(), b.requires_grad_()
    assert gradcheck(lambda v, r: pattern.solve(v, r, trans), inputs, check_forward_ad=True)
    assert gradgradcheck(lambda v, r: pattern.solve(v, r, trans), inputs)


@pytest.mark.parametrize("kind", ["spd", "symmetric", "hermitian"])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_derivatives_of_matrices_with_a_promised_symmetry(kind, dtype):
    """Along changes that keep it; the gradient has the symmetry, too."""
    pattern, values, rng, csr = prepared(kind, dtype, kind=kind)
    lower = sp.coo_array(sp.tril(csr))
    place = sp.csr_array((np.arange(csr.nnz) + 1, csr.indices, csr.indptr), shape=csr.shape).tocsc()
    below, above = (
        torch.tensor([int(place[i, j]) - 1 for i, j in pairs])
        for pairs in (zip(*lower.coords, strict=True), zip(*lower.coords[::-1], strict=True))
    )
    diagonal = below == above
    real = kind == "symmetric" or dtype == "f8"

    def full(half):
        mirrored = half if real else half.conj()
        own = half if real else torch.where(diagonal, half.real + 0j, half)
        return torch.zeros_like(values).index_copy(0, above, mirrored).index_copy(0, below, own)

    half, b = values[below].requires_grad_(), random(rng, N, 2, dtype=dtype).requires_grad_()
    assert gradcheck(lambda h, r: pattern.solve(full(h), r), (half, b))
    whole = values.clone().requires_grad_()
    pattern.solve(whole, b.detach()).abs().sum().backward()
    mirror = whole.grad if real else whole.grad.conj()
    torch.testing.assert_close(whole.grad[above], mirror[below])


def test_batches_of_values_and_several_columns():
    pattern, values, rng, _ = prepared()
    batch = torch.stack([values, 2 * values, values + 0.1]).requires_grad_()
    for shape in (3, N), (3, N, 2):
        b = random(rng, *shape).requires_grad_()
        x = pattern.solve(batch, b, "T")
        for one, rhs, wanted in zip(batch, b, x, strict=True):
            torch.testing.assert_close(pattern.solve(one, rhs, "T"), wanted)
        assert gradcheck(lambda v, r: pattern.solve(v, r, "T"), (batch, b), check_forward_ad=True)
    assert gradgradcheck(pattern.solve, (batch[:2, :], random(rng, 2, N).requires_grad_()))


def test_transforms_of_functions():
    pattern, values, rng, csr = prepared()
    b, B = random(rng, N), random(rng, 4, N)
    batch = torch.stack([values, 2 * values, values + 0.1, values - 0.1])
    rows, columns = (torch.tensor(index.astype("i8")) for index in csr.tocoo().coords)

    def dense(v, r):
        full = torch.zeros(N, N, dtype=v.dtype).index_put((rows, columns), v)
        return torch.linalg.solve(full, r)

    for transform in (
        lambda f: torch.func.hessian(lambda v: (f(v, b) ** 2).sum())(values),
        lambda f: torch.func.jacfwd(f, (0, 1))(values, b),
        lambda f: torch.func.jacrev(f, (0, 1))(values, b),
        lambda f: torch.func.vmap(f, (None, 0))(values, B),
        lambda f: torch.func.vmap(f, (0, None))(batch, b),
        lambda f: torch.func.vmap(f, (0, 0), 1)(batch, B),
        lambda f: torch.func.vmap(torch.func.vmap(f, (None, 0)), (0, None))(batch, B),
        lambda f: torch.func.vmap(torch.func.vmap(f, (0, None)), (None, 0))(batch, B),
        lambda f: torch.func.vmap(torch.func.grad(lambda v, r: f(v, r).sum()))(batch, B),
    ):
        torch.testing.assert_close(transform(pattern.solve), transform(dense))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", ["f8", "c16"])
def test_gradients_of_sparse_tensors(layout, dtype):
    _, _, rng, csr = prepared(dtype=dtype)
    dense = torch.tensor(csr.toarray())
    b = random(rng, N, dtype=dtype)
    for trans in "NTH":
        A = getattr(dense, f"to_sparse_{layout}")().requires_grad_()
        adapter.solve(A, b, trans).abs().sum().backward()
        full = dense.clone().requires_grad_()
        matrix = {"N": full, "T": full.T, "H": full.mH}[trans]
        torch.linalg.solve(matrix, b).abs().sum().backward()
        assert A.grad.layout == (torch.sparse_csr if layout == "csr" else torch.sparse_coo)
        assert A.grad._nnz() == csr.nnz
        torch.testing.assert_close(A.grad.to_dense(), torch.where(dense != 0, full.grad, 0))


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_second_derivatives_of_sparse_tensors(layout):
    _, _, rng, csr = prepared()
    dense, b = torch.tensor(csr.toarray()), random(rng, N)
    direction = random(rng, N, N) * (dense != 0)
    found = []
    for A, solve in (
        (getattr(dense, f"to_sparse_{layout}")(), adapter.solve),
        (dense.clone(), torch.linalg.solve),
    ):
        A.requires_grad_()
        (gradient,) = torch.autograd.grad((solve(A, b) ** 2).sum(), A, create_graph=True)
        gradient = gradient if gradient.layout == torch.strided else gradient.to_dense()
        (second,) = torch.autograd.grad((gradient * direction).sum(), A)
        second = second if second.layout == torch.strided else second.to_dense()
        found.append(torch.where(dense != 0, second, 0))
    torch.testing.assert_close(*found)


def test_repeated_and_unsorted_entries():
    _, _, rng, csr = prepared()
    b, coo = random(rng, N), csr.tocoo()
    order = rng.permutation(2 * csr.nnz)
    rows, columns = (torch.tensor(np.tile(index, 2)[order]) for index in coo.coords)
    halves = torch.tensor(np.tile(coo.data / 2, 2)[order])
    A = torch.sparse_coo_tensor(torch.stack([rows, columns]), halves, csr.shape).requires_grad_()
    x = adapter.solve(A, b)
    torch.testing.assert_close(x, torch.linalg.solve(torch.tensor(csr.toarray()), b))
    x.sum().backward()
    whole = torch.tensor(csr.toarray()).to_sparse_csr().requires_grad_()
    adapter.solve(whole, b).sum().backward()
    torch.testing.assert_close(A.grad.to_dense(), whole.grad.to_dense())


def test_index_tensors_that_change_are_another_pattern():
    A = torch.eye(3, dtype=torch.float64).to_sparse_csr()
    columns, ones = A.col_indices().clone(), torch.arange(1.0, 4.0, dtype=torch.float64)
    A = torch.sparse_csr_tensor(A.crow_indices(), columns, ones)
    torch.testing.assert_close(adapter.solve(A, ones), torch.ones_like(ones))
    columns.copy_(torch.tensor([1, 0, 2]))
    torch.testing.assert_close(adapter.solve(A, ones), torch.tensor([1.0, 1.0, 1.0]).double())
    torch.testing.assert_close(
        adapter.solve(A, torch.tensor([1.0, 4.0, 3.0]).double()),
        torch.tensor([2.0, 1.0, 1.0]).double(),
    )


def test_errors_keep_their_class():
    eye = torch.eye(3, dtype=torch.float64)
    b = torch.ones(3, dtype=torch.float64)
    singular = torch.diag(torch.tensor([1.0, 0.0, 1.0])).double() + 0 * eye
    rows = torch.arange(3)
    zero = torch.sparse_coo_tensor(torch.stack([rows, rows]), singular.diagonal(), (3, 3))
    with pytest.raises(frontal.SingularMatrixError):
        adapter.solve(zero, b)
    torch.testing.assert_close(adapter.solve(eye.to_sparse_coo(), b), b)
    with pytest.raises(frontal.NonFiniteInputError):
        adapter.solve(eye.to_sparse_csr(), b * torch.nan)
    with pytest.raises(TypeError, match=r"b is torch.float32 .* values are torch.float64"):
        adapter.solve(eye.to_sparse_csr(), b.float())
    with pytest.raises(ValueError, match=r"b has shape \(2,\)"):
        adapter.solve(eye.to_sparse_csr(), b[:2])
    with pytest.raises(ValueError, match="one square matrix"):
        adapter.solve(torch.ones(2, 3).to_sparse_csr(), b)
    with pytest.raises(TypeError, match=r"layout torch.strided. Try: A.to_sparse_csr"):
        adapter.solve(eye, b)
    with pytest.raises(ValueError, match="trans is 'C'"):
        adapter.solve(eye.to_sparse_csr(), b, "C")
    pattern = adapter.Pattern(torch.arange(4), torch.arange(3))
    with pytest.raises(ValueError, match=r"shape \(2,\), and the pattern has 3 entries"):
        pattern.solve(b[:2], b)
    with pytest.raises(ValueError, match="keep is 0"):
        adapter.Pattern(torch.arange(4), torch.arange(3), keep=0)
    with pytest.raises(ValueError, match="kind is 'positive'"):
        adapter.solve(eye.to_sparse_csr(), b, kind="positive")


def test_single_precision_stays_and_types_may_alternate():
    pattern, values, rng, _ = prepared()
    b = random(rng, N)
    single = pattern.solve(values.float(), b.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single, pattern.solve(values, b).float(), rtol=1e-4, atol=1e-5)


def test_a_function_of_parameters_by_gradient_descent():
    """The coefficient of a PDE found from its solution: a few steps reduce the misfit a lot."""
    A = sp.csr_array(frontal.problems.poisson2d(8))
    pattern = adapter.Pattern(torch.tensor(A.indptr), torch.tensor(A.indices), kind="spd")
    stiffness, b = torch.tensor(A.data), torch.ones(64, dtype=torch.float64)
    shift = torch.tensor((A.tocoo().coords[0] == A.tocoo().coords[1]).astype(float))
    wanted = pattern.solve(stiffness + 2.0 * shift, b)
    coefficient = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([coefficient], line_search_fn="strong_wolfe", max_iter=20)

    def misfit():
        optimizer.zero_grad()
        loss = ((pattern.solve(stiffness + coefficient * shift, b) - wanted) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(misfit)
    assert abs(coefficient.item() - 2.0) < 1e-4


def test_forward_mode_with_one_part_of_a_change():
    pattern, values, rng, _ = prepared()
    b, change = random(rng, N), random(rng, N)
    with forward_ad.dual_level():
        x = pattern.solve(values, forward_ad.make_dual(b, change))
        tangent = forward_ad.unpack_dual(x).tangent
    torch.testing.assert_close(tangent, pattern.solve(values, change))


@pytest.mark.skipif(not CUDA, reason="no GPU for both libraries")
@pytest.mark.parametrize("side", [False, True])
def test_tensors_on_a_gpu(side):
    """Also on a stream of their own: results are those of the CPU."""
    A = sp.csr_array(frontal.problems.convdiff2d(30))
    stream = torch.cuda.Stream() if side else torch.cuda.current_stream()
    rng = np.random.default_rng(0)
    values, b = torch.tensor(A.data), random(rng, 900)
    wanted = values.clone().requires_grad_()
    index = torch.tensor(A.indptr), torch.tensor(A.indices)
    (adapter.Pattern(*index).solve(wanted, b) ** 2).sum().backward()
    with torch.cuda.stream(stream):
        pattern = adapter.Pattern(*(i.cuda() for i in index))
        for scale in 1.0, 2.0, 1.0:
            there = (values.cuda() * scale).requires_grad_()
            x = pattern.solve(there, b.cuda())
            assert x.is_cuda
            (x**2).sum().backward()
            torch.testing.assert_close(
                there.grad.cpu() * scale**3, wanted.grad, rtol=1e-9, atol=1e-12
            )
        csr = torch.sparse_csr_tensor(*(i.cuda() for i in index), values.cuda(), (900, 900))
        adapter.solve(csr.requires_grad_(), b.cuda()).sum().backward()
        assert csr.grad.is_cuda
        there = values.cuda().requires_grad_()
        pattern.logdet(there).backward()
        assert there.grad.is_cuda
        on_host = frontal.factorize(A).logdet_vjp()
        torch.testing.assert_close(there.grad.cpu(), torch.tensor(on_host), rtol=1e-9, atol=1e-12)
        batch = torch.stack([values, 2 * values]).cuda().requires_grad_()
        pattern.solve(batch, torch.stack([b, b]).cuda()).square().sum().backward()
        torch.testing.assert_close(batch.grad[0].cpu(), wanted.grad, rtol=1e-9, atol=1e-12)
