// The end of tiles beside a diagonal tile that they do not follow, or not to its last column; a
// part of front_tiles.cu.
#pragma once
#include "sparse/tile_copies.cuh"
#include "sparse/tile_follow.cuh"
#include "sparse/tile_inverse.cuh"

// Move column c < w of the tile to place[c]. Ends with a barrier if anything moves.
__device__ inline void interchange_columns(T *tile, const int *place, int w) {
    constexpr int EACH = 8, ROWS = 16;
    int own = threadIdx.x < w ? place[threadIdx.x] : (int)threadIdx.x;
    if (!__syncthreads_or(own != threadIdx.x)) return;
    int first = threadIdx.x / ROWS * EACH;
#pragma unroll 1
    for (int r = threadIdx.x % ROWS; r < SIZE; r += ROWS) {
        T v[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) v[e] = tile[r + (first + e) * ld];
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            if (first + e < w) tile[r + place[first + e] * ld] = v[e];
    }
    __syncthreads();
}

// rest ← the tile from column p on times one of the inverses of the diagonal tile, when these are
// there; if it `moves`, with columns interchanged as rows of that tile. Precondition: columns
// before p are solved for, 16 columns from p on have their product subtracted, and work() has the
// columns before p of the factor, with rows as they were sent. `other` is done by all while the
// inverse is on its way.
template <class Other = Nothing>
__device__ __forceinline__ void multiply_rest(TileTimesInverse<T> &rest, const Task &task,
    const Tasks &tasks, const T *inverses, bool moves, int p, Other other = {}) {
    const Front<T> &f = task.front;
    int j = task.j, w = f.rows(j);
    T *tile = assembled(), *inverse = work();
#pragma unroll 1
    for (int c = p + 16; p && c < SIZE; c += 16) subtract_left(tile, inverse, c, p);
    wait_for_diagonal(task, tasks);
    const T *kept = inverses + f.tree->inverse[f.s] + (long long)j * SIZE * SIZE;
    fetch_tile(inverse, Matrix<const T>{kept, w, w, w});
    other();
    if (moves) interchange_columns(tile, tasks.pivots + f.tree->start[f.s] + j * SIZE, w);
    for (int e = threadIdx.x; e < p * SIZE; e += threads)
        tile[e % SIZE + e / SIZE * ld] = zero<T>();
    copy_async_wait<0>();
    __syncthreads();
    rest.multiply(tile, inverse);
}
