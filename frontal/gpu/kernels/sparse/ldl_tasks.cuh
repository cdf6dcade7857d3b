// How tasks of front_tiles.cu end for L·D·Lᴴ; a part of that file.
#pragma once
#include "sparse/ldl_below.cuh"
#include "sparse/ldl_tile.cuh"
#include "sparse/rest_tasks.cuh"
#include "sparse/tile_copies.cuh"
#include "sparse/tile_follow.cuh"
#include "sparse/tile_square.cuh"

// In scratch, behind D⁻¹: 64 numbers of columns.
__device__ inline int *order() {
    return reinterpret_cast<int *>(reinterpret_cast<ColumnInverse<T> *>(scratch()) + SIZE);
}

// Where L(i,j), L(i,j)·D and the largest entries of columns of L go.
struct Below {
    Matrix<T> product, lower;
    float *largest;

    __device__ Below(const Task &task, const Tasks &tasks) {
        const Front<T> &f = task.front;
        int w = f.rows(task.j);
        product = second_factor(task, task.i).at(0, task.j * SIZE, SIZE, w);
        lower = f.lower(task.i).at(0, task.j * SIZE, SIZE, w);
        largest = tasks.largest + f.tree->start[f.s] + task.j * SIZE;
    }
};

// Put columns first… before `end` there: by all threads, or by half of them.
template <class Divided>
__device__ __noinline__ void put(Below to, int first, int end, Divided divided) {
    int begin = first + threadIdx.x / SIZE;
    put_divided<2>(assembled(), begin, end, to.product, to.lower, divided);
    tell_largest<threads>(assembled(), first, end, to.largest, divided);
}
template <class Divided>
__device__ __noinline__ void put_by_half(Below to, int first, int end, Divided divided) {
    put_divided<1>(assembled(), first, end, to.product, to.lower, divided);
    tell_largest<threads / 2>(assembled(), first, end, to.largest, divided);
}

// What the factor of L(i,i) need not wait for: the last columns of L(i,i-1), which is then told to
// others. By the threads from 64 on.
struct PutLast {
    static constexpr int EACH = 8, steps = 16 / EACH + 1;
    const Task &task;
    const Tasks &tasks;
    bool wanted;

    __device__ void operator()(int step) const {
        if (!wanted) return;
        int first = SIZE - 16 + EACH * step;
        if (step + 1 < steps)
            put_by_half(Below(task, tasks), first, first + EACH,
                [](int, int c, T x) { return scratch()[c] * x; });
        else if (threadIdx.x == threads - 1)
            release(tasks.done + task.front.tree->tile_row[task.front.s] + task.i, task.i);
    }
};

// Where rows go is kept as for LU. If something is `left` of L(i,i-1), that is done meanwhile.
__device__ __noinline__ void finish_ldl(const Task &task, const Tasks &tasks, bool left) {
    const Front<T> &f = task.front;
    int j = task.i, w = f.rows(j), row = threadIdx.x % SIZE,
        c = f.tree->start[f.s] + j * SIZE + row;
    T *block = work(), *inverse = assembled(), *ones = scratch();
    LdlTile<T> &ldl = *reinterpret_cast<LdlTile<T> *>(ones + SIZE);
    T *sent = j < task.sent_tiles ? messages(task, j) : nullptr;
    int replaced = ldl.factor(block, w, {tasks.tiny, 1}, sent, PutLast{task, tasks, left});
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

// L·D takes the place of one that others read up to two levels below; by the last two threads.
__device__ inline void wait_for_place(const Task &task, const Tasks &tasks) {
    int below = 1 + threads - (int)threadIdx.x;
    if (below <= 3 && task.level >= below)
        wait_for(tasks.level + task.level - below, tasks.level_count[task.level - below]);
}

// L(i,j), following the factor of the diagonal tile while its pivots are of order 1; and if `next`,
// the tile whose factor is L(i,i): what the task (i,i) has stored less L·D·Lᴴ of L(i,i-1), fetched
// when of the factor that is followed the last columns alone are in use; and then the last columns
// of L(i,i-1) are left for PutLast. Returns the first column that is left, if there is one; then it
// is as Follower::follow leaves it.
__device__ __noinline__ int follow(const Task &task, const Tasks &tasks, bool next) {
    constexpr int LAST = SIZE - 16;
    const Front<T> &f = task.front;
    int i = task.i, w = f.rows(task.j);
    Matrix<T> stored = f.lower(i).at(0, i * SIZE);
    Below below(task, tasks);
    T *reciprocals = scratch();
    auto divided = [](int, int c, T x) { return scratch()[c] * x; };
    Follower<T> follower{assembled(), work(), messages(task, task.j), below.lower, order()};
    auto arrived = [&](int p) {
        if (threadIdx.x < 16) reciprocals[p + threadIdx.x] = work()[(p + threadIdx.x) * (ld + 1)];
        if (next && p == LAST) Square<T>::fetch(work(), stored);
    };
    auto waits = [&](int p) {
        if (p == 0) wait_for_place(task, tasks);
        if (next && p + 16 == LAST && threadIdx.x == threads - 1)
            wait_for(tasks.upper_done + f.tree->tile_row[f.s] + i, 1);
    };
    int end = follower.follow(
        w, arrived, waits, [&](int p) { put(below, p, p + 16, divided); });
    if (end < w) return end;
    if (next) {
        Square<T>::subtract(work(), assembled(), stored.rows, ScaledBy<T>{reciprocals, 1});
    } else {
        put(below, (w - 1) / 16 * 16, w, divided);
        publish(task, tasks, task.j);
    }
    return w;
}

// The tile from column p on as L·D, when the diagonal tile and its inverse are there, with D⁻¹ in
// scratch().
__device__ __noinline__ void solve_rest(const Task &task, const Tasks &tasks, int p) {
    int first = task.front.tree->start[task.front.s] + task.j * SIZE;
    auto blocks = reinterpret_cast<ColumnInverse<T> *>(scratch());
    wait_for_place(task, tasks);
    TileTimesInverse<T> rest;
    const int *began = follows(task) ? order() : nullptr;
    multiply_rest(rest, task, tasks, tasks.inverses, true, p, began, [&] {
        if (threadIdx.x < task.front.rows(task.j))
            blocks[threadIdx.x].set(tasks.diagonal + first, tasks.coupling + first);
    });
    __syncwarp();  // a warp has rows of its own
    rest.each([&](int r, int c, T &v) { assembled()[r + c * ld] = v; });
}

// L(i,j) and L(i,j)·D from column p on.
__device__ __noinline__ void finish_below(const Task &task, const Tasks &tasks, int p) {
    const Front<T> &f = task.front;
    solve_rest(task, tasks, p);
    __syncthreads();
    put(Below(task, tasks), p, f.rows(task.j), [](int r, int c, T x) {
        auto by = reinterpret_cast<const ColumnInverse<T> *>(scratch())[c];
        return fma_(by.other, assembled()[r + by.partner * ld], by.own * x);
    });
    publish(task, tasks, task.j);
}

// The tile whose factor is L(i,i), after that.
__device__ __noinline__ void prepare_diagonal(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int i = task.i;
    Below below(task, tasks);
    if (threadIdx.x == 0) wait_for(tasks.upper_done + f.tree->tile_row[f.s] + i, 1);
    fetch_tile(work(), below.product);
    fetch_tile(assembled(), below.lower);
    copy_async_wait<0>();
    __syncthreads();
    subtract_product(work(), assembled(), f.lower(i).at(0, i * SIZE));
}
