// The first kernel one would write for A = L·Lᴴ (lower triangle): a block of 256 threads a matrix,
// column after column in global memory, a thread a row.
#include "common/matrix.cuh"

using T = SCALAR;

template <class Source> __device__ void potrf(Source source, int *info) {
    Matrix<T> a = source(blockIdx.x);
    int failure = 0;
    for (int j = 0; j < a.cols; ++j) {
        for (int i = j + threadIdx.x; i < a.rows; i += blockDim.x) {
            T sum = a(i, j);
            for (int k = 0; k < j; ++k) sum = fma_(-a(i, k), conj(a(j, k)), sum);
            a(i, j) = sum;
        }
        __syncthreads();
        real_t<T> d = real(a(j, j));
        if (!(d > 0) && !failure) failure = j + 1;
        real_t<T> root = square_root(d);
        __syncthreads();
        for (int i = j + threadIdx.x; i < a.rows; i += blockDim.x)
            a(i, j) = i == j ? from_real<T>(root) : real_t<T>(1) / root * a(i, j);
        __syncthreads();
    }
    if (threadIdx.x == 0) info[blockIdx.x] = failure;
}

#define ENTRY(name, Source) \
    extern "C" __global__ void potrf_##name(Source<T> a, int *info) { potrf(a, info); }

ENTRY(native, Native)
ENTRY(batched, Batched)
ENTRY(vbatched, Vbatched)
