// LU with partial pivoting of matrices up to 32×32 in registers.
//
// Tile map: 8, 16 or 32 lanes per matrix (4, 2 or 1 matrices per warp), four warps per block. Lane
// i owns row i in N registers; N = 8, 16, 24 or 32 is at least both sides of the matrix. Rows are
// written to their positions once, at the end. Dynamic shared memory, for the pivots' rows: 2·N
// elements and 16 bytes per matrix. Warps never wait for each other.
// A is read from the source that INTO selects (common/matrix.cuh). Rows interchanged once, at the
// end: Abdelfattah, Haidar, Tomov, Dongarra, "Factorization and inversion of a million matrices
// using GPUs: challenges and countermeasures" (2017).
//   WIDTH  largest N of a launch
//   work   N, first and count of each block's matrices in `order`; null if all have N = WIDTH
//   order  matrices by size; null for their own order
#include "dense/getf2.cuh"
#include "dense/tiny.cuh"

using T = SCALAR;
constexpr int TINY_WORDS = WIDTH * (int)sizeof(T) / 4;  // registers of a row
constexpr int TINY_RESIDENTS = TINY_WORDS <= 16   ? 8
                               : TINY_WORDS <= 32 ? 5
                               : TINY_WORDS <= 64 ? 4
                                                  : 2;

template <int N, class Source, class Pivots>
__device__ void factor(Source from, Source to, Pivots pivots, const int *order, int first,
    int count, int *info, real_t<T> tiny) {
    constexpr int LANES = tiny_lanes<N>;
    int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, b;
    Matrix<T> m = tiny_matrix<LANES, T>(INTO ? to : from, order, first, count, b), x = m;
    if (INTO && b >= 0) x = from(b);
    int steps = min_(m.rows, m.cols), position = lane < m.rows ? lane : -1, pivot = 0;
    T a[N];
    long long entry = INTO == 2 ? (long long)lane * x.ld : lane;
#pragma unroll
    for (int j = 0; j < N; ++j, entry += INTO == 2 ? 1 : x.ld)
        a[j] = lane < m.rows && j < m.cols ? x.data[entry] : zero<T>();
    // The padding makes matrices begin in different banks.
    T *exchange = shared_memory<T>() + group * (2 * N + Pack16<T>::count);
    int failure = getf2_rows<N, LANES>(a, lane, steps, position, pivot, exchange, tiny);
    entry = position;
#pragma unroll
    for (int j = 0; j < N; ++j, entry += m.ld)
        if (position >= 0 && j < m.cols) m.data[entry] = a[j];
    if (lane < steps) pivots(b)(lane, 0) = pivot + FIRST_ROW;
    if (b >= 0 && lane == 0) info[b] = failure;
}

template <class Source, class Pivots>
__device__ void getrf_tiny(Source a, Source to, Pivots pivots, const int *order, const int *work,
    int total, int *info, real_t<T> tiny) {
    with_order(work, total, [&](auto n, int first, int count) {
        factor<decltype(n)::value>(a, to, pivots, order, first, count, info, tiny);
    });
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(TINY_THREADS, TINY_RESIDENTS) \
        name(Source<T> a, Source<T> to, Source<int> pivots, const int *order, const int *work, \
            int total, int *info, real_t<T> tiny) { \
        getrf_tiny(a, to, pivots, order, work, total, info, tiny); \
    }

ENTRY(getrf_tiny_native, Native)
ENTRY(getrf_tiny_batched, Batched)
ENTRY(getrf_tiny_vbatched, Vbatched)
