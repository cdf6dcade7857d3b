// Cholesky of a matrix in shared memory by one block of threads, in blocks of 32 columns.
//
// One warp factors and inverts a diagonal block in registers (potf2.cuh). The rows below it are
// multiplied by the inverse, and the columns to the right are updated, in strips of 16×32 per warp,
// on the fp64 tensor cores for double and complex<double>. While the first warp factors the next
// diagonal block, the other warps update the rest (lookahead).
// Inverses of diagonal blocks instead of triangular solves: Haidar, Dong, Luszczek, Tomov,
// Dongarra, "Batched matrix computations on hardware accelerators based on GPUs" (2015).
#pragma once
#include "dense/potf2.cuh"
#include "common/warp_product.cuh"

constexpr int BLOCK = 32, STRIP = 16;

// Leading dimension of a block of 32 rows that products read without bank conflicts.
template <class T> constexpr int BLOCK_LD = BLOCK + leading_pad<T, false>();

// A matrix in blocks of 32; its leading dimension is a multiple of 32 plus leading_pad().
template <class T> struct Blocks {
    T *data;
    int ld;

    // Block (r, c); its element (i, j) is at(r, c)[i + j*ld].
    __device__ T *at(int r, int c) const { return row(BLOCK * r, c); }
    // Column c of blocks, from row i of the matrix on.
    __device__ T *row(int i, int c) const { return data + i + BLOCK * c * ld; }
};

// By one warp, on strips of 16×32: C ← C − A·Bᴴ with A 16×32 and B 32×32; C ← C·Bᴴ.
template <class T>
__device__ inline void update_strip(T *c, int ldc, const T *a, int lda, const T *b, int ldb) {
    WarpProduct<T, STRIP, BLOCK> product;
    product.clear();
    product.template add<BLOCK, false, false, false, true>(a, lda, b, ldb);
    product.each([&](int i, int j, T &v) { c[i + j * ldc] = c[i + j * ldc] - v; });
    __syncwarp();
}
template <class T> __device__ inline void multiply_strip(T *c, int ldc, const T *b, int ldb) {
    WarpProduct<T, STRIP, BLOCK> product;
    product.clear();
    product.template add<BLOCK, false, false, false, true>(c, ldc, b, ldb);
    __syncwarp();
    product.each([&](int i, int j, T &v) { c[i + j * ldc] = v; });
    __syncwarp();
}

// Call f(i, j) for the entries i ≥ j of an n×n triangle; the threads of a warp have adjacent i
// (Lower), or adjacent j (Upper, whose triangle is stored by rows).
template <int UPLO_, class F> __device__ inline void each_entry(int n, int warp, int warps, F f) {
    int lane = threadIdx.x & 31;
    if (warp < 0) return;
    for (int k = warp; k < n; k += warps) {
        if constexpr (UPLO_ == Lower) {
#pragma unroll 4
            for (int i = k / 32 * 32 + lane; i < n; i += 32)
                if (i >= k) f(i, k);
        } else {
#pragma unroll 4
            for (int j = lane; j <= k; j += 32) f(k, j);
        }
    }
}

// Factor the leading n×n of `a`, n > 0, by all warps of the block; the caller synchronizes before
// and after. `inverse(c)` is the address for the inverse of diagonal block c, columns BLOCK_LD
// apart; it is read only until block c + 1 is factored. `scratch`: POTF2_SCRATCH elements. Returns
// LAPACK's info in the first warp, 0 in the others.
template <class T, class Inverse>
__device__ inline int potrf_blocks(Blocks<T> a, int n, Inverse inverse, T *scratch) {
    constexpr int ldi = BLOCK_LD<T>;
    int warp = threadIdx.x / 32, warps = blockDim.x / 32, count = ceil_div(n, BLOCK), failure = 0;
    int helpers = max_(warps - 1, 1), helper = warps > 1 ? warp - 1 : 0;
    for (int c = -1; c + 1 < count; ++c) {
        int next = c + 1;
        if (c >= 0) {
            __syncthreads();
            for (int i = BLOCK * next + STRIP * warp; i < n; i += STRIP * warps)
                multiply_strip(a.row(i, c), a.ld, inverse(c), ldi);
            __syncthreads();
        }
        if (warp == 0) {
            for (int i = BLOCK * next; c >= 0 && i < min_(n, BLOCK * next + BLOCK); i += STRIP)
                update_strip(a.row(i, next), a.ld, a.row(i, c), a.ld, a.at(next, c), a.ld);
            int found = potf2<BLOCK, BLOCK, true>(
                a.at(next, next), a.ld, min_(BLOCK, n - BLOCK * next), inverse(next), ldi, scratch);
            if (found && !failure) failure = BLOCK * next + found;
        }
        if (helper < 0) continue;
        int item = 0;
        for (int q = next; c >= 0 && q < count; ++q)
            for (int i = BLOCK * (q == next ? q + 1 : q); i < n; i += STRIP, ++item)
                if (item % helpers == helper)
                    update_strip(a.row(i, q), a.ld, a.row(i, c), a.ld, a.at(q, c), a.ld);
    }
    return failure;
}
