// Products of columns of a 64×64 tile of double during its factorization as L·D·Lᵀ, subtracted from
// later columns by the tensor cores.
//
// Rows and columns are those of mma_16x8x4, not neighbours as in warp_product.cuh: operands need
// twice as many loads, but the target has half the bank conflicts, and with few terms per product
// the target accounts for most accesses.
#pragma once
#include "common/ptx.cuh"
#include "dense/potrf_tile.cuh"

#if !PLAIN
// Subtract from rows r0…r0+15 of N columns from c0 on the product of the K columns from p on, by a
// warp. weight(D(k), k) is D(k), or zero for an excluded column. No barriers.
template <int N, int K, class Weight>
__device__ inline void take_columns(double *tile, int r0, int c0, int p, Weight weight) {
    constexpr int STEPS = K / 4, GROUPS = N / 8, LD = tile_ld<double>;
    int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
    const double *left = tile + r0 + g + (p + t) * LD, *right = tile + c0 + g + (p + t) * LD,
                 *pivot = tile + (p + t) * (LD + 1);
    double *out = tile + r0 + g + (c0 + 2 * t) * LD, a[STEPS][2], b[STEPS][GROUPS], d[STEPS],
           c[GROUPS][4];
#pragma unroll
    for (int k = 0; k < STEPS; ++k) {  // all are loaded before one is used
        a[k][0] = left[4 * k * LD], a[k][1] = left[8 + 4 * k * LD];
        d[k] = -weight(pivot[4 * k * (LD + 1)], p + t + 4 * k);
#pragma unroll
        for (int j = 0; j < GROUPS; ++j) b[k][j] = right[8 * j + 4 * k * LD];
    }
#pragma unroll
    for (int j = 0; j < GROUPS; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) c[j][e] = out[8 * (e / 2) + (8 * j + e % 2) * LD];
#pragma unroll
    for (int k = 0; k < STEPS; ++k)
#pragma unroll
        for (int j = 0; j < GROUPS; ++j) mma_16x8x4(c[j], a[k], d[k] * b[k][j]);
#pragma unroll
    for (int j = 0; j < GROUPS; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) out[8 * (e / 2) + (8 * j + e % 2) * LD] = c[j][e];
}
#endif
