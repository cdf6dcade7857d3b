// Forward substitution over the fronts that are not small: y = L⁻¹·b for Cholesky and LU (with
// interchanged rows), with the transpose of U instead of L for FLIP. Every front sends the
// contribution to its update rows to its parent.
//
// A task is a tile of rows i: b(i) − Σ_p L(i,p)·y(p) as each y(p) arrives; then the product with
// W(i), the inverse of the diagonal tile, or a message to the parent. If k is small a task
// processes `count` tiles of update rows. A block of 8 warps takes 64×64 entries at a time, 8
// columns per warp, and loads the next entries before it waits for y. Shared memory:
// front_solve_tile.cuh.
//
// Readers: y is read by the tiles of the front and again by the backward sweep, messages by the
// parent.
// Deadlock: in the list children come before parents, and tiles of a front in their order, so that
// a task waits only for earlier tasks (front_solve.cuh).
#include "sparse/front_solve_tile.cuh"

using T = SCALAR;

// Load this warp's part of tile (i, p).
__device__ __forceinline__ void load(T (&e)[16], const Front<T> &f, int i, int p) {
    int column = TILE * p + threadIdx.x / 32 * 8;
    if (upper_first && i < f.pivot_tiles) {
        int own = TILE * i + threadIdx.x / 32 * 8;
        load_columns<paired<T>>(
            e, f.panel + TILE * p + (long long)own * f.ld(i), f.ld(i), TILE, f.k - own);
    } else {
        Matrix<T> a = upper_first ? f.upper(i) : f.lower(i);
        load_rows<paired<T>>(e, &a(0, column), a.ld, a.rows, f.k - column);
    }
}

// sum ← this warp's Σ_p L(i,p)·y(p); `prepare` runs after the first entries are requested, before
// y.
template <class Prepare>
__device__ __forceinline__ void subtrahend(T (&sum)[2][W], const Solve<T> &s, const SolveTask &t,
    const Front<T> &f, int i, T *staged, Prepare prepare) {
    T e[ahead][16];
    int count = min_(i, f.pivot_tiles);
    auto ask = [&](T(&e)[16], int p) { load(e, f, i, p); };
    clear(sum);
    ask_ahead(e, count, ask);
    prepare();
    take_turns(e, count, ask, [&](const T(&e)[16], int p) {
        T *v = staged + p % 2 * VALUES;
        const T *y = s.y + (long long)(t.y + TILE * p) * W;
        int rows = f.rows(p);
        take_values(v, [&](int r, int j, int) { return r < rows ? y + r * W + j : nullptr; });
        __syncthreads();
        if (upper_first && i < f.pivot_tiles) multiply_columns<paired<T>, TILE>(sum, e, v, TILE);
        else multiply_rows<TILE>(sum, e, v + threadIdx.x / 32 * 8);
    });
}

// Fetch the tile's rows from `first` on: the right-hand side if they are pivots, plus the messages
// of the children.
__device__ inline void fetch_rows(
    T *b, const Solve<T> &s, const SolveTask &t, int first, int rows, bool pivots) {
    int row[values_each], rhs[values_each];
    T sum[values_each];
    // Threads beyond the tile's values have none.
#pragma unroll
    for (int n = 0; n < values_each; ++n) row[n] = -1, rhs[n] = 0;
    each_value([&](int r, int j, int, int n) {
        row[n] = r < rows ? first + r : -1, rhs[n] = j;
        sum[n] = pivots && r < rows ? pivot_row(s, t, row[n], j) : zero<T>();
    });
    receive(sum, s, t, row, rhs);
    each_value([&](int, int, int at, int n) { b[at] = sum[n]; });
}

__device__ inline void pivot_tile(
    const Solve<T> &s, const SolveTask &t, const Front<T> &f, Tickets<T> &tickets) {
    auto memory = TileMemory<T>::here();
    int i = t.tile, rows = f.rows(i);
    T sum[2][W];
    subtrahend(sum, s, t, f, i, memory.staged, [&] {
        fetch_inverse<unit_first>(memory, inverse_of(f, i, upper_first));
        fetch_rows(memory.b, s, t, TILE * i, rows, true);
    });
    copy_async_wait<0>();
    tickets.ask();
    if (i > 0) {
        if (upper_first) put_columns(memory.sums, sum);
        else put_rows(memory.sums, sum);
        __syncthreads();
        each_value([&](int r, int, int at, int) {
            if (r >= rows) return;
            memory.b[at] = memory.b[at] - (upper_first ? memory.sums[warps * VALUES + at]
                                                       : sum_of_warps(memory.sums, at));
        });
    }
    __syncthreads();
    multiply_inverse<false, unit_first>(memory);
    __syncthreads();
    T *y = s.y + (long long)(t.y + TILE * i) * W;
    each_value([&](int r, int j, int at, int) {
        if (r < rows) send(y + r * W + j, product_at(memory, at));
    });
}

__device__ inline void update_tile(
    const Solve<T> &s, const SolveTask &t, const Front<T> &f, int i) {
    auto memory = TileMemory<T>::here();
    __shared__ int slot[TILE];
    int rows = f.rows(i), first = TILE * (i - f.pivot_tiles);
    T sum[2][W];
    subtrahend(sum, s, t, f, i, memory.staged, [&] {
        if (threadIdx.x < rows) slot[threadIdx.x] = s.slots[t.pointer + first + threadIdx.x];
        fetch_rows(memory.b, s, t, f.k + first, rows, false);
    });
    put_rows(memory.sums, sum);
    __syncthreads();
    each_value([&](int r, int j, int at, int) {
        if (r < rows)
            send(s.messages + (long long)slot[r] * W + j,
                memory.b[at] - sum_of_warps(memory.sums, at));
    });
    __syncthreads();
}

__device__ inline void run_tiles(const Solve<T> &s, Tickets<T> &tickets, T *factor) {
    const SolveTask &t = *tickets.task;
    Front<T> f = front_of(t, factor);
    if (t.tile < f.pivot_tiles) return pivot_tile(s, t, f, tickets);
#pragma unroll 1
    for (int i = t.tile; i < t.tile + t.count; ++i) update_tile(s, t, f, i);
    tickets.ask();
}

extern "C" __global__ void __launch_bounds__(threads, RESIDENTS)
    front_forward(const __grid_constant__ Solve<T> solve, T *factor) {
    __shared__ SolveTask task;
    __shared__ int number;
    Tickets<T> tickets{solve, &task, &number};
    for (tickets.ask(); tickets.advance();) run_tiles(solve, tickets, factor);
}

// place[first + r], for the w rows of a pivot tile from position `first` on: the row of the tile
// that LAPACK's interchanges, from 1, move there. A warp per tile: {first, w, first row within the
// front}.
extern "C" __global__ void __launch_bounds__(threads)
    front_places(const int4 *tiles, int count, const int *pivots, unsigned char *place) {
    __shared__ int wanted[warps][TILE], at[warps][TILE];
    int index = blockIdx.x * warps + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (index >= count) return;
    int4 tile = tiles[index];
    int *to = wanted[threadIdx.x / 32], *row = at[threadIdx.x / 32];
    for (int r = lane; r < tile.y; r += 32) to[r] = pivots[tile.x + r] - 1 - tile.z, row[r] = r;
    __syncwarp();
    for (int r = 0; lane == 0 && r < tile.y; ++r) {
        int other = row[to[r]];
        row[to[r]] = row[r], row[r] = other;
    }
    __syncwarp();
    for (int r = lane; r < tile.y; r += 32) place[tile.x + r] = (unsigned char)row[r];
}
