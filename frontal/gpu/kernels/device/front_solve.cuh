// What forward and backward substitution over the fronts share: tasks, messages, products.
//
// WIDTH right-hand sides are solved together. In global memory those of a row lie side by side, in
// shared memory the rows of one lie together. A message is a number that tells itself whether it was
// sent: all its bits are set before, and whoever reads it for the last time sets them again. So no
// flags are needed, nobody waits for more than what is read, and a solve leaves all as it found it.
//
// Blocks take tasks from a list in its order by a ticket, and a task waits for earlier ones alone:
// the first unfinished task can always go on.
#pragma once
#include "front.cuh"
#include "ptx.cuh"

#ifndef FLIP
#define FLIP 0
#endif
#ifndef WIDTH
#define WIDTH 1
#endif
#ifndef RESIDENTS
#define RESIDENTS 2
#endif

constexpr int W = WIDTH, TILE = FRONT_TILE, threads = 256, warps = threads / 32;
constexpr int VALUES = TILE * W;       // of a tile of rows
constexpr int INVERSE_LD = TILE + 1;   // odd, for reads along rows
constexpr int SMALL_ROWS = 128, SMALL_LD = SMALL_ROWS + 4;
// Of the two triangular factors the first is L, and the second U; for Aᵀ the transposes of U and L.
constexpr bool upper_first = LU && FLIP, upper_last = LU && !FLIP;

// A front that one warp takes whole, or a part of a larger one.
struct alignas(16) SolveTask {
    long long panel, inverse, pointer;  // places of the front's panels, inverses and update rows
    int start, k, m;
    int tile;             // forward: tile of rows; backward: tile of pivots
    int count;            // tiles of update rows from `first` (backward) or `tile` (forward) on; see there
    int first;
    int parts, partial;   // backward: sums over update rows that others make, and the first of them
    int mail, unused;     // forward: whether the front has children
};

template <class T> struct Solve {
    const SolveTask *small, *tasks;  // small fronts, children first; tasks in the order of this sweep
    const int *mail_pointer;         // messages to each row of each front; front s begins at start + pointer
    const int *slots;                // where the message of each update row goes
    const int *place;                // LU: which row of the front comes to each pivot row
    const T *inverses;
    T *y, *z, *mail, *partial;       // messages: y between the sweeps, z the solution
    T *x;                            // right-hand sides, then the solution; columns n apart
    int *ticket, *other_ticket;
    long long n;
    int small_count, task_count, width;
};

// --- messages ------------------------------------------------------------------------------------

__device__ inline bool unset(float v) { return __float_as_int(v) == -1; }
__device__ inline bool unset(double v) { return __double_as_longlong(v) == -1; }
__device__ inline float unset_like(float) { return __int_as_float(-1); }
__device__ inline double unset_like(double) { return __longlong_as_double(-1); }
__device__ inline float not_a_number(float) { return __int_as_float(0x7fc00000); }
__device__ inline double not_a_number(double) { return __longlong_as_double(0x7ff8000000000000); }

template <class R> __device__ inline R take(const R *p) {
    R v = *(const volatile R *)p;
    while (unset(v)) {
        __nanosleep(20);
        v = *(const volatile R *)p;
    }
    return v;
}
template <class R> __device__ inline complex<R> take(const complex<R> *p) {
    R re = *(const volatile R *)&p->re, im = *(const volatile R *)&p->im;
    return {unset(re) ? take(&p->re) : re, unset(im) ? take(&p->im) : im};
}
template <class R> __device__ inline void send(R *p, R v) { *(volatile R *)p = unset(v) ? not_a_number(v) : v; }
template <class R> __device__ inline void send(complex<R> *p, complex<R> v) { send(&p->re, v.re), send(&p->im, v.im); }
template <class R> __device__ inline void reset(R *p) { *p = unset_like(R(0)); }
template <class R> __device__ inline void reset(complex<R> *p) { reset(&p->re), reset(&p->im); }

