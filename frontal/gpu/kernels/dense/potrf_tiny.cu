// Cholesky of matrices up to 32×32 in registers: A = L·Lᴴ, or A = Uᴴ·U.
//
// Tile map: 8, 16 or 32 lanes per matrix (4, 2 or 1 matrices per warp), four warps per block. Lane
// i owns row i of the lower triangle in N registers, N = 8, 16, 24 or 32; Upper factors the
// transpose in the same way. Dynamic shared memory: 32·(WIDTH + 3) elements per warp, for its
// adjacent matrices. Warps never wait for each other. Matrices must be square; the other triangle
// is not read, and is written only if INTO is not 0 (common/matrix.cuh).
// The method is in potf2.cuh.
//   WIDTH  largest N of a launch
//   work   N, first and count of each block's matrices in `order`; null if all have N = WIDTH
//   order  matrices by size; null for their own order
#include "dense/potf2.cuh"

#ifndef WIDTH
#define WIDTH 32
#endif
#ifndef UPLO
#define UPLO 0
#endif

using T = SCALAR;
constexpr int TINY_WARPS = 4, TINY_THREADS = 32 * TINY_WARPS;
// Blocks per multiprocessor: the most with which a row fits in a thread's registers.
constexpr int TINY_RESIDENTS = WIDTH <= 8    ? 6
                               : WIDTH <= 16 ? (sizeof(T) == 16 ? 4 : 6)
                               : sizeof(T) == 16 || (WIDTH > 24 && same_type<T, double>)
                                   ? (WIDTH > 24 && is_complex<T> ? 2 : 3)
                                   : 4;

template <int N, class Source>
__device__ void factor(Source from, Source to, const int *order, int first, int count, int *info) {
    constexpr int LANES = N <= 8 ? 8 : N <= 16 ? 16 : 32;
    int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, b = -1;
    Matrix<T> m{nullptr, 0, 0, 1};
    if (group < count) {
        b = order ? order[first + group] : first + group;
        m = from(b);
    }
    constexpr bool along = (UPLO == Lower) != (INTO == 2);  // lanes are adjacent in memory
    int n = m.cols, down = along ? 1 : m.ld, across = along ? m.ld : 1;
    int owned = lane < n ? lane + 1 : 0;  // entries of this lane's row
    T *row = m.data + (long long)lane * down;
    T *scratch = shared_memory<T>() + threadIdx.x / 32 * (WIDTH + 3) * 32;
    T *tile = scratch + 3 * 32 + threadIdx.x % 32 / LANES * LANES, *entry = tile + lane;
    for (int j = 0; j < owned; ++j)
        copy_async<sizeof(T)>(entry + j * 32, row + (long long)j * across, true);
    copy_async_commit();
    copy_async_wait<0>();
    __syncwarp();
    scratch += threadIdx.x % 32 / LANES * 3 * LANES;
    int failure = potf2<N, LANES, false>(tile, 32, n, (T *)nullptr, 0, scratch);
    if constexpr (INTO) {
        if (lane < n) {
            Matrix<T> x = to(b);
            for (int j = 0; j < n; ++j) {
                T v = UPLO == Lower ? tile[lane + j * 32] : tile[j + lane * 32];
                x(lane, j) = (UPLO == Lower ? lane >= j : lane <= j) ? v : zero<T>();
            }
        }
    } else {
        for (int j = 0; j < owned; ++j) row[(long long)j * across] = entry[j * 32];
    }
    if (b >= 0 && lane == 0) info[b] = failure;
}

// As with_order of tiny.cuh, whose lambda would spill registers here.
template <class Source>
__device__ void potrf_tiny(
    Source from, Source to, const int *order, const int *work, int total, int *info) {
    constexpr int each = TINY_WARPS * (WIDTH <= 8 ? 4 : WIDTH <= 16 ? 2 : 1);
    int n = WIDTH, first = blockIdx.x * each, count = min_(each, total - first);
    if (work) {
        const int *mine = work + 3 * blockIdx.x;
        n = mine[0], first = mine[1], count = mine[2];
    }
    if (n <= 8) factor<8>(from, to, order, first, count, info);
    else if (WIDTH > 8 && n <= 16)
        factor<(WIDTH > 8 ? 16 : 8)>(from, to, order, first, count, info);
    else if (WIDTH > 16 && n <= 24)
        factor<(WIDTH > 16 ? 24 : 8)>(from, to, order, first, count, info);
    else if (WIDTH > 24) factor<(WIDTH > 24 ? 32 : 8)>(from, to, order, first, count, info);
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(TINY_THREADS, TINY_RESIDENTS) \
        name(Source<T> a, Source<T> to, const int *order, const int *work, int total, int *info) { \
        potrf_tiny(a, to, order, work, total, info); \
    }

ENTRY(potrf_tiny_native, Native)
ENTRY(potrf_tiny_batched, Batched)
ENTRY(potrf_tiny_vbatched, Vbatched)
