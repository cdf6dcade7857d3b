// Copies between memory orders, and zeros in the triangle that a factorization does not write.
//
// Tile map: a block of 256 threads takes a tile of 32×32, or 32 columns; see the entry points,
// which also say what of shared memory they take. Matrices may have any size, none included.
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

// Zeros in the triangle of `uplo` without its diagonal. Tile map: a block clears 32 columns
// work[2x..2x+1] = (matrix, block column), each warp one column after the other; no shared memory.
template <class Source> __device__ void clear(Source a, int uplo, const int *work) {
    Matrix<T> m = a(work[2 * blockIdx.x]);
    int first = work[2 * blockIdx.x + 1] * 32, last = min_(first + 32, m.cols);
    for (int j = first + (int)threadIdx.x / 32; j < last; j += (int)blockDim.x / 32) {
        int begin = uplo == Lower ? j + 1 : 0, end = uplo == Lower ? m.rows : min_(j, m.rows);
        for (int i = begin + (int)threadIdx.x % 32; i < end; i += 32) m(i, j) = zero<T>();
    }
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(256) \
        name(Source<T> a, int uplo, const int *work) { \
        clear(a, uplo, work); \
    }

ENTRY(clear_native, Native)
ENTRY(clear_batched, Batched)
ENTRY(clear_vbatched, Vbatched)
