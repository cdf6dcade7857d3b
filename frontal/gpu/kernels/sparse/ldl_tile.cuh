// L·D·Lᴴ of a 64×64 tile in shared memory, by a block of 128 threads, with symmetric interchanges
// and pivots of order 1 and 2 inside the tile.
//
// Columns are factored 8 at a time (4 of complex<double>), 16 between two updates of the rest by
// products, assuming that no interchange is needed: every thread factors the diagonal block itself,
// in registers, and solves for one row below it. This is accepted if no entry of L exceeds
// MULTIPLIER and no pivot is too small, and these columns of L are sent to the followers
// (tile_lookahead.cuh). Otherwise it is discarded before any store: the first column that failed is
// interchanged with the later one that has the largest diagonal entry, and the block is tried
// again. A failed column returns behind others, whose elimination changes it. After TRIES failures
// in a row, or without a column to interchange with, nothing more is sent, and columns are
// eliminated one or two at a time, to the next multiple of 16, by the largest remaining entry of
// the tile: on the diagonal, or otherwise beside it, with a block of order 2 (Bunch, Parlett,
// "Direct methods for solving symmetric indefinite systems of linear equations", 1971). Entries of
// L in the tile are thus bounded, and no block crosses its end. A pivot is replaced if the whole
// rest of the tile is too small. Pivots that are checked after all is computed: Duff, Hogg, Lopez,
// "A new sparse LDLᵀ solver using a posteriori threshold pivoting" (2020).
//
// Only the lower triangle of the rest is stored, so that the rest is symmetric to the last bit.
#pragma once
#include "dense/getf2.cuh"
#include "dense/potrf_tile.cuh"
#include "sparse/tile_columns.cuh"
#include "sparse/tile_lookahead.cuh"

#ifndef MULTIPLIER
#define MULTIPLIER 8
#endif

// Return a/d for a pivot d with known reciprocal. The next pivot waits for this quotient, which
// does not wait for the complete reciprocal.
template <class T> __device__ inline T quotient(T a, T, T inverse) { return a * inverse; }
__device__ inline double quotient(double a, double d, double) {
    double x = reciprocal_seed(d), e = fma(-d, x, 1.0);
    a *= x;
    return fma(a, fma(e, e, e), a);
}

// The lower triangle of a diagonal block, in the registers of each thread.
template <class T, int N> struct DiagonalLdl {
    T l[N][N];

    // Factor without interchanges, columns not yet divided by their pivots, and overwrite a row by
    // that of L, with `known` entries left of its diagonal; all others are arbitrary. Returns bits
    // of columns with unacceptable pivots or entries; bits behind the first are meaningless.
    // Comparisons use the upper halves of the bits, as integers, so that no pivot waits for them.
    // SIGNED: bits of all columns whose pivots lack their signs; these pivots become 1.
    __device__ unsigned factor(
        T (&x)[N], int known, PivotBounds<real_t<T>> bounds, const int (&signs)[N]) {
        unsigned failed = 0;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            l[k][k] = pivot_value(l[k][k]);
            if (SIGNED && !has_sign(l[k][k], signs[k])) failed |= 1u << k, l[k][k] = one<T>();
            T inverse = pivot_reciprocal(l[k][k]);
            if (!SIGNED && !(abs1(l[k][k]) >= bounds.least)) failed |= 1u << k;
#pragma unroll
            for (int j = k + 1; j < N; ++j) {
                T m =
                    mirrored(j == k + 1 ? quotient(l[j][k], l[k][k], inverse) : l[j][k] * inverse);
#pragma unroll
                for (int i = j; i < N; ++i) l[i][j] = fma_(-l[i][k], m, l[i][j]);
                x[j] = fma_(-x[k], m, x[j]);
            }
            x[k] = x[k] * inverse;
            if (!SIGNED && k < known && upper_size(x[k]) > upper_size(real_t<T>(MULTIPLIER)))
                failed |= 1u << k;
        }
        return failed;
    }
};

