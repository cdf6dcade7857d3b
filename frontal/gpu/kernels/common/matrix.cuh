// Matrix views, and their locators in a batch: Native, Batched, Vbatched (common/structs.cuh).
//
// All matrices are column-major. A kernel takes a locator by value and calls it for matrix b of the
// batch. `at` trims a view to the rows and columns that exist from (i, j) on, so that one sequence
// of launches serves matrices of different sizes.
#pragma once
#include "common/scalar.cuh"
#include "common/structs.cuh"

enum Uplo : int { Lower = 0, Upper = 1 };
enum Trans : int { NoTrans = 0, Transposed = 1, ConjTrans = 2 };
enum Side : int { Left = 0, Right = 1 };
enum Diag : int { NonUnit = 0, Unit = 1 };

// Source of kernels that overwrite their operand. 0: the target. 1: matrices that may differ from
// the target. 2: matrices that are the transposes of the target. With 1 and 2, entries of the
// target that the kernel does not compute become zero.
#ifndef INTO
#define INTO 0
#endif

// Number of the first row in row interchanges: 1 in LAPACK, 0 in SciPy.
#ifndef FIRST_ROW
#define FIRST_ROW 1
#endif

__device__ inline int min_(int a, int b) { return a < b ? a : b; }
__device__ inline int max_(int a, int b) { return a > b ? a : b; }
__device__ inline float max_(float a, float b) { return fmaxf(a, b); }  // NaN only if both are
__device__ inline double max_(double a, double b) { return fmax(a, b); }
__device__ inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

template <class T> struct Matrix {
    T *data;
    int rows, cols, ld;

    __device__ T &operator()(int i, int j) const { return data[i + (long long)j * ld]; }
    // The submatrix from (i, j) on, at most r×c; empty if (i, j) lies outside.
    __device__ Matrix at(int i, int j, int r = 1 << 30, int c = 1 << 30) const {
        // The order matters: ptxas 13.0 makes max(min(x, 16), 0) == 16 true for every x.
        r = min_(max_(rows - i, 0), r);
        c = min_(max_(cols - j, 0), c);
        return {data + i + (long long)j * ld, r, c, ld};
    }
    __device__ Matrix at(const Window &part) const { return at(part.i, part.j, part.m, part.n); }
};

// Address of entry (i, j) of the source m, which INTO = 2 stores transposed.
template <class T> __device__ inline T *source_entry(const Matrix<T> &m, int i, int j) {
    return INTO == 2 ? &m(j, i) : &m(i, j);
}

template <class T> __device__ Matrix<T> Native<T>::operator()(int) const { return {a, m, n, ld}; }
template <class T> __device__ Matrix<T> Batched<T>::operator()(int b) const {
    return {p ? p[b] : a + b * stride, m, n, ld};
}
template <class T> __device__ Matrix<T> Vbatched<T>::operator()(int b) const {
    return {p[b], m[b], n[b], ld[b]};
}

// Return the tile that block (or warp) `item` computes. `work` holds {matrix, row, column, 0}, row
// and column in elements. The list repeats every `period` items, with the matrix number one larger.
__device__ inline int4 work_item(const int4 *work, int period, int item) {
    int4 found = work[item % period];
    found.x += item / period;
    return found;
}

// Return the dynamic shared memory of a kernel. One declaration serves every type.
template <class T> __device__ inline T *shared_memory() {
#ifdef FRONTAL_EMULATION
    return reinterpret_cast<T *>(emulation::shared());
#else
    extern __shared__ __align__(128) unsigned char frontal_shared[];
    return reinterpret_cast<T *>(frontal_shared);
#endif
}
