// Both sweeps of front_trees.cu over the fronts of a system, by a team of TEAM warps.
#pragma once
#include "sparse/front_solve_small.cuh"
#include "sparse/moduli.cuh"

#ifndef TEAM
#define TEAM 1
#endif
#ifndef CERTIFY
#define CERTIFY 0
#endif

using T = SCALAR;
using R = real_t<T>;
constexpr int MOST = TEAM > 1 ? 32 * TEAM : threads;  // threads of a block

// Synchronize the team.
__device__ inline void meet() {
    if (TEAM > 1) __syncthreads();
    else __syncwarp();
}
// The number of a thread in its team, and the size of the team.
__device__ inline int member() { return threadIdx.x % (32 * TEAM); }
constexpr int members = 32 * TEAM;

// State of a system in its warps.
struct System {
    const Solve<T> &s;
    const Trees &of;
    T *factor, *whole, *mine;  // whole: vectors of the system, `of.ld` apart; mine: of a front
    int number;

    __device__ long long first() const { return (long long)number * of.n; }
    // The vectors from a front's pivots on; and the rows of the system that are its update rows, in
    // the second sweep, and in the first one, where some rows belong to the warp.
    __device__ T *pivots(const SolveTask &t) const { return whole + (int)(t.start - first()); }
    __device__ const int *rows(const SolveTask &t) const {
        return of.rows + (t.pointer - (long long)number * of.updates);
    }
    __device__ const int *rows_up(const SolveTask &t) const {
        return (TEAM > 1 ? of.up : of.rows) + (t.pointer - (long long)number * of.updates);
    }
    __device__ int place(const SolveTask &t, int row) const { return moved_row(s, t, row); }
};

// The current task of a system's fronts, in shared memory, while the next one is loaded.
struct Tasks {
    static constexpr int words = sizeof(SolveTask) / sizeof(int4);
    const SolveTask *list;
    SolveTask *task;
    int4 later;

    __device__ explicit Tasks(const SolveTask *list) : list(list) {
        __shared__ SolveTask all[MOST / 32];
        task = all + threadIdx.x / 32;
    }
    __device__ void ask(const System &a, int q) {
        int lane = threadIdx.x % 32;
        if (lane < words) later = ((const int4 *)(list + (TEAM > 1 ? a.of.order[q] : q)))[lane];
    }
    __device__ const SolveTask &take(const System &a, int next, bool more) {
        int lane = threadIdx.x % 32;
        __syncwarp();
        if (lane < words) ((int4 *)task)[lane] = later;
        __syncwarp();
        if (more) ask(a, next);
        return *task;
    }
};

// mine ← the front's part of the vectors, with rows interchanged if the first sweep does that.
__device__ inline void fetch_up(const System &a, const SolveTask &t) {
    T *from = a.pivots(t);
    for (int r = threadIdx.x % 32; r < t.k; r += 32) {
        int row = moves_first ? a.place(t, r) : r;
#pragma unroll
        for (int j = 0; j < W; ++j) a.mine[j * SMALL_LD + r] = from[j * a.of.ld + row];
    }
    __syncwarp();
}

// y1 = W·b1; subtract L21·y1 from the update rows of the system: first 8 columns of the inverse per
// step, then 8 columns of 64 update rows.
__device__ inline void solve_up(const System &a, const SolveTask &t) {
    Triangle<const T> inverse = inverse_of(t, a.factor, upper_first);
    Matrix<T> below = rows_below(t, a.factor, upper_first);
    T e[ahead][16], sum[2][W];
    int pivots = ceil_div(t.k, 8), count = pivots * (1 + ceil_div(t.m, TILE));
    auto ask = [&](T(&e)[16], int q) {
        int c = q % pivots * 8, first = (q / pivots - 1) * TILE;
        if (first < 0) load_rows<unit_first>(e, inverse, t.k, c);
        else
            load_rows<paired<T>>(
                e, below.data + first + c * below.ld, below.ld, t.m - first, t.k - c);
    };
    ask_ahead(e, count, ask);
    fetch_up(a, t);
    clear(sum);
    take_turns(e, count, ask, [&](const T(&e)[16], int q) {
        int c = q % pivots * 8, first = (q / pivots - 1) * TILE;
        multiply_rows<SMALL_LD>(sum, e, a.mine + c, t.k - c);
        if (c + 8 < t.k) return;
        if (first < 0) __syncwarp();
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int r = first < 0 ? lane_row<false>(h) : first + lane_row<paired<T>>(h);
            if (r >= (first < 0 ? t.k : t.m)) continue;
            T *to = first < 0 ? a.pivots(t) + r : a.whole + a.rows_up(t)[r];
#pragma unroll
            for (int j = 0; j < W; ++j, to += a.of.ld) {
                *to = first < 0 ? sum[h][j] : *to - sum[h][j];
                if (first < 0) a.mine[j * SMALL_LD + r] = sum[h][j];
            }
        }
        if (first < 0) __syncwarp();
        clear(sum);
    });
}

