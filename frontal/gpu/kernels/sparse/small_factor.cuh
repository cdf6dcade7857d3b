// The elimination of a small front by its threads, from its assembly to its end, for front_small.cu
// and front_chains.cu. The method is in front.cuh, the tile map in front_small.cu.
//
// Cholesky is left-looking: before a panel is eliminated, the products of all earlier panels are
// subtracted from its columns. LU (small_rows.cuh, small_lu.cuh) and LDL, whose rows are
// interchanged, are right-looking. LDL begins without interchanges; if that is not stable,
// small_pivots.cuh continues. Sums have a fixed order.
#pragma once
#include "sparse/small_front.cuh"
#include "sparse/small_pivots.cuh"
#include "sparse/small_rows.cuh"
#if LDL
#include "sparse/small_rows_ldl.cuh"
#endif
#include "common/scheduler.cuh"

// Whether fronts wait for their children, which belong to the same launch.
#ifndef WAITS
#define WAITS 0
#endif

using T = SCALAR;
using R = real_t<T>;
using Outputs = SmallOutputs<T>;

// State of a front in each of its threads.
template <int ORDER> struct Small {
    using Tile = SmallTile<T, ORDER>;
    Tile &tile;
    const Outputs &to;
    int lane, *finished;

    __device__ int k() const { return tile.front.k; }
    __device__ int m() const { return tile.front.m; }
    __device__ int order() const { return k() + m(); }
    // The address of row `lane` of L in the factor (with Cholesky only update rows), its leading
    // dimension, and the address of the contribution block minus k rows and columns.
    __device__ T *row() const {
        T *first = to.factor + tile.front.panel + lane;
        if (!CHOLESKY && lane < k()) return first + (LU ? 0 : k() * padded<T>(m()));
        return first + (LU ? padded<T>(k()) : 0) - k();
    }
    __device__ int ld() const {
        return padded<T>(LU ? padded<T>(k()) + m() : LDL && lane < k() ? k() : m());
    }
    __device__ T *block() const { return to.factor + tile.front.block - k() * (1 + m()); }

    __device__ void load(T (&a)[NB], int p) const {
        const T *from = tile.panel(p / NB) + lane;
#pragma unroll
        for (int j = 0; j < NB; ++j) a[j] = lane >= p ? from[j * Tile::LD] : zero<T>();
    }

    // Store the columns of a panel from w on, behind the pivots, in the contribution block.
    __device__ void put_columns(const T (&a)[NB], int p, int w) const {
        int m = this->m(), order = this->order(), last = lane >= order ? -1 : lane - p;
        if (LU) last = lane < order && lane >= k() ? order - 1 - p : -1;
        T *target = block() + lane + p * m;
#pragma unroll
        for (int j = 0; j < NB; ++j, target += m)
            if (j >= w && j <= last) *target = a[j];
    }

    // Store the contribution block's other columns, minus the product of columns from…k−1. Without
    // pivots too the first panel has been stored.
    __device__ void put_rest(int from) const {
        int turn = Tile::warp(), k = this->k(), m = this->m(), order = k + m;
        T *target = block();
        // the first panel has put its other columns, also of a front without pivots
        for (int c0 = max_(ceil_div(k, NB), 1) * NB; c0 < order; c0 += NB)
            for (int r0 = LU ? k / NB * NB : c0; r0 < order; r0 += NB) {
                if (turn++ % Tile::warps) continue;
                T *corner = target + r0 + c0 * m;
                int rows = order - r0, cols = order - c0, first = k - r0, above = c0 - r0;
                tile.reduce(r0, c0, from, k, [&](int i, int j, T v) {
                    if (i < rows && j < cols && i >= (LU ? first : j + above))
                        corner[i + j * m] = v;
                });
            }
    }

    // Store the contribution block if all of it is in the tile.
    __device__ void put_block() const {
        int m = this->m();
        T *target = block() + lane;
        for (int c = k(); c <= lane && lane < order(); ++c)
            target[c * m] = tile.data[lane + c * Tile::LD];
    }

    // Subtract the product of columns from…to−1 from columns c0…last_column−1, rows from r0 on, or
    // with D from the diagonal on.
    __device__ void update(int r0, int c0, int last_column, int from, int to) const {
        int turn = Tile::warp();
        for (int c = c0; c < last_column; c += NB)
            for (int r = LDL ? c : r0; r < order(); r += NB) {
                if (turn++ % Tile::warps) continue;
                T *corner = tile.panel(c / NB) + r;
                tile.reduce(
                    r, c, from, to, [&](int i, int j, T v) { corner[i + j * Tile::LD] = v; });
            }
        tile.sync();
    }

    // Announce that the contribution block is stored: to tasks of the same launch with WAITS, to
    // later launches without it.
    __device__ void announce() const {
        int *flag = finished + tile.front.front;
        if constexpr (WAITS) tile.sync();
        if (lane || !m()) return;
        if constexpr (WAITS) release(flag, 1);
        else *flag = 1;
    }

    // Store the inverses; with LU those of L and of the transpose of U at once if there are enough
    // threads.
    __device__ void put_inverses() const {
        int k = this->k(), passes = LU && 2 * k > ORDER ? 2 : 1;
        for (int pass = 0; pass < passes; ++pass) {
            bool upper = LU && (passes == 1 ? lane >= k : pass == 1);
            int row = upper && passes == 1 ? lane - k : lane;
            T *panel = to.factor + tile.front.panel;
            int ld = padded<T>(k), below = padded<T>(m());
            Triangle<T> kept = LU    ? inverse_within(panel, k, ld + below, upper)
                               : LDL ? folded(Matrix<T>{panel + k * below, k, k, ld})
                                     : packed_inverse(panel + k * below, k);
            tile.invert_row(k, row < k ? row : -1, upper, kept);
        }
    }
};