// --- products with 8 columns of a tile for each warp ---------------------------------------------
// A lane holds 16 entries. By rows: its two rows of 8 columns; by columns: 8 rows of columns
// lane/8 and lane/8 + 4. PAIRED rows are neighbours and come by one read (16 bytes for double).

template <class T> constexpr bool paired = sizeof(T) < 16;
template <class T> struct alignas(2 * sizeof(T)) Two {
    T e[2];
};

template <bool PAIRED> __device__ inline int lane_row(int h) {
    int lane = threadIdx.x % 32;
    return PAIRED ? 2 * lane + h : lane + 32 * h;
}
template <bool PAIRED> __device__ inline int lane_row_of_column(int q) {
    int lane = threadIdx.x % 8;
    return PAIRED ? 2 * lane + 16 * (q / 2) + q % 2 : lane + 8 * q;
}

// e ← up to 64×8 entries by rows; zeros outside, but for a row behind the last one.
template <bool PAIRED, class T> __device__ inline void load_rows(T (&e)[16], const T *a, int ld, int rows, int columns) {
    a += lane_row<PAIRED>(0);
#pragma unroll
    for (int c = 0; c < 8; ++c, a += ld) {
        if constexpr (PAIRED) {
            Two<T> two{};
            if (lane_row<true>(0) < rows && c < columns) two = *reinterpret_cast<const Two<T> *>(a);
            e[2 * c] = two.e[0], e[2 * c + 1] = two.e[1];
        } else {
            e[2 * c] = lane_row<false>(0) < rows && c < columns ? a[0] : zero<T>();
            e[2 * c + 1] = lane_row<false>(1) < rows && c < columns ? a[32] : zero<T>();
        }
    }
}

// e ← up to 64×8 entries by columns; zeros outside.
template <bool PAIRED, class T>
__device__ inline void load_columns(T (&e)[16], const T *a, int ld, int rows, int columns) {
    int column = threadIdx.x % 32 / 8;
    a += lane_row_of_column<PAIRED>(0) + column * ld;
#pragma unroll
    for (int u = 0; u < 2; ++u, a += 4 * ld) {
        bool inside = column + 4 * u < columns;
#pragma unroll
        for (int q = 0; q < 8; q += PAIRED ? 2 : 1) {
            int row = lane_row_of_column<PAIRED>(q);
            if constexpr (PAIRED) {
                Two<T> two{};
                if (inside && row < rows) two = *reinterpret_cast<const Two<T> *>(a + 8 * q);
                e[8 * u + q] = two.e[0], e[8 * u + q + 1] = row + 1 < rows ? two.e[1] : zero<T>();
            } else {
                e[8 * u + q] = inside && row < rows ? a[8 * q] : zero<T>();
            }
        }
    }
}

// sum[h] += Σ entries · v over the columns; the right-hand sides of v lie LD apart.
template <int LD, class T>
__device__ inline void multiply_rows(T (&sum)[2][W], const T (&e)[16], const T *v, int columns = 8) {
#pragma unroll
    for (int c = 0; c < 8; ++c)
#pragma unroll
        for (int j = 0; j < W; ++j) {
            T factor = c < columns ? v[j * LD + c] : zero<T>();
#pragma unroll
            for (int h = 0; h < 2; ++h) sum[h][j] = fma_(e[2 * c + h], factor, sum[h][j]);
        }
}

