// Backward substitution over all fronts: x = L⁻ᴴ·y for Cholesky, U⁻¹·y for LU, and L⁻ᵀ·y, with the
// interchanges undone, for FLIP.
//
// Of a larger front a task is a tile of pivots t: y(t) − Σ_i L(i,t)ᴴ·x(i), first over the update rows,
// whose x ancestors know, then over the pivot tiles from the last one on as each x(i) comes; and the
// inverse of the diagonal tile times that. Where there are many update rows others sum them, `count`
// tiles in a task, and leave the sum as a message. A block of 8 warps takes 64×64 entries at a time, 8
// columns a warp, and asks for the next ones before it waits for x. A small front belongs to one warp.
//
// Who reads what: descendants and the tiles of the front x, through z; the partial sums their task.
#include "device/front_solve.cuh"

using T = SCALAR;

// --- larger fronts -------------------------------------------------------------------------------

// The steps of a task: tiles of update rows, then pivot tiles downwards.
struct Steps {
    int updates, first;
    __device__ int tile(int q, const Front<T> &f) const {
        return q < updates ? first + q : f.pivot_tiles - 1 - (q - updates);
    }
};

// The part of tile (i, t) that this warp takes, and which values of x it needs.
template <bool ROWS>
__device__ __forceinline__ void load(T (&e)[16], int (&row)[values_each], const Solve<T> &s, const Fronts &tree,
                                     const SolveTask &t, const Front<T> &f, int i) {
    int column = TILE * t.tile + threadIdx.x / 32 * 8, rows = f.rows(i);
    if constexpr (ROWS) {
        int other = TILE * i + threadIdx.x / 32 * 8;
        load_rows<paired<T>>(e, f.panel + TILE * t.tile + (long long)other * f.ld(), f.ld(), TILE, f.k - other);
    } else {
        Matrix<T> a = upper_last ? f.upper(i) : f.lower(i);
        load_columns<paired<T>>(e, &a(0, column), a.ld, a.rows, f.k - column);
    }
    each_value([&](int r, int, int, int n) {
        row[n] = -1;
        if (r >= rows) return;
        if (upper_last ? !ROWS : i >= f.pivot_tiles) row[n] = tree.rows[t.pointer + TILE * (i - f.pivot_tiles) + r];
        else row[n] = t.start + (upper_first ? s.place[t.start + TILE * i + r] : TILE * i + r);
    });
}

// sum ← the sums over steps [from, to) of this warp: by columns, or by rows for U's own tiles.
template <bool ROWS>
__device__ __forceinline__ void subtrahend(T (&sum)[2][W], const Solve<T> &s, const Fronts &tree, const SolveTask &t,
                                           const Front<T> &f, const Steps &steps, int from, int to, T *staged) {
    T e[16];
    int row[values_each];
    clear(sum);
    if (from < to) load<ROWS>(e, row, s, tree, t, f, steps.tile(from, f));
    if (from < to && from < steps.updates) {  // the first update row is the last that is known: few ask until then
        if (threadIdx.x == 0) take(s.z + (long long)tree.rows[t.pointer] * W);
        __syncthreads();
    }
#pragma unroll 1
    for (int q = from; q < to; ++q) {
        T *v = staged + q % 2 * VALUES;
        each_value([&](int, int j, int at, int n) {
            v[at] = row[n] >= 0 ? take(s.z + (long long)row[n] * W + j) : zero<T>();
        });
        __syncthreads();
        if (ROWS) multiply_rows<TILE>(sum, e, v + threadIdx.x / 32 * 8);
        else multiply_columns<paired<T>, TILE>(sum, e, v);
        if (q + 1 < to) load<ROWS>(e, row, s, tree, t, f, steps.tile(q + 1, f));
    }
}

// What is known of the right-hand side before the pivot tiles: y and the partial sums.
__device__ inline T begin_row(const Solve<T> &s, const SolveTask &t, int r, int j) {
    T *y = s.y + (long long)(t.start + TILE * t.tile + r) * W + j, b = *y;
    reset(y);
#pragma unroll 1
    for (int q = 0; q < t.parts; ++q) {
        T *partial = s.partial + ((long long)(t.partial + q) * TILE + r) * W + j;
        b = b - take(partial);
        reset(partial);
    }
    return b;
}

