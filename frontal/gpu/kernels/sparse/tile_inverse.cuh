// A 64×64 tile in shared memory times the transpose of the inverse of a lower triangle (without LU
// the adjoint, if the second factor is the adjoint), for L(i,j) = C·Vᴴ without a triangular solve
// (front.cuh).
//
// By 128 threads: a warp owns 16 rows of the result, in registers, so that the zeros of the inverse
// save the same work in all warps. Precondition: both operands are visible to all threads. No
// barriers.
#pragma once
#include "dense/potrf_tile.cuh"
#include "sparse/front.cuh"

template <class T> struct TileTimesInverse {
    static constexpr int H = TILE_ROWS / 2, ld = tile_ld<T>;
    int i0 = threadIdx.x / 32 * 16;
    WarpProduct<T, 16, H> left, right;

    __device__ void multiply(const T *block, const T *inverse) {
        left.clear(), right.clear();
        left.template add<H, false, false, false, conjugates>(block + i0, ld, inverse, ld);
        right.template add<TILE_ROWS, false, false, false, conjugates>(
            block + i0, ld, inverse + H, ld);
    }
    // Call f(row, column, entry) for each entry of the result that this thread owns.
    template <class F> __device__ void each(F f) {
        left.each([&](int r, int c, T &v) { f(i0 + r, c, v); });
        right.each([&](int r, int c, T &v) { f(i0 + r, H + c, v); });
    }
};
