// Kernels of getrs besides triangular solves: op(A)·X = B with A = P·L·U, X over B.
//
// getrs_tiny, up to 32×32. Tile map: 8, 16 or 32 lanes per matrix, four warps per block. Lane i
// owns row i of op(L·U) in WIDTH registers and entry i of COLUMNS right-hand sides at a time;
// unknowns are shuffled between lanes. Block y solves right-hand sides y·share….
// getrs_rows, for larger matrices: interchanges rows of B by P (TRANS 0) or by Pᵀ. Tile map: a work
// item is a strip of 32 columns, one block of 128 threads each. Columns pass through dynamic shared
// memory, `columns` at a time: columns·rows elements and an int for each row, of the tallest
// matrix.
// The operation is LAPACK's: Anderson et al., "LAPACK users' guide" (1999). Matrices must be
// square, and their factors those of getrf.
#include "dense/gemm.cuh"
#include "dense/potf2.cuh"

#ifndef WIDTH
#define WIDTH 32
#endif
#ifndef TRANS
#define TRANS 0
#endif

using T = SCALAR;
constexpr int GETRS_THREADS = 128, COLUMNS = sizeof(T) == 16 && WIDTH == 32 ? 2 : 4, STRIP = 32;
constexpr int LANES = WIDTH <= 8 ? 8 : WIDTH <= 16 ? 16 : 32;

// Return the row of B that the interchanges move to row `lane`.
template <class Pivots> __device__ int source_row(Pivots pivots, int lane, int n, int most) {
    int mine = lane < n ? pivots(lane, 0) - FIRST_ROW : lane, row = lane;
    for (int k = 0; k < most; ++k) {
        int other = shuffle(mine, k, LANES), first = shuffle(row, k, LANES),
            second = shuffle(row, other, LANES);
        if (k < n) row = lane == k ? second : lane == other ? first : row;
    }
    return row;
}

// Solve with the lower and then with the upper triangle of the matrix whose row `lane` is a. The
// lower one has a unit diagonal for TRANS 0, otherwise the upper one. `scale` is 1/diagonal.
__device__ void solve(const T (&a)[WIDTH], T scale, int lane, int most, T (&x)[COLUMNS]) {
#pragma unroll
    for (int k = 0; k < WIDTH; ++k) {
        if (k >= most) break;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            if (TRANS != NoTrans && lane == k) x[c] = scale * x[c];
            T v = shuffle(x[c], k, LANES);
            if (lane > k) x[c] = fma_(-a[k], v, x[c]);
        }
    }
#pragma unroll
    for (int k = WIDTH - 1; k >= 0; --k) {
        if (k >= most) continue;
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            if (TRANS == NoTrans && lane == k) x[c] = scale * x[c];
            T v = shuffle(x[c], k, LANES);
            if (lane < k) x[c] = fma_(-a[k], v, x[c]);
        }
    }
}

template <class Source, class Pivots>
__device__ void getrs_tiny(
    Source as, Pivots pivots, Source bs, const int *order, int total, int share) {
    int lane = threadIdx.x % LANES,
        item = blockIdx.x * (GETRS_THREADS / LANES) + threadIdx.x / LANES;
    Matrix<T> a{nullptr, 0, 0, 1}, b = a;
    Matrix<int> p{nullptr, 0, 0, 1};
    if (item < total) {
        item = order ? order[item] : item;
        a = as(item), b = bs(item).at(0, blockIdx.y * share, a.rows, share), p = pivots(item);
    }
    int n = a.cols, most = (int)__reduce_max_sync(full_warp, (unsigned)n);
    int sides = (int)__reduce_max_sync(full_warp, (unsigned)b.cols),
        row = source_row(p, lane, n, most);
    T entries[WIDTH], scale = one<T>();
    const T *entry = a.data + (TRANS == NoTrans ? lane : (long long)lane * a.ld);
#pragma unroll
    for (int k = 0; k < WIDTH; ++k, entry += TRANS == NoTrans ? a.ld : 1) {
        T v = lane < n && k < n ? *entry : zero<T>();
        entries[k] = TRANS == ConjTrans ? conj(v) : v;
        if (k == lane && lane < n) scale = reciprocal(entries[k]);
    }
    int from = TRANS == NoTrans ? row : lane, to = TRANS == NoTrans ? lane : row;
    for (int j = 0; j < sides; j += COLUMNS) {
        T x[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            x[c] = lane < n && j + c < b.cols ? b(from, j + c) : zero<T>();
        solve(entries, scale, lane, most, x);
        __syncwarp();
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            if (lane < n && j + c < b.cols) b(to, j + c) = x[c];
    }
}

template <class Source, class Pivots>
__device__ void getrs_rows(Source bs, Pivots pivots, int columns, const int4 *work, int period) {
    int4 item = work_item(work, period, blockIdx.x);
    Matrix<T> b = bs(item.x).at(0, item.y, 1 << 30, STRIP);
    Matrix<int> p = pivots(item.x);
    T *buffer = shared_memory<T>();
    int n = b.rows, threads = blockDim.x,
        *order = reinterpret_cast<int *>(buffer + (long long)columns * n);
    for (int i = threadIdx.x; i < n; i += threads) order[i] = i;
    __syncthreads();
    if (threadIdx.x == 0) {
#pragma unroll 4
        for (int k = 0; k < n; ++k) {
            int other = p(k, 0) - FIRST_ROW, row = order[k];
            order[k] = order[other], order[other] = row;
        }
    }
    for (int j = 0; j < b.cols; j += columns) {
        Matrix<T> part = b.at(0, j, n, columns);
        for (int k = 0; k < part.cols; ++k)
            for (int i = threadIdx.x; i < n; i += threads)
                copy_async<sizeof(T)>(buffer + k * n + i, &part(i, k), true);
        copy_async_commit();
        copy_async_wait<0>();
        __syncthreads();
        for (int k = 0; k < part.cols; ++k)
            for (int i = threadIdx.x; i < n; i += threads) {
                int row = order[i];
                part(TRANS == NoTrans ? i : row, k) = buffer[k * n + (TRANS == NoTrans ? row : i)];
            }
        __syncthreads();
    }
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(GETRS_THREADS) name( \
        Source<T> a, Source<int> pivots, Source<T> b, const int *order, int total, int share) { \
        getrs_tiny(a, pivots, b, order, total, share); \
    }

ENTRY(getrs_tiny_native, Native)
ENTRY(getrs_tiny_batched, Batched)
ENTRY(getrs_tiny_vbatched, Vbatched)

#define ROWS_ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(GETRS_THREADS) \
        name(Source<T> b, Source<int> pivots, int columns, const int4 *work, int period) { \
        getrs_rows(b, pivots, columns, work, period); \
    }
#undef ENTRY
#define ENTRY ROWS_ENTRY

ENTRY(getrs_rows_native, Native)
ENTRY(getrs_rows_batched, Batched)
ENTRY(getrs_rows_vbatched, Vbatched)
