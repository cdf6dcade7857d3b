// A panel of LU with partial pivoting: columns j0… of each matrix, from row j0 down.
//
// Tile map: one block per matrix. Thread t owns rows t, t + threads, … of the panel, ROWS of them,
// in registers; rows are written to their positions after all interchanges. Threads: a multiple of
// 32 with threads·ROWS at least the rows of the tallest panel. Dynamic shared memory:
// Panel::shared_bytes. Other columns are not changed: `moves` lists their row moves, in
// moves_size<PANEL> integers per panel, `panels` panels per matrix.
// The panel is LAPACK's getf2 (Anderson et al., "LAPACK users' guide", 1999), except that rows are
// not moved until the end (getf2.cuh).
//   PANEL  columns of a panel
//   ROWS   rows of a thread
//   order  matrices by size that still have panels; null for their own order
#include "dense/getf2.cuh"
#include "dense/laswp.cuh"

#ifndef PANEL
#define PANEL 16
#endif
#ifndef ROWS
#define ROWS 1
#endif

using T = SCALAR;
constexpr int PANEL_THREADS = 512;

template <class Source, class Pivots>
__device__ void getrf_panel(Source source, Pivots pivots, const int *order, int j0, int *moves,
    int panels, int *info, real_t<T> tiny) {
    __shared__ int list[moves_size<PANEL>], found[PANEL];
    int b = order ? order[blockIdx.x] : blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    Matrix<T> a = source(b);
    int steps = min_(PANEL, min_(a.rows, a.cols) - j0);
    if (steps <= 0) return;
    a = a.at(j0, j0, a.rows, steps);
    int position[ROWS];
    T entries[ROWS][PANEL];
#pragma unroll
    for (int q = 0; q < ROWS; ++q) {
        int row = thread + q * threads;
        position[q] = row < a.rows ? row : -1;
        T *entry = a.data + row;
#pragma unroll
        for (int k = 0; k < PANEL; ++k, entry += a.ld)
            entries[q][k] = position[q] >= 0 && k < steps ? *entry : zero<T>();
    }
    if (thread == 0) list[0] = 0;
    int failure = Panel<T, PANEL, ROWS>::factor(
        entries, position, steps, shared_memory<unsigned char>(), found, tiny);
#pragma unroll
    for (int q = 0; q < ROWS; ++q) {
        T *entry = a.data + position[q];
#pragma unroll
        for (int k = 0; k < PANEL; ++k, entry += a.ld)
            if (position[q] >= 0 && k < steps) *entry = entries[q][k];
        add_move(list, position[q], thread + q * threads);
    }
    __syncthreads();
    int *target = moves + ((long long)b * panels + j0 / PANEL) * moves_size<PANEL>;
    for (int i = thread; i <= 2 * list[0]; i += threads) target[i] = list[i];
    if (thread < steps) pivots(b)(j0 + thread, 0) = j0 + found[thread] + FIRST_ROW;
    if (thread == 0) info[b] = combined_info(j0 ? info[b] : 0, failure, j0);
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(PANEL_THREADS) \
        name(Source<T> a, Source<int> pivots, const int *order, int j0, int *moves, int panels, \
            int *info, real_t<T> tiny) { \
        getrf_panel(a, pivots, order, j0, moves, panels, info, tiny); \
    }

ENTRY(getrf_panel_native, Native)
ENTRY(getrf_panel_batched, Batched)
ENTRY(getrf_panel_vbatched, Vbatched)
