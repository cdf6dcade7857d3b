// L·D·Lᴴ of a small front: a panel without interchanges (`eliminate_panel`); if it has large
// entries of L or small pivots, the rest with symmetric interchanges and pivots of order 1 and 2
// (`SmallPivots`), by threshold pivoting: entries of L are bounded by LIMIT in whole columns,
// update rows included.
//
// The front is in shared memory with both triangles; a thread owns a row. Each step checks the
// first remaining column and that of its largest entry among the candidates: either can be a pivot,
// or both a block of order 2; a bound of L by 8 ends the search. A column without such a pivot
// moves behind the others and is tried again after their elimination. When all remaining columns
// have failed, the best pivot is used anyway, or enlarged if it is tiny; `largest` reports the
// entries of L to the host, which can delay the column to the parent. Threshold pivoting, and
// columns that move behind the others: Duff, Reid, "The multifrontal solution of indefinite sparse
// symmetric linear equations" (1983); Hogg, Scott, "Pivoting strategies for tough sparse indefinite
// systems" (2013).
//
// Static shared memory: none; D(j+1,j) replaces the tile's scales, and the rows at each position
// replace the children's rows.
#pragma once
#include "sparse/small_front.cuh"

#ifndef MULTIPLIER
#define MULTIPLIER 8
#endif

// Eliminate w columns of a panel, whose row `row` is a, without interchanges. Returns whether that
// is unstable: entries of L are large, or pivots small.
template <class F, class T>
__device__ inline bool eliminate_panel(const F &f, T (&a)[NB], int row, int w, int most) {
    bool weak = false, exists = f.lane < f.order();
    columns<0, NB>(most, [&](auto index) {
        constexpr int k = decltype(index)::value;
        if (k >= most) return;
        T *rows = f.tile.rows + k % 2 * NB;
        if (row >= 0 && row < NB) rows[row] = a[k];
        f.tile.sync();
        T pivot = pivot_value(rows[k]), minus = zero<T>();
        if (SIGNED) {
            int place = f.tile.front.start + f.lane - row + k;
            if (k < w && !has_sign(pivot, f.to.signs[place])) {
                if (row == k) report_failure(f.to.outcome, place);
                pivot = one<T>();
            }
        } else weak |= k < w && !(abs1(pivot) >= f.to.tiny);
        if (row == k) a[k] = pivot;
        if (exists && row > k && k < w) {
            minus = -(a[k] * pivot_reciprocal(pivot));
            if (!SIGNED) weak |= !(abs1(minus) <= MULTIPLIER);
        }
        broadcast<k + 1, NB>(rows, [&](int j, T v) { a[j] = fma_(minus, mirrored(v), a[j]); });
        if (row > k && k < w) a[k] = -minus;
    });
    return weak;
}

// Store the eliminated panel, zeros in the columns from w on, and rows of D·Lᴴ right of it.
template <class F, class T>
__device__ inline void put_panel(const F &f, const T (&a)[NB], int p, int w) {
    constexpr int LD = F::Tile::LD;
    auto &tile = f.tile;
    int row = f.lane - p;
    T *own = tile.panel(p / NB) + f.lane, *right = tile.data + p + f.lane * LD;
    if (row >= 0) {
#pragma unroll
        for (int j = 0; j < NB; ++j) own[j * LD] = j < w ? a[j] : zero<T>();
    }
    tile.sync();
    if (row < NB || f.lane >= f.order()) return;
#pragma unroll
    for (int j = 0; j < NB; ++j)
        if (j < w) right[j] = mirrored(a[j] * tile.data[(p + j) * (LD + 1)]);
}

// The bound of L for a pivot of size d, in a column of entries up to c.
__device__ inline float pivot_bound(float c, float d) {
    return d > 0 ? c / d : __uint_as_float(0x7f800000u);
}

// The same for a pivot of order 2, infinite if its determinant is only rounding; c and d bound the
// rest of its columns.
template <class T> __device__ inline float block_bound(T a, T b, T g, float c, float d) {
    BlockInverse<T> by(a, b, g);
    T product = (g * pivot_reciprocal(b)) * (a * pivot_reciprocal(mirrored(b)));
    float size = (float)abs1(product), rest = (float)abs1(product - one<T>());
    if (!(rest >= 0.01f * fmaxf(size, 1.0f))) return pivot_bound(1, 0);
    float off = (float)abs1(by.below);
    float first = (float)abs1(by.first) * c + off * d,
          second = off * c + (float)abs1(by.second) * d;
    return fmaxf(first, second);
}

