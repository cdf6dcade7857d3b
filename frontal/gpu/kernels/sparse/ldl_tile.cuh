// L·D·Lᴴ of a 64×64 tile in shared memory, by a block of 128 threads, with symmetric interchanges
// and pivots of order 1 and 2 inside the tile.
//
// Columns go 8 at a time (4 of complex<double>), 16 between two updates of the rest by products.
// First as if no interchange were needed: every thread factors the block on the diagonal itself, in
// registers, and solves for one row below it. That stands if no entry of L is larger than
// MULTIPLIER and no pivot too small, and these columns of L are sent to those who follow
// (tile_follow.cuh). Else nothing of it was written, nor is anything sent from then on, and columns
// are eliminated one or two at a time, to the next multiple of 16, by the largest entry of all that
// is left of the tile: on the diagonal, or else beside it, where a block of order 2 is taken
// (Bunch, Parlett, "Direct methods for solving symmetric indefinite systems of linear equations",
// 1971). So entries of L in the tile are bounded, and no block crosses its end. A pivot is replaced
// if all that is left of the tile is too small. Pivots that are looked at when all is computed:
// Duff, Hogg, Lopez, "A new sparse LDLᵀ solver using a posteriori threshold pivoting" (2020).
//
// What is left is known by its lower triangle alone, which keeps it symmetric to the last bit.
#pragma once
#include "dense/getf2.cuh"
#include "dense/potrf_tile.cuh"
#include "sparse/tile_follow.cuh"

#ifndef MULTIPLIER
#define MULTIPLIER 8
#endif

// The lower triangle of a block on the diagonal, in the registers of each thread.
template <class T, int N> struct DiagonalLdl {
    T l[N][N];

    // Factor without interchanges, columns still to be divided by their pivots, and overwrite a row
    // by that of L; returns whether pivots and L are good. Of a row of the block itself, entries
    // from its diagonal on may be anything, and are not looked at unless `below`. Entries are
    // compared by the upper halves of their bits, as integers, so that no pivot waits for that.
    __device__ bool factor(T (&x)[N], bool below, PivotBounds<real_t<T>> bounds) {
        bool good = true;
        unsigned most = 0, own = 0;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            l[k][k] = pivot_value(l[k][k]);
            T inverse = pivot_reciprocal(l[k][k]);
            good = good && abs1(l[k][k]) >= bounds.least;
#pragma unroll
            for (int j = k + 1; j < N; ++j) {
                T m = mirrored(l[j][k] * inverse);
                most = max(most, upper_size(m));
#pragma unroll
                for (int i = j; i < N; ++i) l[i][j] = fma_(-l[i][k], m, l[i][j]);
                x[j] = fma_(-x[k], m, x[j]);
            }
            x[k] = x[k] * inverse;
            own = max(own, upper_size(x[k]));
        }
        return good && max(most, below ? own : 0) <= upper_size(real_t<T>(MULTIPLIER));
    }
};

// What `factor` needs beside the tile, in shared memory.
template <class T> struct LdlTile {
    static constexpr int LD = tile_ld<T>, NB = sizeof(T) < 16 ? 8 : 4, PANEL = 16;
    T coupling[TILE_ROWS];     // D(j+1,j)
    int at[TILE_ROWS];         // which row of the tile comes to each place,
    int place[TILE_ROWS];      // and where each row goes
    float largest[TILE_ROWS];  // infinite where a pivot was replaced
    int small_pivots;

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
#pragma unroll 1
        for (int p = 0; p < n;) {
            int end = p + PANEL, q = p;
#pragma unroll 1
            for (; q < end && without_interchanges(tile, p, q, bounds); q += NB)
                if (sent) send_columns<NB>(sent, tile, q);
            if (q == end) {
                update_rest(tile, p), p = end;
                continue;
            }
            if (sent) send_nothing(sent, (int)threadIdx.x - TILE_ROWS, q, end);
            sent = nullptr;
            p = with_interchanges(tile, n, p, q, bounds);
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

    // Columns q… and their rows from q on take the product of columns p…q−1, a row a thread, while
    // other threads send.
    __device__ void update_columns(T *tile, int p, int q) {
        int row = threadIdx.x;
        if (row >= q && row < TILE_ROWS) {
            T y[NB];
#pragma unroll
            for (int j = 0; j < NB; ++j) y[j] = tile[row + (q + j) * LD];
#pragma unroll 1
            for (; p < q; p += NB) {
#pragma unroll
                for (int k = 0; k < NB; ++k) {
                    T x = -scaled(tile, row, p + k);
                    broadcast<0, NB>(tile + q + (p + k) * LD,
                        [&](int j, T v) { y[j] = fma_(x, mirrored(v), y[j]); });
                }
            }
#pragma unroll
            for (int j = 0; j < NB; ++j) tile[row + (q + j) * LD] = y[j];
        }
        __syncthreads();
    }

    // Columns q… of L, if that needs no interchange.
    __device__ bool without_interchanges(T *tile, int p, int q, PivotBounds<real_t<T>> bounds) {
        int row = threadIdx.x;
        bool mine = row >= q && row < TILE_ROWS, good = true;
        DiagonalLdl<T, NB> top;
        T x[NB];
        if (q > p) update_columns(tile, p, q);
        load_lower(top.l, tile + q * (LD + 1), LD);
#pragma unroll
        for (int k = 0; k < NB; ++k) x[k] = mine ? tile[row + (q + k) * LD] : zero<T>();
        good = top.factor(x, mine && row >= q + NB, bounds);
        if (!__syncthreads_and(good)) return false;
        if (mine) {
#pragma unroll
            for (int k = 0; k < NB; ++k)  // above the diagonal may be anything
                tile[row + (q + k) * LD] = row == q + k ? top.l[k][k] : x[k];
        }
        __syncthreads();
        return true;
    }

    // What is below and right of columns p…p+15 takes their product, 16×16 a warp.
    __device__ void update_rest(T *tile, int p) {
        int after = p + PANEL, side = (TILE_ROWS - after) / 16;
#pragma unroll 1
        for (int e = threadIdx.x / 32; e < side * (side + 1) / 2; e += 4) {
            int j = 0, i = e;  // along the columns of the lower triangle of blocks
            while (i >= side - j) i -= side - j++;
            int j0 = after + 16 * j, i0 = j0 + 16 * i;
            WarpProduct<T, 16, 16> part;
            part.clear();
            part.template add<PANEL, false, false, false, conjugates>(tile + i0 + p * LD, LD,
                tile + j0 + p * LD, LD, ScaledBy<T>{tile + p * (LD + 1), LD + 1});
            part.each([&](int r, int c, T &v) {
                T &entry = tile[i0 + r + (j0 + c) * LD];
                entry = entry - v;
            });
        }
        __syncthreads();
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
    Candidates best[2][4];

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

    // The same as far as the next multiple of 16, or of n, with the largest pivots; columns p…q−1
    // are done. Returns the first column that is left.
    __device__ __noinline__ int with_interchanges(
        T *tile, int n, int p, int q, PivotBounds<real_t<T>> bounds) {
        int r = threadIdx.x % TILE_ROWS, turn = 0;
        Candidates own{0, 0};
        for (int c = q + threadIdx.x / TILE_ROWS; c <= r && r < n; c += 2) {
            T sum = tile[r + c * LD];
            for (int k = c < q + NB ? q : p; k < q; ++k)
                sum = fma_(-scaled(tile, r, k), mirrored(tile[c + k * LD]), sum);
            tile[r + c * LD] = sum, own.look(sum, r, c);
        }
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
