// C − X·Xᴴ, or C − X·E·Xᴴ with a diagonal E, for a 64×64 tile C in global memory and a tile X in
// shared memory, by 128 threads: the ten 16×16 blocks on and below the diagonal. C is fetched into
// the place of another tile while that tile's last 16 columns are still in use.
#pragma once
#include "dense/potrf_tile.cuh"
#include "sparse/front.cuh"

template <class T> struct Square {
    static constexpr int BLOCK = 16, ld = tile_ld<T>;

    // Copy the blocks into the tile, asynchronously; columns from 48 on are not written.
    __device__ static void fetch(T *tile, Matrix<T> source) {
        constexpr int wide = Pack16<T>::count;
        each_block([&](int i, int j) {
#pragma unroll
            for (int e = threadIdx.x % 32 * wide; e < BLOCK * BLOCK; e += 32 * wide) {
                int r = e % BLOCK, c = e / BLOCK;
                bool valid = i + r < source.rows && j + c < source.rows;
                copy_async<16>(fetched(tile, i, j) + r + c * ld,
                    valid ? &source(i + r, j + c) : source.data, valid);
            }
        });
        copy_async_commit();
    }
    // tile ← the fetched rows×rows, and the identity beyond, minus the product of x, `scale` and
    // xᴴ. Begins with the wait for the copies; ends with a barrier.
    template <class Scale = Unscaled>
    __device__ static void subtract(T *tile, const T *x, int rows, Scale scale = {}) {
        copy_async_wait<0>();
        __syncwarp();
        each_block([&](int i, int j) {
#if !PLAIN
            if constexpr (same_type<T, double>) return subtract_block(tile, x, rows, i, j, scale);
#endif
            WarpProduct<T, BLOCK, BLOCK> sum;
            sum.clear();
            sum.template add<TILE_ROWS, false, false, false, conjugates>(
                x + i, ld, x + j, ld, scale);
            const T *from = fetched(tile, i, j);  // loaded before anything is stored
            sum.each([&](int r, int c, T &v) { v = from[r + c * ld] - v; });
            T *to = tile + i + j * ld;
            sum.each([&](int r, int c, T &v) {
                to[r + c * ld] = i + r < rows && j + c < rows ? v
                                 : i + r == j + c             ? one<T>()
                                                              : zero<T>();
            });
        });
        __syncthreads();
    }

  private:
#if !PLAIN
    // The same for one block, with rows and columns as in mma_16x8x4: see tile_columns.cuh.
    template <class Scale>
    __device__ static void subtract_block(
        double *tile, const double *x, int rows, int i, int j, Scale scale) {
        int g = (threadIdx.x & 31) >> 2, t = threadIdx.x & 3;
        const double *left = x + i + g + t * ld, *right = x + j + g + t * ld;
        const double *from = fetched(tile, i, j) + g + 2 * t * ld;
        double c[2][4], *to = tile + i + j * ld + g + 2 * t * ld;
#pragma unroll
        for (int e = 0; e < 8; ++e)
            c[e / 4][e % 4] = from[8 * (e % 4 / 2) + (8 * (e / 4) + e % 2) * ld];
#pragma unroll
        for (int k = 0; k < TILE_ROWS; k += 4) {
            double a[2] = {left[k * ld], left[8 + k * ld]};
#pragma unroll
            for (int h = 0; h < 2; ++h) mma_16x8x4(c[h], a, -scale(right[8 * h + k * ld], k + t));
        }
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            int r = 8 * (e % 4 / 2), s = 8 * (e / 4) + e % 2, row = i + g + r,
                column = j + 2 * t + s;
            to[r + s * ld] = row < rows && column < rows ? c[e / 4][e % 4]
                             : row == column             ? 1.0
                                                         : 0.0;
        }
    }
#endif

    // Call f(i, j) for this warp's blocks, at (i, j): one block for the first warp, whose first
    // thread publishes x meanwhile, three for each other warp.
    template <class F> __device__ static void each_block(F f) {
        // Two bits per block, along the columns.
        constexpr unsigned rows = 0xfb9e4, columns = 0xe9500;
        int warp = threadIdx.x / 32;
#pragma unroll 1
        for (int e = warp ? warp - 1 : 9; e < (warp ? 9 : 10); e += 3)
            f((int)(rows >> 2 * e & 3) * BLOCK, (int)(columns >> 2 * e & 3) * BLOCK);
    }
    // The address to which a block is fetched: its own place, except the last block, which goes
    // above the diagonal.
    __device__ static T *fetched(T *tile, int i, int j) {
        return tile + (j < TILE_ROWS - BLOCK ? i + j * ld : BLOCK * ld);
    }
};
