// LU of a 64×64 tile in shared memory, by a block of 128 threads, with pivots inside the tile.
//
// Columns are factored 8 at a time (4 of complex<double>), 16 between two updates of the rest by
// products. The first attempt assumes that no interchange is needed: every thread factors the
// diagonal block itself, in registers, from one broadcast read, so that nothing is exchanged
// between pivots; then one thread solves for row r below it, and another for column r beside it.
// The attempt is accepted if no entry of L exceeds MULTIPLIER and no pivot is too small (threshold
// pivoting; with MULTIPLIER 1 partial pivoting), and these columns of L and rows of U are sent to
// the followers (tile_lookahead.cuh). Otherwise it is discarded before any store, nothing is sent
// from then on, and one warp searches for the largest pivots, two rows per lane in registers,
// without barriers between pivots.
// Pivots that are checked after all is computed: Duff, Hogg, Lopez, "A new sparse LDLᵀ solver using
// a posteriori threshold pivoting" (2020). A pivot is replaced if its column is null in all
// remaining rows of the tile.
#pragma once
#include "dense/getf2.cuh"
#include "dense/potrf_tile.cuh"
#include "sparse/tile_lookahead.cuh"

#ifndef MULTIPLIER
#define MULTIPLIER 8
#endif

constexpr int PANEL_COLUMNS = 16;  // between two updates of the rest

// A diagonal block, in the registers of each thread: U, and L without its ones.
template <class T, int N> struct DiagonalLu {
    T lu[N][N], inverse[N];  // reciprocals of the pivots

    __device__ void load(const T *block, int ld) {
#pragma unroll
        for (int j = 0; j < N; ++j)
            broadcast<0, N>(block + j * ld, [&](int i, T v) { lu[i][j] = v; });
    }

    // Factor in place without interchanges; return whether the pivots are acceptable. `most` grows
    // to the largest entry of L, compared by the upper halves of the bits, as integers, so that no
    // pivot waits for comparisons.
    __device__ bool factor(unsigned &most, PivotBounds<real_t<T>> bounds) {
        bool good = true;
#pragma unroll
        for (int k = 0; k < N; ++k) {
            good = good && abs1(lu[k][k]) >= bounds.least;
            inverse[k] = pivot_reciprocal(lu[k][k]);
#pragma unroll
            for (int i = k + 1; i < N; ++i) {
                lu[i][k] = lu[i][k] * inverse[k];
                most = max(most, upper_size(lu[i][k]));
#pragma unroll
                for (int j = k + 1; j < N; ++j) lu[i][j] = fma_(-lu[i][k], lu[k][j], lu[i][j]);
            }
        }
        return good;
    }

    // Overwrite a row by the solution x of x·U = row, a row of L.
    __device__ void solve_row(T (&x)[N], unsigned &most) const {
#pragma unroll
        for (int k = 0; k < N; ++k) {
            x[k] = x[k] * inverse[k];
            most = max(most, upper_size(x[k]));
#pragma unroll
            for (int j = k + 1; j < N; ++j) x[j] = fma_(-x[k], lu[k][j], x[j]);
        }
    }

    // Overwrite a column by the solution x of L·x = column.
    __device__ void solve_column(T (&x)[N]) const {
#pragma unroll
        for (int k = 0; k < N; ++k)
#pragma unroll
            for (int i = k + 1; i < N; ++i) x[i] = fma_(-lu[i][k], x[k], x[i]);
    }
};

