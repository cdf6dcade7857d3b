// Final steps of the tasks of front_tiles.cu for L·D·Lᴴ; a part of that file.
#pragma once
#include "sparse/ldl_below.cuh"
#include "sparse/ldl_tile.cuh"
#include "sparse/tile_trailing.cuh"
#include "sparse/tile_copies.cuh"
#include "sparse/tile_lookahead.cuh"
#include "sparse/tile_square.cuh"

// Factor a diagonal tile; positions of rows are stored as for LU.
__device__ __noinline__ void finish_ldl(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.i, w = f.rows(j), row = threadIdx.x % SIZE,
        c = f.tree->start[f.s] + j * SIZE + row;
    T *block = work(), *inverse = assembled(), *ones = scratch();
    LdlTile<T> &ldl = *reinterpret_cast<LdlTile<T> *>(ones + SIZE);
    T *sent = j < task.sent_tiles ? messages(task, j) : nullptr;
    const signed char *signs = SIGNED ? tasks.signs + (c - row) : nullptr;
    int replaced = ldl.factor(block, w, {tasks.tiny, 1}, sent, signs);
    if (threadIdx.x < w) {
        tasks.pivots[c] = ldl.place[row], tasks.coupling[c] = ldl.coupling[row];
        tasks.diagonal[c] = pivot_value(block[row * (ld + 1)]);
        if (ldl.largest[row] > 0) tasks.largest[c] = ldl.largest[row];
    }
    if (threadIdx.x < SIZE) ones[row] = one<T>();
    __syncthreads();
    invert_lower(block, inverse, ones, w);
    keep_inverse(inverse, folded(task.row));
    if (threadIdx.x == 0 && replaced) {
        if (SIGNED) report_failure(tasks.outcome, c - row + replaced - 1);
        else atomicAdd(tasks.outcome + 1, replaced);
    }
    publish(task, tasks, j);
    Matrix<T> target = task.row.at(0, j * SIZE);
#pragma unroll 8
    for (int k = threadIdx.x / SIZE; k < w; k += threads / SIZE)
        if (row >= k && row < w)
            target(row, k) = row == k ? pivot_value(block[row * (ld + 1)]) : block[row + k * ld];
}

// 64 column numbers in scratch, behind D⁻¹.
__device__ inline int *order() {
    return reinterpret_cast<int *>(reinterpret_cast<ColumnInverse<T> *>(scratch()) + SIZE);
}

// Targets of L(i,j), of L(i,j)·D and of the largest entries of columns of L.
struct Below {
    Matrix<T> product, lower;
    float *largest;

    __device__ Below(const Task &task, const Tasks &tasks) {
        const Front<T> &f = task.front;
        int w = f.rows(task.j);
        lower = task.row.at(0, task.j * SIZE, SIZE, w), product = times_d(task, lower);
        largest = tasks.largest + f.tree->start[f.s] + task.j * SIZE;
    }
};

// Reciprocals of D while scratch() is in use: one behind each column of work().
__device__ inline T *kept_reciprocals() { return work() + SIZE; }

// Compute L = X·D⁻¹ for the first columns of the stored X, with these reciprocals of D.
__device__ __noinline__ void put_lower(
    const Task &task, const Tasks &tasks, const T *reciprocals, int step, int columns) {
    constexpr int EACH = 8, WAYS = threads / SIZE;
    Below below(task, tasks);
    int row = threadIdx.x % SIZE;
    if (row >= below.lower.rows) return;
#pragma unroll 1
    for (int first = threadIdx.x / SIZE; first < columns; first += EACH * WAYS) {
        T l[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) l[e] = below.product(row, first + e * WAYS);
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            int c = first + e * WAYS;
            below.lower(row, c) = l[e] = reciprocals[c * step] * l[e];
            if (!(abs1(l[e]) <= LIMIT))
                atomicMax(reinterpret_cast<int *>(below.largest + c), (int)size_of(l[e]));
        }
    }
}

