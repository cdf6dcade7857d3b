// Maxima of norms over the threads of all blocks.
//
// Norms are stored as bits: non-negative floats are ordered like their bits, so that maxima do not
// depend on the order of threads, and NaN exceeds all.
//
// Norms of `count` systems of `order` unknowns each, the blocks of a block diagonal matrix: number
// q of column c of system s is norms[(5c + q)·count + s], zero at first; behind those of all
// columns one more per system follows. A plane of blocks takes systems, gridDim.z at a time.
#pragma once
#include "common/scalar.cuh"

using Bits = unsigned long long;

__device__ inline Bits bits(double a) { return (Bits)__double_as_longlong(fabs(a)); }
__device__ inline unsigned bits(float a) { return __float_as_uint(fabsf(a)); }
__device__ inline Bits wide(Bits a) { return a; }
__device__ inline Bits wide(unsigned a) { return bits((double)__uint_as_float(a)); }
// The bits of the larger of |re| and |im|.
template <class S> __device__ inline auto part_bits(S a) {
    if constexpr (is_complex<S>) return max(bits(a.re), bits(a.im));
    else return bits(a);
}

// Write the maxima of a block's threads to out[where(i)], i < N, as bits of doubles.
template <int N, class Own, class Where>
__device__ __forceinline__ void collect(const Own (&own)[N], Bits *out, Where where) {
    __shared__ Bits best[N];
    if (threadIdx.x < N) best[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; ++i)
        if (own[i]) atomicMax(&best[i], wide(own[i]));
    __syncthreads();
    if (threadIdx.x < N && where(threadIdx.x) >= 0)
        atomicMax(&out[where(threadIdx.x)], best[threadIdx.x]);
}
