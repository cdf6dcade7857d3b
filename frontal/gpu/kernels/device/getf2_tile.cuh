// LU with partial pivoting of a 64×64 tile in shared memory, by panels of 16 columns, and what makes
// the inverses of its factors: a block of 128 threads, row r and r + 64 of them on the tile's row r.
#pragma once
#include "getf2.cuh"
#include "potrf_tile.cuh"

constexpr int PANEL_COLUMNS = 16;

// What `factor` needs beside the tile, in shared memory.
template <class T> struct LuTile {
    int pivots[TILE_ROWS];  // LAPACK's interchanges, from 0
    int place[TILE_ROWS];   // where each row of the tile goes
    int moved[TILE_ROWS];   // where each row goes by the panel at hand
    alignas(16) unsigned char exchange[2 * 32 * sizeof(Candidate) + 2 * 4 * PANEL_COLUMNS * sizeof(T)];

    // Factor the leading n×n of the tile, of rows and columns of the identity beyond. Returns how many
    // pivots were replaced because they are below `tiny`, to every thread. From barrier to barrier.
    __device__ int factor(T *tile, int n, real_t<T> tiny) {
        using Columns = Panel<T, PANEL_COLUMNS, 1>;
        int row = threadIdx.x % TILE_ROWS, replaced = 0;
        if (threadIdx.x < TILE_ROWS) place[row] = row, pivots[row] = row;
        for (int p = 0; p < n; p += PANEL_COLUMNS) {
            T a[1][PANEL_COLUMNS];
            int steps = min_(PANEL_COLUMNS, n - p), position[1] = {threadIdx.x < n && row >= p ? row - p : -1};
#pragma unroll
            for (int k = 0; k < PANEL_COLUMNS; ++k) a[0][k] = tile[row + (p + k) * tile_ld<T>];
            __syncthreads();
            replaced += Columns::factor(a, position, steps, exchange, pivots + p, tiny);
            if (threadIdx.x < TILE_ROWS) moved[row] = position[0] < 0 ? row : p + position[0];
            if (threadIdx.x < n && row >= p) {
#pragma unroll
                for (int k = 0; k < PANEL_COLUMNS; ++k) tile[p + position[0] + (p + k) * tile_ld<T>] = a[0][k];
            }
            __syncthreads();
            if (threadIdx.x < steps) pivots[p + threadIdx.x] += p;
            if (threadIdx.x < TILE_ROWS) place[row] = moved[place[row]];
            interchange(tile, p);
            eliminate(tile, p);
        }
        return replaced;
    }

  private:
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