#if !LU && !LDL
// Eliminate w columns of the panel at p, whose row `row` is a; `most` is the largest w in the warp.
// The columns go to the tile, not yet divided by the roots of their pivots; returns this row's
// pivot. potf2.cuh describes the chain from one pivot to the next.
template <int ORDER>
__device__ inline R eliminate(const Small<ORDER> &f, T (&a)[NB], int p, int w, int most) {
    auto &tile = f.tile;
    T *panel = tile.panel(p / NB);
    int row = f.lane - p;
    R d = real(panel[p]), pivot = R(1);
    columns<0, NB>(most, [&](auto index) {
        constexpr int k = decltype(index)::value;
        if (k >= most) return;
        T *column = panel + k * Small<ORDER>::Tile::LD;
        if (k > 0 && row >= 0) column[f.lane] = a[k];
        if constexpr (k + 1 < NB)
            if (row == k + 1) tile.rows[k % 2] = a[k + 1];
        tile.sync();
        R r = pivot_reciprocal(d);
        if (row == k) pivot = d;
        T minus = row > k && k < w ? -(r * a[k]) : zero<T>();
        if constexpr (k + 1 < NB) {
            T first = column[p + k + 1];
            d = real(fma_(-(r * first), conj(first), from_real<T>(real(tile.rows[k % 2]))));
            a[k + 1] = fma_(minus, conj(first), a[k + 1]);
            broadcast<k + 2, NB>(
                column + p, [&](int j, T v) { a[j] = fma_(minus, conj(v), a[j]); });
        }
    });
    return pivot;
}

// Divide the columns by the roots, in the tile and in the factor; columns from w on become zero.
template <int ORDER>
__device__ inline void put_panel(const Small<ORDER> &f, R pivot, int p, int w) {
    auto &tile = f.tile;
    int row = f.lane - p, ld = f.ld();
    R scale = R(1), root = R(1);
    if (row >= 0 && row < w) {
        root = pivot_root(pivot, scale);
        tile.scales[f.lane] = scale;
        if (!is_pivot(pivot)) report_failure(f.to.outcome, tile.front.start + f.lane);
    }
    tile.sync();
    if (row < 0) return;
    T *entry = tile.panel(p / NB) + f.lane, *target = f.row() + p * ld;
    int last = f.lane >= f.k() && f.lane < f.order() ? w - 1 : -1;
    T v[NB];
#pragma unroll
    for (int j = 0; j < NB; ++j) v[j] = entry[j * Small<ORDER>::Tile::LD];
#pragma unroll
    for (int j = 0; j < NB; ++j, target += ld) {
        v[j] = tile.scales[p + j] * v[j];
        if (row == j) v[j] = from_real<T>(root);
        if (j >= w) v[j] = zero<T>();
        entry[j * Small<ORDER>::Tile::LD] = v[j];
        if (j <= last) *target = v[j];
    }
}

