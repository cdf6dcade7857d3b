// L·D·Lᴴ of a small front with whole rows in registers: thread r owns row r (small_rows.cuh).
//
// Pivots and their acceptance are those of small_pivots.cuh. A step begins with a pivot of order 1
// in the first column of the windows; only if its column of L would have large entries, the column
// of its largest entry is compared, and both as a block of order 2. By symmetry a column is a row of
// another thread, which stores it for all: no register is indexed by a column. Rows stay in their
// threads; `place` is the column of a row in the windows, from which the columns of pivots are
// removed.
//
// Shared memory: the windows of pivots, with D·Lᴴ and the rows of L⁻¹, replace the assembled front,
// pivot j at data + j·LD. The rows of L11 lie in the factor at the rows of their threads, until all
// pivots are known. Precondition: a barrier after the assembly.
#pragma once
#include "sparse/small_pivots.cuh"
#include "sparse/small_rows.cuh"

// a ← a + `by`·row.
template <class T, int N> __device__ inline void add_window(T (&a)[N], T by, const T *row) {
    broadcast<0, N>(row, [&](int j, T v) { a[j] = fma_(by, v, a[j]); });
}

// Return whether a pivot of this size is good for a column of these sizes, by the upper halves of
// their bits; MULTIPLIER is rounded down to a power of 2.
template <class R> __device__ inline bool is_good(unsigned pivot, unsigned column) {
    constexpr int digits = same_type<R, float> ? 23 : 20;
    constexpr unsigned normal = same_type<R, float> ? 0x00800000u : 0x38100000u,  // floats are
        times = (MULTIPLIER >= 8 ? 3u : 0u) << digits,
                       infinite = same_type<R, float> ? 0x7f800000u : 0x7ff00000u;
    return pivot >= normal && pivot < infinite - times && column <= pivot + times;
}

// Remove column q of a window; `tail` is the new last column.
template <class T, int N> __device__ inline void remove_column(T (&a)[N], int q, T tail) {
#pragma unroll
    for (int i = 0; i + 1 < N; ++i)
        if (i >= q) a[i] = a[i + 1];
    a[N - 1] = tail;
}

