// Backward substitution over the fronts that are not small: x = L⁻ᴴ·y for Cholesky, U⁻¹·y for LU,
// L⁻ᵀ·y with the interchanges undone for FLIP, and L⁻ᴴ·D⁻¹·y, also with them undone, with D.
//
// A task is a tile of pivots t: y(t) − Σ_i L(i,t)ᴴ·x(i), first over the update rows, whose x
// ancestors compute, then over the pivot tiles, from the last one, as each x(i) arrives; then the
// product with the inverse of the diagonal tile. In a front with many update rows other tasks sum
// `count` tiles of them each and send the sum. A block of 8 warps takes 64×64 entries at a time, 8
// columns per warp, and loads the next entries before it waits for x. Shared memory:
// front_solve_tile.cuh.
//
// Readers: x is read by descendants and by the front's other tiles, partial sums by the task of the
// tile.
// Deadlock: in the list parents come before children, a front's last pivot tiles before its first,
// and partial sums before their reader, so that a task waits only for earlier tasks
// (front_solve.cuh).
#include "sparse/front_solve_tile.cuh"

using T = SCALAR;

// The steps of a task: tiles of update rows, then pivot tiles in descending order.
struct Steps {
    int updates, first;
    __device__ int tile(int q, const Front<T> &f) const {
        return q < updates ? first + q : f.pivot_tiles - 1 - (q - updates);
    }
};

// Load this warp's part of tile (i, t), and the indices of the required values of x.
template <bool ROWS>
__device__ __forceinline__ void load(T (&e)[16], int (&row)[values_each], const Solve<T> &s,
    const Fronts &tree, const SolveTask &t, const Front<T> &f, int i) {
    int column = TILE * t.tile + threadIdx.x / 32 * 8, rows = f.rows(i);
    if constexpr (ROWS) {
        int other = TILE * i + threadIdx.x / 32 * 8;
        load_rows<paired<T>>(
            e, f.panel + TILE * t.tile + (long long)other * f.ld(i), f.ld(i), TILE, f.k - other);
    } else {
        Matrix<T> a = upper_last ? f.upper(i) : f.lower(i);
        load_columns<paired<T>>(e, &a(0, column), a.ld, a.rows, f.k - column);
    }
    each_value([&](int r, int, int, int n) {
        row[n] = -1;
        if (r >= rows) return;
        if (upper_last ? !ROWS : i >= f.pivot_tiles)
            row[n] = tree.rows[t.pointer + TILE * (i - f.pivot_tiles) + r];
        else row[n] = t.start + (moves_last ? moved_row(s, t, TILE * i + r) : TILE * i + r);
    });
}

// sum ← this warp's sums over steps [from, to): by columns, or by rows for the own tiles of U.
template <bool ROWS>
__device__ __forceinline__ void subtrahend(T (&sum)[2][W], const Solve<T> &s, const Fronts &tree,
    const SolveTask &t, const Front<T> &f, const Steps &steps, int from, int to, T *staged) {
    T e[ahead][16];
    int row[ahead][values_each];
    auto ask = [&](T(&e)[16], int q) {
        load<ROWS>(e, row[q % ahead], s, tree, t, f, steps.tile(from + q, f));
    };
    clear(sum);
    ask_ahead(e, to - from, ask);
    // The first update row is solved for last: one thread polls for it before the others poll.
    if (from < to && from < steps.updates) {
        if (threadIdx.x == 0) take(s.x + (long long)tree.rows[t.pointer] * W);
        __syncthreads();
    }
    take_turns(e, to - from, ask, [&](const T(&e)[16], int q) {
        T *v = staged + (from + q) % 2 * VALUES;
        take_values(v, [&](int, int j, int n) {
            int x = row[q % ahead][n];
            return x >= 0 ? s.x + (long long)x * W + j : nullptr;
        });
        __syncthreads();
        if (ROWS) multiply_rows<TILE>(sum, e, v + threadIdx.x / 32 * 8);
        else multiply_columns<paired<T>, TILE>(sum, e, v, f.rows(steps.tile(from + q, f)));
    });
}

