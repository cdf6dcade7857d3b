// L·U of a small front with whole rows in registers: thread r owns row r (small_rows.cuh).
//
// Pivots and their acceptance are those of small_lu.cuh: the largest entry of its column in the
// pivot rows, replaced if it is zero up to rounding; entries of L beyond LIMIT are reported. The
// next pivot is searched while the rest of its row is computed.
//
// Shared memory: the rows of U and of L⁻¹, row j at data + j·LD in its window, replace the
// assembled front. Precondition: a barrier after the assembly.
#pragma once
#include "sparse/small_rows.cuh"

// Return the number of the better of two warps' candidates.
__device__ inline int better(const Candidate &a, const Candidate &b) {
    if (a.position < 0 || b.position < 0) return a.position < 0;
    if (a.high != b.high) return b.high > a.high;
    if (a.low != b.low) return b.low > a.low;
    return b.position < a.position;
}

// The elimination of a front of at most N rows in registers, by ORDER threads.
template <class T, int ORDER, int N> struct RowsLu {
    using R = real_t<T>;
    using Tile = SmallTile<T, ORDER>;
    static constexpr int LD = Tile::LD, LANES = ORDER < 32 ? ORDER : 32,
                         FIRST = 4;  // columns that are computed before the next search
    Tile &tile;
    const SmallOutputs<T> &to;
    int lane, k, m;
    // of this row among the pivot rows, −1 for others and for pivots; whether it is an update row
    int position;
    bool update;
    // of the next column: this row's entry, its reciprocal, and the largest size among the
    // candidates of this warp
    Magnitude size;
    T inverse;
    unsigned high;

    __device__ RowsLu(Tile &tile, const SmallOutputs<T> &to)
        : tile(tile), to(to), lane(tile.lane()), k(tile.front.k), m(tile.front.m),
          position(lane < k ? lane : -1), update(lane >= k && lane < k + m) {}

    __device__ void load(T (&a)[N]) const {
        int order = k + m;
#pragma unroll
        for (int j = 0; j < N; ++j) a[j] = j < order ? tile.data[lane + j * LD] : zero<T>();
        tile.sync();
    }

    // Eliminate the pivot columns; the contribution block becomes the beginning of the window.
    __device__ void eliminate(T (&a)[N]) {
        int order = k + m, interchange = 0, ld = padded<T>(padded<T>(k) + m);
        T *below = to.factor + tile.front.panel + padded<T>(k) + lane - k;
        search(a[0], 0);
#pragma unroll 1
        for (int j = 0, steps = tile.most(k); j < steps; ++j, below += ld) {
            T *row = tile.data + j * LD;
            bool mine, active = LANES == 32 || j < k;  // or fronts that share the warp are
            int target = agree(j, mine);
            if (mine) put_pivot(a, row, j);
            tile.sync();
            T minus = zero<T>();
            if (active && (update || (position >= j && !mine))) minus = row[0] * a[0];
            if (lane == j) interchange = target;
            position = mine ? -1 : position == j ? target : position;
            if (active) shift_window<0, FIRST>(a, minus, row);
            search(a[0], j + 1);
            if (!active) continue;
            shift_window<FIRST, N>(a, minus, row);
            a[N - 1] = order == N ? minus : zero<T>();
            if (update) *below = -minus;
            if (!(abs1(minus) <= LIMIT)) report(j, size_of(minus));
        }
        if (lane < k) to.pivots[tile.front.start + lane] = interchange + 1;
    }

    // Store this row of the contribution block.
    __device__ void put_block(const T (&a)[N]) const {
        T *target = to.factor + tile.front.block + lane - k;
#pragma unroll
        for (int c = 0; c < N; ++c, target += m) {
            if (c % 8 == 0 && c >= m) break;
            if (update && c < m) *target = a[c];
        }
    }

    // Store the inverses of L11 and of the transpose of U11, and the transpose of U12.
    __device__ void put_panel() const {
        invert_upper();
        T *target = to.factor + tile.front.panel + lane, *rows = tile.data + lane * LD;
        int ld = padded<T>(padded<T>(k) + m), upper_ld = padded<T>(m);
        T *upper = to.factor + tile.front.panel + k * ld + lane;
#pragma unroll 4
        for (int c = 0; c < k; ++c)
            if (lane < k) target[c * ld] = rows[lane > c ? k + m - lane + c : k - 1 - c];
#pragma unroll 4
        for (int j = 0; j < k; ++j)
            if (lane < m) upper[j * upper_ld] = tile.data[j * LD + k - j + lane];
    }

  private:
    // Begin the search for the pivot of column j, of which this row has the entry `a`.
    __device__ void search(T a, int j) {
        if constexpr (is_complex<T>) size = magnitude(abs1(a));
        else size = magnitude(a);
        high = group_max<LANES>(position >= j ? size.high : 0u);
        inverse = pivot_reciprocal(a);
    }

    // Return the position of the pivot of column j, and whether it is in this row.
    __device__ int agree(int j, bool &mine) {
        bool candidate = position >= j;
        int winner = lane_of_largest<LANES>(candidate, size, position, high);
        if (Tile::warps == 1 || k <= 32) {
            mine = winner >= 0 && lane == winner;
            return shuffle(position, max_(winner, 0), LANES);
        }
        Candidate *offers = tile.candidates + j % 2 * Tile::warps;
        if (lane % 32 == max_(winner, 0))
            offers[Tile::warp()] = Candidate{size.high, size.low, winner < 0 ? -1 : position, 0};
        tile.sync();
        int target = offers[better(offers[0], offers[Tile::warps - 1])].position;
        mine = candidate && position == target;
        return target;
    }

    // Store the pivot's row, with the negative reciprocal of the pivot first and a one behind its
    // columns.
    __device__ void put_pivot(const T (&a)[N], T *row, int j) {
        int order = k + m;
        put_window(row, a);
        if (!(abs1(a[0]) >= to.tiny && abs1(a[0]) >= least_pivot<R>())) {
            PivotBounds<R> bounds(to.tiny, R(1));
            inverse = pivot_reciprocal(replaced(a[0], bounds.instead));
            report(j, 0x7f800000u);
            atomicAdd(to.outcome + 1, 1);
        }
        row[0] = -inverse;
        if (order < N) row[order] = one<T>();
    }

    __device__ void report(int j, unsigned bits) const {
        atomicMax(reinterpret_cast<int *>(to.largest + tile.front.start + j), (int)bits);
    }

    // Compute column `lane` of the inverse of the transpose of U11, row after row. Its entry in row
    // r replaces an entry of a row of U that is not needed any more, as it lies in the factor.
    __device__ void invert_upper() const {
        T y[N];
#pragma unroll
        for (int i = 0; i < N; ++i) y[i] = i == lane ? one<T>() : zero<T>();
#pragma unroll 1
        for (int j = 0, steps = tile.most(k); j < steps; ++j) {
            const T *row = tile.data + j * LD;
            T x = zero<T>();
            if (LANES == 32 || j < k) {
                x = row[0] * y[0];
                shift_window<0, N>(y, x, row);
            }
            tile.sync();
            if (lane <= j && j < k) tile.data[(j - lane) * LD + lane] = -x;
        }
        tile.sync();
    }
};
