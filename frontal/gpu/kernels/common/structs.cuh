// Structs and constants about batches of matrices that the host fills and knows.
//
// Made by `python -m tests.structs` of frontal/gpu/dense/structs.py; not to be edited.
#pragma once
#include "common/scalar.cuh"

// NVRTC 12 knows no __builtin_offsetof.
#ifndef OFFSET_OF
#ifdef __CUDACC_RTC__
#define OFFSET_OF(type, field) __INTADDR__(&((type *)0)->field)
#else
#define OFFSET_OF(type, field) __builtin_offsetof(type, field)
#endif
#endif

// Order of the diagonal blocks of triangles that are inverted.
constexpr int tri_order = 32;
// Rows and columns of a tile of copy.cu.
constexpr int COPY_TILE = 32;
// Rows, or columns, that a block copies at once.
constexpr int COPY_ROWS = 8;

template <class T> struct Matrix;

// One matrix.
template <class T> struct Native {
    T *a;
    int m;
    int n;
    int ld;
    __device__ Matrix<T> operator()(int b) const;
};

// Matrices of one size: `stride` elements apart, or by an array of pointers, if `p` is given.
template <class T> struct Batched {
    T *a;
    T *const *p;
    long long stride;
    int m;
    int n;
    int ld;
    __device__ Matrix<T> operator()(int b) const;
};

// Matrices of different sizes: a pointer, m, n and ld for each, all in device memory.
template <class T> struct Vbatched {
    T *const *p;
    const int *m;
    const int *n;
    const int *ld;
    __device__ Matrix<T> operator()(int b) const;
};

// The part of each matrix of a batch that an operation works on; trimmed to the rows and
// columns that a matrix has, so that one window serves matrices of different sizes.
struct Window {
    int i;
    int j;
    int m;
    int n;
};

// The inverses of the diagonal blocks of triangular matrices, from trtri.cu: those of matrix b
// begin with number starts[b], or b·each where `starts` is null; `skip` of them belong to rows
// before the window.
template <class T> struct Inverses {
    const T *values;
    const int *starts;
    int each;
    int skip;
};

static_assert(sizeof(Native<SCALAR>) == 24);
static_assert(OFFSET_OF(Native<SCALAR>, a) == 0);
static_assert(OFFSET_OF(Native<SCALAR>, m) == 8);
static_assert(OFFSET_OF(Native<SCALAR>, n) == 12);
static_assert(OFFSET_OF(Native<SCALAR>, ld) == 16);

static_assert(sizeof(Batched<SCALAR>) == 40);
static_assert(OFFSET_OF(Batched<SCALAR>, a) == 0);
static_assert(OFFSET_OF(Batched<SCALAR>, p) == 8);
static_assert(OFFSET_OF(Batched<SCALAR>, stride) == 16);
static_assert(OFFSET_OF(Batched<SCALAR>, m) == 24);
static_assert(OFFSET_OF(Batched<SCALAR>, n) == 28);
static_assert(OFFSET_OF(Batched<SCALAR>, ld) == 32);

static_assert(sizeof(Vbatched<SCALAR>) == 32);
static_assert(OFFSET_OF(Vbatched<SCALAR>, p) == 0);
static_assert(OFFSET_OF(Vbatched<SCALAR>, m) == 8);
static_assert(OFFSET_OF(Vbatched<SCALAR>, n) == 16);
static_assert(OFFSET_OF(Vbatched<SCALAR>, ld) == 24);

static_assert(sizeof(Window) == 16);
static_assert(OFFSET_OF(Window, i) == 0);
static_assert(OFFSET_OF(Window, j) == 4);
static_assert(OFFSET_OF(Window, m) == 8);
static_assert(OFFSET_OF(Window, n) == 12);

static_assert(sizeof(Inverses<SCALAR>) == 24);
static_assert(OFFSET_OF(Inverses<SCALAR>, values) == 0);
static_assert(OFFSET_OF(Inverses<SCALAR>, starts) == 8);
static_assert(OFFSET_OF(Inverses<SCALAR>, each) == 16);
static_assert(OFFSET_OF(Inverses<SCALAR>, skip) == 20);