// The address of y, which no other task reads.
__device__ inline T *place_of_y(const Solve<T> &s, const SolveTask &t, int r, int j) {
    return s.y + (long long)(t.y + TILE * t.tile + r) * W + j;
}

// Return b (y, or D⁻¹·y) minus the partial sums, and reset their messages.
__device__ inline T less_partials(const Solve<T> &s, const SolveTask &t, int r, int j, T b) {
#pragma unroll 1
    for (int q = 0; q < t.parts; ++q) {
        T *partial = s.partial + ((long long)(t.partial + q) * TILE + r) * W + j;
        b = b - take(partial);
        reset(partial);
    }
    return b;
}

__device__ inline void run_tile(const Solve<T> &s, const Fronts &tree, const SolveTask &t,
    const Front<T> &f, Tickets<T> &tickets) {
    auto memory = TileMemory<T>::here();
    bool whole = t.count == 0;  // otherwise only tiles of update rows
    int rows = f.rows(t.tile), updates = whole && t.parts ? 0 : whole ? f.update_tiles : t.count;
    int total = updates + (whole ? f.pivot_tiles - 1 - t.tile : 0);
    Steps steps{updates, whole ? f.pivot_tiles : t.first};
    T sum[2][W];
    if (whole) {
        fetch_inverse<unit_last>(memory, inverse_of(f, t.tile, upper_last));
        if (LDL) {
            each_value([&](int r, int j, int at, int) {
                if (r < rows) memory.b[at] = *place_of_y(s, t, r, j);
            });
            __syncthreads();
            each_value([&](int r, int, int at, int) {
                if (r < rows) divide(s, t, TILE * t.tile + r, memory.b + at);
            });
            __syncthreads();
        }
        each_value([&](int r, int j, int at, int) {
            T y = r >= rows ? zero<T>() : LDL ? memory.b[at] : *place_of_y(s, t, r, j);
            memory.b[at] = r < rows ? less_partials(s, t, r, j, y) : zero<T>();
        });
    }
    subtrahend<false>(sum, s, tree, t, f, steps, 0, upper_last ? updates : total, memory.staged);
    put_columns(memory.sums, sum);
    if (upper_last) {
        subtrahend<true>(sum, s, tree, t, f, steps, updates, total, memory.staged);
        put_rows(memory.sums, sum);
    }
    copy_async_wait<0>();
    tickets.ask();
    __syncthreads();
    const T *by_columns = memory.sums + warps * VALUES;
    if (!whole) {
        T *partial = s.partial + (long long)t.partial * VALUES;
        each_value([&](int r, int j, int at, int) {
            if (r < rows) send(partial + r * W + j, by_columns[at]);
        });
        return;
    }
    each_value([&](int r, int, int at, int) {
        if (r >= rows) return;
        T sum = by_columns[at];
        if (upper_last) sum = sum + sum_of_warps(memory.sums, at);
        memory.b[at] = memory.b[at] - sum;
    });
    __syncthreads();
    multiply_inverse<true, unit_last>(memory);
    __syncthreads();
    each_value([&](int r, int j, int at, int) {
        if (r >= rows) return;
        int own = TILE * t.tile + r, to = t.start + (moves_last ? moved_row(s, t, own) : own);
        send(s.x + (long long)to * W + j, product_at(memory, at));
        reset(place_of_y(s, t, r, j));
    });
}

extern "C" __global__ void __launch_bounds__(threads, RESIDENTS) front_backward(
    const __grid_constant__ Solve<T> solve, T *factor, const __grid_constant__ Fronts tree) {
    __shared__ SolveTask task;
    __shared__ int number;
    Tickets<T> tickets{solve, &task, &number};
    for (tickets.ask(); tickets.advance();)
        run_tile(solve, tree, task, front_of(task, factor), tickets);
}