// The elimination of a front of at most N rows in registers, by ORDER threads.
template <class T, int ORDER, int N> struct RowsLdl {
    using Tile = SmallTile<T, ORDER>;
    static constexpr int LD = Tile::LD;
    Tile &tile;
    const SmallOutputs<T> &to;
    int lane, k, order;
    // of this row in the windows, −1 for pivots and without a row; of its pivot, −1 without one
    int place, position = -1;
    // of the first column: this row's reciprocal, and the largest size below the pivot in this warp
    T inverse;
    unsigned high;
    int turn = 0;  // of shared memory for sums over warps

    __device__ RowsLdl(Tile &tile, const SmallOutputs<T> &to)
        : tile(tile), to(to), lane(tile.lane()), k(tile.front.k), order(k + tile.front.m),
          place(lane < order ? lane : -1) {}

    __device__ void load(T (&a)[N]) const {
        const T *down = tile.data + lane, *across = tile.data + lane * LD;
#pragma unroll
        for (int j = 0; j < N; ++j) {
            if (lane >= j) a[j] = down[j * LD];
            else a[j] = mirrored(across[j]);
            if (j >= order) a[j] = zero<T>();
        }
        tile.sync();
    }

    // Eliminate the pivot columns; the contribution block becomes the beginning of the window.
    __device__ void eliminate(T (&a)[N]) {
        int last = k, j = 0;  // columns from `last` on failed since the last pivot
        bool found = false, forced = false;
        search(a[0]);
#pragma unroll 1
        while (j < k) {
            T *row = tile.data + j * LD;
            if (place == 0) put_row(a, row, 0);
            unsigned below = largest_below();
            T d = pivot_value(row[0]);
            int steps = 1;
            if (is_good<real_t<T>>(upper_size(d), below))
                remove_first(a, j, d, tile.rows[(turn & 1) * Tile::warps * NB]);
            else steps = with_interchanges(a, j, last - 1 - j, forced);
            if (steps == 0) --last;
            else j += steps, found = true, forced = false;
            if (j < last) continue;
            forced = !found, found = false, last = k;
        }
    }

    // Store this row of the contribution block.
    __device__ void put_block(const T (&a)[N]) const {
        int m = order - k, row = lane < order ? lane - k : -1;
        T *target = to.factor + tile.front.block + row;
#pragma unroll
        for (int c = 0; c < N; ++c, target += m) {
            if (c % 8 == 0 && c >= m) break;
            if (c <= row) *target = a[c];
        }
    }

    // Store L11, D, the inverse of L11, and the interchanges.
    __device__ void put_panel() {
        int ld = padded<T>(k);
        T *own = tile.row_of_l11(to.factor) + lane;
        tile.sync();  // all have read the last pivot's row
        tile.row[0][position >= 0 ? position : lane] = (unsigned char)lane;
        // L and D replace D·Lᴴ, column c at row c
#pragma unroll 4
        for (int c = 0; c < position; ++c) tile.data[c * LD + position - 1 - c] = own[c * ld];
        if (position >= 0)
            tile.data[position * LD + k - 1 - position] = to.diagonal[tile.front.start + position];
        tile.sync();
        // above the diagonal, entry (r, c) of the inverse in row r − c of column k − c
#pragma unroll 4
        for (int c = 0; c <= k; ++c) {
            const T *row = tile.data + (lane < c ? (k - c + lane) * LD + order - lane
                                                 : c * LD + (lane > c ? lane - 1 - c : k - 1 - c));
            if (lane < k) own[c * ld] = lane == 0 && c > 0 ? one<T>() : *row;
        }
        put_interchanges(tile, to.pivots + tile.front.start, lane, k);
    }

  private:
    // Begin the search for the next pivot, by the entry of this row in the first column.
    __device__ void search(T a) {
        high = group_max<32>(place > 0 ? upper_size(a) : 0u);
        inverse = pivot_reciprocal(pivot_value(a));
    }

    // The largest size below the first pivot; a barrier.
    __device__ unsigned largest_below() {
        turn ^= 1;
        if constexpr (Tile::warps > 1) {
            unsigned *all = reinterpret_cast<unsigned *>(tile.candidates) + turn * 8;
            if (lane % 32 == 0) all[Tile::warp() * 4] = high;
            tile.sync();
            return max(all[0], all[4]);
        }
        tile.sync();
        return high;
    }

    // The largest of each value among the threads of the front; a barrier.
    template <int COUNT> __device__ void share(unsigned (&v)[COUNT]) {
        turn ^= 1;
        tile.largest(v, turn);
        if (Tile::warps == 1) tile.sync();
    }

    // Store this row, for pivot number `number` of a block of D.
    __device__ void put_row(const T (&a)[N], T *row, int number) {
        put_window(row, a);
        row[order + number] = one<T>(), row[order + 1 - number] = zero<T>();
        if (number == 0) tile.rows[(~turn & 1) * Tile::warps * NB] = -inverse;
    }

    // The address of this row in column j of L.
    __device__ T *entry(int j) const {
        if (lane < k) return tile.row_of_l11(to.factor) + lane + j * padded<T>(k);
        return to.factor + tile.front.panel + lane - k + j * padded<T>(order - k);
    }

    // This row is that of pivot j: d = D(j,j), b = D(j+1,j).
    __device__ void put_pivot(int j, T d, T b) {
        position = j;
        to.diagonal[tile.front.start + j] = d, to.coupling[tile.front.start + j] = b;
    }

    // Eliminate the first column with the pivot d in it. L is computed of the pivot's row, not of the
    // column: these differ by rounding, which would be amplified as if A was not symmetric.
    __device__ void remove_first(T (&a)[N], int j, T d, T minus_inverse) {
        const T *row = tile.data + j * LD;
        T minus = place > 0 ? minus_inverse * mirrored(row[place]) : zero<T>();
        if (place > 0) *entry(j) = -minus;
        if (place == 0) put_pivot(j, d, zero<T>());
        place = max_(place - 1, -1);
        shift_window<0, 4>(a, minus, row);
        search(a[0]);
        shift_window<4, N>(a, minus, row);
        a[N - 1] = order == N ? minus : zero<T>();
    }

    // Choose a pivot of order 1 or 2, and eliminate its columns; without one the first column moves
    // to `behind`. Returns the order. The first row is stored.
    __device__ int with_interchanges(T (&a)[N], int j, int behind, bool forced) {
        T *row = tile.data + j * LD, *other = row + LD, y = zero<T>();
        unsigned size = size_of(a[0]);
        unsigned best[2] = {
            place > 0 ? size : 0u, place > 0 && lane < k ? (size & ~63u) | (63 - place) : 0u};
        share(best);
        bool pair = (best[1] & ~63u) != 0;
        int q = pair ? 63 - (int)(best[1] & 63) : 0;
        if (pair && place == q) put_row(a, other, 1);
        tile.sync();
        if (pair && place >= 0) y = mirrored(other[place]);
        T d = pivot_value(row[0]), b = pair ? other[0] : zero<T>(),
          g = pair ? pivot_value(other[q]) : d;
        bool rest = place > 0 && place != q;
        unsigned next = pair && place >= 0 && place != q ? size_of(y) : 0u;
        unsigned u[3] = {next, rest ? size : 0u, rest ? next : 0u};
        share(u);
        PivotSizes sizes{__uint_as_float(best[0]), __uint_as_float(u[0]), __uint_as_float(u[1]),
            __uint_as_float(u[2])};
        PivotStep step = choose_pivot(0, q, d, b, g, sizes, forced, to.tiny);
        if (step.order == 0) postpone(a, behind);
        else remove(a, y, j, step, d, b, g);
        search(a[0]);
        tile.sync();  // all have read the stored rows
        return step.order;
    }

    // Interchange the first column with column q.
    __device__ void postpone(T (&a)[N], int q) {
        T first = a[0];
#pragma unroll
        for (int i = 1; i < N; ++i)
            if (i == q) a[0] = a[i], a[i] = first;
        if (place == 0) place = q;
        else if (place == q) place = 0;
    }

    // Eliminate [d, b̄; b, g] in the first column and column `step.partner`, whose entry of this row
    // is y, or only one of them.
    __device__ void remove(T (&a)[N], T y, int j, const PivotStep &step, T d, T b, T g) {
        T *row = tile.data + j * LD, *other = row + LD, l = zero<T>(), next = zero<T>(), x = y;
        int q = step.partner;
        bool two = step.order == 2, rest = place >= 0 && place != q && !(two && place == 0);
        if (!two && q > 0) {
            if (place == q) put_row(a, row, 0);
            tile.sync();
            d = g;
        } else x = mirrored(row[max_(place, 0)]);
        if (step.small) d = enlarged(d, PivotBounds<real_t<T>>(to.tiny, step.column).instead);
        if (rest && two) {
            BlockInverse<T> by(d, b, g);
            l = fma_(y, by.below, x * by.first), next = fma_(x, by.above, y * by.second);
            *entry(j + 1) = next;
        } else if (rest) l = x * pivot_reciprocal(d);
        if (rest || (two && place == q)) *entry(j) = l;
        if (place == (two ? 0 : q)) put_pivot(j, d, two ? b : zero<T>());
        if (two && place == q) put_pivot(j + 1, g, zero<T>());
        note(j, l, step.small);
        add_window(a, -l, row);
        if (two) note(j + 1, next, false), add_window(a, -next, other);
        T tail = order == N ? -l : two && order == N - 1 ? -next : zero<T>();
        for (int column = q, count = step.order; count > 0; --count, column = 0) {
            remove_column(a, column, tail);
            tail = order == N ? -next : zero<T>();
        }
        place = rest ? place - two - (place > q) : -1;
        if (two) align_row(other, j);
    }

    // Move row j of L⁻¹, which is one column longer than in the window of its first pivot, to its
    // place.
    __device__ void align_row(T *row, int j) {
        T v = lane < j ? row[order - j + lane] : zero<T>();
        tile.sync();
        if (lane <= j) row[order - 1 - j + lane] = v;
    }

    // Report the largest entry of a column of L, infinite if its pivot was replaced.
    __device__ void note(int j, T l, bool small) {
        unsigned most = group_max<32>(size_of(l));
        if (lane % 32 == 0)
            atomicMax(reinterpret_cast<int *>(to.largest + tile.front.start + j),
                small ? 0x7f800000 : (int)most);
        if (small && lane == 0) atomicAdd(to.outcome + 1, 1);
    }
};
