// Inverses of triangular blocks of order 32, each by one warp.
//
// A block is processed as a lower triangle: an upper one as its transpose. The inverse is thus
// stored in shared memory as inv(A) for Lower and as inv(A)ᵀ for Upper, its other triangle zero.
// Column by column, as method 1 of Du Croz, Higham, "Stability of methods for matrix inversion"
// (1992).
#pragma once
#include "common/matrix.cuh"
#include "common/ptx.cuh"

// Leading dimension: columns begin at multiples of 16 bytes, and warps read rows and columns
// without bank conflicts.
template <class T> constexpr int tri_ld = tri_order + (sizeof(T) == 8 ? 4 : sizeof(T) == 4 ? 4 : 2);

// Copy the triangle of `a`, of order ≤ 32, to `lower` (shared memory), by one warp; lane i copies
// row i. Missing rows and columns are those of the identity. The diagonal becomes its reciprocals.
template <class T> __device__ void load_triangle(Matrix<T> a, Uplo uplo, Diag diag, T *lower) {
    int i = threadIdx.x & 31, n = a.rows;
    T pivot = one<T>();
    if (diag == NonUnit && i < n) pivot = reciprocal(a(i, i));
#pragma unroll 8
    for (int j = 0; j < tri_order; ++j) {
        bool below = uplo == Lower ? i > j : i < j, inside = i < n && j < n && below;
        T v = inside ? a(i, j) : i == j ? pivot : zero<T>();
        lower[uplo == Lower ? i + j * tri_ld<T> : j + i * tri_ld<T>] = v;
    }
    __syncwarp();
}

// Replace a triangle from load_triangle by its inverse, by one warp. Lane j owns column j of the
// inverse, in registers, and subtracts the columns of the triangle, which all lanes read at the
// same address.
template <class T> __device__ void invert_triangle(T *lower) {
    constexpr int V = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
    struct alignas(16) Pack {
        T v[V];
    };
    int j = threadIdx.x & 31;
    T x[tri_order];
#pragma unroll
    for (int i = 0; i < tri_order; ++i) x[i] = i == j ? one<T>() : zero<T>();
#pragma unroll
    for (int k = 0; k < tri_order; ++k) {
        const T *column = lower + k * tri_ld<T>;
        x[k] = column[k] * x[k];
#pragma unroll
        for (int first = (k + 1) / V * V; first < tri_order; first += V) {
            Pack pack = *reinterpret_cast<const Pack *>(column + first);
#pragma unroll
            for (int e = 0; e < V; ++e)
                if (first + e > k) x[first + e] = fma_(-pack.v[e], x[k], x[first + e]);
        }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < tri_order; ++i) lower[i + j * tri_ld<T>] = x[i];
    __syncwarp();
}

// Copy an inverse to global memory, 32 contiguous columns of 32, by one warp.
template <class T> __device__ void store_triangle(const T *lower, T *target) {
    int i = threadIdx.x & 31;
#pragma unroll 8
    for (int j = 0; j < tri_order; ++j) target[i + j * tri_order] = lower[i + j * tri_ld<T>];
}

// Begin to copy the output of store_triangle back, by all threads of a block.
template <class T> __device__ void fetch_triangle(const T *source, T *lower) {
    constexpr int wide = 16 / sizeof(T), column = tri_order / wide;
    for (int chunk = threadIdx.x; chunk < tri_order * column; chunk += blockDim.x) {
        int i = chunk % column * wide, j = chunk / column;
        copy_async<16>(lower + i + j * tri_ld<T>, source + i + j * tri_order, true);
    }
}