// sum[u] += Σ conj(entries) · v over the rows; conj for Cholesky alone. v is finite, or ends after
// `rows` and, where they are odd, a zero.
template <bool PAIRED, int LD, class T>
__device__ inline void multiply_columns(T (&sum)[2][W], const T (&e)[16], const T *v, int rows = TILE) {
#pragma unroll
    for (int j = 0; j < W; ++j)
#pragma unroll
        for (int q = 0; q < 8; q += PAIRED ? 2 : 1) {
            int row = lane_row_of_column<PAIRED>(q);
            Two<T> two{};
            if (row < rows) {
                if constexpr (PAIRED) two = *reinterpret_cast<const Two<T> *>(v + j * LD + row);
                else two.e[0] = v[j * LD + row];
            }
#pragma unroll
            for (int h = 0; h < (PAIRED ? 2 : 1); ++h)
#pragma unroll
                for (int u = 0; u < 2; ++u) {
                    T a = e[8 * u + q + h];
                    if constexpr (!LU) a = conj(a);
                    sum[u][j] = fma_(a, two.e[h], sum[u][j]);
                }
        }
}

// The sums by columns of all lanes of a column, to all of them; f(c, j, sum) for each of the 8 columns.
template <class T, class F> __device__ inline void each_column(T (&sum)[2][W], F f) {
#pragma unroll
    for (int u = 0; u < 2; ++u)
#pragma unroll
        for (int j = 0; j < W; ++j) {
            T total = sum[u][j];
#pragma unroll
            for (int step = 4; step > 0; step /= 2) total = total + shuffle_xor(total, step);
            if (threadIdx.x % 8 == 0) f(int(threadIdx.x % 32 / 8) + 4 * u, j, total);
        }
}

template <class T> __device__ inline void clear(T (&sum)[2][W]) {
#pragma unroll
    for (int i = 0; i < 2 * W; ++i) sum[i / W][i % W] = zero<T>();
}

// --- one tile for a block ------------------------------------------------------------------------

// Shared memory of a tile.
template <class T> struct TileMemory {
    T *staged;   // twice a tile of the vector that a product takes
    T *sums;     // those by rows of each warp, and those by columns
    T *b;        // the tile's own rows
    T *inverse;

    __device__ static TileMemory here() {
        T *p = shared_memory<T>();
        return {p, p + 2 * VALUES, p + (warps + 3) * VALUES, p + (warps + 4) * VALUES};
    }
};

// Call f(row, right-hand side, place in shared memory, number) for each value of a tile.
template <class F> __device__ inline void each_value(F f) {
#pragma unroll
    for (int i = 0; i < (VALUES + threads - 1) / threads; ++i) {
        int e = threadIdx.x + i * threads;
        if (e < VALUES) f(e / W, e % W, e % W * TILE + e / W, i);
    }
}
constexpr int values_each = (VALUES + threads - 1) / threads;

template <class T> __device__ inline Front<T> front_of(const SolveTask &t, T *factor) {
    Front<T> f;
    f.s = 0, f.k = t.k, f.m = t.m, f.panel = factor + t.panel, f.tree = nullptr;
    f.pivot_tiles = ceil_div(t.k, TILE), f.update_tiles = ceil_div(t.m, TILE);
    return f;
}

// Begin to fetch the w×w inverse of pivot tile i; zeros around it.
template <class T> __device__ inline void fetch_inverse(T *inverse, const T *kept, int w) {
#pragma unroll 4
    for (int e = threadIdx.x; e < TILE * TILE; e += threads) {
        int r = e % TILE, c = e / TILE;
        bool valid = r < w && c < w;
        copy_async<sizeof(T)>(inverse + r + c * INVERSE_LD, kept + (valid ? r + c * w : 0), valid);
    }
    copy_async_commit();
}

// Sums to shared memory: by rows for each warp, by columns behind them.
template <class T> __device__ inline void put_rows(T *sums, const T (&sum)[2][W]) {
    sums += threadIdx.x / 32 * VALUES;
#pragma unroll
    for (int j = 0; j < W; ++j)
#pragma unroll
        for (int h = 0; h < 2; ++h) sums[j * TILE + lane_row<paired<T>>(h)] = sum[h][j];
}
template <class T> __device__ inline void put_columns(T *sums, T (&sum)[2][W]) {
    sums += warps * VALUES + threadIdx.x / 32 * 8;
    each_column(sum, [&](int c, int j, T total) { sums[j * TILE + c] = total; });
}
template <class T> __device__ inline T sum_of_warps(const T *sums, int at) {
    T total = zero<T>();
#pragma unroll
    for (int w = 0; w < warps; ++w) total = total + sums[w * VALUES + at];
    return total;
}

