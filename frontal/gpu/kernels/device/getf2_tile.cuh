// LU with partial pivoting of a 64×64 tile in shared memory, by a block of 128 threads.
//
// Panels of 16 columns are factored by one warp, two rows a lane in registers: between two pivots
// there is no barrier. Then all threads move the rows of the other columns and eliminate.
#pragma once
#include "getf2.cuh"
#include "potrf_tile.cuh"

constexpr int PANEL_COLUMNS = 16;

// What `factor` needs beside the tile, in shared memory.
template <class T> struct LuTile {
    int place[TILE_ROWS];   // where each row of the tile goes
    int moved[TILE_ROWS];   // where each row goes by the panel at hand
    alignas(16) T exchange[2 * PANEL_COLUMNS];
    int small_pivots;

    // Factor the leading n×n of the tile, of rows and columns of the identity beyond. Returns how many
    // pivots were replaced because they are below `tiny`, to every thread. From barrier to barrier.
    __device__ int factor(T *tile, int n, real_t<T> tiny) {
        int row = threadIdx.x;
        if (row < TILE_ROWS) place[row] = row;
        if (row == 0) small_pivots = 0;
        for (int p = 0; p < n; p += PANEL_COLUMNS) {
            __syncthreads();
            if (row < 32) factor_panel(tile, n, p, tiny);
            __syncthreads();
            if (row < TILE_ROWS) place[row] = moved[place[row]];
            interchange(tile, p);
            eliminate(tile, p);
        }
        return small_pivots;
    }

  private:
    // The panel at p, by the first warp: lane l has rows l and l + 32 of the tile.
    __device__ void factor_panel(T *tile, int n, int p, real_t<T> tiny) {
        T a[2][PANEL_COLUMNS];
        int position[2], count = 0, lane = threadIdx.x, steps = min_(PANEL_COLUMNS, n - p);
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            int row = lane + 32 * q;
            position[q] = row < n && row >= p ? row - p : -1;
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k) a[q][k] = tile[row + (p + k) * tile_ld<T>];
        }
        if (lane < 2 * PANEL_COLUMNS) exchange[lane] = zero<T>();
        __syncwarp();
        columns<0, PANEL_COLUMNS>(steps, [&](auto index) {
            constexpr int k = decltype(index)::value;
            if (k < steps) count += eliminate_column<k>(a, position, tiny);
        });
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            int row = lane + 32 * q, to = position[q] < 0 ? row : p + position[q];
            moved[row] = to;
            if (position[q] < 0) continue;
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k) tile[to + (p + k) * tile_ld<T>] = a[q][k];
        }
        if (lane == 0) small_pivots += count;
    }

    // Column K of a panel; returns whether its pivot was replaced.
    template <int K>
    __device__ int eliminate_column(T (&a)[2][PANEL_COLUMNS], int (&position)[2], real_t<T> tiny) {
        OwnCandidate<T> own = own_candidate<K>(a, position);
        unsigned high;
        int winner = pivot_lane<real_t<T>, 32>(own.position >= 0, own.size, own.position, high);
        bool mine = (int)threadIdx.x == winner, small = !(abs1(own.value) >= tiny);
        if (small) own.value = replaced(own.value, tiny);
        T inverse = pivot_reciprocal(own.value), *row = exchange + K % 2 * PANEL_COLUMNS;
        if (mine) {
#pragma unroll
            for (int q = 0; q < 2; ++q)
                if (own.row == q) a[q][K] = own.value, put_row<K>(row, a[q], inverse);
        }
        int target = shuffle(own.position, winner), count = shuffle((int)small, winner);
        __syncwarp();
        T minus[2];
#pragma unroll
        for (int q = 0; q < 2; ++q) {
            bool below = position[q] >= K && position[q] != target;
            minus[q] = zero<T>();
            if (below) minus[q] = -(row[K] * a[q][K]), a[q][K] = -minus[q];
            position[q] = position[q] == target ? K : position[q] == K ? target : position[q];
        }
        broadcast<K + 1, PANEL_COLUMNS>(row, [&](int j, T v) {
#pragma unroll
            for (int q = 0; q < 2; ++q) a[q][j] = fma_(minus[q], v, a[q][j]);
        });
        return count;
    }

    // Move the rows of the columns beside the panel at p.
    __device__ void interchange(T *tile, int p) {
        int row = threadIdx.x % TILE_ROWS, half = threadIdx.x / TILE_ROWS;
#pragma unroll 1
        for (int first = 0; first < TILE_ROWS; first += 2 * PANEL_COLUMNS) {
            T v[PANEL_COLUMNS];
            int begin = first + half * PANEL_COLUMNS;
            bool beside = begin != p;
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k)
                if (beside) v[k] = tile[row + (begin + k) * tile_ld<T>];
            __syncthreads();
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k)
                if (beside) tile[moved[row] + (begin + k) * tile_ld<T>] = v[k];
        }
        __syncthreads();
    }

    // U12 ← L11⁻¹·A12 of the panel at p, a column a thread; then A22 ← A22 − L21·U12, a row a thread.
    __device__ void eliminate(T *tile, int p) {
        constexpr int LD = tile_ld<T>;
        int after = p + PANEL_COLUMNS, row = threadIdx.x % TILE_ROWS;
        int column = after + threadIdx.x;
        if (column < TILE_ROWS) {
            T x[PANEL_COLUMNS];
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k) x[k] = tile[p + k + column * LD];
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k)
#pragma unroll
                for (int i = k + 1; i < PANEL_COLUMNS; ++i) x[i] = fma_(-tile[p + i + (p + k) * LD], x[k], x[i]);
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k) tile[p + k + column * LD] = x[k];
        }
        __syncthreads();
        if (row >= after) {
            T l[PANEL_COLUMNS];
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k) l[k] = tile[row + (p + k) * LD];
            for (int j = after + threadIdx.x / TILE_ROWS; j < TILE_ROWS; j += 2) {
                T sum = tile[row + j * LD];
#pragma unroll
                for (int k = 0; k < PANEL_COLUMNS; ++k) sum = fma_(-l[k], tile[p + k + j * LD], sum);
                tile[row + j * LD] = sum;
            }
        }
        __syncthreads();
    }
};
