// Copies between memory orders.
//
// Tile map: a block of 256 threads takes a tile of 32×32; see the entry point, which also says what
// of shared memory it takes. Matrices may have any size, none included.
#include "common/matrix.cuh"

using T = SCALAR;

// The tile at (i, j) of `target`, of 32×32, from a matrix of which entry (i, j) is at
// source[i*down + j*across]; by way of shared memory (32×33 elements of T, static) so that both
// sides are read and written along what lies side by side in memory: down the columns, or along the
// rows where a row's entries are closer.
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

// to[b] = from[b] for matrices of any strides, counted in elements. Tile map: a block of 32×8
// threads copies the 32×32 tile work[3x..3x+2] = (matrix, tile row, tile column).
extern "C" __global__ void __launch_bounds__(256) copy_strided(const T *const *from,
    const long long *row, const long long *column, Vbatched<T> to, const int *work) {
    const int *mine = work + 3 * blockIdx.x;
    int b = mine[0];
    copy_tile(from[b], row[b], column[b], to(b), mine[1] * COPY_TILE, mine[2] * COPY_TILE);
}

// to[b] = the matrix at from + b*stride, for a stack. Tile map: as above, blocks b*tiles… take the
// `tiles` tiles of matrix b, `rows` of them down.
extern "C" __global__ void __launch_bounds__(256) copy_stack(const T *from, long long stride,
    long long down, long long across, Batched<T> to, int rows, int tiles) {
    int b = blockIdx.x / tiles, tile = blockIdx.x % tiles;
    copy_tile(
        from + b * stride, down, across, to(b), tile % rows * COPY_TILE, tile / rows * COPY_TILE);
}
