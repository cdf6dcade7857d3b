// Final steps of tiles beside a diagonal tile that they do not follow, or not to its last column; a
// part of front_tiles.cu.
#pragma once
#include "sparse/tile_copies.cuh"
#include "sparse/tile_lookahead.cuh"
#include "sparse/tile_inverse.cuh"

// The target of column c, which came to its place as column began[c] of the tile, or as c if
// `began` is null.
struct Places {
    const int *place, *began;
    __device__ int operator[](int c) const { return place[began ? began[c] : c]; }
};

// rest ← the tile from column p on times the inverse `kept` of the diagonal tile, when it is
// published. If `moves`, columns are first interchanged like rows of that tile, with initial
// numbers `began`. Precondition: columns before p are solved for, and their product is subtracted
// from the others. All threads call `other` while the inverse is copied.
template <class Other = Nothing>
__device__ __forceinline__ void multiply_rest(TileTimesInverse<T> &rest, const Task &task,
    const Tasks &tasks, Triangle<T> kept, bool moves, int p, const int *began = nullptr,
    Other other = {}) {
    const Front<T> &f = task.front;
    int j = task.j, w = f.rows(j);
    T *tile = assembled(), *inverse = work();
    wait_for_diagonal(task, tasks);
    fetch_inverse(inverse, kept, LU && moves);  // of L, where columns of U move
    other();
    const int *places = tasks.pivots + f.tree->start[f.s] + j * SIZE;
    if (moves) interchange_columns(tile, Places{places, began}, w);
    for (int e = threadIdx.x; e < p * SIZE; e += threads)
        tile[e % SIZE + e / SIZE * ld] = zero<T>();
    copy_async_wait<0>();
    __syncthreads();
    rest.multiply(tile, inverse);
}
