// What becomes of a tile of 64×64 below a diagonal tile that was factored as L·D·Lᴴ, beside the
// product with the inverse of L. By 128 threads.
#pragma once
#include "dense/potrf_tile.cuh"
#include "sparse/pivot_blocks.cuh"

// L = X·D⁻¹ for a tile X = L·D, both to global memory: this thread's row of columns begin, begin +
// STEP, … before `end`. An entry of L is divided(row, column, x).
template <int STEP, class T, class Divided>
__device__ __forceinline__ void put_divided(
    const T *tile, int begin, int end, Matrix<T> product, Matrix<T> lower, Divided divided) {
    constexpr int EACH = sizeof(T) < 16 ? 8 : 4, LD = tile_ld<T>;
    int r = threadIdx.x % TILE_ROWS;
#pragma unroll 1
    for (; begin < end; begin += EACH * STEP) {
        T *x_to = &product(r, begin), *l_to = &lower(r, begin), x[EACH], l[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {  // all are loaded before one is stored
            int c = min_(begin + e * STEP, end - 1);
            x[e] = tile[r + c * LD], l[e] = divided(r, c, x[e]);
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (r < lower.rows && begin + e * STEP < end) *x_to = x[e], *l_to = l[e];
            x_to += STEP * product.ld, l_to += STEP * lower.ld;
        }
    }
}

// To `largest` the size of the largest entry of each column of this L, which tells of pivots too
// small for it: columns first… before `end`, by so many threads, 16 columns at a time.
template <int THREADS, class T, class Divided>
__device__ __forceinline__ void tell_largest(
    const T *tile, int first, int end, float *largest, Divided divided) {
    constexpr int ROWS = TILE_ROWS * 16 / THREADS;
    int thread = threadIdx.x % THREADS, r = thread / 16 * ROWS;
#pragma unroll 1
    for (int c = first + thread % 16; c < end; c += 16) {
        unsigned most = 0;
#pragma unroll 8
        for (int e = r; e < r + ROWS; ++e)
            most = max(most, size_of(divided(e, c, tile[e + c * tile_ld<T>])));
        if (most) atomicMax(reinterpret_cast<int *>(largest + c), (int)most);
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
