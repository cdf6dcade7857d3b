// Forward substitution over all fronts: y = L⁻¹·b for Cholesky and LU (of interchanged rows), with
// U's transpose in place of L for FLIP; every front adds what its update rows take to its parent.
//
// A small front belongs to one warp: y1 = W·b1 by the inverse W of its only diagonal tile, and
// u = messages of the children − L21·y1, rows across the lanes. Of larger ones a task is a tile of
// rows i: b(i) − Σ_p L(i,p)·y(p) as each y(p) comes, then W(i) times that, or a message to the
// parent; where k is small a task goes through `count` tiles of update rows. A block of 8 warps takes
// 64×64 entries at a time, 8 columns a warp, and asks for the next ones before it waits for y.
//
// Who reads what: the tiles of a front y, its parent the messages, the backward sweep y again.
#include "device/front_solve.cuh"

using T = SCALAR;

// What children sent to a row of a front; the messages are free again.
__device__ inline T received(const Solve<T> &s, const SolveTask &t, int row, int j) {
    T sum = zero<T>();
    if (!t.mail) return sum;
    const int *bounds = s.mail_pointer + (t.start + t.pointer + row);
#pragma unroll 1
    for (int q = bounds[0], end = bounds[1]; q < end; ++q) {
        T *message = s.mail + (long long)q * W + j;
        sum = sum + take(message);
        reset(message);
    }
    return sum;
}

// A pivot row of the right-hand side, interchanged, with what children sent. Its place in the
// solution is made free for the backward sweep.
__device__ inline T pivot_row(const Solve<T> &s, const SolveTask &t, int row, int j) {
    int from = upper_last ? s.place[t.start + row] : row;
    T b = j < s.width ? s.x[t.start + from + j * s.n] : zero<T>();
    reset(s.z + (long long)(t.start + row) * W + j);
    return b + received(s, t, from, j);
}

// --- larger fronts -------------------------------------------------------------------------------

// The part of tile (i, p) that this warp takes.
__device__ __forceinline__ void load(T (&e)[16], const Front<T> &f, int i, int p) {
    int column = TILE * p + threadIdx.x / 32 * 8;
    if (upper_first && i < f.pivot_tiles) {
        int own = TILE * i + threadIdx.x / 32 * 8;
        load_columns<paired<T>>(e, f.panel + TILE * p + (long long)own * f.ld(), f.ld(), TILE, f.k - own);
    } else {
        Matrix<T> a = upper_first ? f.upper(i) : f.lower(i);
        load_rows<paired<T>>(e, &a(0, column), a.ld, a.rows, f.k - column);
    }
}

// sum ← Σ_p L(i,p)·y(p) of this warp; its first entries have been asked for.
__device__ __forceinline__ void subtrahend(T (&sum)[2][W], T (&e)[16], const Solve<T> &s, const SolveTask &t,
                                           const Front<T> &f, int i, T *staged) {
#pragma unroll 1
    for (int p = 0, limit = min_(i, f.pivot_tiles); p < limit; ++p) {
        T *v = staged + p % 2 * VALUES;
        const T *y = s.y + (long long)(t.start + TILE * p) * W;
        int rows = f.rows(p);
        each_value([&](int r, int j, int at, int) { v[at] = r < rows ? take(y + r * W + j) : zero<T>(); });
        __syncthreads();
        if (upper_first && i < f.pivot_tiles) multiply_columns<paired<T>, TILE>(sum, e, v);
        else multiply_rows<TILE>(sum, e, v + threadIdx.x / 32 * 8);
        if (p + 1 < limit) load(e, f, i, p + 1);
    }
}

__device__ inline void pivot_tile(const Solve<T> &s, const SolveTask &t, const Front<T> &f, Tickets<true, T> &tickets) {
    auto memory = TileMemory<T>::here();
    int i = t.tile, rows = f.rows(i);
    T e[16], sum[2][W];
    clear(sum);
    if (i > 0) load(e, f, i, 0);
    fetch_inverse(memory.inverse, s.inverses + t.inverse + (long long)i * TILE * TILE, rows);
    each_value([&](int r, int j, int at, int) {
        memory.b[at] = r < rows ? pivot_row(s, t, TILE * i + r, j) : zero<T>();
    });
    subtrahend(sum, e, s, t, f, i, memory.staged);
    copy_async_wait<0>();
    tickets.ask();
    if (i > 0) {
        if (upper_first) put_columns(memory.sums, sum);
        else put_rows(memory.sums, sum);
        __syncthreads();
        each_value([&](int r, int, int at, int) {
            if (r >= rows) return;
            memory.b[at] = memory.b[at] - (upper_first ? memory.sums[warps * VALUES + at] : sum_of_warps(memory.sums, at));
        });
    }
    __syncthreads();
    multiply_inverse<false>(memory);
    __syncthreads();
    T *y = s.y + (long long)(t.start + TILE * i) * W;
    each_value([&](int r, int j, int at, int) {
        if (r < rows) send(y + r * W + j, product_at(memory, at));
    });
}

