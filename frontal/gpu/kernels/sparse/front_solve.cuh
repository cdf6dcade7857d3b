// Common parts of forward and backward substitution over the fronts: tasks, messages, products.
//
// WIDTH right-hand sides are solved together. Those of a row are adjacent in global memory; in
// shared memory the rows of one are adjacent. The last reader of a message (messages.cuh) resets
// it: a sweep ends with all messages unset, as it began. Exceptions are y of large fronts, which
// the second sweep resets, and the solution, whose messages of the second sweep replace those of
// the first one.
//
// Deadlock: blocks, or warps for small fronts, take tasks from a list by tickets (scheduler.cuh),
// and a task waits only for messages of earlier tasks or of earlier launches. Solves over the tree:
// Liu, "The multifrontal method for sparse matrix solution: theory and practice" (1992); waits for
// values instead of levels: Liu, Li, Hogg, Duff, Vinter, "A synchronization-free algorithm for
// parallel sparse triangular solves" (2016).
#pragma once
#include "sparse/front.cuh"
#include "common/messages.cuh"
#include "common/ptx.cuh"
#include "common/scheduler.cuh"
#include "sparse/pivot_blocks.cuh"

#ifndef FLIP
#define FLIP 0
#endif
#ifndef WIDTH
#define WIDTH 1
#endif
#ifndef RESIDENTS
#define RESIDENTS 2
#endif
#ifndef AHEAD
#define AHEAD 1
#endif

constexpr int W = WIDTH, TILE = FRONT_TILE, warps = SOLVE_WARPS, threads = 32 * warps;
constexpr int VALUES = TILE * W;      // of a tile of rows
constexpr int INVERSE_LD = TILE + 1;  // odd, for reads along rows
// The first triangular factor is L and the second U; for Aᵀ they are the transposes of U and L.
constexpr bool upper_first = LU && FLIP, upper_last = LU && !FLIP;
// Whether the first and the last sweep interchange rows.
constexpr bool moves_first = LDL || upper_last, moves_last = LDL || upper_first;
// Whether the ones on the diagonal of the inverses are implicit: those of L with LU.
constexpr bool unit_first = LU && !upper_first, unit_last = LU && !upper_last;

// --- messages ------------------------------------------------------------------------------------

// Add the messages of children to rows of a front, for one right-hand side each, and reset them; a
// negative row means none. The messages of all rows are requested at once, those of several
// children one by one.
template <int N, class T>
__device__ __forceinline__ void receive(
    T (&sum)[N], const Solve<T> &s, const SolveTask &t, const int (&row)[N], const int (&rhs)[N]) {
    if (!t.has_children) return;
    int from[N], to[N], most = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        const int *bounds = s.message_pointer + (t.rows + max_(row[i], 0));
        from[i] = bounds[0], to[i] = row[i] < 0 ? 0 : bounds[1];
    }
#pragma unroll
    for (int i = 0; i < N; ++i) most = max_(most, to[i] - from[i]);
#pragma unroll 1
    for (int q = 0; q < most; ++q) {
        T seen[N];
#pragma unroll
        for (int i = 0; i < N; ++i)
            if (from[i] + q < to[i])
                seen[i] = look(s.messages + (long long)(from[i] + q) * W + rhs[i]);
#pragma unroll
        for (int i = 0; i < N; ++i) {
            if (from[i] + q >= to[i]) continue;
            T *message = s.messages + (long long)(from[i] + q) * W + rhs[i];
            sum[i] = sum[i] + take(message, seen[i]);
            reset(message);
        }
    }
}

// Return the row of a front that moves to pivot row `row`, in the same tile.
template <class T> __device__ inline int moved_row(const Solve<T> &s, const SolveTask &t, int row) {
    return row / TILE * TILE + s.place[t.start + row];
}

// Return an interchanged pivot row of the right-hand side; `row` becomes the row of the front that
// moves here.
template <class T>
__device__ inline T pivot_row(const Solve<T> &s, const SolveTask &t, int &row, int j) {
    if (moves_first) row = moved_row(s, t, row);
    return s.z[(long long)(t.start + row) * W + j];
}

// LDL: v ← D⁻¹·v for row `row` of a front and one right-hand side, and for the next row if both are
// a 2×2 pivot; the call for its second row does nothing. Rows of v are adjacent.
template <class T>
__device__ inline void divide(const Solve<T> &s, const SolveTask &t, int row, T *v) {
    const T *d = s.diagonal + t.start + row, *e = s.coupling + t.start + row;
    if (!(*e == zero<T>())) {
        BlockInverse<T> inverse(d[0], *e, d[1]);
        T x = v[0], y = v[1];
        v[0] = fma_(inverse.above, y, inverse.first * x),
        v[1] = fma_(inverse.second, y, inverse.below * x);
    } else if (row % TILE == 0 || e[-1] == zero<T>()) v[0] = pivot_reciprocal(d[0]) * v[0];
}

template <class T> __device__ inline Front<T> front_of(const SolveTask &t, T *factor) {
    Front<T> f;
    f.s = 0, f.tree = nullptr;
    f.set(t.k, t.m, factor + t.panel);
    return f;
}

// The inverse of a diagonal tile, in the layout of front.cuh.
template <class T>
__device__ inline Triangle<const T> inverse_of(const Front<T> &f, int i, bool upper) {
    Triangle<T> found = f.inverse(i, upper);
    return {found.data, f.rows(i), found.ld, found.packed};
}

// --- products with 8 columns of a tile for each warp ---------------------------------------------
// A lane holds 16 entries. By rows: its two rows of 8 columns; by columns: 8 rows of columns lane/8
// and lane/8 + 4. PAIRED rows are adjacent and loaded by one read (16 bytes for double).

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