// State of `factor` besides the tile, in shared memory.
template <class T> struct LuTile {
    static constexpr int LD = tile_ld<T>, NB = sizeof(T) < 16 ? 8 : 4;
    int place[TILE_ROWS];  // the position of each row of the tile
    int moved[TILE_ROWS];  // its move by the current columns
    alignas(16) T exchange[2 * NB];
    unsigned replaced[TILE_ROWS / 32];  // bits of columns with replaced pivots

    // Factor the leading n×n of the tile; rows and columns beyond must be those of the identity.
    // Columns of L and of the transpose of U, one 64×64 after the other, go to `sent` unless it is
    // null; all columns of a panel are sent. The caller synchronizes before; ends with a barrier.
    __device__ void factor(T *tile, int n, PivotBounds<real_t<T>> bounds, T *sent) {
        int line = threadIdx.x % TILE_ROWS;
        if (sent && threadIdx.x >= TILE_ROWS) sent += TILE_ROWS * TILE_ROWS;
        if (threadIdx.x < TILE_ROWS) place[threadIdx.x] = threadIdx.x;
        if (threadIdx.x < TILE_ROWS / 32) replaced[threadIdx.x] = 0;
        __syncthreads();
#pragma unroll 1
        for (int p = 0; p < n; p += PANEL_COLUMNS) {
#pragma unroll 1
            for (int q = p, end = p + PANEL_COLUMNS; q < (sent ? end : min_(end, n)); q += NB) {
                if (q > p) update_columns(tile, p, q);
                if (without_interchanges(tile, p, q, bounds, sent)) continue;
                if (sent) send_nothing(sent, line, q, end);
                sent = nullptr;
                with_interchanges(tile, n, p, q, bounds);
            }
            update_rest(tile, p);
        }
    }

  private:
    // Subtract from columns q…, rows from q on, the product of columns p…q−1; a row per thread.
    __device__ void update_columns(T *tile, int p, int q) {
        int row = threadIdx.x % TILE_ROWS, first = q + threadIdx.x / TILE_ROWS * (NB / 2);
        if (row >= q) {
            T y[NB / 2];
#pragma unroll
            for (int j = 0; j < NB / 2; ++j) y[j] = tile[row + (first + j) * LD];
#pragma unroll 4
            for (int k = p; k < q; ++k) {
                T x = -tile[row + k * LD];
#pragma unroll
                for (int j = 0; j < NB / 2; ++j) y[j] = fma_(x, tile[k + (first + j) * LD], y[j]);
            }
#pragma unroll
            for (int j = 0; j < NB / 2; ++j) tile[row + (first + j) * LD] = y[j];
        }
        __syncthreads();
    }

    // Load rows q… of a column on their right, minus the product of rows p…q−1.
    __device__ void load_column(T (&x)[NB], const T *tile, int column, int p, int q) const {
        const T *from = tile + column * LD;
        broadcast<0, NB>(from + q, [&](int i, T v) { x[i] = v; });
#pragma unroll 4
        for (int k = p; k < q; ++k)
            broadcast<0, NB>(
                tile + q + k * LD, [&](int i, T v) { x[i] = fma_(-v, from[k], x[i]); });
    }

    // Compute columns and rows q… of the factors; return false if that needs interchanges.
    __device__ bool without_interchanges(
        T *tile, int p, int q, PivotBounds<real_t<T>> bounds, T *sent) {
        int line = threadIdx.x % TILE_ROWS;
        bool upper = threadIdx.x >= TILE_ROWS, mine = line >= q + NB, good = true;
        DiagonalLu<T, NB> top;
        T x[NB];
        top.load(tile + q + q * LD, LD);
        if (mine && upper) load_column(x, tile, line, p, q);
        if (mine && !upper) {
#pragma unroll
            for (int k = 0; k < NB; ++k) x[k] = tile[line + (q + k) * LD];
        }
        if ((line | 31) >= q) {  // the other warps have no remaining line
            unsigned most = 0;
            good = top.factor(most, bounds);
            if (mine && upper) top.solve_column(x);
            if (mine && !upper) top.solve_row(x, most);
            good = good && most <= upper_size(real_t<T>(MULTIPLIER));
        }
        if (!__syncthreads_and(good)) return false;
        if (mine) {
            put_line(tile, line, q, upper, x);
            if (sent) send_row(sent, line, q, x, one<T>());
        } else if (line == q) {
#pragma unroll
            for (int j = 0; j < NB; ++j)
#pragma unroll
                for (int i = 0; i < NB; ++i)
                    if (upper == i < j) tile[q + i + (q + j) * LD] = top.lu[i][j];
        }
        __syncthreads();
        if (sent && !mine && line >= first_sent(q)) {
            T own = upper ? pivot_reciprocal(tile[line * (LD + 1)]) : one<T>();
#pragma unroll
            for (int k = 0; k < NB; ++k)
                x[k] = tile[upper ? q + k + line * LD : line + (q + k) * LD];
            send_row(sent, line, q, x, own);
        }
        return true;
    }

    __device__ void put_line(T *tile, int line, int q, bool upper, const T (&x)[NB]) const {
        if (upper) {
            put_row<0>(tile + q + line * LD, x, x[0]);
        } else {
#pragma unroll
            for (int k = 0; k < NB; ++k) tile[line + (q + k) * LD] = x[k];
        }
    }

    // The same with the largest pivots.
    __device__ void with_interchanges(T *tile, int n, int p, int q, PivotBounds<real_t<T>> bounds) {
        int line = threadIdx.x % TILE_ROWS;
        if (threadIdx.x < 32) factor_columns(tile, n, q, bounds);
        __syncthreads();
        if (threadIdx.x < TILE_ROWS) place[threadIdx.x] = moved[place[threadIdx.x]];
        interchange(tile, q);
        if (threadIdx.x >= TILE_ROWS && line >= q + NB) {
            DiagonalLu<T, NB> top;
            T x[NB];
            top.load(tile + q + q * LD, LD);
            load_column(x, tile, line, p, q);
            top.solve_column(x);
            put_line(tile, line, q, true, x);
        }
        __syncthreads();
    }

    // Factor columns q…, by the first warp: lane l has rows l and l + 32 of the tile.
    __device__ void factor_columns(T *tile, int n, int q, PivotBounds<real_t<T>> bounds) {
        T a[2][NB];
        int position[2], lane = threadIdx.x, steps = min_(NB, n - q);
        unsigned small = 0;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int row = lane + 32 * h;
            position[h] = row < n && row >= q ? row - q : -1;
#pragma unroll
            for (int k = 0; k < NB; ++k) a[h][k] = tile[row + (q + k) * LD];
        }
        if (lane < 2 * NB) exchange[lane] = zero<T>();
        __syncwarp();
        columns<0, NB>(steps, [&](auto index) {
            constexpr int k = decltype(index)::value;
            if (k < steps) small |= eliminate_column<k>(a, position, bounds) << k;
        });
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int row = lane + 32 * h, to = position[h] < 0 ? row : q + position[h];
            moved[row] = to;
            if (position[h] < 0) continue;
#pragma unroll
            for (int k = 0; k < NB; ++k) tile[to + (q + k) * LD] = a[h][k];
        }
        if (lane == 0) replaced[q / 32] |= small << q % 32;
    }

    // Eliminate column K of them; return whether its pivot was replaced.
    template <int K>
    __device__ unsigned eliminate_column(
        T (&a)[2][NB], int (&position)[2], PivotBounds<real_t<T>> bounds) {
        OwnCandidate<T> own = own_candidate<K>(a, position);
        unsigned high;
        int winner = pivot_lane<real_t<T>, 32>(own.position >= 0, own.size, own.position, high);
        bool mine = (int)threadIdx.x == winner;
        int small = !(abs1(own.value) >= bounds.least);
        if (small) own.value = ::replaced(own.value, bounds.instead);
        T inverse = pivot_reciprocal(own.value), *row = exchange + K % 2 * NB;
        if (mine) {
#pragma unroll
            for (int h = 0; h < 2; ++h)
                if (own.row == h) a[h][K] = own.value, put_row<K>(row, a[h], inverse);
        }
        int target = shuffle(own.position, winner);
        small = shuffle(small, winner);
        __syncwarp();
        T minus[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            bool below = position[h] >= K && position[h] != target;
            minus[h] = zero<T>();
            if (below) minus[h] = -(row[K] * a[h][K]), a[h][K] = -minus[h];
            position[h] = position[h] == target ? K : position[h] == K ? target : position[h];
        }
        broadcast<K + 1, NB>(row, [&](int j, T v) {
#pragma unroll
            for (int h = 0; h < 2; ++h) a[h][j] = fma_(minus[h], v, a[h][j]);
        });
        return small;
    }

    // Move the rows of all columns except q…q+NB−1.
    __device__ void interchange(T *tile, int q) {
        constexpr int together = 16;
        int row = threadIdx.x % TILE_ROWS, half = threadIdx.x / TILE_ROWS;
#pragma unroll 1
        for (int first = 0; first < TILE_ROWS; first += 2 * together) {
            T v[together];
            int begin = first + half * together;
#pragma unroll
            for (int k = 0; k < together; ++k) v[k] = tile[row + (begin + k) * LD];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < together; ++k)
                if (begin + k < q || begin + k >= q + NB)
                    tile[moved[row] + (begin + k) * LD] = v[k];
        }
        __syncthreads();
    }

    // Subtract the product of the columns from p on from the rest right of and below them, 16×16
    // per warp.
    __device__ void update_rest(T *tile, int p) {
        int after = p + PANEL_COLUMNS, side = (TILE_ROWS - after) / 16;
#pragma unroll 1
        for (int e = threadIdx.x / 32; e < side * side; e += 4) {
            int i0 = after + e % side * 16, j0 = after + e / side * 16;
            WarpProduct<T, 16, 16> part;
            part.clear();
            part.template add<PANEL_COLUMNS, false, true, false, false>(
                tile + i0 + p * LD, LD, tile + p + j0 * LD, LD);
            part.each([&](int i, int j, T &v) {
                T &entry = tile[i0 + i + (j0 + j) * LD];
                entry = entry - v;
            });
        }
        __syncthreads();
    }
};

