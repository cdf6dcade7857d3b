// L·D·Lᴴ of a 64×64 tile in shared memory, by a block of 128 threads, with symmetric interchanges
// and pivots of order 1 and 2 inside the tile.
//
// Columns go 8 at a time (4 of complex<double>), 16 between two updates of the rest by products, as
// if no interchange were needed: every thread factors the block on the diagonal itself, in
// registers, and solves for one row below it. That stands if no entry of L is larger than
// MULTIPLIER and no pivot too small, and these columns of L are sent to those who follow
// (tile_lookahead.cuh). Else nothing of it was written: the first column that failed changes places
// with the one of those behind it whose diagonal entry is the largest, and the block is tried once
// more. A column that has failed comes back behind others, when their elimination has changed it.
// After TRIES failures in a row, or with none left to change places with, nothing is sent from then
// on, and columns are eliminated one or two at a time, to the next multiple of 16, by the largest
// entry of all that is left of the tile: on the diagonal, or else beside it, where a block of order
// 2 is taken (Bunch, Parlett, "Direct methods for solving symmetric indefinite systems of linear
// equations", 1971). So entries of L in the tile are bounded, and no block crosses its end. A pivot
// is replaced if all that is left of the tile is too small. Pivots that are looked at when all is
// computed: Duff, Hogg, Lopez, "A new sparse LDLᵀ solver using a posteriori threshold pivoting"
// (2020).
//
// What is left is known by its lower triangle alone, which keeps it symmetric to the last bit.
#pragma once
#include "dense/getf2.cuh"
#include "dense/potrf_tile.cuh"
#include "sparse/tile_columns.cuh"
#include "sparse/tile_lookahead.cuh"

#ifndef MULTIPLIER
#define MULTIPLIER 8
#endif

// a/d of a pivot d whose reciprocal is given, for what the next pivot waits for: it does not wait
// for all of the reciprocal.
template <class T> __device__ inline T quotient(T a, T, T inverse) { return a * inverse; }
__device__ inline double quotient(double a, double d, double) {
    double x = reciprocal_seed(d), e = fma(-d, x, 1.0);
    a *= x;
    return fma(a, fma(e, e, e), a);
}

// The lower triangle of a block on the diagonal, in the registers of each thread.
template <class T, int N> struct DiagonalLdl {
    T l[N][N];

    // Factor without interchanges, columns still to be divided by their pivots, and overwrite a row
    // by that of L, of which `known` entries are left of its diagonal; all others may be anything.
    // Returns bits of columns whose pivots or entries are not good; of those behind the first it says
    // nothing. They are compared by the upper halves of their bits, as integers, so that no pivot
    // waits for that.
    __device__ unsigned factor(T (&x)[N], int known, PivotBounds<real_t<T>> bounds) {
        unsigned failed = 0;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            l[k][k] = pivot_value(l[k][k]);
            T inverse = pivot_reciprocal(l[k][k]);
            if (!(abs1(l[k][k]) >= bounds.least)) failed |= 1u << k;
#pragma unroll
            for (int j = k + 1; j < N; ++j) {
                T m =
                    mirrored(j == k + 1 ? quotient(l[j][k], l[k][k], inverse) : l[j][k] * inverse);
#pragma unroll
                for (int i = j; i < N; ++i) l[i][j] = fma_(-l[i][k], m, l[i][j]);
                x[j] = fma_(-x[k], m, x[j]);
            }
            x[k] = x[k] * inverse;
            if (k < known && upper_size(x[k]) > upper_size(real_t<T>(MULTIPLIER)))
                failed |= 1u << k;
        }
        return failed;
    }
};

