#!/usr/bin/env bash
# torch 2.13.0: derivatives of sparse tensors that a solver of sparse systems meets.
# - The second derivative of A @ x for the values of a COO tensor is zero without a warning: the
#   gradient of a loss that is quadratic in A @ x is right, its Hessian is not.
# - A CSC tensor may require a gradient, and a Function may take it, but a gradient in CSC raises
#   "Sparse CSC tensors do not have is_contiguous", and one in CSR is refused for its layout; COO and
#   dense ones are taken.
# Exits 0 while this is so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6 torch==2.13.0
cd "$folder"
venv/bin/python -W ignore - <<'PYTHON'
import torch

dense = torch.tensor([[2.0, 1.0], [0.0, 4.0]], dtype=torch.float64)
rows, columns = dense.nonzero().T
x = torch.tensor([1.0, 2.0], dtype=torch.float64)


def loss(values):
    A = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (2, 2))
    return ((A @ x) ** 2).sum()


def reference(values):
    A = torch.zeros(2, 2, dtype=torch.float64).index_put((rows, columns), values)
    return ((A @ x) ** 2).sum()


values = dense[rows, columns].clone().requires_grad_()
first = [torch.autograd.grad(f(values), values)[0] for f in (loss, reference)]
same = torch.allclose(*first)
second = [torch.autograd.functional.hessian(f, values).abs().max().item() for f in (loss, reference)]


def outcome(layout):
    class Values(torch.autograd.Function):
        @staticmethod
        def forward(ctx, A):
            return A.detach().values().clone()

        @staticmethod
        def backward(ctx, g):
            full = (dense != 0).double()
            return full if layout == "dense" else getattr(full, f"to_sparse_{layout}")()

    A = dense.to_sparse_csc().requires_grad_()
    try:
        Values.apply(A).sum().backward()
    except RuntimeError as error:
        return "is_contiguous" if "is_contiguous" in str(error) else "expected layout"
    return str(A.grad.layout)


layouts = {layout: outcome(layout) for layout in ("csc", "csr", "coo", "dense")}
print("torch", torch.__version__, same, second, layouts)
expected = {
    "csc": "is_contiguous",
    "csr": "expected layout",
    "coo": "torch.sparse_coo",
    "dense": "torch.strided",
}
raise SystemExit(not (same and second[0] == 0 and second[1] > 1 and layouts == expected))
PYTHON
# Output: torch 2.13.0+cpu True [0.0, 8.0] {'csc': 'is_contiguous', 'csr': 'expected layout', 'coo': 'torch.sparse_coo', 'dense': 'torch.strided'}
