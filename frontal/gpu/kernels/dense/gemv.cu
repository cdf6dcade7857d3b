// GEMV entry points: y = alpha·op(A)·x + beta·y for one matrix or a batch.
//
// Tile map: team z of block b works on item b·blockDim.z + z: the tile of tile_m×tile_n entries
// that begins at {matrix, row, column} = work[item]. Big-tile setting: the tile is the matrix.
// Classic setting: several tiles cover a matrix; if they split the sums, each stores its own sums
// in `partial` (outputs of a tile after those of the previous tile), and gemv_sum adds them. Blocks
// have X×Y×Z threads as in dense/gemv.cuh. Dynamic shared memory: 16 bytes per thread for gemv_n
// with Y > 1.
// The settings are those of Dong, Haidar, Tomov, Dongarra, "Accelerating the SVD bi-diagonalization
// of a batch of small matrices using GPUs" (2018).
#include "dense/gemv.cuh"

#ifndef UNROLL
#define UNROLL 4
#endif

using T = SCALAR;
// Blocks per multiprocessor, which bounds the registers of a thread.
constexpr int RESIDENT = UNROLL > 4 || sizeof(T) > 8 ? 2 : 3;

// Return the tile of an item; without a work list the tile is the whole matrix.
__device__ inline int4 gemv_item(const int4 *work, int period, int item) {
    return work ? work_item(work, period, item) : int4{item, 0, 0, 0};
}

template <class Source>
__device__ void gemv_n_entry(T alpha, Source a, Source x, T beta, Source y, int tile_m, int tile_n,
    const int4 *work, int period, int count, T *partial) {
    int item = blockIdx.x * blockDim.z + threadIdx.z;
    if (item >= count) return;  // a whole warp: blocks of one team have no such items
    int4 w = gemv_item(work, period, item);
    Matrix<T> tile = a(w.x).at(w.y, w.z, tile_m, alpha == zero<T>() ? 0 : tile_n);
    Sums<T> out{
        alpha, beta, y(w.x).data + w.y, partial ? partial + (long long)item * tile_m : nullptr};
    Vector<T> *shared = shared_memory<Vector<T>>() + threadIdx.z * blockDim.x * blockDim.y;
    gemv_n<UNROLL>(tile, x(w.x).data + w.z, out, shared);
}

template <class Source>
__device__ void gemv_t_entry(T alpha, Source a, Source x, T beta, Source y, int tile_m, int tile_n,
    const int4 *work, int period, int count, T *partial, int conjugate) {
    int item = blockIdx.x * blockDim.z + threadIdx.z;
    if (item >= count) return;
    int4 w = gemv_item(work, period, item);
    Matrix<T> tile = a(w.x).at(w.y, w.z, alpha == zero<T>() ? 0 : tile_m, tile_n);
    Sums<T> out{
        alpha, beta, y(w.x).data + w.z, partial ? partial + (long long)item * tile_n : nullptr};
    gemv_t<UNROLL>(tile, x(w.x).data + w.y, out, conjugate != 0);
}

// Add the sums of a tile of outputs: work[block] = {matrix, first output, first partial, number of
// partials}, each of `tile` outputs. A thread owns outputs; partials are added in their order.
template <class Source>
__device__ void gemv_sum_entry(
    T alpha, T beta, Source y, int tile, const int4 *work, const T *partial) {
    int4 w = work[blockIdx.x];
    Matrix<T> part = y(w.x).at(w.y, 0, tile);
    Sums<T> out{alpha, beta, part.data, nullptr};
    for (int i = threadIdx.x; i < part.rows; i += blockDim.x) {
        T sum = zero<T>(), before = out.before(i);
#pragma unroll 2
        for (int k = 0; k < w.w; ++k) sum = sum + partial[(long long)(w.z + k) * tile + i];
        out.store(i, sum, before);
    }
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(256, RESIDENT) \
        name(T alpha, Source<T> a, Source<T> x, T beta, Source<T> y, int tile_m, int tile_n, \
            const int4 *work, int period, int count, T *partial) { \
        gemv_n_entry(alpha, a, x, beta, y, tile_m, tile_n, work, period, count, partial); \
    }

ENTRY(gemv_n_native, Native)
ENTRY(gemv_n_batched, Batched)
ENTRY(gemv_n_vbatched, Vbatched)

#define DOTS_ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(256, RESIDENT) \
        name(T alpha, Source<T> a, Source<T> x, T beta, Source<T> y, int tile_m, int tile_n, \
            const int4 *work, int period, int count, T *partial, int conjugate) { \
        gemv_t_entry( \
            alpha, a, x, beta, y, tile_m, tile_n, work, period, count, partial, conjugate); \
    }
#undef ENTRY
#define ENTRY DOTS_ENTRY

ENTRY(gemv_t_native, Native)
ENTRY(gemv_t_batched, Batched)
ENTRY(gemv_t_vbatched, Vbatched)

#define SUM_ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(128) \
        name(T alpha, T beta, Source<T> y, int tile, const int4 *work, const T *partial) { \
        gemv_sum_entry(alpha, beta, y, tile, work, partial); \
    }
#undef ENTRY
#define ENTRY SUM_ENTRY

ENTRY(gemv_sum_native, Native)
ENTRY(gemv_sum_batched, Batched)
ENTRY(gemv_sum_vbatched, Vbatched)
