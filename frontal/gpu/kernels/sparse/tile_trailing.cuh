// The end of tiles beside a diagonal tile that they do not follow, or not to its last column; a
// part of front_tiles.cu.
#pragma once
#include "sparse/tile_copies.cuh"
#include "sparse/tile_lookahead.cuh"
#include "sparse/tile_inverse.cuh"

// Where a column goes, if it came to column c of the tile as column began[c]; null for c itself.
struct Places {
    const int *place, *began;
    __device__ int operator[](int c) const { return place[began ? began[c] : c]; }
};

// rest ← the tile from column p on times the inverse of the diagonal tile that is `kept`, when it is
// there; if it `moves`, with columns interchanged as rows of that tile, beginning with those that
// `began` names. Precondition: columns before p are solved for, and their product is subtracted from
// the others. `other` is done by all while the inverse is on its way.
template <class Other = Nothing>
__device__ __forceinline__ void multiply_rest(TileTimesInverse<T> &rest, const Task &task,
    const Tasks &tasks, Triangle<T> kept, bool moves, int p, const int *began = nullptr,
    Other other = {}) {
    const Front<T> &f = task.front;
    int j = task.j, w = f.rows(j);
    T *tile = assembled(), *inverse = work();
    wait_for_diagonal(task, tasks);
    fetch_inverse(inverse, kept, LU && moves);  // of L, which is where columns of U move
    other();
    const int *places = tasks.pivots + f.tree->start[f.s] + j * SIZE;
    if (moves) interchange_columns(tile, Places{places, began}, w);
    for (int e = threadIdx.x; e < p * SIZE; e += threads)
        tile[e % SIZE + e / SIZE * ld] = zero<T>();
    copy_async_wait<0>();
    __syncthreads();
    rest.multiply(tile, inverse);
}
