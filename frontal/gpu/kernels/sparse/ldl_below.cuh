// What becomes of a tile of 64×64 below a diagonal tile that was factored as L·D·Lᴴ, beside the
// product with the inverse of L. By 128 threads.
#pragma once
#include "dense/potrf_tile.cuh"
#include "sparse/pivot_blocks.cuh"

// Move column c < w of the tile to place[c]. Ends with a barrier if anything moves.
template <class T> __device__ inline void interchange_columns(T *tile, const int *place, int w) {
    constexpr int LD = tile_ld<T>, EACH = 8, ROWS = 16;
    int own = threadIdx.x < w ? place[threadIdx.x] : (int)threadIdx.x;
    if (!__syncthreads_or(own != threadIdx.x)) return;
    int first = threadIdx.x / ROWS * EACH;
#pragma unroll 1
    for (int r = threadIdx.x % ROWS; r < TILE_ROWS; r += ROWS) {
        T v[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) v[e] = tile[r + (first + e) * LD];
        __syncthreads();
#pragma unroll
        for (int e = 0; e < EACH; ++e)
            if (first + e < w) tile[r + place[first + e] * LD] = v[e];
    }
    __syncthreads();
}

// L = X·D⁻¹ for a tile X = L·D, an entry of L being divided(row, column, x). This thread's row of
// columns begin, begin + step, … before those that the matrices do not have and before `end`; by
// whole warps. Both go to global memory, and to `largest` the size of the largest entry of each
// column of L, which tells of pivots too small for it.
template <class T, class Divided>
__device__ __noinline__ void put_divided(const T *tile, int begin, int step, int end,
    Matrix<T> product, Matrix<T> lower, float *largest, Divided divided) {
    constexpr int EACH = 8;
    int r = threadIdx.x % TILE_ROWS, lane = threadIdx.x % 32;
    bool mine = r < lower.rows;
    end = min_(end, lower.cols);
#pragma unroll 1
    for (; begin < end; begin += EACH * step) {
        float most = 0;
#pragma unroll 4
        for (int e = 0; e < EACH; ++e) {
            int c = min_(begin + e * step, end - 1);  // nothing is known of those beyond
            T x = tile[r + c * tile_ld<T>], l = divided(r, c, x);
            if (mine && begin + e * step < end) product(r, c) = x, lower(r, c) = l;
            unsigned size = __reduce_max_sync(full_warp, mine ? size_of(l) : 0u);
            if (lane == e) most = __uint_as_float(size);
        }
        int own = begin + lane * step;
        if (lane < EACH && own < end && !(most <= 0))
            atomicMax(reinterpret_cast<int *>(largest + own), __float_as_int(most));
    }
}

// x ← C − l·xᴴ for a tile C in global memory, of which the lower triangle is there; the rows and
// columns that it has not are those of the identity. Blocks of 16×16 on and below the diagonal, a
// row of them at a time, the last one first: its rows of x are then needed no more. From barrier to
// barrier.
template <class T> __device__ inline void subtract_product(T *x, const T *l, Matrix<T> source) {
    constexpr int LD = tile_ld<T>, SIDE = 16;
    int j = threadIdx.x / 32 * SIDE;
#pragma unroll 1
    for (int i = TILE_ROWS - SIDE; i >= 0; i -= SIDE) {
        WarpProduct<T, SIDE, SIDE> sum;
        sum.clear();
        if (j <= i) {
            sum.template add<TILE_ROWS, false, false, false, conjugates>(l + i, LD, x + j, LD);
            sum.each([&](int r, int c, T &v) {
                r += i, c += j;
                if (r < source.rows && c <= r) v = source(r, c) - v;
                else v = r == c ? one<T>() : zero<T>();
            });
        }
        __syncthreads();
        if (j > i) continue;
        T *to = x + i + j * LD;
        sum.each([&](int r, int c, T &v) { to[r + c * LD] = v; });
    }
    __syncthreads();
}