// mine ← y1, or D⁻¹·y1 with D, then the solution of the update rows from padded(k) on.
__device__ inline void fetch_down(const System &a, const SolveTask &t) {
    int lane = threadIdx.x % 32;
    T *from = a.pivots(t), *updates = a.mine + padded<T>(t.k);
    for (int r = lane; r < t.k; r += 32)
#pragma unroll
        for (int j = 0; j < W; ++j) a.mine[j * SMALL_LD + r] = from[j * a.of.ld + r];
    for (int r = lane; r < t.m; r += 32) {
        int row = a.rows(t)[r];
#pragma unroll
        for (int j = 0; j < W; ++j) updates[j * SMALL_LD + r] = a.whole[j * a.of.ld + row];
    }
    if (lane < W) updates[lane * SMALL_LD + t.m] = zero<T>();
    __syncwarp();
    if (LDL) {
        for (int e = lane; e < t.k * W; e += 32)
            divide(a.s, t, e / W, a.mine + e % W * SMALL_LD + e / W);
        __syncwarp();
    }
}

// x1 = Wᴴ·(y1 − L21ᴴ·x2): first 64 update rows of 8 columns per step, then 8 columns of the
// inverse.
__device__ inline void solve_down(const System &a, const SolveTask &t) {
    Matrix<T> below = rows_below(t, a.factor, upper_last);
    T *updates = a.mine + padded<T>(t.k);
    T e[ahead][16], sum[2][W];
    int parts = max_(ceil_div(t.m, TILE), 1), over = t.m ? ceil_div(t.k, 8) * parts : 0;
    int count = over + ceil_div(t.k, 8);
    auto column = [&](int q) { return 8 * (q < over ? q / parts : q - over); };
    auto ask = [&](T(&e)[16], int q) {
        int c = column(q), row = q % parts * TILE;
        if (q < over)
            load_columns<paired<T>>(
                e, below.data + row + c * below.ld, below.ld, t.m - row, t.k - c);
        else {
            Triangle<const T> inverse = inverse_of(t, a.factor, upper_last);
            load_columns<unit_last>(e, inverse, t.k, c);
        }
    };
    ask_ahead(e, count, ask);
    fetch_down(a, t);
    clear(sum);
    take_turns(e, count, ask, [&](const T(&e)[16], int q) {
        int c = column(q), row = q % parts * TILE;
        if (q < over) {  // y1 ← y1 − L21ᴴ·x2
            multiply_columns<paired<T>, SMALL_LD>(sum, e, updates + row, t.m - row);
            if (q % parts != parts - 1) return;
            each_column(sum, [&](int i, int j, T total) {
                T *y = a.mine + j * SMALL_LD + c + i;
                if (c + i < t.k) *y = *y - total;
            });
            __syncwarp();
        } else {  // x1 = Wᴴ·y1
            multiply_columns<false, SMALL_LD>(sum, e, a.mine, t.k);
            each_column(sum, [&](int i, int j, T total) {
                if (c + i >= t.k) return;
                int to = moves_last ? a.place(t, c + i) : c + i;
                a.pivots(t)[j * a.of.ld + to] = total;
            });
        }
        clear(sum);
    });
}

// Add the other warps' contributions to the pivot rows of the fronts above all subtrees.
__device__ inline void gather(const System &a) {
    int tops = a.of.tops;
    meet();
    for (int r = member(); r < tops; r += members)
#pragma unroll
        for (int j = 0; j < W; ++j) {
            T *vector = a.whole + j * a.of.ld, *to = vector + a.of.top[r], sum = *to;
            for (int warp = 1; warp < TEAM; ++warp)
                sum = sum + vector[a.of.n + (warp - 1) * tops + r];
            *to = sum;
        }
    meet();
}

// The first and the second sweep over a warp's fronts `first`…last−1 in the order of its team.
__device__ inline void go_up(const System &a, Tasks &tasks, int first, int last) {
    if (TEAM == 1 || first < last) tasks.ask(a, first);
    for (int q = first; q < last; ++q) {
        const SolveTask &t = tasks.take(a, q + 1, q + 1 < last);
        solve_up(a, t);
    }
}
__device__ inline void go_down(const System &a, Tasks &tasks, int first, int last) {
    if (TEAM == 1 || first < last) tasks.ask(a, last - 1);
    for (int q = last - 1; q >= first; --q) {
        const SolveTask &t = tasks.take(a, q - 1, q > first);
        solve_down(a, t);
    }
}

// Both sweeps over the fronts of a system: the warp's subtree, then the fronts above, and back.
__device__ inline void solve_system(const System &a) {
    Tasks tasks(a.s.tasks + (long long)a.number * a.of.fronts);
    if constexpr (TEAM == 1) {
        go_up(a, tasks, 0, a.of.fronts);
        go_down(a, tasks, 0, a.of.fronts);
        __syncwarp();
    } else {
        bool leads = threadIdx.x < 32;
#pragma unroll 1
        for (int above = 0; above < 2; ++above) {
            const int *range = a.of.begins + (above ? TEAM : threadIdx.x / 32);
            if (!above || leads) go_up(a, tasks, range[0], range[1]);
            if (!above) gather(a);
        }
#pragma unroll 1
        for (int above = 1; above >= 0; --above) {
            const int *range = a.of.begins + (above ? TEAM : threadIdx.x / 32);
            if (!above || leads) go_down(a, tasks, range[0], range[1]);
            __syncthreads();
        }
    }
}
