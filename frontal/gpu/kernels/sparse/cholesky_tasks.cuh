// Final steps of the tasks of front_tiles.cu for L·Lᴴ; a part of that file.
#pragma once
#include "sparse/tile_trailing.cuh"
#include "sparse/tile_copies.cuh"
#include "sparse/tile_lookahead.cuh"
#include "sparse/tile_square.cuh"

// Factor a diagonal tile. Tiles that do not follow wait only for the inverse, so it is published
// before L is stored. This function and the next ones are not inlined: together they exceed the
// registers, and spills are expensive, because shared memory leaves little first-level cache.
__device__ __noinline__ void finish_cholesky(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.i, w = f.rows(j);
    T *block = work(), *inverse = assembled();
    auto scales = reinterpret_cast<real_t<T> *>(scratch());
    int failed = potrf_tile(block, inverse, scales, w, [&](int p) {
        if (j < task.sent_tiles) send_columns<8>(messages(task, j), block, p);
    });
    keep_inverse(inverse, f.inverse(task.row));
    if (threadIdx.x == 0 && failed)
        report_failure(tasks.outcome, f.tree->start[f.s] + j * SIZE + failed - 1);
    publish(task, tasks, j);
    if (f.inverted()) return;
    Matrix<T> target = task.row.at(0, j * SIZE);
#pragma unroll 8
    for (int e = threadIdx.x; e < SIZE * SIZE; e += threads) {
        int r = e % SIZE, c = e / SIZE;
        if (r >= c && r < w) target(r, c) = block[r + c * ld];
    }
}

// Compute L(i,j), following the factor of the diagonal tile.
__device__ __noinline__ void follow(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.j, w = f.rows(j);
    Matrix<T> target = task.row.at(0, j * SIZE, SIZE, w);
    Follower<T> follower{assembled(), work(), messages(task, j), target};
    follower.begin();
#pragma unroll 1
    for (int p = 0; p < w; p += 16) {
        follower.arrive(p);
        follower.solve(p);
        if (p + 16 < w) follower.prepare(p + 16);
    }
    publish(task, tasks, j);
}

// Compute L(i,i-1), and the tile whose factor is L(i,i): the tile stored by task (i,i) minus the
// square of L(i,i-1). The stored tile is fetched over the factor that is followed, when only the
// last columns of that factor are still in use.
__device__ __noinline__ void prepare_diagonal(const Task &task, const Tasks &tasks) {
    constexpr int LAST = SIZE - 16;
    const Front<T> &f = task.front;
    int i = task.i, j = task.j, row = f.tree->tile_row[f.s] + i;
    Matrix<T> target = task.row.at(0, j * SIZE, SIZE, SIZE);
    Follower<T> follower{assembled(), work(), messages(task, j), target};
    follower.begin();
#pragma unroll 1
    for (int p = 0; p < LAST; p += 16) {
        follower.arrive(p);
        if (p + 16 == LAST && threadIdx.x == threads - 1) wait_for(tasks.upper_done + row, 1);
        follower.solve(p);
        follower.prepare(p + 16);
    }
    follower.arrive(LAST);
    Square<T>::fetch(work(), task.row.at(0, i * SIZE));
    follower.solve(LAST);
    if (threadIdx.x == 0) release(tasks.done + row, i);
    Square<T>::subtract(work(), assembled(), f.rows(i));
}

// Compute L(i,j), when the inverse of the diagonal tile is published.
__device__ __noinline__ void finish_below(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.j;
    TileTimesInverse<T> below;
    multiply_rest(below, task, tasks, task.kept, false, 0);
    Matrix<T> target = task.row.at(0, j * SIZE, SIZE, f.rows(j));
    below.each([&](int r, int c, T &v) {
        if (r < target.rows && c < target.cols) target(r, c) = v;
    });
    publish(task, tasks, j);
}
