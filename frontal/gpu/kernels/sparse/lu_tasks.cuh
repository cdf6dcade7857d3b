// Final steps of the tasks of front_tiles.cu for L·U; a part of that file.
//
// Pivots are the largest entries of their columns in the diagonal tile, however small. The
// resulting entries of L below the tile are checked when all is computed, and nothing waits for
// that: `largest` reports columns with entries beyond LIMIT to the host, which delays these columns
// to the parent.
#pragma once
#include "sparse/getf2_tile.cuh"
#include "sparse/tile_trailing.cuh"
#include "sparse/tile_copies.cuh"

// Factor a diagonal tile. pivots[start + …] holds the position of each row of the tile until all
// tasks are done (front_pivots converts it to LAPACK's interchanges). `largest` is infinite for a
// column that is null in the tile.
__device__ __noinline__ void finish_lu(const Task &task, const Tasks &tasks) {
    const Front<T> &f = task.front;
    int j = task.j, w = f.rows(j), row = threadIdx.x % SIZE;
    T *block = work(), *lower = assembled(), *ones = scratch(), *scales = ones + SIZE,
      *upper = scales + SIZE;
    LuTile<T> &lu = *reinterpret_cast<LuTile<T> *>(upper + (TWO_INVERSES ? tile_elements<T> : 0));
    T *sent = j < task.sent_tiles ? messages(task, j) : nullptr;
    lu.factor(block, w, {tasks.tiny, 1}, sent);
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
    keep_inverse<true>(lower, f.inverse(j));
    if constexpr (!TWO_INVERSES) {
        __syncthreads();
        invert_lower<true>(block, lower, scales, w);
        upper = lower;
    }
    keep_inverse(upper, f.inverse(j, true));
    publish(task, tasks, j);
    publish(task, tasks, j, true);
}

// Targets of the entries of L(i,j), or of its counterpart of the transpose of U, and of the largest
// ones of L.
struct Beside {
    T *data;
    int rows, cols, down, right;
    bool upper, within;  // within U11, which is not transposed
    float *largest;

    __device__ Beside(const Task &task, const Tasks &tasks) {
        const Front<T> &f = task.front;
        int i = task.i, j = task.j;
        upper = task.part == UPPER_PART, within = upper && i < f.pivot_tiles;
        Matrix<T> target = upper && !within ? f.upper(i) : f.lower(within ? j : i);
        data = target.at(0, (within ? i : j) * SIZE).data, rows = f.rows(i), cols = f.rows(j);
        down = within ? target.ld : 1, right = within ? 1 : target.ld;
        largest = tasks.largest + f.tree->start[f.s] + j * SIZE;
    }
    __device__ void put(int r, int c, T v) const {
        if (r < rows && c < cols) data[(long long)r * down + (long long)c * right] = v;
    }
    // Whether this entry must be reported to the host, and the report.
    __device__ bool large(T v) const { return !upper && !(abs1(v) <= LIMIT); }
    __device__ void tell(int c, T v) const {
        if (large(v) && c < cols) atomicMax(reinterpret_cast<int *>(largest + c), (int)size_of(v));
    }
};

// Store 16 columns from `first` on of the tile, by THREADS threads; those of U11 as rows.
template <int THREADS>
__device__ __noinline__ void put(const Task &task, const Tasks &tasks, int first) {
    constexpr int EACH = sizeof(T) < 16 ? 8 : 4;
    Beside to(task, tasks);
    int across = to.within ? 16 : SIZE, thread = threadIdx.x % THREADS, a = thread % across,
        b = thread / across, step = THREADS / across;
    int r = to.within ? b : a, c = first + (to.within ? a : b);
    int down = to.within ? step : 0, right = to.within ? 0 : step;
#pragma unroll 1
    for (int n = 0; n < 16 * SIZE / THREADS; n += EACH) {
        T v[EACH];
        bool large = false;
#pragma unroll
        for (int e = 0; e < EACH; ++e) {  // all are loaded before one is stored
            v[e] = assembled()[r + e * down + (c + e * right) * ld];
            large |= to.large(v[e]);
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e) to.put(r + e * down, c + e * right, v[e]);
        if (large) {
#pragma unroll 1
            for (int e = 0; e < EACH; ++e)
                to.tell(c + e * right, assembled()[r + e * down + (c + e * right) * ld]);
        }
        r += EACH * down, c += EACH * right;
    }
}

// Compute L(i,j), or its counterpart of the transpose of U, following the factor of the diagonal
// tile while that needs no interchange. Returns the first remaining column, or the tile's width.
__device__ __noinline__ int follow(const Task &task, const Tasks &tasks) {
    bool upper = task.part == UPPER_PART;
    int w = task.front.rows(task.j);
    const T *sent = messages(task, task.j) + (upper ? 0 : SIZE * SIZE);
    Follower<T> follower{assembled(), work(), sent, {}};
    int end = follower.follow(
        w, [](int) {},
        [&](int p) {
            if (p > 0) put<threads / 2>(task, tasks, p - 16);
        },
        [](int, const T(&)[16]) {});
    if (end > 0) put<threads>(task, tasks, (end - 1) / 16 * 16);
    if (end == w) publish(task, tasks, task.j, upper);
    return end;
}

// The same from column p on, when the inverse is published.
__device__ __noinline__ void finish_beside(const Task &task, const Tasks &tasks, int p) {
    bool upper = task.part == UPPER_PART;
    TileTimesInverse<T> rest;
    multiply_rest(rest, task, tasks, task.front.inverse(task.j, !upper), upper, p);
    Beside to(task, tasks);
    bool large = false;
    rest.each([&](int r, int c, T &v) {
        if (c >= p) to.put(r, c, v);
        large |= to.large(v);
    });
    if (large) rest.each([&](int, int c, T &v) { to.tell(c, v); });
    publish(task, tasks, task.j, upper);
}
