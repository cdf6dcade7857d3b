// Inverses of matrices up to 32×32 in registers, in place or from another source (INTO in
// common/matrix.cuh).
//
// Tile map: 8, 16 or 32 lanes per matrix (4, 2 or 1 matrices per warp), four warps per block. Lane
// i owns row i of A in N registers, N = 8, 16, 24 or 32, and at the end a row of the inverse.
// Dynamic shared memory: 2·N elements and 16 bytes per matrix. Warps never wait for each other.
// Matrices must be square; a matrix without an inverse is left unchanged.
// The method is in inverse.cuh. Matrices beyond 32×32 use getrf and getrs, for which the other
// entry points write the identity and copy the solution.
//   WIDTH  largest N of a launch
//   work   N, first and count of each block's matrices in `order`; null if all have N = WIDTH
//   order  matrices by size; null for their own order
#include "dense/inverse.cuh"
#include "dense/tiny.cuh"

using T = SCALAR;
constexpr int TINY_WORDS = WIDTH * (int)sizeof(T) / 4;  // registers of a row
constexpr int TINY_RESIDENTS = TINY_WORDS <= 16   ? 8
                               : TINY_WORDS <= 32 ? 5
                               : TINY_WORDS <= 64 ? 4
                                                  : 2;

template <int N, class Source>
__device__ void invert(Source from, Source to, const int *order, int first, int count, int *info) {
    constexpr int LANES = tiny_lanes<N>;
    int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, b;
    Matrix<T> m = tiny_matrix<LANES, T>(INTO ? to : from, order, first, count, b), x = m;
    if (INTO && b >= 0) x = from(b);
    T a[N];
    long long entry = INTO == 2 ? (long long)lane * x.ld : lane;
#pragma unroll
    for (int j = 0; j < N; ++j, entry += INTO == 2 ? 1 : x.ld)
        a[j] = lane < m.cols && j < m.cols ? x.data[entry] : zero<T>();
    // The padding makes matrices begin in different banks.
    T *exchange = shared_memory<T>() + group * (2 * N + Pack16<T>::count);
    int place, origin, failure = invert_rows<N, LANES>(a, lane, m.cols, place, origin, exchange);
#pragma unroll
    for (int j = 0; j < N; ++j) {
        int column = shuffle(origin, j, LANES);
        if (failure == 0 && place >= 0 && j < m.cols) m(place, column) = a[j];
    }
    if (INTO && failure && lane < m.cols)
        for (int j = 0; j < m.cols; ++j) m(lane, j) = *source_entry(x, lane, j);
    if (b >= 0 && lane == 0) info[b] = failure;
}

template <class Source>
__device__ void inverse(
    Source a, Source to, const int *order, const int *work, int total, int *info) {
    with_order(work, total, [&](auto n, int first, int count) {
        invert<decltype(n)::value>(a, to, order, first, count, info);
    });
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(TINY_THREADS, TINY_RESIDENTS) \
        name(Source<T> a, Source<T> to, const int *order, const int *work, int total, int *info) { \
        inverse(a, to, order, work, total, info); \
    }

ENTRY(inverse_native, Native)
ENTRY(inverse_batched, Batched)
ENTRY(inverse_vbatched, Vbatched)

// Beyond 32×32 the inverse is the solution of A·X = I in a workspace X: x = I, and later a = x if
// info is 0. Tile map: blocks (x, …) take matrix x, blocks y its columns in turn.
template <class Source> __device__ void set_identity(Source xs) {
    Matrix<T> x = xs(blockIdx.x);
    for (int j = blockIdx.y; j < x.cols; j += gridDim.y)
        for (int i = threadIdx.x; i < x.rows; i += blockDim.x)
            x(i, j) = i == j ? one<T>() : zero<T>();
}

template <class Source> __device__ void copy_good(Source xs, Source as, const int *info) {
    Matrix<T> x = xs(blockIdx.x), a = as(blockIdx.x);
    if (info[blockIdx.x]) return;
    for (int j = blockIdx.y; j < x.cols; j += gridDim.y)
        for (int i = threadIdx.x; i < x.rows; i += blockDim.x) a(i, j) = x(i, j);
}

#define IDENTITY_ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(TINY_THREADS) name(Source<T> x) { \
        set_identity(x); \
    }
#undef ENTRY
#define ENTRY IDENTITY_ENTRY

ENTRY(inverse_identity_native, Native)
ENTRY(inverse_identity_batched, Batched)
ENTRY(inverse_identity_vbatched, Vbatched)

#define COPY_ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(TINY_THREADS) \
        name(Source<T> x, Source<T> a, const int *info) { \
        copy_good(x, a, info); \
    }
#undef ENTRY
#define ENTRY COPY_ENTRY

ENTRY(inverse_copy_native, Native)
ENTRY(inverse_copy_batched, Batched)
ENTRY(inverse_copy_vbatched, Vbatched)
