// How tasks of front_tiles.cu end for L·D·Lᴴ; a part of that file.
#pragma once
#include "sparse/ldl_below.cuh"
#include "sparse/ldl_tile.cuh"
#include "sparse/tile_copies.cuh"
#include "sparse/tile_inverse.cuh"

// Where rows go is kept as for LU.
__device__ __noinline__ void finish_ldl(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.i, w = f.rows(j), row = threadIdx.x % SIZE,
        c = f.tree->start[f.s] + j * SIZE + row;
    T *block = work(), *inverse = assembled(), *ones = scratch();
    LdlTile<T> &ldl = *reinterpret_cast<LdlTile<T> *>(ones + SIZE);
    bool all = f.m == 0 && j == f.pivot_tiles - 1;
    int replaced = ldl.factor(block, w, {tasks.tiny, real_t<T>(all ? 0 : 1)});
    if (threadIdx.x < w) {
        tasks.pivots[c] = ldl.place[row], tasks.coupling[c] = ldl.coupling[row];
        tasks.diagonal[c] = pivot_value(block[row * (ld + 1)]);
        if (ldl.largest[row] > 0) tasks.largest[c] = ldl.largest[row];
    }
    if (threadIdx.x < SIZE) ones[row] = one<T>();
    __syncthreads();
    invert_lower(block, inverse, ones, w);
    keep_inverse(inverse, tasks.inverses + f.tree->inverse[f.s] + (long long)j * SIZE * SIZE, w);
    if (threadIdx.x == 0 && replaced) atomicAdd(tasks.outcome + 1, replaced);
    publish(task, tasks, j);
    Matrix<T> target = f.lower(j).at(0, j * SIZE);
#pragma unroll 8
    for (int k = threadIdx.x / SIZE; k < w; k += threads / SIZE)
        if (row >= k && row < w)
            target(row, k) = row == k ? pivot_value(block[row * (ld + 1)]) : block[row + k * ld];
}

// L(i,j) and L(i,j)·D. The product takes the place of one that others read up to two levels below.
// If `next`, L goes to assembled(), too, and L·D stays in work().
__device__ __noinline__ void finish_below(const Task &task, const Tasks &tasks, bool next) {
    const Front<T> &f = task.front;
    int i = task.i, j = task.j, w = f.rows(j), first = f.tree->start[f.s] + j * SIZE;
    fetch_tile(
        assembled(), tasks.inverses + f.tree->inverse[f.s] + (long long)j * SIZE * SIZE, w, w);
    if (threadIdx.x < 2 && task.level >= 2 + threadIdx.x)
        wait_for(tasks.level + task.level - 2 - threadIdx.x,
            tasks.level_count[task.level - 2 - threadIdx.x]);
    interchange_columns(work(), tasks.pivots + first, w);
    copy_async_wait<0>();
    __syncthreads();
    TileTimesInverse<T> below;
    below.multiply(work(), assembled());
    __syncwarp();  // a warp has rows of its own
    below.each([&](int r, int c, T &v) { work()[r + c * ld] = v; });
    auto inverse = reinterpret_cast<ColumnInverse<T> *>(scratch());
    if (threadIdx.x < w) inverse[threadIdx.x].set(tasks.diagonal + first, tasks.coupling + first);
    __syncthreads();
    put_divided(work(), inverse, second_factor(task, i).at(0, j * SIZE), f.lower(i).at(0, j * SIZE),
        tasks.largest + first, w, next ? assembled() : nullptr);
    publish(task, tasks, j);
}

// The tile whose factor is L(i,i): what the task (i,i) has stored less L·D·Lᴴ of L(i,i-1).
__device__ __noinline__ void prepare_diagonal(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int i = task.i;
    if (threadIdx.x == 0) wait_for(tasks.upper_done + f.tree->tile_row[f.s] + i, 1);
    __syncthreads();
    subtract_product(work(), assembled(), f.lower(i).at(0, i * SIZE));
}
