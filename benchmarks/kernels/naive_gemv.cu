// The first kernels one would write for y = y + A·x and y = y + Aᵀ·x: one thread an entry of y,
// which walks along a row of A (neighbours read neighbours) or down a column (they do not). Blocks
// of 256 threads (y entries 256·blockIdx.x on, matrix blockIdx.z), a grid for the largest matrix.
#include "common/matrix.cuh"

using T = SCALAR;

template <class Source> __device__ void gemv_n(Source as, Source xs, Source ys) {
    Matrix<T> a = as(blockIdx.z), x = xs(blockIdx.z), y = ys(blockIdx.z);
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= a.rows) return;
    T sum = y(i, 0);
    for (int j = 0; j < a.cols; ++j) sum = fma_(a(i, j), x(j, 0), sum);
    y(i, 0) = sum;
}

template <class Source> __device__ void gemv_t(Source as, Source xs, Source ys) {
    Matrix<T> a = as(blockIdx.z), x = xs(blockIdx.z), y = ys(blockIdx.z);
    int j = blockIdx.x * 256 + threadIdx.x;
    if (j >= a.cols) return;
    T sum = y(j, 0);
    for (int i = 0; i < a.rows; ++i) sum = fma_(a(i, j), x(i, 0), sum);
    y(j, 0) = sum;
}

#define ENTRY(name, Source) \
    extern "C" __global__ void gemv_n_##name(Source<T> a, Source<T> x, Source<T> y) { \
        gemv_n(a, x, y); \
    } \
    extern "C" __global__ void gemv_t_##name(Source<T> a, Source<T> x, Source<T> y) { \
        gemv_t(a, x, y); \
    }

ENTRY(native, Native)
ENTRY(batched, Batched)
ENTRY(vbatched, Vbatched)
