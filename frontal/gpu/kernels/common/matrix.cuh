// Views of matrices, and those of a batch: of Native, Batched, Vbatched (common/structs.cuh).
//
// All matrices are column-major. A kernel takes a locator by value and asks it for matrix b of the
// batch; `at` trims the view to the rows and columns that exist from (i, j) on, which is how one
// sequence of launches serves matrices of different sizes.
#pragma once
#include "common/scalar.cuh"
#include "common/structs.cuh"

enum Uplo : int { Lower = 0, Upper = 1 };
enum Trans : int { NoTrans = 0, Transposed = 1, ConjTrans = 2 };
enum Side : int { Left = 0, Right = 1 };
enum Diag : int { NonUnit = 0, Unit = 1 };

// Where kernels that overwrite their operand read it. 0: where they write. 1: elsewhere, maybe. 2:
// elsewhere, in matrices that are its transposes. Unless 0, what they leave alone becomes zero.
#ifndef INTO
#define INTO 0
#endif

// What row interchanges call the first row: 1 in LAPACK, 0 in SciPy.
#ifndef FIRST_ROW
#define FIRST_ROW 1
#endif

__device__ inline int min_(int a, int b) { return a < b ? a : b; }
__device__ inline int max_(int a, int b) { return a > b ? a : b; }
__device__ inline float max_(float a, float b) { return fmaxf(a, b); }  // not NaN where one is not
__device__ inline double max_(double a, double b) { return fmax(a, b); }
__device__ inline int ceil_div(int a, int b) { return (a + b - 1) / b; }

template <class T> struct Matrix {
    T *data;
    int rows, cols, ld;

    __device__ T &operator()(int i, int j) const { return data[i + (long long)j * ld]; }
    // The part from (i, j) on, at most r×c, empty where it would begin outside.
    __device__ Matrix at(int i, int j, int r = 1 << 30, int c = 1 << 30) const {
        // In this order: ptxas 13.0 makes max(min(x, 16), 0) == 16 true for every x.
        r = min_(max_(rows - i, 0), r);
        c = min_(max_(cols - j, 0), c);
        return {data + i + (long long)j * ld, r, c, ld};
    }
    __device__ Matrix at(const Window &part) const { return at(part.i, part.j, part.m, part.n); }
};

// Entry (i, j) of a matrix that is read by way of INTO.
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

// The tile of a batch that block (or warp) `item` computes. `work` holds {matrix, row, column, 0},
// row and column counted in elements; it is repeated for every `period` items, for the next
// matrices.
__device__ inline int4 work_item(const int4 *work, int period, int item) {
    int4 found = work[item % period];
    found.x += item / period;
    return found;
}

// The dynamic shared memory of a kernel. One declaration serves every type.
template <class T> __device__ inline T *shared_memory() {
#ifdef FRONTAL_EMULATION
    return reinterpret_cast<T *>(emulation::shared());
#else
    extern __shared__ __align__(128) unsigned char frontal_shared[];
    return reinterpret_cast<T *>(frontal_shared);
#endif
}