__device__ inline void update_tile(const Solve<T> &s, const SolveTask &t, const Front<T> &f, int i) {
    auto memory = TileMemory<T>::here();
    __shared__ int slot[TILE];
    int rows = f.rows(i), first = TILE * (i - f.pivot_tiles);
    T e[16], sum[2][W];
    clear(sum);
    load(e, f, i, 0);
    if (threadIdx.x < rows) slot[threadIdx.x] = s.slots[t.pointer + first + threadIdx.x];
    each_value([&](int r, int j, int at, int) {
        memory.b[at] = r < rows ? received(s, t, f.k + first + r, j) : zero<T>();
    });
    subtrahend(sum, e, s, t, f, i, memory.staged);
    put_rows(memory.sums, sum);
    __syncthreads();
    each_value([&](int r, int j, int at, int) {
        if (r < rows) send(s.mail + (long long)slot[r] * W + j, memory.b[at] - sum_of_warps(memory.sums, at));
    });
    __syncthreads();
}

__device__ inline void run_tiles(const Solve<T> &s, Tickets<true, T> &tickets, T *factor) {
    const SolveTask &t = tickets.now();
    Front<T> f = front_of(t, factor);
    if (t.tile < f.pivot_tiles) return pivot_tile(s, t, f, tickets);
#pragma unroll 1
    for (int i = t.tile; i < t.tile + t.count; ++i) update_tile(s, t, f, i);
    tickets.ask();
}

// --- small fronts --------------------------------------------------------------------------------

// y1 = W·b1, to `mine` in place of b1, and to y.
__device__ inline void small_pivots(const Solve<T> &s, const SolveTask &t, T *mine) {
    T e[16], sum[2][W];
    const T *inverse = s.inverses + t.inverse;
    clear(sum);
#pragma unroll 1
    for (int c = 0; c < t.k; c += 8) {
        load_rows<false>(e, inverse + c * t.k, t.k, t.k, t.k - c);
        multiply_rows<SMALL_LD>(sum, e, mine + c, t.k - c);
    }
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        int r = lane_row<false>(h);
#pragma unroll
        for (int j = 0; j < W; ++j) {
            if (r >= t.k) continue;
            mine[j * SMALL_LD + r] = sum[h][j];
            send(s.y + (long long)(t.start + r) * W + j, sum[h][j]);
        }
    }
    __syncwarp();
}

// The messages of update rows to the parent; `mine` holds y1 and, from t.k on, what children sent.
__device__ inline void small_updates(const Solve<T> &s, const SolveTask &t, const Front<T> &f, const T *mine) {
    Matrix<T> a = (upper_first ? f.upper(f.pivot_tiles) : f.lower(f.pivot_tiles));
#pragma unroll 1
    for (int first = 0; first < t.m; first += TILE) {
        T e[16], sum[2][W];
        clear(sum);
#pragma unroll 1
        for (int c = 0; c < t.k; c += 8) {
            load_rows<paired<T>>(e, &a(first, c), a.ld, t.m - first, t.k - c);
            multiply_rows<SMALL_LD>(sum, e, mine + c, t.k - c);
        }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int r = first + lane_row<paired<T>>(h);
            if (r >= t.m) continue;
            T *message = s.mail + (long long)s.slots[t.pointer + r] * W;
#pragma unroll
            for (int j = 0; j < W; ++j) send(message + j, mine[j * SMALL_LD + t.k + r] - sum[h][j]);
        }
    }
}

__device__ inline void small_front(const Solve<T> &s, int index, T *factor) {
    const SolveTask &t = small_task(s.small, index);
    Front<T> f = front_of(t, factor);
    T *mine = shared_memory<T>() + threadIdx.x / 32 * (SMALL_LD * W);
    prefetch_bytes(s.inverses + t.inverse, sizeof(T) * t.k * t.k);
    prefetch_bytes(f.panel + (upper_first ? t.k * f.ld() : 0), sizeof(T) * t.k * (upper_first ? f.upper_ld() : f.ld()));
    for (int e = threadIdx.x % 32; e < (t.k + t.m) * W; e += 32) {
        int r = e / W, j = e % W;
        mine[j * SMALL_LD + r] = r < t.k ? pivot_row(s, t, r, j) : received(s, t, r, j);
    }
    __syncwarp();
    small_pivots(s, t, mine);
    small_updates(s, t, f, mine);
}

extern "C" __global__ void __launch_bounds__(threads, RESIDENTS) front_forward(
    const __grid_constant__ Solve<T> solve, T *factor) {
    __shared__ SolveTask task;
    __shared__ int told;
    Tickets<true, T> tickets{solve, &task, &told};
    for (tickets.begin(); tickets.number < tickets.first(); tickets.advance()) {
        tickets.ask();  // at once: it does not take long
        int index = tickets.number * warps + threadIdx.x / 32;
        if (index < solve.small_count) small_front(solve, index, factor);
    }
    for (; tickets.number < tickets.end(); tickets.advance()) run_tiles(solve, tickets, factor);
}

// place[first + r], for the w rows of a pivot tile from position `first` on: which row of the front
// comes there, of LAPACK's interchanges from 1. A warp a tile: {first, w, first row within the front}.
extern "C" __global__ void __launch_bounds__(threads) front_places(
    const int4 *tiles, int count, const int *pivots, int *place) {
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
    for (int r = lane; r < tile.y; r += 32) place[tile.x + r] = tile.z + row[r];
}
