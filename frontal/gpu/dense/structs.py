"""Structs and constants of batches of matrices, for kernels and host; see `runtime.structs`."""

from __future__ import annotations

from ..runtime.structs import Struct, StructHeader

TRIANGLE = 32
COPY_TILE, COPY_ROWS = 32, 8

_MATRIX = ("__device__ Matrix<T> operator()(int b) const;",)  # matrix b of the batch
NATIVE = Struct(
    "Native",
    "One matrix.",
    {"a": "T *", "m": "int", "n": "int", "ld": "int"},
    {},
    functions=_MATRIX,
)
BATCHED = Struct(
    "Batched",
    "Matrices of one size: `stride` elements apart, or by an array of pointers, if `p` is given.",
    {"a": "T *", "p": "T *const *", "stride": "long long", "m": "int", "n": "int", "ld": "int"},
    {},
    functions=_MATRIX,
)
VBATCHED = Struct(
    "Vbatched",
    "Matrices of different sizes: a pointer, m, n and ld for each, all in device memory.",
    {"p": "T *const *", "m": "const int *", "n": "const int *", "ld": "const int *"},
    {},
    functions=_MATRIX,
)
WINDOW = Struct(
    "Window",
    "The part of each matrix of a batch that an operation works on; trimmed to the rows and\n"
    "columns that a matrix has, so that one window serves matrices of different sizes.",
    {"i": "int", "j": "int", "m": "int", "n": "int"},
    {},
)
INVERSES = Struct(
    "Inverses",
    "The inverses of the diagonal blocks of triangular matrices, from trtri.cu: those of matrix b\n"
    "begin with number starts[b], or b·each where `starts` is null; `skip` of them belong to rows\n"
    "before the window.",
    {"values": "const T *", "starts": "const int *", "each": "int", "skip": "int"},
    {},
)

HEADER = StructHeader(
    "common/structs.cuh",
    "dense/structs.py",
    "Structs and constants about batches of matrices that the host fills and knows.",
    ("common/scalar.cuh",),
    {
        "tri_order": (TRIANGLE, "Order of the diagonal blocks of triangles that are inverted."),
        "COPY_TILE": (COPY_TILE, "Rows and columns of a tile of copy.cu."),
        "COPY_ROWS": (COPY_ROWS, "Rows, or columns, that a block copies at once."),
    },
    (NATIVE, BATCHED, VBATCHED, WINDOW, INVERSES),
    ("template <class T> struct Matrix;",),
)