// A pivot of order 1 in the first remaining column or at `partner`, or of order 2 with it; order 0:
// none.
struct PivotStep {
    int order, partner;
    bool small;  // the pivot is too small, its column bounded by `column`
    float column;
};

// The largest entries of the first remaining column and that of its largest entry among the
// candidates, `partner`; in both without their own rows too.
struct PivotSizes {
    float first, partner, first_rest, partner_rest;
};

// Choose between a pivot of order 1 with entry a of the first column `own`, one with g of the column
// `partner` (`own` if there is none), and both as a block with b below a.
template <class T>
__device__ inline PivotStep choose_pivot(
    int own, int partner, T a, T b, T g, PivotSizes sizes, bool forced, real_t<T> tiny) {
    bool pair = partner != own;
    float one_bound = pivot_bound(sizes.first, (float)abs1(a)), two_bound = pivot_bound(1, 0);
    float other_bound = pair ? pivot_bound(sizes.partner, (float)abs1(g)) : two_bound;
    if (pair) two_bound = block_bound(a, b, g, sizes.first_rest, sizes.partner_rest);
    float limit = forced ? (float)(1 / tiny) : LIMIT;
    PivotStep step{1, own, false, sizes.first};
    if (one_bound <= MULTIPLIER) return step;
    float best = fminf(one_bound, fminf(other_bound, two_bound));
    if (!(best <= limit)) step.order = forced, step.small = forced;
    else if (two_bound <= MULTIPLIER || two_bound == best) step.order = 2, step.partner = partner;
    else if (other_bound == best) step.partner = partner;
    return step;
}

// Store LAPACK's interchanges from 1, given the row at each position in tile.row[0].
template <class T, int ORDER>
__device__ inline void put_interchanges(SmallTile<T, ORDER> &tile, int *pivots, int lane, int k) {
    unsigned char *wanted = tile.row[0], *at = tile.row[1], *place = tile.row[2];
    at[lane] = place[lane] = (unsigned char)lane;
    bool moved = tile.any(wanted[lane] != lane);
    tile.sync();
    if (!moved && lane < k) pivots[lane] = lane + 1;
    for (int r = 0; moved && lane == 0 && r < k; ++r) {
        int from = place[wanted[r]], row = at[r];
        pivots[r] = from + 1;
        at[from] = (unsigned char)row, place[row] = (unsigned char)from;
    }
}

