// Copies between memory orders.
//
// Tile map: a block of 256 threads takes a tile of 32×32; see the entry point, which also says what
// of shared memory it takes. Matrices may have any size, none included.
#include "common/matrix.cuh"

using T = SCALAR;

// to[b] = from[b] for matrices of any strides, counted in elements. Tile map: a block of 32×8
// threads copies the 32×32 tile work[3x..3x+2] = (matrix, tile row, tile column), by way of shared
// memory (32×33 elements of T, static) so that both sides are read and written along what lies
// side by side in memory: down the columns, or along the rows where a row's entries are closer.
extern "C" __global__ void __launch_bounds__(256) copy_strided(const T *const *from,
    const long long *row, const long long *column, Vbatched<T> to, const int *work) {
    __shared__ T tile[COPY_TILE * (COPY_TILE + 1)];
    int b = work[3 * blockIdx.x];
    Matrix<T> target = to(b).at(work[3 * blockIdx.x + 1] * COPY_TILE,
        work[3 * blockIdx.x + 2] * COPY_TILE, COPY_TILE, COPY_TILE);
    long long down = row[b], across = column[b];
    const T *source = from[b] + work[3 * blockIdx.x + 1] * COPY_TILE * down +
                      work[3 * blockIdx.x + 2] * COPY_TILE * across;
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
