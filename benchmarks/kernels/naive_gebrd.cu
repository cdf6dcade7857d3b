// The first kernel one would write for A = Q·B·Pᴴ: a block of 256 threads a matrix (blockIdx.x),
// which works in global memory: for each column and each row a reflector, applied by a thread a
// column, then a thread a row. Vectors go to vq and vp, those of rows conjugated.
#include "dense/householder.cuh"

using T = SCALAR;
using R = real_t<T>;

template <class T> __device__ void apply_columns(Matrix<T> a, int i, const T *v, T tau) {
    for (int c = i + 1 + threadIdx.x; c < a.cols; c += blockDim.x) {
        T dot = zero<T>();
        for (int r = i; r < a.rows; ++r) dot = fma_(conj(v[r]), a(r, c), dot);
        dot = -(conj(tau) * dot);
        for (int r = i; r < a.rows; ++r) a(r, c) = fma_(v[r], dot, a(r, c));
    }
    __syncthreads();
}

template <class T> __device__ void apply_rows(Matrix<T> a, int i, const T *u, T tau) {
    for (int r = i + 1 + threadIdx.x; r < a.rows; r += blockDim.x) {
        T dot = zero<T>();
        for (int c = i + 1; c < a.cols; ++c) dot = fma_(a(r, c), conj(u[c - 1]), dot);
        dot = -(tau * dot);
        for (int c = i + 1; c < a.cols; ++c) a(r, c) = fma_(dot, u[c - 1], a(r, c));
    }
    __syncthreads();
}

template <template <class> class Source>
__device__ void gebrd(Source<T> source, Source<R> d, Source<R> e, Source<T> tauq, Source<T> taup,
    Source<T> vq, Source<T> vp) {
    __shared__ R scratch[32];
    int b = blockIdx.x, t = threadIdx.x;
    Matrix<T> a = source(b), left = vq(b), right = vp(b);
    for (int i = 0; i < a.cols; ++i) {
        Reflector<T> h = column_reflector(a, i, i, scratch);
        for (int r = t; r < a.rows; r += blockDim.x)
            left(r, i) = r < i ? zero<T>() : r == i ? one<T>() : h.scale * a(r, i);
        if (t == 0) d(b).data[i] = h.beta, tauq(b).data[i] = h.tau;
        __syncthreads();
        apply_columns(a, i, &left(0, i), h.tau);
        if (i + 1 == a.cols) break;
        R part = 0;
        for (int c = i + 2 + t; c < a.cols; c += blockDim.x) part = part + abs2(a(i, c));
        T alpha = conj(a(i, i + 1));
        h = reflector(alpha, block_sum(part, scratch));
        for (int c = 1 + t; c < a.cols; c += blockDim.x)
            right(c - 1, i) = c <= i ? zero<T>() : c == i + 1 ? one<T>() : conj(h.scale) * a(i, c);
        if (t == 0) e(b).data[i] = h.beta, taup(b).data[i] = conj(h.tau);
        __syncthreads();
        apply_rows(a, i, &right(0, i), h.tau);
    }
}

#define ENTRY(name, Source) \
    extern "C" __global__ void name(Source<T> a, Source<R> d, Source<R> e, Source<T> tauq, \
        Source<T> taup, Source<T> vq, Source<T> vp) { \
        gebrd(a, d, e, tauq, taup, vq, vp); \
    }

ENTRY(gebrd_native, Native)
ENTRY(gebrd_batched, Batched)
ENTRY(gebrd_vbatched, Vbatched)
