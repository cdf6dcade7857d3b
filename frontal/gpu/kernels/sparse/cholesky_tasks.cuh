// How tasks of front_tiles.cu end for L·Lᴴ; a part of that file.
#pragma once
#include "sparse/tile_trailing.cuh"
#include "sparse/tile_copies.cuh"
#include "sparse/tile_lookahead.cuh"
#include "sparse/tile_square.cuh"

// Those that do not follow wait for the inverses alone, so they go out before L. This function and
// those after it are kept apart, since all in one would not fit the registers; spilled ones are
// dear here, where shared memory leaves little of the first-level cache.
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

// L(i,j), following the factor of the diagonal tile.
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

// L(i,i-1), and the tile whose factor is L(i,i): what the task (i,i) has stored less the square of
// L(i,i-1). What is stored is fetched into the tile that takes the factor which is followed, when
// of this the last columns alone are in use.
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

// L(i,j), when the inverse of the diagonal tile is there.
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