// What `factor` needs beside the tile, in shared memory.
template <class T> struct LdlTile {
    static constexpr int LD = tile_ld<T>, NB = sizeof(T) < 16 ? 8 : 4, PANEL = 16, TRIES = 6;
    T coupling[TILE_ROWS];     // D(j+1,j)
    int at[TILE_ROWS];         // which row of the tile comes to each place,
    int place[TILE_ROWS];      // and where each row goes
    float largest[TILE_ROWS];  // infinite where a pivot was replaced
    int small_pivots;
    unsigned failed[4];  // what warps tell of columns

    // Factor the leading n×n of the tile, of rows and columns of the identity beyond, of which the
    // lower triangle is there; L and D(j,j) take its place. Columns go to `sent`, if that is not
    // null. Returns how many pivots were replaced, to every thread. From barrier to barrier.
    __device__ int factor(T *tile, int n, PivotBounds<real_t<T>> bounds, T *sent) {
        if (threadIdx.x < TILE_ROWS) {
            at[threadIdx.x] = threadIdx.x;
            coupling[threadIdx.x] = zero<T>(), largest[threadIdx.x] = 0;
        }
        if (threadIdx.x == 0) small_pivots = 0;
        __syncthreads();
        Failures before{0, 0};
        // Of columns before q, those before p have been taken from all, the others from columns
        // q…q+NB−1. Of panels that are sent all columns are, the last ones when others wait no more.
#pragma unroll 1
        for (int p = 0, q = 0; q < n || (sent && q % PANEL);) {
            int bad = without_interchanges(tile, q, bounds);
            if (bad == NB) {
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

    // Columns c…c+NB−1 and their rows from c on take the product of columns p…q−1.
    __device__ void update_columns(T *tile, int p, int q, int c) {
        int row = threadIdx.x;
#if !PLAIN
        if constexpr (same_type<T, double>) {         // 16 rows a warp
            int r0 = TILE_ROWS - 16 - row / 32 * 16;  // the first have most: the others send
            if (r0 + 16 > c)
#pragma unroll 1
                for (; p < q; p += NB)
                    take_columns<NB, NB>(tile, r0, c, p, [](double d, int) { return d; });
        } else
#endif
            if (row >= c && row < TILE_ROWS) {  // a row a thread
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

    // Columns q… of L, if that needs no interchange. Returns the first of them that failed, counted
    // from q, or NB. All warps factor the block: a branch around that costs registers.
    __device__ int without_interchanges(T *tile, int q, PivotBounds<real_t<T>> bounds) {
        int row = threadIdx.x, known = row < TILE_ROWS ? row - q : 0;
        bool mine = row >= q && row < TILE_ROWS;
        DiagonalLdl<T, NB> top;
        T x[NB];
        load_lower(top.l, tile + q * (LD + 1), LD);
#pragma unroll
        for (int k = 0; k < NB; ++k) x[k] = mine ? tile[row + (q + k) * LD] : zero<T>();
        unsigned found = top.factor(x, known, bounds);
        if (__syncthreads_or((int)found)) {
            found = __reduce_or_sync(full_warp, found);
            if (row % 32 == 0) failed[row / 32] = found;
            __syncthreads();
            return __ffs((int)(failed[0] | failed[1])) - 1;
        }
        if (mine) {
#pragma unroll
            for (int k = 0; k < NB; ++k)  // above the diagonal may be anything
                tile[row + (q + k) * LD] = row == q + k ? top.l[k][k] : x[k];
        }
        __syncthreads();
        return NB;
    }

    // D of some columns, and zeros for the others.
    struct Between {
        const T *d;
        int first, last;
        __device__ T operator()(T b, int k) const {
            return k >= first && k < last ? d[k * (LD + 1)] * b : zero<T>();
        }
    };

    // What is behind the panel of columns p…q−1 takes their product, 16×16 a warp.
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

    // Columns p…q−1 are taken from all that is behind columns q…q+NB−1.
    __device__ void catch_up(T *tile, int p, int q) {
        if (p == q) return;
        for (int c = q + NB; c % PANEL; c += NB) update_columns(tile, p, q, c);
        update_rest(tile, p, q);
    }

    // Failures of one block in a row, and bits of the columns that they moved behind others.
    struct Failures {
        int count;
        unsigned long long moved;
    };

    // Column f, which failed, changes places with one behind it, if there is one that did not fail.
    // All warps look for it.
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

    // A magnitude and its place, as one number; the least place among equals.
    __device__ static unsigned key(T a, int r, int c) {
        return (size_of(a) & ~4095u) | (4095 - (TILE_ROWS * r + c));
    }
    __device__ static float size(unsigned key) { return __uint_as_float(key & ~4095u); }
    __device__ static int row(unsigned key) { return (4095 - (int)(key & 4095)) / TILE_ROWS; }
    __device__ static int column(unsigned key) { return (4095 - (int)(key & 4095)) % TILE_ROWS; }

    // The largest entries that are left, on the diagonal and below it; 0 for none.
    struct Candidates {
        unsigned diagonal, below;

        __device__ void look(T a, int r, int c) {
            unsigned found = key(a, r, c);
            if (c == r) diagonal = found;
            else below = max(below, found);
        }
    };
    alignas(16) Candidates best[2][4];  // so that wide loads of one turn touch none of the other

    // Tell those of this thread; after a barrier take those of all. Columns take turns.
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

    // Columns from q on as far as the next multiple of 16, or n, with the largest pivots. Returns
    // the first column that is left.
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

    // Interchange rows and columns a and b ≥ a of what is known by its lower triangle, and rows of
    // L. From barrier to barrier if anything moves.
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

    // Eliminate one column or two from column j on; returns how many.
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

    // By a pivot of this order, which is replaced if it is too small, and tell of what is left.
    // Until the next barrier nobody else may look at columns of L.
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
        constexpr int EACH = 4;  // entries at once, the last one again where there are fewer
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