template <int ORDER> __device__ inline void factor(const Small<ORDER> &f) {
    for (int p = 0; p == 0 || p < f.k(); p += NB) {
        T a[NB];
        int w = min_(NB, f.k() - p);
        if (p) f.update(p, p, p + NB, 0, p);
        f.load(a, p);
        R pivot = eliminate(f, a, p, w, f.tile.most(w));
        if (w < NB) f.put_columns(a, p, w);
        put_panel(f, pivot, p, w);
        f.tile.sync();
    }
    f.put_rest(0);
    f.announce();
    f.put_inverses();
}

#endif
#if LU || LDL
template <int ORDER> __device__ inline void put_factors(const Small<ORDER> &f) {
    constexpr int LD = Small<ORDER>::Tile::LD;
    auto &tile = f.tile;
    int k = f.k(), m = f.m(), ld = f.ld(), upper_ld = padded<T>(m);
    T *target = f.row(), *upper = f.to.factor + tile.front.panel + k * ld + f.lane;
    const T *from = tile.data + f.lane, *above = tile.data + (k + f.lane) * LD;
#pragma unroll 4
    for (int j = 0; j < k; ++j) {
        if (f.lane < k + m && f.lane >= (LU ? k : j)) target[j * ld] = from[j * LD];
        if (LU && f.lane < m) upper[j * upper_ld] = above[j];
    }
    if (LU && f.lane < k) tile.scales[f.lane] = pivot_reciprocal(tile.data[f.lane * (LD + 1)]);
    tile.sync();
}
#endif

#if LDL
// Eliminate without interchanges while that is stable, then with pivots from the whole front.
template <int ORDER> __device__ inline void factor_panels(const Small<ORDER> &f) {
    auto &tile = f.tile;
    SmallPivots<T, ORDER> pivots{tile, f.to, f.lane, f.k(), f.order()};
    pivots.begin();
    int p = 0;
    bool weak = false;
    while (p == 0 || p < f.k()) {
        T a[NB];
        int w = max_(min_(NB, f.k() - p), 0);
        f.load(a, p);
        weak = tile.any(eliminate_panel(f, a, f.lane - p, w, tile.most(w)));
        if (weak) break;
        if (w < NB) f.put_columns(a, p, w);
        put_panel(f, a, p, w);
        tile.sync();
        p += NB;
        if constexpr (ORDER > NB) {
            if (p < f.k()) f.update(p, p, f.order(), p - NB, p);
            else f.put_rest(p - NB);
        }
    }
    if (weak) {
        tile.mirror(p, f.order());
        tile.sync();
        pivots.eliminate(p);
        f.put_block();
    }
    f.announce();
    put_factors(f);
    f.put_inverses();
    pivots.put();
}

template <int ORDER, int N> using Rows = RowsLdl<T, ORDER, N>;
#endif
#if LU
#include "sparse/small_lu.cuh"
#endif
#if LU || LDL
template <int ORDER> __device__ inline void factor(const Small<ORDER> &f) {
    if constexpr (in_registers<T, ORDER>) {
        with_columns<ORDER>(f.order(), [&](auto columns) {
            constexpr int N = decltype(columns)::value;
            Rows<ORDER, N> rows(f.tile, f.to);
            T a[N];
            rows.load(a);
            rows.eliminate(a);
            rows.put_block(a);
            f.announce();
            rows.put_panel();
        });
    } else factor_panels(f);
}
#endif

// Factor front `index` of the list if it exists; threads of a missing front that shares a warp run
// with an empty one.
template <int ORDER>
__device__ inline void run(
    const SmallFronts &all, const Outputs &to, int index, bool exists, const T *values) {
    SmallTile<T, ORDER> &tile = shared_memory<SmallTile<T, ORDER>>()[threadIdx.x / ORDER];
    if (ORDER >= 32 && !exists) return;
    Small<ORDER> f{tile, to, tile.lane(), all.finished};
    tile.begin(exists ? all.fronts + index : nullptr);
    tile.clear(f.order());
    tile.sync();
    tile.put_entries(all, values);
    if constexpr (WAITS) tile.wait_for_children(all);
    tile.sync();
    tile.add_children(all, to.factor);
    factor(f);
}
