// Sums over lanes and blocks, and the powers of two by which matrices are scaled.
#pragma once
#include "common/matrix.cuh"
#include "common/ptx.cuh"

__device__ inline int thread_rank() { return threadIdx.x + threadIdx.y * blockDim.x; }
__device__ inline int thread_count() { return blockDim.x * blockDim.y; }

__device__ inline float imag(float) { return 0.0f; }
__device__ inline double imag(double) { return 0.0; }
template <class R> __device__ inline R imag(complex<R> a) { return a.im; }

// |a|², which must be representable, and the larger of |re| and |im|.
template <class T> __device__ inline real_t<T> abs2(T a) {
    return fma_(real(a), real(a), imag(a) * imag(a));
}
template <class T> __device__ inline real_t<T> largest_part(T a) {
    return max_(abs1(real(a)), abs1(imag(a)));
}

// Limits of a type: distance from 1 to the next number, least and largest normal number.
template <class R> struct limits;
template <> struct limits<float> {
    static constexpr float epsilon = 1.1920929e-7f, least = 1.17549435e-38f,
                           largest = 3.40282347e38f;
    static constexpr int scaled = 40, most = 120;  // exponents: of a scaled matrix, of a scale
};
template <> struct limits<double> {
    static constexpr double epsilon = 2.220446049250313e-16, least = 2.2250738585072014e-308,
                            largest = 1.7976931348623157e308;
    static constexpr int scaled = 400, most = 1000;
};

// Call f(i, j) for each entry of a matrix, a warp per column.
template <class T, class F> __device__ inline void each_entry(Matrix<T> a, F f) {
    int lane = thread_rank() % 32, warps = thread_count() / 32;
    for (int j = thread_rank() / 32; j < a.cols; j += warps)
        for (int i = lane; i < a.rows; i += 32) f(i, j);
}

// Return the sum over groups of LANES lanes of a warp to all lanes, in a fixed order.
template <int LANES, class V> __device__ inline V lane_sum(V v) {
#pragma unroll
    for (int step = LANES / 2; step > 0; step /= 2) v = v + shuffle_xor(v, step, LANES);
    return v;
}

// Return the sum over the block to all threads. `scratch`: 32 elements of shared memory. Two
// barriers.
template <class V> __device__ inline V block_sum(V v, V *scratch) {
    v = lane_sum<32>(v);
    int t = thread_rank();
    if (t % 32 == 0) scratch[t / 32] = v;
    __syncthreads();
    V total = scratch[0];
    for (int w = 1; w < thread_count() / 32; ++w) total = total + scratch[w];
    __syncthreads();
    return total;
}

// Return the maximum over the block to all threads, ignoring NaN; `scratch` and barriers as above.
template <class R> __device__ inline R block_max(R v, R *scratch) {
    for (int step = 16; step > 0; step /= 2) v = max_(v, shuffle_xor(v, step));
    int t = thread_rank();
    if (t % 32 == 0) scratch[t / 32] = v;
    __syncthreads();
    R most = scratch[0];
    for (int w = 1; w < thread_count() / 32; ++w) most = max_(most, scratch[w]);
    __syncthreads();
    return most;
}

// 2^e for a normal result, and the least e with |a| < 2^e (for subnormal numbers any smaller
// value).
template <class R> __device__ R power_of_two(int e);
template <> __device__ inline float power_of_two<float>(int e) {
    return __int_as_float((e + 127) << 23);
}
template <> __device__ inline double power_of_two<double>(int e) {
    return __hiloint2double((e + 1023) << 20, 0);
}
__device__ inline int exponent_of(float a) { return ((__float_as_int(a) >> 23) & 0xff) - 126; }
__device__ inline int exponent_of(double a) { return ((__double2hiint(a) >> 20) & 0x7ff) - 1022; }

// Return the exponent of the scale of a matrix whose entries have parts up to `most`: sums of
// squares of scaled entries are representable, and entries that underflow are negligible.
template <class R> __device__ inline int scale_exponent(R most) {
    return most > 0 ? min_(limits<R>::scaled - exponent_of(most), limits<R>::most) : 0;
}
