// Cholesky of matrices up to 32×32 in registers: A = L·Lᴴ, or A = Uᴴ·U.
//
// Tile map: 8, 16 or 32 lanes a matrix (4, 2 or 1 matrices a warp), four warps a block. Lane i owns
// row i of the lower triangle in N registers, N = 8, 16, 24 or 32; Upper is the same on the
// transpose. Dynamic shared memory: 32·(WIDTH + 3) elements a warp, for its matrices side by side;
// warps never wait for each other. Matrices must be square; the other triangle is neither read nor
// written.
//   WIDTH  largest N that a launch needs
//   work   N, first and count of each block's matrices in `order`; null where all have N = WIDTH
//   order  matrices by size; null for their own order
#include "dense/potf2.cuh"
#include "dense/tiny.cuh"

#ifndef UPLO
#define UPLO 0
#endif

using T = SCALAR;
// Blocks on a multiprocessor, so many that a row still fits in a thread's registers.
constexpr int TINY_RESIDENTS = WIDTH <= 8    ? 6
                               : WIDTH <= 16 ? (sizeof(T) == 16 ? 4 : 6)
                               : sizeof(T) == 16 || (WIDTH > 24 && same_type<T, double>)
                                   ? (WIDTH > 24 && is_complex<T> ? 2 : 3)
                                   : 4;

template <int N, class Source>
__device__ void factor(Source source, const int *order, int first, int count, int *info) {
    constexpr int LANES = tiny_lanes<N>;
    int lane = threadIdx.x % LANES, b;
    Matrix<T> m = tiny_matrix<LANES, T>(source, order, first, count, b);
    int n = m.cols, down = UPLO == Lower ? 1 : m.ld, across = UPLO == Lower ? m.ld : 1;
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
    for (int j = 0; j < owned; ++j) row[(long long)j * across] = entry[j * 32];
    if (b >= 0 && lane == 0) info[b] = failure;
}

template <class Source>
__device__ void potrf_tiny(Source source, const int *order, const int *work, int total, int *info) {
    with_order(work, total, [&](auto n, int first, int count) {
        factor<decltype(n)::value>(source, order, first, count, info);
    });
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(TINY_THREADS, TINY_RESIDENTS) \
        name(Source<T> a, const int *order, const int *work, int total, int *info) { \
        potrf_tiny(a, order, work, total, info); \
    }

ENTRY(potrf_tiny_native, Native)
ENTRY(potrf_tiny_batched, Batched)
ENTRY(potrf_tiny_vbatched, Vbatched)
