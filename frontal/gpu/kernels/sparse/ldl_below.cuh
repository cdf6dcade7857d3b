// Tiles of 64×64 below a diagonal tile that was factored as L·D·Lᴴ, except the product with the
// inverse of L. By 128 threads.
#pragma once
#include "dense/potrf_tile.cuh"
#include "sparse/pivot_blocks.cuh"

// Raise `largest` to the entries of L beyond LIMIT, in this thread's row of columns begin, begin +
// step, … before `end`. An entry of L is divided(row, column, x).
template <class T, class Divided>
__device__ __noinline__ void tell_large(
    const T *tile, int begin, int end, int step, float *largest, Divided divided) {
    int r = threadIdx.x % TILE_ROWS;
    for (int c = begin; c < end; c += step) {
        T l = divided(r, c, tile[r + c * tile_ld<T>]);
        if (!(abs1(l) <= LIMIT)) atomicMax(reinterpret_cast<int *>(largest + c), (int)size_of(l));
    }
}

// Store L = X·D⁻¹ for columns first…end−1 of a tile X = L·D, and X, in global memory; report large
// entries.
template <class T, class Divided>
__device__ __forceinline__ void put_divided(const T *tile, int first, int end, Matrix<T> product,
    Matrix<T> lower, float *largest, Divided divided) {
    constexpr int EACH = sizeof(T) < 16 ? 8 : 4, LD = tile_ld<T>, STEP = 2;
    int r = threadIdx.x % TILE_ROWS, begin = first + threadIdx.x / TILE_ROWS;
    bool large = false;
#pragma unroll 1
    for (int b = begin; b < end; b += EACH * STEP) {
        T *x_to = &product(r, b), *l_to = &lower(r, b), x[EACH], l[EACH];
#pragma unroll
        for (int e = 0; e < EACH; ++e) {  // all are loaded before one is stored
            int c = min_(b + e * STEP, end - 1);
            x[e] = tile[r + c * LD], l[e] = divided(r, c, x[e]);
            large |= !(abs1(l[e]) <= LIMIT);
        }
#pragma unroll
        for (int e = 0; e < EACH; ++e) {
            if (r < lower.rows && b + e * STEP < end) *x_to = x[e], *l_to = l[e];
            x_to += STEP * product.ld, l_to += STEP * lower.ld;
        }
    }
    if (large) tell_large(tile, begin, end, STEP, largest, divided);
}

// x ← C − l·xᴴ for the lower triangle of a tile C in global memory; missing rows and columns are
// those of the identity. 16×16 blocks on and below the diagonal, a row of them at a time, the last
// one first: its rows of x are not needed afterwards. The caller synchronizes before; ends with a
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
