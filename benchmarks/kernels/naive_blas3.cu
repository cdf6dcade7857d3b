// The first kernels one would write for C = C + A·B, C = C + A·Aᴴ (lower triangle) and X·Lᴴ = B:
// one thread an entry of C (row of B), blocks of 16×16 threads (256), a grid for the largest
// matrix.
#include "common/matrix.cuh"

using T = SCALAR;

template <class Source> __device__ void gemm(Source as, Source bs, Source cs) {
    Matrix<T> a = as(blockIdx.z), b = bs(blockIdx.z), c = cs(blockIdx.z);
    int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;
    if (i >= c.rows || j >= c.cols) return;
    T sum = c(i, j);
    for (int k = 0; k < a.cols; ++k) sum = fma_(a(i, k), b(k, j), sum);
    c(i, j) = sum;
}

template <class Source> __device__ void herk(Source as, Source cs) {
    Matrix<T> a = as(blockIdx.z), c = cs(blockIdx.z);
    int i = blockIdx.x * 16 + threadIdx.x, j = blockIdx.y * 16 + threadIdx.y;
    if (i >= c.rows || j > i) return;
    T sum = c(i, j);
    for (int k = 0; k < a.cols; ++k) sum = fma_(a(i, k), conj(a(j, k)), sum);
    c(i, j) = sum;
}

template <class Source> __device__ void trsm(Source ls, Source bs) {
    Matrix<T> l = ls(blockIdx.z), b = bs(blockIdx.z);
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= b.rows) return;
    for (int j = 0; j < b.cols; ++j) {
        T sum = b(i, j);
        for (int k = 0; k < j; ++k) sum = fma_(-b(i, k), conj(l(j, k)), sum);
        b(i, j) = reciprocal(conj(l(j, j))) * sum;
    }
}

#define ENTRY(name, Source) \
    extern "C" __global__ void gemm_##name(Source<T> a, Source<T> b, Source<T> c) { \
        gemm(a, b, c); \
    } \
    extern "C" __global__ void herk_##name(Source<T> a, Source<T> c) { herk(a, c); } \
    extern "C" __global__ void trsm_##name(Source<T> a, Source<T> b) { trsm(a, b); }

ENTRY(native, Native)
ENTRY(batched, Batched)
ENTRY(vbatched, Vbatched)