// e ← up to 64×8 entries by rows. Unless PAIRED, column c begins at row first + c, which is one if
// UNIT. Entries outside are zero, except the row behind the last one. With SHRINKS = 1 the distance
// of columns decreases by one per column, as in packed triangles.
template <bool PAIRED, bool UNIT = false, int SHRINKS = 0, class T>
__device__ inline void load_rows(
    T (&e)[16], const T *a, int ld, int rows, int columns, int first = -8) {
    a += lane_row<PAIRED>(0);
#pragma unroll
    for (int c = 0; c < 8; ++c, a += ld - SHRINKS * (c - 1)) {
        if constexpr (PAIRED) {
            Two<T> two{};
            if (lane_row<true>(0) < rows && c < columns) two = *reinterpret_cast<const Two<T> *>(a);
            e[2 * c] = two.e[0], e[2 * c + 1] = two.e[1];
        } else {
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int row = lane_row<false>(h);
                e[2 * c + h] = row >= first + c + UNIT && row < rows && c < columns ? a[32 * h]
                               : UNIT && row == first + c                           ? one<T>()
                                                                                    : zero<T>();
            }
        }
    }
}

// e ← the same by columns.
template <bool PAIRED, bool UNIT = false, int SHRINKS = 0, class T>
__device__ inline void load_columns(
    T (&e)[16], const T *a, int ld, int rows, int columns, int first = -8) {
    int column = threadIdx.x % 32 / 8;
    a += lane_row_of_column<PAIRED>(0) +
         (SHRINKS ? column * (2 * ld + 1 - column) / 2 : column * ld);
#pragma unroll
    for (int u = 0; u < 2; ++u, a += 4 * (ld - SHRINKS * column) - SHRINKS * 6) {
        bool inside = column + 4 * u < columns;
#pragma unroll
        for (int q = 0; q < 8; q += PAIRED ? 2 : 1) {
            int row = lane_row_of_column<PAIRED>(q);
            if constexpr (PAIRED) {
                Two<T> two{};
                if (inside && row < rows) two = *reinterpret_cast<const Two<T> *>(a + 8 * q);
                e[8 * u + q] = two.e[0], e[8 * u + q + 1] = two.e[1];
            } else {
                int diagonal = first + column + 4 * u;
                bool there = row >= diagonal + UNIT && row < rows;
                e[8 * u + q] = inside && there           ? a[8 * q]
                               : UNIT && row == diagonal ? one<T>()
                                                         : zero<T>();
            }
        }
    }
}

// The same for columns c…c+7 of a triangle of k rows, packed with Cholesky, with ones on its
// diagonal if UNIT, and zeros above it.
template <bool UNIT, class T>
__device__ inline void load_rows(T (&e)[16], const Triangle<const T> &a, int k, int c) {
    int ld = CHOLESKY ? k - 1 - c : a.ld, first = CHOLESKY ? c * (ld + k) / 2 : c * ld;
    load_rows<false, UNIT, CHOLESKY>(e, a.data + first, ld, k, k - c, c);
}
template <bool UNIT, class T>
__device__ inline void load_columns(T (&e)[16], const Triangle<const T> &a, int k, int c) {
    int ld = CHOLESKY ? k - 1 - c : a.ld, first = CHOLESKY ? c * (ld + k) / 2 : c * ld;
    load_columns<false, UNIT, CHOLESKY>(e, a.data + first, ld, k, k - c, c);
}

// sum[h] += Σ entries · v over the columns; the right-hand sides of v are LD apart.
template <int LD, class T>
__device__ inline void multiply_rows(
    T (&sum)[2][W], const T (&e)[16], const T *v, int columns = 8) {
#pragma unroll
    for (int c = 0; c < 8; ++c)
#pragma unroll
        for (int j = 0; j < W; ++j) {
            T factor = c < columns ? v[j * LD + c] : zero<T>();
#pragma unroll
            for (int h = 0; h < 2; ++h) sum[h][j] = fma_(e[2 * c + h], factor, sum[h][j]);
        }
}

// sum[u] += Σ conj(entries) · v over the rows; conj if the second factor is the adjoint. At most
// one row of v behind the last one is read. Entries are checked here, not when they are requested.
template <bool PAIRED, int LD, class T>
__device__ inline void multiply_columns(T (&sum)[2][W], const T (&e)[16], const T *v, int rows) {
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
                    T a = h == 0 || row + 1 < rows ? e[8 * u + q + h] : zero<T>();
                    if constexpr (conjugates) a = conj(a);
                    sum[u][j] = fma_(a, two.e[h], sum[u][j]);
                }
        }
}

// Add the sums by columns over the lanes of a column; call f(c, j, sum) for each of the 8 columns.
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

// --- entries that are requested before they are needed -------------------------------------------
// Steps 0…count−1 use `ahead` sets of entries in turn, each requested while the previous ones are
// used: load(entries, step), then use(entries, step).

constexpr int ahead = AHEAD;

template <class T, class Load>
__device__ __forceinline__ void ask_ahead(T (&e)[ahead][16], int count, Load load) {
#pragma unroll
    for (int h = 0; h < ahead; ++h)
        if (h < count) load(e[h], h);
}
template <class T, class Load, class Use>
__device__ __forceinline__ void take_turns(T (&e)[ahead][16], int count, Load load, Use use) {
#pragma unroll 1
    for (int q = 0; q < count; q += ahead)
#pragma unroll
        for (int h = 0; h < ahead; ++h) {
            if (q + h < count) use(e[h], q + h);
            if (q + h + ahead < count) load(e[h], q + h + ahead);
        }
}
