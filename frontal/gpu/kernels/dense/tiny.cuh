// Matrices up to 32×32, a row per lane: the matrices of a block, and the lanes of each.
//
// Tile map: blocks of four warps; 8, 16 or 32 lanes per matrix, so 4, 2 or 1 matrices per warp. The
// host sorts matrices by size, so that those of a block have one N. Warps never wait for each
// other.
//   WIDTH  largest N of a launch
//   work   N, first and count of each block's matrices in `order`; null if all have N = WIDTH
//   order  matrices by size; null for their own order
#pragma once
#include "dense/potf2.cuh"

#ifndef WIDTH
#define WIDTH 32
#endif

constexpr int TINY_WARPS = 4, TINY_THREADS = 32 * TINY_WARPS;
template <int N> constexpr int tiny_lanes = N <= 8 ? 8 : N <= 16 ? 16 : 32;

// Call f(Index<N>(), first, count) for this block's matrices of one N = 8, 16, 24 or 32.
template <class F> __device__ inline void with_order(const int *work, int total, F f) {
    constexpr int each = TINY_THREADS / tiny_lanes<WIDTH>;
    int n = WIDTH, first = blockIdx.x * each, count = min_(each, total - first);
    if (work) {
        const int *mine = work + 3 * blockIdx.x;
        n = mine[0], first = mine[1], count = mine[2];
    }
    if (n <= 8) f(Index<8>(), first, count);
    else if (WIDTH > 8 && n <= 16) f(Index<(WIDTH > 8 ? 16 : 8)>(), first, count);
    else if (WIDTH > 16 && n <= 24) f(Index<(WIDTH > 16 ? 24 : 8)>(), first, count);
    else if (WIDTH > 24) f(Index<(WIDTH > 24 ? 32 : 8)>(), first, count);
}

// Return matrix b of these LANES lanes; without one it is empty, and b is -1.
template <int LANES, class T, class Source>
__device__ inline Matrix<T> tiny_matrix(
    Source source, const int *order, int first, int count, int &b) {
    int group = threadIdx.x / LANES;
    Matrix<T> m{nullptr, 0, 0, 1};
    b = -1;
    if (group < count) {
        b = order ? order[first + group] : first + group;
        m = source(b);
    }
    return m;
}
