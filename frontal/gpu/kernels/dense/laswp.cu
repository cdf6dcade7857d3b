// Row interchanges of LU panels in the other columns.
//
// laswp applies the panels of columns from… before `to` to columns to… before `end`. Tile map: a
// work item is a strip of columns, one block each, whose warps apply the list of moves of each
// panel in turn; no shared memory. If LEFT: applies to columns from… the panels of later groups of
// `end` columns before `to`.
// laswp_left applies panels to the columns on their left. Tile map: a work item is the columns of
// one panel, one block each, which apply the panels of all later groups of `group` columns. The
// lists are first composed to one permutation of rows; columns then pass through dynamic shared
// memory, `columns` at a time: columns·rows elements and an int for each row, of the tallest
// matrix.
// The method is in laswp.cuh. Blocks do not wait for each other.
//   PANEL  columns of a panel
//   moves  lists of getrf_panel.cu, `panels` per matrix
#include "dense/gemm.cuh"
#include "dense/laswp.cuh"

#ifndef PANEL
#define PANEL 16
#endif
#ifndef LEFT
#define LEFT 0
#endif

using T = SCALAR;
constexpr int LASWP_THREADS = 128, LASWP_WIDTH = LEFT ? PANEL : 32;

template <class Source>
__device__ void laswp(Source source, int from, int to, int end, const int *moves, int panels,
    const int4 *work, int period) {
    int4 item = work_item(work, period, blockIdx.x);
    Matrix<T> a = source(item.x);
    const int *lists = moves + (long long)item.x * panels * moves_size<PANEL>;
    int column = (LEFT ? from : to) + item.y,
        width = LEFT ? PANEL : min_(LASWP_WIDTH, end - column);
    for (int j = LEFT ? (column / end + 1) * end : from; j < min_(to, min_(a.rows, a.cols));
        j += PANEL)
        move_rows<PANEL, 2>(lists + j / PANEL * moves_size<PANEL>, a.at(j, column, a.rows, width),
            0, LASWP_THREADS / 32);
}

// Compose the permutation of rows first… by the panels from column `first` on: order[i] is the
// source of row i. A barrier of the block separates reads and writes of `order`.
__device__ void compose(const int *lists, int first, int rows, int steps, int *order) {
    for (int i = threadIdx.x; i < rows; i += blockDim.x) order[i] = i;
    __syncthreads();
    for (int j = first; j < steps; j += PANEL) {
        const int *list = lists + j / PANEL * moves_size<PANEL>;
        bool some = (int)threadIdx.x < list[0];
        int row = some ? order[j - first + list[2 + 2 * threadIdx.x]] : 0;
        __syncthreads();
        if (some) order[j - first + list[1 + 2 * threadIdx.x]] = row;
        __syncthreads();
    }
}

template <class Source>
__device__ void laswp_left(Source source, int group, const int *moves, int panels, int columns,
    const int4 *work, int period) {
    int4 item = work_item(work, period, blockIdx.x);
    Matrix<T> a = source(item.x);
    int first = (item.y / group + 1) * group, steps = min_(a.rows, a.cols), threads = blockDim.x;
    if (first >= steps) return;
    Matrix<T> c = a.at(first, item.y, a.rows, PANEL);
    T *buffer = shared_memory<T>();
    int *order = reinterpret_cast<int *>(buffer + (long long)columns * a.rows);
    compose(moves + (long long)item.x * panels * moves_size<PANEL>, first, c.rows, steps, order);
    for (int j = 0; j < c.cols; j += columns) {
        Matrix<T> part = c.at(0, j, c.rows, columns);
        for (int k = 0; k < part.cols; ++k)
            for (int i = threadIdx.x; i < part.rows; i += threads)
                copy_async<sizeof(T)>(buffer + k * part.rows + i, &part(i, k), true);
        copy_async_commit();
        copy_async_wait<0>();
        __syncthreads();
        for (int i = threadIdx.x; i < part.rows; i += threads) {
            int row = order[i];
            if (row != i)
                for (int k = 0; k < part.cols; ++k) part(i, k) = buffer[k * part.rows + row];
        }
        __syncthreads();
    }
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(LASWP_THREADS) name(Source<T> a, int from, \
        int to, int end, const int *moves, int panels, const int4 *work, int period) { \
        laswp(a, from, to, end, moves, panels, work, period); \
    }

ENTRY(laswp_native, Native)
ENTRY(laswp_batched, Batched)
ENTRY(laswp_vbatched, Vbatched)

#define LEFT_ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(LASWP_THREADS) name(Source<T> a, int group, \
        const int *moves, int panels, int columns, const int4 *work, int period) { \
        laswp_left(a, group, moves, panels, columns, work, period); \
    }
#undef ENTRY
#define ENTRY LEFT_ENTRY

ENTRY(laswp_left_native, Native)
ENTRY(laswp_left_batched, Batched)
ENTRY(laswp_left_vbatched, Vbatched)
