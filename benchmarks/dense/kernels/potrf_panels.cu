// Cholesky A = L·Lᴴ as the papers on batched factorizations have it: left-looking panels of NB = 8
// columns, fused into one kernel, on FMA.
//
// Tile map: one block a matrix, one thread a row of the panel. A thread owns the NB entries of its
// row in registers. Dynamic shared memory: NB×NB elements of the block of L that all rows are
// multiplied by, then rows × NB of the panel. A grid for all matrices and a block for the largest:
//   INCLUSIVE   all panels by one launch; else one panel a launch, `done` columns of the largest
//               matrix before it
//   AGGRESSIVE  threads without a row end at once (a barrier waits only for threads that have not
//               ended); else only blocks without work do
//   LAZY        smaller matrices begin so late that all end with the last panel; else all begin
//               with the first
// Matrices must be square; the upper triangle is neither read nor written.
#include "common/matrix.cuh"

#ifndef INCLUSIVE
#define INCLUSIVE 0
#endif
#ifndef AGGRESSIVE
#define AGGRESSIVE 0
#endif
#ifndef LAZY
#define LAZY 0
#endif

using T = SCALAR;
constexpr int NB = 8;

// Row i of columns j…j+width-1 minus its product with the rows j… of the columns before.
__device__ inline void update_row(Matrix<T> a, int i, int j, int width, T (&row)[NB], T *block) {
    // Those that have not ended.
    int threads = AGGRESSIVE ? min_(blockDim.x, a.rows - (INCLUSIVE ? 0 : j)) : blockDim.x;
    for (int k = 0; k < j; k += NB) {
        __syncthreads();
        for (int e = threadIdx.x; e < NB * width; e += threads)
            block[e] = conj(a(j + e / NB, k + e % NB));
        __syncthreads();
        if (i >= a.rows) continue;
#pragma unroll
        for (int p = 0; p < NB; ++p) {
            T x = -a(i, k + p);
#pragma unroll
            for (int q = 0; q < NB; ++q)
                if (q < width) row[q] = fma_(x, block[p + q * NB], row[q]);
        }
    }
}

// Factor the panel in shared memory, three barriers a column; returns the first failing column.
__device__ inline int factor_panel(T *panel, int rows, int width) {
    int failure = 0, i = threadIdx.x;
    for (int k = 0; k < width; ++k) {
        __syncthreads();
        real_t<T> d = real(panel[k * NB + k]);
        if (!(d > 0) && !failure) failure = k + 1;
        real_t<T> root = square_root(d);
        __syncthreads();
        if (i == k) panel[k * NB + k] = from_real<T>(root);
        if (i > k && i < rows) panel[i * NB + k] = real_t<T>(1) / root * panel[i * NB + k];
        __syncthreads();
        if (i > k && i < rows)
            for (int q = k + 1; q < width; ++q)
                panel[i * NB + q] =
                    fma_(-panel[i * NB + k], conj(panel[q * NB + k]), panel[i * NB + q]);
    }
    __syncthreads();
    return failure;
}

// Columns j…j+width-1 of L, by a thread a row from j on.
__device__ inline void panel_step(Matrix<T> a, int j, int width, int *info) {
    T *block = shared_memory<T>(), *panel = block + NB * NB, row[NB];
    int rows = a.rows - j, i = j + threadIdx.x;
#pragma unroll
    for (int q = 0; q < NB; ++q) {
        row[q] = zero<T>();
        if (q < width && i < a.rows && i >= j + q) row[q] = a(i, j + q);
    }
    update_row(a, i, j, width, row, block);
    __syncthreads();
    if (i < a.rows) {
#pragma unroll
        for (int q = 0; q < NB; ++q) panel[threadIdx.x * NB + q] = row[q];
    }
    int failure = factor_panel(panel, rows, width);
    if (i < a.rows)
        for (int q = 0; q < width; ++q)
            if (i >= j + q) a(i, j + q) = panel[threadIdx.x * NB + q];
    if (threadIdx.x == 0 && (j == 0 || (failure && *info == 0))) *info = failure ? j + failure : 0;
    __syncthreads();
}

template <class Source>
__device__ void potrf_panels(Source source, int largest, int done, int *info) {
    Matrix<T> a = source(blockIdx.x);
    int n = a.cols;
    if (n == 0 && done == 0 && threadIdx.x == 0) info[blockIdx.x] = 0;
    if (INCLUSIVE) {
        if (AGGRESSIVE && (int)threadIdx.x >= n) return;
        for (int j = 0; j < n; j += NB) panel_step(a, j, min_(NB, n - j), info + blockIdx.x);
        return;
    }
    int j = done;
    if (LAZY) j -= (ceil_div(largest, NB) - ceil_div(n, NB)) * NB;
    if (j < 0 || j >= n) return;
    if (AGGRESSIVE && (int)threadIdx.x >= n - j) return;
    panel_step(a, j, min_(NB, n - j), info + blockIdx.x);
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(1024, 1) \
        name(Source<T> a, int largest, int done, int *info) { \
        potrf_panels(a, largest, done, info); \
    }

ENTRY(potrf_panels_native, Native)
ENTRY(potrf_panels_batched, Batched)
ENTRY(potrf_panels_vbatched, Vbatched)
