// Operations without a C++ name: warp shuffles of any scalar, fp64 tensor-core products,
// asynchronous copies to shared memory, flags between blocks. This file holds all inline assembly
// of the kernels; the CPU emulation has its own definitions of the same functions.
#pragma once
#include "common/scalar.cuh"

// PLAIN: for devices before sm_80, which have neither fp64 tensor cores nor asynchronous copies.
#ifndef PLAIN
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define PLAIN 1
#else
#define PLAIN 0
#endif
#endif
// Parts of a block's tiles (0, 1 or 2) in global memory because shared memory is too small.
#ifndef OUTSIDE
#define OUTSIDE 0
#endif

constexpr unsigned full_warp = 0xffffffffu;

template <class R> __device__ inline complex<R> shuffle(complex<R> a, int lane, int width = 32);
__device__ inline int shuffle(int a, int lane, int width = 32) {
    return __shfl_sync(full_warp, a, lane, width);
}
__device__ inline float shuffle(float a, int lane, int width = 32) {
    return __shfl_sync(full_warp, a, lane, width);
}
__device__ inline double shuffle(double a, int lane, int width = 32) {
    return __shfl_sync(full_warp, a, lane, width);
}
template <class R> __device__ inline complex<R> shuffle(complex<R> a, int lane, int width) {
    return {shuffle(a.re, lane, width), shuffle(a.im, lane, width)};
}

__device__ inline int shuffle_xor(int a, int mask, int width = 32) {
    return __shfl_xor_sync(full_warp, a, mask, width);
}
__device__ inline float shuffle_xor(float a, int mask, int width = 32) {
    return __shfl_xor_sync(full_warp, a, mask, width);
}
__device__ inline double shuffle_xor(double a, int mask, int width = 32) {
    return __shfl_xor_sync(full_warp, a, mask, width);
}
template <class R>
__device__ inline complex<R> shuffle_xor(complex<R> a, int mask, int width = 32) {
    return {shuffle_xor(a.re, mask, width), shuffle_xor(a.im, mask, width)};
}

// Copy BYTES through registers; write zeros unless `valid`.
template <int BYTES>
__device__ inline void copy_plainly(void *target, const void *global, bool valid) {
    struct alignas(BYTES) Bytes {
        int word[BYTES / 4];
    } v{};
    if (valid) v = *reinterpret_cast<const Bytes *>(global);
    *reinterpret_cast<Bytes *>(target) = v;
}

#if PLAIN

template <int BYTES>
__device__ inline void copy_async(void *shared, const void *global, bool valid) {
    copy_plainly<BYTES>(shared, global, valid);
}
__device__ inline void copy_async_commit() {}
template <int N> __device__ inline void copy_async_wait() {}

#elif !defined(FRONTAL_EMULATION)

// c (8×8) += a (8×4) · b (4×8). Lane l = 4g+t holds a[g][t], b[t][g], c[g][2t], c[g][2t+1].
__device__ inline void mma_8x8x4(double (&c)[2], double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
        : "+d"(c[0]), "+d"(c[1])
        : "d"(a), "d"(b));
}

// c (16×8) += a (16×4) · b (4×8). Lane l = 4g+t holds a[i] = A[g+8*i][t], b = B[t][g],
// c[i0+2*i1] = C[g+8*i1][2t+i0].
__device__ inline void mma_16x8x4(double (&c)[4], const double (&a)[2], double b) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(b));
#else
    double low[2] = {c[0], c[1]}, high[2] = {c[2], c[3]};
    mma_8x8x4(low, a[0], b);
    mma_8x8x4(high, a[1], b);
    c[0] = low[0], c[1] = low[1], c[2] = high[0], c[3] = high[1];
#endif
}

// c (16×8) += a (16×8) · b (8×8). Lane l = 4g+t holds a[i0+2*i1] = A[g+8*i0][t+4*i1], i0, i1 < 2;
// b[i] = B[t+4*i][g], i < 2; c[i0+2*i1] = C[g+8*i1][2t+i0].
__device__ inline void mma_16x8x8(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    double low[2] = {c[0], c[1]}, high[2] = {c[2], c[3]};
    for (int k = 0; k < 2; ++k) {
        mma_8x8x4(low, a[2 * k], b[k]);
        mma_8x8x4(high, a[2 * k + 1], b[k]);
    }
    c[0] = low[0], c[1] = low[1], c[2] = high[0], c[3] = high[1];
#endif
}

// c (16×8) += a (16×16) · b (16×8): as above with i1 < 4 for a and i < 4 for b.
__device__ inline void mma_16x8x16(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, "
        "{%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
        "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
#else
    const double first[4] = {a[0], a[1], a[2], a[3]}, second[4] = {a[4], a[5], a[6], a[7]};
    const double upper[2] = {b[0], b[1]}, lower[2] = {b[2], b[3]};
    mma_16x8x8(c, first, upper);
    mma_16x8x8(c, second, lower);
#endif
}

// Copy BYTES (4, 8 or 16; both addresses aligned to it) from global to shared memory without
// passing through registers. Unless `valid`, write zeros and do not read the source.
template <int BYTES>
__device__ inline void copy_async(void *shared, const void *global, bool valid) {
    if (OUTSIDE && !__isShared(shared)) return copy_plainly<BYTES>(shared, global, valid);
    unsigned target = (unsigned)__cvta_generic_to_shared(shared);
    int size = valid ? BYTES : 0;
    if constexpr (BYTES == 16)
        asm volatile(
            "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(global), "r"(size)
            : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(global),
            "n"(BYTES), "r"(size)
            : "memory");
}
__device__ inline void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Wait until at most N committed groups of this thread are pending.
template <int N> __device__ inline void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#endif
#ifndef FRONTAL_EMULATION

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
// CUDA defines both from sm_80 on.
__device__ inline unsigned __reduce_max_sync(unsigned, unsigned v) {
#pragma unroll
    for (int flip = 16; flip > 0; flip /= 2) v = max(v, __shfl_xor_sync(full_warp, v, flip));
    return v;
}
__device__ inline unsigned __reduce_or_sync(unsigned, unsigned v) {
#pragma unroll
    for (int flip = 16; flip > 0; flip /= 2) v |= __shfl_xor_sync(full_warp, v, flip);
    return v;
}
#endif

// Prefetch the 128 bytes around an address into the second-level cache.
__device__ inline void prefetch(const void *global) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

// Flags in global memory between blocks: stores before `release` are visible after the `acquire`
// that reads it.
__device__ inline int acquire(const int *flag) {
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
__device__ inline void release(int *flag, int value) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ inline void release_add(int *counter, int value) {
    asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}
__device__ inline void release_max(int *counter, int value) {
    asm volatile("red.release.gpu.global.max.s32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}
// Read a flag without ordering. This costs less than `acquire`, which invalidates the first-level
// cache.
__device__ inline int load_relaxed(const int *flag) {
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

// Time in ns from a fixed origin, the same on all multiprocessors.
__device__ inline long long nanoseconds() {
    long long value;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(value));
    return value;
}

// 1/a and 1/√a to about 20 bits (double) or 22 (float), for normal numbers below 2^1022 (2^126).
__device__ inline double reciprocal_seed(double a) {
    double x;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(x) : "d"(a));
    return x;
}
__device__ inline double root_seed(double a) {
    double x;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(x) : "d"(a));
    return x;
}
__device__ inline float reciprocal_seed(float a) {
    float x;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(a));
    return x;
}
__device__ inline float root_seed(float a) {
    float x;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(a));
    return x;
}

#endif
