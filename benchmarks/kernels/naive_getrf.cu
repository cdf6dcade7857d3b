// The first kernel one would write for A = P·L·U: a block of 256 threads a matrix (blockIdx.x),
// which works in global memory column by column: one thread looks for the pivot, all interchange
// the rows, divide the column and subtract the rank-one product, a thread a row.
#include "common/matrix.cuh"

using T = SCALAR;

template <class Source, class Pivots>
__device__ void getrf(Source source, Pivots pivots, int *info) {
    __shared__ int row;
    Matrix<T> a = source(blockIdx.x);
    Matrix<int> p = pivots(blockIdx.x);
    for (int k = 0; k < min_(a.rows, a.cols); ++k) {
        if (threadIdx.x == 0) {
            row = k;
            for (int i = k + 1; i < a.rows; ++i)
                if (abs1(a(i, k)) > abs1(a(row, k))) row = i;
            p(k, 0) = row + 1;
        }
        __syncthreads();
        if (!(abs1(a(row, k)) > 0)) {
            if (threadIdx.x == 0) info[blockIdx.x] = k + 1;
            return;
        }
        for (int j = threadIdx.x; j < a.cols; j += blockDim.x) {
            T v = a(k, j);
            a(k, j) = a(row, j), a(row, j) = v;
        }
        __syncthreads();
        T inverse = reciprocal(a(k, k));
        for (int i = k + 1 + threadIdx.x; i < a.rows; i += blockDim.x) {
            T l = inverse * a(i, k);
            a(i, k) = l;
            for (int j = k + 1; j < a.cols; ++j) a(i, j) = fma_(-l, a(k, j), a(i, j));
        }
        __syncthreads();
    }
}

#define ENTRY(name, Source) \
    extern "C" __global__ void getrf_##name(Source<T> a, Source<int> pivots, int *info) { \
        getrf(a, pivots, info); \
    }

ENTRY(native, Native)
ENTRY(batched, Batched)
ENTRY(vbatched, Vbatched)
