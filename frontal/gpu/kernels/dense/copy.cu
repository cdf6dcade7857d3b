// Copies between memory orders.
//
// Tile map: a block of 256 threads copies a tile of 32×32; each entry point gives the assignment,
// and copy_tile the shared memory. Matrices may have any size, none included.
#include "common/matrix.cuh"

using T = SCALAR;

// Copy the 32×32 tile at (i0, j0) of `target` from a matrix whose entry (i, j) is at source[i*down
// + j*across]. The tile passes through shared memory (32×33 elements of T, static), so that reads
// and writes follow adjacent memory on both sides: down the columns, or along the rows if the
// entries of a row are closer.
__device__ inline void copy_tile(
    const T *source, long long down, long long across, Matrix<T> target, int i0, int j0) {
    __shared__ T tile[COPY_TILE * (COPY_TILE + 1)];
    target = target.at(i0, j0, COPY_TILE, COPY_TILE);
    source += i0 * down + j0 * across;
    bool by_rows = across < down;
    for (int k = threadIdx.y; k < COPY_TILE; k += COPY_ROWS) {
        int i = by_rows ? k : (int)threadIdx.x, j = by_rows ? (int)threadIdx.x : k;
        if (i < target.rows && j < target.cols)
            tile[i + j * (COPY_TILE + 1)] = source[i * down + j * across];
    }
    __syncthreads();
    for (int j = threadIdx.y; j < target.cols; j += COPY_ROWS)
        if ((int)threadIdx.x < target.rows)
            target(threadIdx.x, j) = tile[threadIdx.x + j * (COPY_TILE + 1)];
}

// to[b] = from[b] for matrices of any strides, in elements. Tile map: a block of 32×8 threads
// copies the 32×32 tile work[3x..3x+2] = (matrix, tile row, tile column).
extern "C" __global__ void __launch_bounds__(256) copy_strided(const T *const *from,
    const long long *row, const long long *column, Vbatched<T> to, const int *work) {
    const int *mine = work + 3 * blockIdx.x;
    int b = mine[0];
    copy_tile(from[b], row[b], column[b], to(b), mine[1] * COPY_TILE, mine[2] * COPY_TILE);
}

// to[b] = the matrix at from + b*stride, for a stack. Tile map: as above; blocks b*tiles… copy the
// `tiles` tiles of matrix b, of which `rows` lie in a column of tiles.
extern "C" __global__ void __launch_bounds__(256) copy_stack(const T *from, long long stride,
    long long down, long long across, Batched<T> to, int rows, int tiles) {
    int b = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    copy_tile(
        from + b * stride, down, across, to(b), tile % rows * COPY_TILE, tile / rows * COPY_TILE);
}