// Compute L(i,j), following the factor of the diagonal tile while its pivots are of order 1. If
// `next`, also compute the tile whose factor is L(i,i): the tile stored by task (i,i) minus L·D·Lᴴ
// of L(i,i-1), fetched when only the last columns of the followed factor are still in use; L(i,i-1)
// itself, which no other task reads, is then not stored yet. Returns the first remaining column, or
// the tile's width; remaining columns are as Follower::follow leaves them.
__device__ __noinline__ int follow(const Task &task, const Tasks &tasks, bool next) {
    constexpr int LAST = SIZE - 16;
    const Front<T> &f = task.front;
    int i = task.i, w = f.rows(task.j), row = threadIdx.x % SIZE;
    Matrix<T> stored = task.row.at(0, i * SIZE);
    Below below(task, tasks);
    T *reciprocals = scratch();
    Follower<T> follower{assembled(), work(), messages(task, task.j), below.lower, order()};
    auto arrived = [&](int p) {
        if (threadIdx.x < 16) reciprocals[p + threadIdx.x] = work()[(p + threadIdx.x) * (ld + 1)];
        if (next && p == LAST) Square<T>::fetch(work(), stored);
    };
    auto waits = [&](int p) {
        if (next && p + 16 == LAST && threadIdx.x == threads - 1)
            wait_for(tasks.upper_done + f.tree->tile_row[f.s] + i, 1);
    };
    auto solved = [&](int p, const T(&x)[16]) {
        T *x_to = &below.product(row, p), *l_to = &below.lower(row, p);
        if (next) {
#pragma unroll
            for (int k = 0; k < 16; ++k, x_to += below.product.ld)
                if (row < below.lower.rows) *x_to = x[k];
            return;
        }
        bool large = false;
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            T l = work()[(p + k) * (ld + 1)] * x[k];
            if (row < below.lower.rows && p + k < w) *x_to = x[k], *l_to = l;
            x_to += below.product.ld, l_to += below.lower.ld;
            large |= !(abs1(l) <= LIMIT);
        }
        if (large)
            tell_large(assembled(), p, min_(p + 16, w), 1, below.largest,
                [](int, int c, T x) { return work()[c * (ld + 1)] * x; });
    };
    int end = follower.follow(w, arrived, waits, solved);
    if (end < w) {
        if (next) put_lower(task, tasks, reciprocals, 1, end);
        return end;
    }
    if (threadIdx.x == 0) release(tasks.done + f.tree->tile_row[f.s] + i, task.j + 1);
    if (!next) return w;
    Square<T>::subtract(work(), assembled(), stored.rows, ScaledBy<T>{reciprocals, 1});
    if (threadIdx.x < SIZE) kept_reciprocals()[row * ld] = reciprocals[row];
    __syncthreads();
    return w;
}

// Compute the tile from column p on as L·D, when the diagonal tile and its inverse are published;
// D⁻¹ goes to scratch().
__device__ __noinline__ void solve_rest(const Task &task, const Tasks &tasks, int p) {
    int first = task.front.tree->start[task.front.s] + task.j * SIZE;
    auto blocks = reinterpret_cast<ColumnInverse<T> *>(scratch());
    TileTimesInverse<T> rest;
    const int *began = follows(task) ? order() : nullptr;
    multiply_rest(rest, task, tasks, task.kept, true, p, began, [&] {
        if (threadIdx.x < task.front.rows(task.j))
            blocks[threadIdx.x].set(tasks.diagonal + first, tasks.coupling + first);
    });
    __syncwarp();  // each warp has its own rows
    rest.each([&](int r, int c, T &v) { assembled()[r + c * ld] = v; });
}

// Compute L(i,j) and L(i,j)·D from column p on.
__device__ __noinline__ void finish_below(const Task &task, const Tasks &tasks, int p) {
    const Front<T> &f = task.front;
    solve_rest(task, tasks, p);
    __syncthreads();
    Below to(task, tasks);
    put_divided(
        assembled(), p, f.rows(task.j), to.product, to.lower, to.largest, [](int r, int c, T x) {
            auto by = reinterpret_cast<const ColumnInverse<T> *>(scratch())[c];
            return fma_(by.other, assembled()[r + by.partner * ld], by.own * x);
        });
    publish(task, tasks, task.j);
}

// Afterwards, compute the tile whose factor is L(i,i).
__device__ __noinline__ void prepare_diagonal(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int i = task.i;
    Below below(task, tasks);
    if (threadIdx.x == 0) wait_for(tasks.upper_done + f.tree->tile_row[f.s] + i, 1);
    fetch_tile(work(), below.product);
    fetch_tile(assembled(), below.lower);
    copy_async_wait<0>();
    __syncthreads();
    subtract_product(work(), assembled(), task.row.at(0, i * SIZE));
}