// The inverse (its conjugate transpose for TRANSPOSE, the transpose for LU) times b: four terms of
// each result, which each_product adds.
template <bool TRANSPOSE, class T> __device__ inline void multiply_inverse(const TileMemory<T> &memory) {
    int r = threadIdx.x % TILE, quarter = threadIdx.x / TILE;
    T sum[W];
#pragma unroll
    for (int j = 0; j < W; ++j) sum[j] = zero<T>();
#pragma unroll
    for (int i = 0; i < TILE / 4; ++i) {
        int c = quarter * (TILE / 4) + i;
        T a = TRANSPOSE ? memory.inverse[c + r * INVERSE_LD] : memory.inverse[r + c * INVERSE_LD];
        if constexpr (TRANSPOSE && !LU) a = conj(a);
#pragma unroll
        for (int j = 0; j < W; ++j) sum[j] = fma_(a, memory.b[j * TILE + c], sum[j]);
    }
#pragma unroll
    for (int j = 0; j < W; ++j) memory.sums[quarter * VALUES + j * TILE + r] = sum[j];
}
template <class T> __device__ inline T product_at(const TileMemory<T> &memory, int at) {
    const T *p = memory.sums + at;
    return (p[0] + p[VALUES]) + (p[2 * VALUES] + p[3 * VALUES]);
}

// --- tickets -------------------------------------------------------------------------------------

// The tasks of a block. Tickets for `warps` small fronts come before those for the list of tasks, or
// behind them. A block asks for the next ticket while it ends a task, and not before: what one block
// held, others that are free could not do meanwhile.
template <bool SMALL_BEFORE, class T> struct Tickets {
    const Solve<T> &solve;
    SolveTask *task;  // in shared memory, as `told`
    int *told;
    int number, next;

    __device__ int small() const { return ceil_div(solve.small_count, warps); }
    __device__ int first() const { return SMALL_BEFORE ? small() : 0; }
    __device__ int end() const { return first() + solve.task_count; }
    __device__ const SolveTask &now() const { return *task; }

    __device__ void ask() {
        if (threadIdx.x == 0) next = atomicAdd(solve.ticket, 1);
    }
    __device__ void begin() {
        ask();
        if (threadIdx.x == 0 && next == 0) *solve.other_ticket = 0;
        advance();
    }
    // Go on to the next task.
    __device__ void advance() {
        if (threadIdx.x == 0) *told = next;
        __syncthreads();
        number = *told;
        int index = number - first();
        if (index >= 0 && index < solve.task_count) {
            const int4 *from = (const int4 *)(solve.tasks + index);
            if (threadIdx.x < 4) ((int4 *)task)[threadIdx.x] = from[threadIdx.x];
            if (threadIdx.x == 32 && index + (int)gridDim.x < solve.task_count)
                prefetch(solve.tasks + index + gridDim.x);  // for whoever comes to it
        }
        __syncthreads();
    }
};

// The description of a small front, in shared memory of its warp.
__device__ inline const SolveTask &small_task(const SolveTask *list, int index) {
    __shared__ SolveTask all[warps];
    SolveTask *mine = all + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    if (lane < 4) ((int4 *)mine)[lane] = ((const int4 *)(list + index))[lane];
    __syncwarp();
    return *mine;
}

// Bring what a small front reads to the second-level cache.
__device__ inline void prefetch_bytes(const void *from, int bytes) {
#pragma unroll 1
    for (int at = threadIdx.x % 32 * 128; at < bytes; at += 32 * 128) prefetch((const char *)from + at);
}
