// L·U of a small front, a part of front_small.cu: a panel in registers, a row per thread, then the
// columns right of it by products.
//
// A pivot is the largest entry of its column in the pivot rows, and is replaced only if it is zero
// up to rounding. Entries of L beyond LIMIT can occur only below the pivot rows; `largest` reports
// their columns to the host, which can delay them to the parent. Behind the other columns such a
// column would fail, too: its entries in the pivot rows are small, so that their elimination adds
// little.
#pragma once
#include "sparse/small_rows_lu.cuh"

constexpr int LATER = 1 << 29;  // position of rows that are no pivot candidates

// Eliminate w columns of a panel; this thread's row has `position` in it, LATER below the pivot
// rows, −1 without a row. On return positions are those in the factors; `pivot` is LAPACK's
// interchange of this row; bit k of `weak` means that this row has a replaced pivot or an entry of
// L beyond LIMIT in column k. Returns the number of replaced pivots. See getf2.cuh.
template <int ORDER>
__device__ inline int eliminate(const Small<ORDER> &f, T (&a)[NB], int row, int w, int most,
    int &position, int &pivot, unsigned &weak) {
    constexpr int LANES = ORDER < 32 ? ORDER : 32, warps = SmallTile<T, ORDER>::warps;
    auto &tile = f.tile;
    int warp = tile.warp(), count = 0;
    PivotBounds<R> bounds(f.to.tiny, R(1));
    columns<0, NB>(most, [&](auto index) {
        constexpr int k = decltype(index)::value;
        if (k >= most) return;
        T *rows = tile.rows + k % 2 * warps * NB;
        Candidate *offers = tile.candidates + k % 2 * warps;
        bool active = k < w && position >= k, candidate = active && position < LATER;
        Magnitude size = magnitude(abs1(a[k]));
        unsigned high;
        int winner = pivot_lane<R, LANES>(candidate, size, position, high);
        bool small = !(abs1(a[k]) >= bounds.least);
        T value = small ? replaced(a[k], bounds.instead) : a[k], own = pivot_reciprocal(value);
        if (f.lane % LANES == max_(winner, 0)) {
            offers[warp] = Candidate{size.high, size.low, winner < 0 ? -1 : position, small};
            if (winner >= 0) put_row<k>(rows + warp * NB, a, own);
        }
        tile.sync();
        int from = warps > 1 ? better(offers[0], offers[1]) : 0, target = offers[from].position;
        bool mine = candidate && position == target;
        const T *source = rows + from * NB;
        if (mine && small) a[k] = value, weak |= 1u << k;
        T minus = zero<T>();
        if (active && !mine) {
            minus = -(source[k] * a[k]), a[k] = -minus;
            if (!(abs1(minus) <= LIMIT)) weak |= 1u << k;
        }
        broadcast<k + 1, NB>(source, [&](int j, T v) { a[j] = fma_(minus, v, a[j]); });
        if (k >= w) return;
        if (row == k) pivot = target;
        position = mine ? k : position == k ? target : position;
        count += offers[from].spare;
    });
    return count;
}

// Store the eliminated panel, pivot rows at their positions, and move these rows in the other
// columns.
template <int ORDER>
__device__ inline void interchange(const Small<ORDER> &f, T (&a)[NB], int p, int w, int position) {
    auto &tile = f.tile;
    bool moves = position >= 0 && position < LATER;
    int place = moves ? p + position : f.lane;
    T *target = tile.panel(p / NB) + place;
    if (position >= 0) {
#pragma unroll
        for (int j = 0; j < NB; ++j)
            target[j * Small<ORDER>::Tile::LD] = moves || j < w ? a[j] : zero<T>();
    }
    if constexpr (ORDER > NB) {
        for (int c = 0; c < f.order(); c += NB) {
            if (c == p) continue;
            const T *from = tile.panel(c / NB) + f.lane;
            T *to = tile.panel(c / NB) + place;
#pragma unroll
            for (int j = 0; j < NB; ++j) a[j] = from[j * Small<ORDER>::Tile::LD];
            tile.sync();
#pragma unroll
            for (int j = 0; j < NB; ++j)
                if (moves) to[j * Small<ORDER>::Tile::LD] = a[j];
        }
    }
    tile.sync();
}

// Compute rows p…p+w−1 of U right of the panel, a column per thread: U12 = L11⁻¹·A12.
template <int ORDER> __device__ inline void solve_upper(const Small<ORDER> &f, int p, int w) {
    constexpr int LD = Small<ORDER>::Tile::LD;
    auto &tile = f.tile;
    int c = p + NB + f.lane;
    if (c < f.order()) {
        const T *lower = tile.panel(p / NB) + p;
        T *column = tile.data + p + c * LD, x[NB];
#pragma unroll
        for (int i = 0; i < NB; ++i) x[i] = column[i];
#pragma unroll
        for (int k = 0; k < NB; ++k) {
            if (k >= w) break;
            column[k] = x[k];
#pragma unroll
            for (int i = k + 1; i < NB; ++i) x[i] = fma_(-lower[i + k * LD], x[k], x[i]);
        }
    }
    tile.sync();
}

// Write the sizes of this row's entries with bits in `weak` to `largest`, from the panel's first
// column on.
__device__ inline void tell_weak(float *largest, const T (&a)[NB], int position, unsigned weak) {
#pragma unroll
    for (int k = 0; k < NB; ++k) {
        unsigned size = position == k ? 0x7f800000u : size_of(a[k]);
        if (weak >> k & 1) atomicMax(reinterpret_cast<int *>(largest + k), (int)size);
    }
}

template <int ORDER> __device__ inline void factor_panels(const Small<ORDER> &f) {
    for (int p = 0; p == 0 || p < f.k(); p += NB) {
        T a[NB];
        int w = min_(NB, f.k() - p), row = f.lane - p, pivot = 0,
            position = row < 0 || f.lane >= f.order() ? -1
                       : f.lane < f.k()               ? row
                                                      : LATER,
            first = f.tile.front.start + p;
        unsigned weak = 0;
        f.load(a, p);
        int count = eliminate(f, a, row, w, f.tile.most(w), position, pivot, weak);
        if (f.lane == 0 && count) atomicAdd(f.to.outcome + 1, count);
        if (weak) tell_weak(f.to.largest + first, a, position, weak);
        if (row >= 0 && row < w) f.to.pivots[first + row] = p + pivot + 1;
        if (w < NB) f.put_columns(a, p, w);
        interchange(f, a, p, w, position);
        if constexpr (ORDER > NB) {
            solve_upper(f, p, w);
            if (p + NB < f.k()) f.update(p + NB, p + NB, f.order(), p, p + NB);
            else f.put_rest(p);
        }
    }
    f.announce();
    put_factors(f);
    f.put_inverses();
}

template <int ORDER, int N> using Rows = RowsLu<T, ORDER, N>;