// Compute the inverses of L, with ones on its diagonal, and of the transpose of U, of a factored
// tile, as invert_lower; both at once, for a short chain. `ones` and `scales`, the reciprocals of
// U's diagonal, are in shared memory.
template <class T>
__device__ inline void invert_both(
    const T *tile, T *lower, T *upper, const T *ones, const T *scales, int n) {
    constexpr int ld = tile_ld<T>;
    int warp = threadIdx.x / 32;
    bool second = threadIdx.x % 32 >= 16;
    clear_above(lower), clear_above(upper);
    if (warp * 16 < n)
        invert_sixteen(
            tile, second ? ld : 1, second ? 1 : ld, second ? upper : lower, second ? scales : ones);
    __syncthreads();
    if (n <= 16) return;
    WarpProduct<T, 16, 16> part, other;
    {  // warps 0 and 1 for L, 2 and 3 for U, a part each
        int p = warp % 2 * 32;
        T *v11 = (warp < 2 ? lower : upper) + p * (1 + ld), *v21 = v11 + 16;
        part.clear();
        if (warp < 2) join_first<16, false>(part, tile + p * (1 + ld) + 16, v11, v21);
        else join_first<16, true>(part, tile + p * (1 + ld) + 16 * ld, v11, v21);
        __syncwarp();
        part.clear();
        join_second<16>(part, v21 + 16 * ld, v21);
        __syncwarp();
        join_put(part, v21);
        __syncthreads();
    }
    if (n <= 32) return;
    int i0 = warp % 2 * 16, j0 = warp / 2 * 16;
    part.clear(), other.clear();
    join_first<32, false>(part, tile + 32 + i0, lower + j0 * ld, lower + 32 + i0 + j0 * ld);
    join_first<32, true>(other, tile + (32 + i0) * ld, upper + j0 * ld, upper + 32 + i0 + j0 * ld);
    __syncthreads();
    part.clear(), other.clear();
    join_second<32>(part, lower + 32 + i0 + 32 * ld, lower + 32 + j0 * ld);
    join_second<32>(other, upper + 32 + i0 + 32 * ld, upper + 32 + j0 * ld);
    __syncthreads();
    join_put(part, lower + 32 + i0 + j0 * ld);
    join_put(other, upper + 32 + i0 + j0 * ld);
    __syncthreads();
}
