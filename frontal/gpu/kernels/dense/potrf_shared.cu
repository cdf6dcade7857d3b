// Cholesky of matrices that fit in shared memory: A = L·Lᴴ, or A = Uᴴ·U.
//
// Tile map: one block per matrix, with ORDER threads; ORDER, a multiple of 32, is the largest order
// of the launch. A thread owns a row of the columns being factored, a warp 16×16 blocks of the
// columns being updated (potrf_tile.cuh). Dynamic shared memory: ORDER columns of ORDER elements,
// and padding. Upper factors the transpose in the same way. The other triangle is not read, and is
// written only if INTO is not 0 (common/matrix.cuh).
// A block with its matrix in shared memory: Abdelfattah, Haidar, Tomov, Dongarra, "Performance
// tuning and optimization techniques of fixed and variable size batched Cholesky factorization on
// GPUs" (2016).
//   order  the matrices, largest first; null for all in their own order
#include "dense/potrf_tile.cuh"

#ifndef ORDER
#define ORDER 64
#endif
#ifndef UPLO
#define UPLO 0
#endif

using T = SCALAR;
constexpr int ld = shared_ld<T, ORDER>, warps = ORDER / 32;
// Blocks per multiprocessor, limited by registers.
constexpr int residents = 2048 / (ORDER * (sizeof(T) == 16 ? 8 : sizeof(T) == 8 ? 5 : 3));

// Call f(entry of the triangle, its address in shared memory), a warp per column of A. TURNED: `a`
// is the transpose of A.
template <bool TURNED, class F> __device__ inline void each_entry(Matrix<T> a, T *tile, F f) {
    constexpr bool lower = UPLO == Lower, below = lower != TURNED;  // the triangle in memory
    int lane = threadIdx.x % 32, n = a.cols;
    for (int c = threadIdx.x / 32; c < n; c += warps) {
        int first = below ? c : 0, last = below ? n : c + 1;
        for (int r = first / 32 * 32 + lane; r < last; r += 32)
            if (r >= first) f(&a(r, c), tile + (below ? r + c * ld : c + r * ld));
    }
}

// Write the factor, and zeros in the other triangle.
__device__ inline void store_whole(Matrix<T> a, const T *tile) {
    constexpr bool lower = UPLO == Lower;
    int lane = threadIdx.x % 32, n = a.cols;
    for (int c = threadIdx.x / 32; c < n; c += warps)
        for (int r = lane; r < n; r += 32) {
            T v = lower ? tile[r + c * ld] : conj(tile[c + r * ld]);
            a(r, c) = (lower ? r >= c : r <= c) ? v : zero<T>();
        }
}

template <class Source>
__device__ void potrf_shared(Source from, Source to, const int *order, int *info) {
    int b = order ? order[blockIdx.x] : blockIdx.x;
    Matrix<T> a = from(b);
    T *tile = shared_memory<T>();
    int n = a.cols, rows = ceil_div(n, 16) * 16;
    each_entry<INTO == 2>(
        a, tile, [](T *entry, T *place) { copy_async<sizeof(T)>(place, entry, true); });
    copy_async_commit();
    // The rest of the last 16 rows and columns: the identity.
    for (int c = threadIdx.x / 32; c < rows; c += warps) {
        int r = n / 16 * 16 + threadIdx.x % 32;
        if (r >= n && r < rows) tile[r + c * ld] = r == c ? one<T>() : zero<T>();
    }
    copy_async_wait<0>();
    __syncthreads();
    if (UPLO == Upper && is_complex<T>) {
        each_entry<INTO == 2>(a, tile, [](T *, T *place) { *place = conj(*place); });
        __syncthreads();
    }
    int failed = factor_tile<ld, T>(tile, rows);
    if constexpr (INTO) store_whole(to(b), tile);
    else
        each_entry<false>(
            a, tile, [](T *entry, T *place) { *entry = UPLO == Upper ? conj(*place) : *place; });
    if (threadIdx.x == 0) info[b] = failed;
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(ORDER, residents) \
        name(Source<T> a, Source<T> to, const int *order, int *info) { \
        potrf_shared(a, to, order, info); \
    }

ENTRY(potrf_shared_native, Native)
ENTRY(potrf_shared_batched, Batched)
ENTRY(potrf_shared_vbatched, Vbatched)