// State of `factor` besides the tile, in shared memory.
template <class T> struct LdlTile {
    static constexpr int LD = tile_ld<T>, NB = sizeof(T) < 16 ? 8 : 4, PANEL = 16, TRIES = 6;
    T coupling[TILE_ROWS];     // D(j+1,j)
    int at[TILE_ROWS];         // the row of the tile at each position,
    int place[TILE_ROWS];      // and the position of each row
    float largest[TILE_ROWS];  // infinite for a replaced pivot
    int small_pivots;
    unsigned failed[4];  // results of the warps: failed columns

    // Factor the leading n×n of the tile, given by its lower triangle; rows and columns beyond must
    // be those of the identity. L and D(j,j) replace it. Columns go to `sent` unless it is null.
    // Returns the number of replaced pivots to every thread; SIGNED: the first column whose pivot
    // lacks its sign, from 1, or 0. The caller synchronizes before; ends with a barrier.
    __device__ int factor(
        T *tile, int n, PivotBounds<real_t<T>> bounds, T *sent, const signed char *signs) {
        if (threadIdx.x < TILE_ROWS) {
            at[threadIdx.x] = threadIdx.x;
            coupling[threadIdx.x] = zero<T>(), largest[threadIdx.x] = 0;
        }
        if (threadIdx.x == 0) small_pivots = 0;
        __syncthreads();
        Failures before{0, 0};
        // Of the columns before q, those before p have been subtracted from all columns, the others
        // only from columns q…q+NB−1. All columns of a sent panel are sent, the last ones when
        // nothing waits for them.
#pragma unroll 1
        for (int p = 0, q = 0; q < n || (sent && q % PANEL);) {
            int bad = without_interchanges(tile, n, q, bounds, signs);
            if (SIGNED || bad == NB) {
                if (sent) send_columns<NB>(sent, tile, at, q);
                q += NB, before = {0, 0};
                if (q % PANEL == 0) update_rest(tile, p, q), p = q;
                else update_columns(tile, p, q, q);
                continue;
            }
            catch_up(tile, p, q), p = q;
            if (another(tile, n, q + bad, before)) continue;
            if (sent) send_nothing(sent, at, q);
            sent = nullptr, before = {0, 0};
            p = q = with_interchanges(tile, n, q, bounds);
        }
        if (threadIdx.x < TILE_ROWS) place[at[threadIdx.x]] = threadIdx.x;
        __syncthreads();
        return small_pivots;
    }

  private:
    // An entry of L·D below D.
    __device__ static T scaled(const T *tile, int row, int k) {
        return tile[row + k * LD] * tile[k * (LD + 1)];
    }

    // Subtract the product of columns p…q−1 from columns c…c+NB−1, rows from c on.
    __device__ void update_columns(T *tile, int p, int q, int c) {
        int row = threadIdx.x;
#if !PLAIN
        if constexpr (same_type<T, double>) {         // 16 rows per warp
            int r0 = TILE_ROWS - 16 - row / 32 * 16;  // the first warps have most; others send
            if (r0 + 16 > c)
#pragma unroll 1
                for (; p < q; p += NB)
                    take_columns<NB, NB>(tile, r0, c, p, [](double d, int) { return d; });
        } else
#endif
            if (row >= c && row < TILE_ROWS) {  // a row per thread
            T y[NB];
#pragma unroll
            for (int j = 0; j < NB; ++j) y[j] = tile[row + (c + j) * LD];
#pragma unroll 1
            for (; p < q; p += NB) {
#pragma unroll
                for (int k = 0; k < NB; ++k) {
                    T x = -scaled(tile, row, p + k);
                    broadcast<0, NB>(tile + c + (p + k) * LD,
                        [&](int j, T v) { y[j] = fma_(x, mirrored(v), y[j]); });
                }
            }
#pragma unroll
            for (int j = 0; j < NB; ++j) tile[row + (c + j) * LD] = y[j];
        }
        __syncthreads();
    }

    // Compute columns q… of L, if that needs no interchange. Returns the first of them that failed,
    // counted from q, or NB. All warps factor the block: a branch around it costs registers.
    __device__ int without_interchanges(
        T *tile, int n, int q, PivotBounds<real_t<T>> bounds, const signed char *signs) {
        int row = threadIdx.x, known = row < TILE_ROWS ? row - q : 0;
        bool mine = row >= q && row < TILE_ROWS;
        DiagonalLdl<T, NB> top;
        T x[NB];
        load_lower(top.l, tile + q * (LD + 1), LD);
#pragma unroll
        for (int k = 0; k < NB; ++k) x[k] = mine ? tile[row + (q + k) * LD] : zero<T>();
        int wanted[NB];
#pragma unroll
        for (int k = 0; k < NB; ++k) wanted[k] = SIGNED && q + k < n ? signs[q + k] : 0;
        unsigned found = top.factor(x, known, bounds, wanted);
        if (SIGNED) {
            if (threadIdx.x == 0 && found && !small_pivots) small_pivots = q + __ffs((int)found);
            __syncthreads();
        } else if (__syncthreads_or((int)found)) {
            found = __reduce_or_sync(full_warp, found);
            if (row % 32 == 0) failed[row / 32] = found;
            __syncthreads();
            return __ffs((int)(failed[0] | failed[1])) - 1;
        }
        if (mine) {
#pragma unroll
            for (int k = 0; k < NB; ++k)  // entries above the diagonal are arbitrary
                tile[row + (q + k) * LD] = row == q + k ? top.l[k][k] : x[k];
        }
        __syncthreads();
        return NB;
    }

    // D of columns first…last−1, and zeros for the others.
    struct Between {
        const T *d;
        int first, last;
        __device__ T operator()(T b, int k) const {
            return k >= first && k < last ? d[k * (LD + 1)] * b : zero<T>();
        }
    };

    // Subtract the product of columns p…q−1 from all columns behind their panel, 16×16 per warp.
    __device__ void update_rest(T *tile, int p, int q) {
        int panel = (q - 1) / PANEL * PANEL, after = panel + PANEL, side = (TILE_ROWS - after) / 16;
        Between scale{tile + panel * (LD + 1), p - panel, q - panel};
#pragma unroll 1
        for (int e = threadIdx.x / 32; e < side * (side + 1) / 2; e += 4) {
            int j = 0, i = e;  // along the columns of the lower triangle of blocks
            while (i >= side - j) i -= side - j++;
            int j0 = after + 16 * j, i0 = j0 + 16 * i;
#if !PLAIN
            if constexpr (same_type<T, double>) {
                take_columns<16, PANEL>(tile, i0, j0, panel,
                    [&](double d, int k) { return k >= p && k < q ? d : 0.0; });
                continue;
            }
#endif
            WarpProduct<T, 16, 16> part;
            part.clear();
            part.template add<PANEL, false, false, false, conjugates>(
                tile + i0 + panel * LD, LD, tile + j0 + panel * LD, LD, scale);
            part.each([&](int r, int c, T &v) {
                T &entry = tile[i0 + r + (j0 + c) * LD];
                entry = entry - v;
            });
        }
        __syncthreads();
    }

    // Subtract columns p…q−1 from all columns behind q…q+NB−1.
    __device__ void catch_up(T *tile, int p, int q) {
        if (p == q) return;
        for (int c = q + NB; c % PANEL; c += NB) update_columns(tile, p, q, c);
        update_rest(tile, p, q);
    }

    // Consecutive failures of one block, and bits of the columns that they moved behind others.
    struct Failures {
        int count;
        unsigned long long moved;
    };

    // Interchange column f, which failed, with a later one that did not fail; return false without
    // one or after TRIES failures. All warps search.
    __device__ bool another(T *tile, int n, int f, Failures &before) {
        unsigned best = 0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            int c = threadIdx.x % 32 + 32 * half;
            unsigned size = (size_of(tile[c * (LD + 1)]) & ~63u) | (63 - c);
            if (c > f && c < n && !(before.moved >> c & 1)) best = max(best, size);
        }
        best = __reduce_max_sync(full_warp, best);
        if (best < 64 || before.count == TRIES) return false;
        int c = 63 - (int)(best % 64);
        before.moved = (before.moved | 1ull << c) & ~(1ull << f), ++before.count;
        swap(tile, f, c);
        return true;
    }

    // A magnitude and its position, as one number; the least position wins among equals.
    __device__ static unsigned key(T a, int r, int c) {
        return (size_of(a) & ~4095u) | (4095 - (TILE_ROWS * r + c));
    }
    __device__ static float size(unsigned key) { return __uint_as_float(key & ~4095u); }
    __device__ static int row(unsigned key) { return (4095 - (int)(key & 4095)) / TILE_ROWS; }
    __device__ static int column(unsigned key) { return (4095 - (int)(key & 4095)) % TILE_ROWS; }

    // The largest remaining entries, on the diagonal and below it; 0 for none.
    struct Candidates {
        unsigned diagonal, below;

        __device__ void look(T a, int r, int c) {
            unsigned found = key(a, r, c);
            if (c == r) diagonal = found;
            else below = max(below, found);
        }
    };
    alignas(16) Candidates best[2][4];  // wide loads of one turn stay in it

    // Store the candidates of this thread; after a barrier, return those of all. `turn` alternates.
    __device__ void tell(Candidates own, int turn) {
        own.diagonal = __reduce_max_sync(full_warp, own.diagonal);
        own.below = __reduce_max_sync(full_warp, own.below);
        if (threadIdx.x % 32 == 0) best[turn][threadIdx.x / 32] = own;
    }
    __device__ Candidates take(int turn) const {
        Candidates found = best[turn][0];
#pragma unroll
        for (int w = 1; w < 4; ++w)
            found.diagonal = max(found.diagonal, best[turn][w].diagonal),
            found.below = max(found.below, best[turn][w].below);
        return found;
    }

    // Eliminate columns from q on up to the next multiple of 16, or n, with the largest pivots.
    // Returns the first remaining column.
    __device__ __noinline__ int with_interchanges(
        T *tile, int n, int q, PivotBounds<real_t<T>> bounds) {
        int r = threadIdx.x % TILE_ROWS, turn = 0;
        Candidates own{0, 0};
        for (int c = q + threadIdx.x / TILE_ROWS; c <= r && r < n; c += 2)
            own.look(tile[r + c * LD], r, c);
        tell(own, turn);
        __syncthreads();
        do q += eliminate(tile, n, q, turn, bounds), turn = 1 - turn;
        while (q < n && q % PANEL);
        __syncthreads();
        return q;
    }

    // Interchange rows and columns a and b ≥ a of the rest, stored by its lower triangle, and rows
    // of L. If anything moves, begins and ends with a barrier.
    __device__ void swap(T *tile, int a, int b) {
        if (a == b) return;
        int c = threadIdx.x;
        __syncthreads();
        if (c < TILE_ROWS) {
            bool across = a < c && c <= b;  // from a column to a row
            T *one = c < a    ? tile + a + c * LD
                     : c == a ? tile + a * (LD + 1)
                              : tile + c + a * LD,
              *other = c < a    ? one + (b - a)
                       : c == a ? tile + b * (LD + 1)
                       : c < b  ? tile + b + c * LD
                       : c == b ? one
                                : tile + c + b * LD;
            T v = *one, w = *other;
            *one = across ? mirrored(w) : w, *other = across ? mirrored(v) : v;
        }
        if (c == 0) {
            int v = at[a];
            at[a] = at[b], at[b] = v;
        }
        __syncthreads();
    }

    // Eliminate one or two columns from column j on; return their number.
    __device__ int eliminate(T *tile, int n, int j, int turn, PivotBounds<real_t<T>> bounds) {
        constexpr float alpha = 0.6403882f;  // (1 + √17)/8
        Candidates found = take(turn);
        real_t<T> on = size(found.diagonal), beside = size(found.below);
        bool small = !(max_(on, beside) >= bounds.least);
        int order = small || !(on < alpha * beside) ? 1 : 2;
        if (order == 2) swap(tile, j, column(found.below)), swap(tile, j + 1, row(found.below));
        else if (!small) swap(tile, j, row(found.diagonal));
        eliminate(tile, n, j, order, small, 1 - turn, bounds);
        return order;
    }

    // Eliminate with a pivot of this order, replaced if it is too small, and store the candidates
    // of the rest. Until the next barrier no other thread may read columns of L.
    __device__ void eliminate(
        T *tile, int n, int j, int order, bool small, int turn, PivotBounds<real_t<T>> bounds) {
        int r = threadIdx.x % TILE_ROWS, first = j + order;
        const T *column = tile + j * LD;
        T pivot = pivot_value(column[j]), b = zero<T>(), x = column[r], y = zero<T>(), l, next = y;
        Candidates own{0, 0};
        if (small) pivot = enlarged(pivot, bounds.instead);
        if (order == 2) {
            b = column[j + 1], y = column[r + LD];
            BlockInverse<T> inverse(pivot, b, pivot_value(column[j + 1 + LD]));
            l = fma_(y, inverse.below, x * inverse.first),
            next = fma_(x, inverse.above, y * inverse.second);
        } else l = x * pivot_reciprocal(pivot);
        constexpr int EACH = 4;  // entries at once; beyond the end the last one again
#pragma unroll 1
        for (int begin = first + threadIdx.x / TILE_ROWS; begin <= r && r < n; begin += 2 * EACH) {
            int last = r - ((r - begin) & 1);
            T sum[EACH];
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                int c = min_(begin + 2 * e, last);
                sum[e] = fma_(-l, mirrored(column[c]), tile[r + c * LD]);
                if (order == 2) sum[e] = fma_(-next, mirrored(column[c + LD]), sum[e]);
            }
#pragma unroll
            for (int e = 0; e < EACH; ++e) {
                int c = min_(begin + 2 * e, last);
                tile[r + c * LD] = sum[e], own.look(sum[e], r, c);
            }
        }
        tell(own, turn);
        __syncthreads();
        if (r >= first && r < n && threadIdx.x < TILE_ROWS) {
            tile[r + j * LD] = l;
            if (order == 2) tile[r + (j + 1) * LD] = next;
        }
        if (threadIdx.x == 0) {
            tile[j * (LD + 1)] = pivot;
            if (small) largest[j] = __uint_as_float(0x7f800000u), ++small_pivots;
            if (order == 2) coupling[j] = b, tile[j + 1 + j * LD] = zero<T>();
        }
    }
};
