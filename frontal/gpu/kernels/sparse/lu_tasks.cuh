// How tasks of front_tiles.cu end for L·U; a part of that file.
//
// Pivots are the largest of their columns in the diagonal tile, however small. What this makes of L
// below the tile is looked at when all is computed, and nothing waits for it: `largest` tells the
// host of columns with entries beyond LIMIT, which belong into the parent of the front.
#pragma once
#include "sparse/getf2_tile.cuh"
#include "sparse/tile_copies.cuh"
#include "sparse/tile_inverse.cuh"

// Where rows go: pivots[start + …] holds the place of each row of a diagonal tile until all is done
// (front_pivots makes LAPACK's interchanges of it). A column that is null in the tile, and has a
// part elsewhere, is infinite in `largest`.
__device__ __noinline__ void finish_lu(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.j, w = f.rows(j), row = threadIdx.x % SIZE;
    T *block = work(), *lower = assembled(), *ones = scratch(), *scales = ones + SIZE,
      *upper = scales + SIZE;
    LuTile<T> &lu = *reinterpret_cast<LuTile<T> *>(upper + (TWO_INVERSES ? tile_elements<T> : 0));
    bool all = f.m == 0 && j == f.pivot_tiles - 1;
    lu.factor(block, w, {tasks.tiny, real_t<T>(all ? 0 : 1)});
    if (threadIdx.x < w) {
        int c = f.tree->start[f.s] + j * SIZE + row;
        tasks.pivots[c] = lu.place[row];
        if (lu.replaced[row / 32] >> row % 32 & 1)
            tasks.largest[c] = __uint_as_float(0x7f800000u), atomicAdd(tasks.outcome + 1, 1);
    }
    if (threadIdx.x < SIZE)
        ones[row] = one<T>(), scales[row] = pivot_reciprocal(block[row * (ld + 1)]);
    __syncthreads();
    if constexpr (TWO_INVERSES) invert_both(block, lower, upper, ones, scales, w);
    else invert_lower(block, lower, ones, w);
    long long offset = f.tree->inverse[f.s] + (long long)j * SIZE * SIZE;
    keep_inverse(lower, tasks.inverses + offset, w);
    if constexpr (!TWO_INVERSES) {
        __syncthreads();
        invert_lower<true>(block, lower, scales, w);
        upper = lower;
    }
    keep_inverse(upper, tasks.upper_inverses + offset, w);
    publish(task, tasks, j);
    publish(task, tasks, j, true);
    Matrix<T> target = f.lower(j).at(0, j * SIZE);
#pragma unroll 8
    for (int c = threadIdx.x / SIZE; c < w; c += threads / SIZE)
        if (row < w) target(row, c) = block[row + c * ld];
}

// To `largest`, by columns, the sizes of entries beyond LIMIT of a tile of L with w columns.
__device__ inline void tell_large(TileTimesInverse<T> &below, float *largest, int w) {
    below.each([&](int, int c, T &v) {
        unsigned size = size_of(v);
        if (c < w && !(__uint_as_float(size) <= LIMIT))
            atomicMax(reinterpret_cast<int *>(largest + c), (int)size);
    });
}
