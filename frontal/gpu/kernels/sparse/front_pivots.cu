// After front_tiles.cu by LU or LDL: interchange the rows of L left of each diagonal tile as those of
// the tile were, as LAPACK's getrf does, and make its interchanges, from 1, of the places that rows
// went to.
//
// A block of 128 threads a front; thread t owns row t % 64 of a tile, and every second group of 8
// columns. Static shared memory: four integers a row. Blocks do not wait for each other.
#include "sparse/front.cuh"

using T = SCALAR;
constexpr int SIZE = FRONT_TILE, threads = TILE_THREADS;

extern "C" __global__ void __launch_bounds__(threads)
    front_pivots(const __grid_constant__ Fronts tree, const int *list, int *pivots, T *factor) {
    // at: of rows, row_at: of places.
    __shared__ int place[SIZE], wanted[SIZE], at[SIZE], row_at[SIZE];
    Front<T> f;
    f.set(tree, list[blockIdx.x], factor);
    for (int i = 0; i < f.pivot_tiles; ++i) {
        int w = f.rows(i), *own = pivots + tree.start[f.s] + i * SIZE;
        if (threadIdx.x < w) place[threadIdx.x] = own[threadIdx.x];
        __syncthreads();
        Matrix<T> left = f.lower(i);
        int row = threadIdx.x % SIZE;
        for (int first = 0; first < i * SIZE; first += 16) {
            T v[8];
            int begin = first + threadIdx.x / SIZE * 8;
#pragma unroll
            for (int k = 0; k < 8; ++k)
                if (row < w) v[k] = left(row, begin + k);
            __syncthreads();
#pragma unroll
            for (int k = 0; k < 8; ++k)
                if (row < w) left(place[row], begin + k) = v[k];
        }
        if (threadIdx.x < w)
            wanted[place[threadIdx.x]] = at[threadIdx.x] = row_at[threadIdx.x] = threadIdx.x;
        __syncthreads();
        for (int r = 0; threadIdx.x == 0 && r < w; ++r) {
            int from = at[wanted[r]], other = row_at[r];
            own[r] = i * SIZE + from + 1;
            at[other] = from, row_at[from] = other;
        }
        __syncthreads();
    }
}