__device__ inline void run_tile(const Solve<T> &s, const Fronts &tree, const SolveTask &t, const Front<T> &f,
                                Tickets<false, T> &tickets) {
    auto memory = TileMemory<T>::here();
    bool whole = t.count == 0;  // otherwise some tiles of update rows alone
    int rows = f.rows(t.tile), updates = whole && t.parts ? 0 : whole ? f.update_tiles : t.count;
    int total = updates + (whole ? f.pivot_tiles - 1 - t.tile : 0);
    Steps steps{updates, whole ? f.pivot_tiles : t.first};
    T sum[2][W];
    if (whole) {
        fetch_inverse(memory.inverse, s.inverses + t.inverse + (long long)t.tile * TILE * TILE, rows);
        each_value([&](int r, int j, int at, int) { memory.b[at] = r < rows ? begin_row(s, t, r, j) : zero<T>(); });
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
    multiply_inverse<true>(memory);
    __syncthreads();
    each_value([&](int r, int j, int at, int) {
        if (r >= rows) return;
        int to = t.start + (upper_first ? s.place[t.start + TILE * t.tile + r] : TILE * t.tile + r);
        T x = product_at(memory, at);
        send(s.z + (long long)to * W + j, x);
        if (j < s.width) s.x[to + j * s.n] = x;
    });
}

// --- small fronts --------------------------------------------------------------------------------

// y1, then the values of x of the update rows from padded(k) on.
__device__ inline void small_vectors(const Solve<T> &s, const Fronts &tree, const SolveTask &t, T *mine) {
    const int *rows = tree.rows + t.pointer;
    int lane = threadIdx.x % 32;
    for (int e = lane; e < t.k * W; e += 32) {
        T *y = s.y + (long long)t.start * W + e;
        mine[e % W * SMALL_LD + e / W] = *y;
        reset(y);
    }
    if (lane == 0 && t.m) take(s.z + (long long)rows[0] * W);  // the last that is known
    __syncwarp();
    T *updates = mine + padded<T>(t.k);
    for (int e = lane; e < t.m * W; e += 32)
        updates[e % W * SMALL_LD + e / W] = take(s.z + (long long)rows[e / W] * W + e % W);
    if (lane < W) updates[lane * SMALL_LD + t.m] = zero<T>();
    __syncwarp();
}

// y1 ← y1 − L21ᴴ·x2.
__device__ inline void small_updates(const SolveTask &t, const Front<T> &f, T *mine) {
    Matrix<T> a = upper_last ? f.upper(f.pivot_tiles) : f.lower(f.pivot_tiles);
    const T *updates = mine + padded<T>(t.k);
#pragma unroll 1
    for (int c = 0; c < t.k; c += 8) {
        T e[16], sum[2][W];
        clear(sum);
#pragma unroll 1
        for (int r = 0; r < t.m; r += TILE) {
            load_columns<paired<T>>(e, &a(r, c), a.ld, t.m - r, t.k - c);
            multiply_columns<paired<T>, SMALL_LD>(sum, e, updates + r, t.m - r);
        }
        each_column(sum, [&](int column, int j, T total) {
            T *y = mine + j * SMALL_LD + c + column;
            if (c + column < t.k) *y = *y - total;
        });
    }
    __syncwarp();
}

// x1 = Wᴴ·y1.
__device__ inline void small_pivots(const Solve<T> &s, const SolveTask &t, const T *mine) {
    const T *inverse = s.inverses + t.inverse;
#pragma unroll 1
    for (int c = 0; c < t.k; c += 8) {
        T e[16], sum[2][W];
        clear(sum);
        load_columns<false>(e, inverse + c * t.k, t.k, t.k, t.k - c);
        multiply_columns<false, SMALL_LD>(sum, e, mine, t.k);
        each_column(sum, [&](int column, int j, T total) {
            if (c + column >= t.k) return;
            int to = t.start + (upper_first ? s.place[t.start + c + column] : c + column);
            send(s.z + (long long)to * W + j, total);
            if (j < s.width) s.x[to + j * s.n] = total;
        });
    }
}

__device__ inline void small_front(const Solve<T> &s, const Fronts &tree, int index, T *factor) {
    const SolveTask &t = small_task(s.small, index);
    Front<T> f = front_of(t, factor);
    T *mine = shared_memory<T>() + threadIdx.x / 32 * (SMALL_LD * W);
    prefetch_bytes(s.inverses + t.inverse, sizeof(T) * t.k * t.k);
    prefetch_bytes(f.panel + (upper_last ? t.k * f.ld() : 0), sizeof(T) * t.k * (upper_last ? f.upper_ld() : f.ld()));
    small_vectors(s, tree, t, mine);
    if (t.m) small_updates(t, f, mine);
    small_pivots(s, t, mine);
}

extern "C" __global__ void __launch_bounds__(threads, RESIDENTS) front_backward(
    const __grid_constant__ Fronts tree, const __grid_constant__ Solve<T> solve, T *factor) {
    __shared__ SolveTask task;
    __shared__ int told;
    Tickets<false, T> tickets{solve, &task, &told};
    for (tickets.begin(); tickets.number < tickets.end(); tickets.advance()) {
        const SolveTask &t = tickets.now();
        run_tile(solve, tree, t, front_of(t, factor), tickets);
    }
    for (; tickets.number < tickets.end() + tickets.small(); tickets.advance()) {
        tickets.ask();  // at once: it does not take long
        int index = (tickets.number - tickets.end()) * warps + threadIdx.x / 32;
        if (index < solve.small_count) small_front(solve, tree, solve.small_count - 1 - index, factor);
    }
}