template <class T, int ORDER> struct SmallPivots {
    using Tile = SmallTile<T, ORDER>;
    static constexpr int LD = Tile::LD;
    Tile &tile;
    const SmallOutputs<T> &to;
    int lane, k, order;

    __device__ void begin() {
        tile.row[0][lane] = (unsigned char)lane;
        if constexpr (SQUARE) tile.scales[lane] = zero<T>();
    }

    // Eliminate all columns from j on; ends with a barrier.
    __device__ void eliminate(int j) {
        int last = k;  // columns from here on failed since the last pivot
        bool found = false, forced = false;
        while (Tile::most(k - j) > 0) {
            Step step = choose(j, forced);
            int other = step.order == 0 ? last - 1 : step.order == 1 ? step.partner : j + 1;
            tile.sync();  // all have read the entries that move now
            if (j >= k) swap(0, 0);
            else if (step.order == 2) swap(other, step.partner);
            else swap(j, other);
            eliminate(j, step);
            if (j >= k) continue;
            if (step.order == 0) --last;
            else j += step.order, found = true, forced = false;
            if (j < last) continue;
            forced = !found, found = false, last = k;
        }
    }

    // Store D, and LAPACK's interchanges from 1.
    __device__ void put() {
        if constexpr (SQUARE) {
            T *coupling = to.coupling + tile.front.start,
              *diagonal = to.diagonal + tile.front.start;
            if (lane < k) {
                coupling[lane] = tile.scales[lane];
                diagonal[lane] = pivot_value(tile.data[lane * (LD + 1)]);
            }
        }
        put_interchanges(tile, to.pivots + tile.front.start, lane, k);
    }

  private:
    using Step = PivotStep;

    __device__ Step choose(int j, bool forced) {
        bool active = j < k, mine = active && lane > j && lane < order;
        j = active ? j : 0;
        const T *own = tile.data + lane, *column = tile.data + j * LD;
        unsigned size = mine ? size_of(own[j * LD]) : 0u;
        unsigned v[2] = {size, mine && lane < k ? (size & ~63u) | (63 - lane) : 0u};
        tile.largest(v, 0);
        bool pair = (v[1] & ~63u) != 0;
        int r = pair ? 63 - (int)(v[1] & 63) : j;
        bool beside = mine && lane != r;
        unsigned next =
            pair && active && lane >= j && lane < order && lane != r ? size_of(own[r * LD]) : 0u;
        unsigned u[3] = {next, beside ? size : 0u, beside ? next : 0u};
        tile.largest(u, 1);
        T a = pivot_value(column[j]), b = column[r], g = pivot_value(tile.data[r * (LD + 1)]);
        PivotSizes sizes{__uint_as_float(v[0]), __uint_as_float(u[0]), __uint_as_float(u[1]),
            __uint_as_float(u[2])};
        return choose_pivot(j, r, a, b, g, sizes, forced, to.tiny);
    }

    // Interchange rows and columns.
    __device__ void swap(int a, int b) {
        T *column = tile.data + lane * LD, *row = tile.data + lane;
        bool mine = lane < order && a != b;
        if (mine) {
            T v = column[a];
            column[a] = column[b], column[b] = v;
        }
        tile.sync();
        if (mine) {
            T v = row[a * LD];
            row[a * LD] = row[b * LD], row[b * LD] = v;
        }
        if (lane == 0 && a != b) {
            unsigned char v = tile.row[0][a];
            tile.row[0][a] = tile.row[0][b], tile.row[0][b] = v;
        }
        tile.sync();
    }

    __device__ void eliminate(int j, const Step &step) {
        bool active = j < k && step.order > 0, two = step.order == 2;
        int first = j + step.order;
        bool mine = active && lane >= first && lane < order;
        j = active ? j : 0;
        T *own = tile.data + lane, *pivots = tile.data + j * (LD + 1);
        T pivot = pivot_value(pivots[0]), b = zero<T>(), l = zero<T>(), next = zero<T>();
        if (step.small) pivot = enlarged(pivot, instead(step.column));
        if (active && two) {
            b = pivots[1];
            BlockInverse<T> inverse(pivot, b, pivot_value(pivots[LD + 1]));
            T x = own[j * LD], y = own[(j + 1) * LD];
            l = fma_(y, inverse.below, x * inverse.first),
            next = fma_(x, inverse.above, y * inverse.second);
        } else if (active) l = own[j * LD] * pivot_reciprocal(pivot);
        const T *column = tile.data + j * LD;
#pragma unroll 4
        for (int c = first; mine && c <= lane; ++c) {
            T sum = fma_(-l, mirrored(column[c]), own[c * LD]);
            if (two) sum = fma_(-next, mirrored(column[c + LD]), sum);
            own[c * LD] = sum, tile.data[c + lane * LD] = mirrored(sum);
        }
        unsigned most[2] = {mine ? size_of(l) : 0u, mine ? size_of(next) : 0u};
        tile.largest(most, 0);
        tile.sync();
        if (mine) own[j * LD] = l;
        if (mine && two) own[(j + 1) * LD] = next;
        if (active && lane == 0) note(j, step, most, pivot, b);
        tile.sync();
    }

    __device__ real_t<T> instead(float column) const {
        return PivotBounds<real_t<T>>(to.tiny, column).instead;
    }

    __device__ void note(int j, const Step &step, const unsigned (&most)[2], T pivot, T b) {
        float *largest = to.largest + tile.front.start + j;
        largest[0] = __uint_as_float(step.small ? 0x7f800000u : most[0]);
        tile.data[j * (LD + 1)] = pivot;
        if (step.small) atomicAdd(to.outcome + 1, 1);
        if (step.order < 2) return;
        largest[1] = __uint_as_float(most[1]);
        if constexpr (SQUARE) tile.scales[j] = b;
        T *second = tile.data + (j + 1) * (LD + 1);
        second[0] = pivot_value(second[0]), second[-LD] = zero<T>();
    }
};
