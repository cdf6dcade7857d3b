// After front_tiles.cu with LU or LDL, which moves rows inside diagonal tiles: front_rows moves the
// rows of L left of each diagonal tile like those of the tile, as LAPACK's getrf does; then
// front_pivots converts the positions of rows to LAPACK's interchanges, from 1.
//
// The list has {front, tile, first column} for every PIVOT_COLUMNS columns left of a diagonal tile,
// and one entry for the first tile. Tile map: a block of front_rows takes one entry; most find no
// moved rows. Thread t owns row t % 64 of the tile, and every second group of 16 columns (8 of
// complex<double>). A block of front_pivots takes a tile. Static shared memory: four integers per
// row. Blocks do not wait for each other.
#include "sparse/front.cuh"

using T = SCALAR;
constexpr int SIZE = FRONT_TILE, threads = TILE_THREADS, EACH = sizeof(T) < 16 ? 16 : 8;

extern "C" __global__ void __launch_bounds__(threads) front_rows(
    const __grid_constant__ Fronts tree, const int4 *list, const int *places, T *factor) {
    int4 task = list[blockIdx.x];
    int s = task.x, i = task.y, first = task.z, row = threadIdx.x % SIZE;
    int w = min_(SIZE, pivots_of(tree, s) - i * SIZE);
    int place = row < w ? places[tree.start[s] + i * SIZE + row] : row;
    if (!__syncthreads_or(place != row)) return;
    Front<T> f;
    f.set(tree, s, factor);
    Matrix<T> left = f.lower(i).at(0, first, SIZE, min_(PIVOT_COLUMNS, i * SIZE - first));
    for (int begin = 0; begin < left.cols; begin += 2 * EACH) {
        int column = begin + threadIdx.x / SIZE * EACH;
        T v[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k)
            if (row < w && column + k < left.cols) v[k] = left(row, column + k);
        __syncthreads();
#pragma unroll
        for (int k = 0; k < EACH; ++k)
            if (row < w && column + k < left.cols) left(place, column + k) = v[k];
    }
}

extern "C" __global__ void __launch_bounds__(SIZE)
    front_pivots(const __grid_constant__ Fronts tree, const int4 *list, int *pivots) {
    __shared__ int wanted[SIZE], at[SIZE], row_at[SIZE];  // at: of rows, row_at: of places
    int4 task = list[blockIdx.x];
    if (task.z > 0) return;
    int row = threadIdx.x, i = task.y, w = min_(SIZE, pivots_of(tree, task.x) - i * SIZE);
    int *own = pivots + tree.start[task.x] + i * SIZE, place = row < w ? own[row] : row;
    wanted[place] = at[row] = row_at[row] = row;
    if (!__syncthreads_or(place != row)) {
        if (row < w) own[row] = i * SIZE + row + 1;
        return;
    }
    for (int r = 0; row == 0 && r < w; ++r) {
        int from = at[wanted[r]], other = row_at[r];
        own[r] = i * SIZE + from + 1;
        at[other] = from, row_at[from] = other;
    }
}
