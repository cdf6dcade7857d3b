// The part of CUDA C++ that the kernels use, for a C++17 compiler: kernel sources compile as they
// are after this header, and run with one fiber for every CUDA thread (fibers.hpp).
#pragma once
#include <math.h>

#include "copies.hpp"
#include "entries.hpp"
#include "fibers.hpp"
#include "interleave.hpp"

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __grid_constant__

constexpr int warpSize = 32;

// --- vector types --------------------------------------------------------------------------------

#define EMULATION_VECTOR(name, T) \
    struct alignas(2 * sizeof(T)) name##2 { T x, y; }; \
    struct alignas(sizeof(T) < 8 ? 4 * sizeof(T) : 16) name##4 { T x, y, z, w; }; \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; } \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
EMULATION_VECTOR(int, int)
EMULATION_VECTOR(uint, unsigned)
EMULATION_VECTOR(float, float)
EMULATION_VECTOR(double, double)
EMULATION_VECTOR(longlong, long long)
struct int3 {
    int x, y, z;
};

// --- barriers, and what a warp does together -----------------------------------------------------

inline void __syncthreads(int line = __builtin_LINE()) { emulation::barrier(line); }
inline int __syncthreads_or(int value, int line = __builtin_LINE()) {
    return emulation::barrier(line, value), emulation::block().last_or;
}
inline int __syncthreads_and(int value, int line = __builtin_LINE()) {
    return emulation::barrier(line, value), emulation::block().last_and;
}
inline int __syncthreads_count(int value, int line = __builtin_LINE()) {
    return emulation::barrier(line, value), emulation::block().last_count;
}

inline void __syncwarp(unsigned mask = ~0u) {
    int nothing = 0;
    emulation::collective("__syncwarp", mask, nothing, [](int **) {});
}

namespace emulation {

inline int lane() { return grid.current->id % warp_size; }

// Each lane brings a value and takes that of lane `from`; poison from one that takes no part.
template <class T> T exchange(const char *what, unsigned mask, T value, int from) {
    struct Payload {
        T in, out;
        int from;
    } payload{value, value, from};
    collective(what, mask, payload, [](Payload **lanes) {
        for (int l = 0; l < warp_size; ++l) {
            if (!lanes[l]) continue;
            Payload *other = lanes[lanes[l]->from];
            if (other) lanes[l]->out = other->in;
            else memset(&lanes[l]->out, poison, sizeof(T));
        }
    });
    return payload.out;
}

// Each lane brings a value and takes `fold` of the values of all, in the order of lanes.
template <class T, class Fold> T fold(const char *what, unsigned mask, T value, Fold combine) {
    T result = value;
    collective(what, mask, result, [&](T **lanes) {
        bool first = true;
        T total{};
        for (int l = 0; l < warp_size; ++l)
            if (lanes[l]) total = first ? *lanes[l] : combine(total, *lanes[l]), first = false;
        for (int l = 0; l < warp_size; ++l)
            if (lanes[l]) *lanes[l] = total;
    });
    return result;
}

}  // namespace emulation

template <class T> T __shfl_sync(unsigned mask, T value, int from, int width = 32) {
    int lane = emulation::lane();
    return emulation::exchange(
        "__shfl_sync", mask, value, (lane & ~(width - 1)) | (from & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T value, int flip, int width = 32) {
    int lane = emulation::lane(), from = lane ^ flip;
    return emulation::exchange(
        "__shfl_xor_sync", mask, value, from < (lane & ~(width - 1)) + width ? from : lane);
}
template <class T> T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
    int lane = emulation::lane(), from = lane - (int)by;
    return emulation::exchange(
        "__shfl_up_sync", mask, value, from >= (lane & ~(width - 1)) ? from : lane);
}
template <class T> T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
    int lane = emulation::lane(), from = lane + (int)by;
    return emulation::exchange(
        "__shfl_down_sync", mask, value, from < (lane & ~(width - 1)) + width ? from : lane);
}
inline unsigned __ballot_sync(unsigned mask, int value) {
    unsigned bit = value ? 1u << emulation::lane() : 0u;
    return emulation::fold(
        "__ballot_sync", mask, bit, [](unsigned a, unsigned b) { return a | b; });
}
inline int __any_sync(unsigned mask, int value) {
    return emulation::fold("__any_sync", mask, value != 0, [](bool a, bool b) { return a || b; });
}
inline int __all_sync(unsigned mask, int value) {
    return emulation::fold("__all_sync", mask, value != 0, [](bool a, bool b) { return a && b; });
}
template <class T> T __reduce_add_sync(unsigned mask, T value) {
    return emulation::fold("__reduce_add_sync", mask, value, [](T a, T b) { return T(a + b); });
}
template <class T> T __reduce_max_sync(unsigned mask, T value) {
    return emulation::fold(
        "__reduce_max_sync", mask, value, [](T a, T b) { return a > b ? a : b; });
}
template <class T> T __reduce_min_sync(unsigned mask, T value) {
    return emulation::fold(
        "__reduce_min_sync", mask, value, [](T a, T b) { return a < b ? a : b; });
}
template <class T> T __reduce_or_sync(unsigned mask, T value) {
    return emulation::fold("__reduce_or_sync", mask, value, [](T a, T b) { return T(a | b); });
}
template <class T> unsigned __match_any_sync(unsigned mask, T value) {
    struct Payload {
        T value;
        unsigned same;
    } payload{value, 0};
    emulation::collective("__match_any_sync", mask, payload, [](Payload **lanes) {
        for (int l = 0; l < 32; ++l)
            for (int k = 0; k < 32; ++k)
                if (lanes[l] && lanes[k] && lanes[l]->value == lanes[k]->value)
                    lanes[l]->same |= 1u << k;
    });
    return payload.same;
}

// --- memory --------------------------------------------------------------------------------------

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) { emulation::yield("__nanosleep, for a message"); }

template <class T> T __ldg(const T *p) { return *p; }
template <class T> T __ldcs(const T *p) { return *p; }
template <class T> T __ldcg(const T *p) { return *p; }
template <class T> void __stcs(T *p, T value) { *p = value; }
template <class T> void __stcg(T *p, T value) { *p = value; }

namespace emulation {
template <class T> struct same {
    using type = T;
};
// An atomic operation that changes nothing is how a thread waits for a flag: others run.
template <class T> EMULATION_OWN T update(T *p, T value) {
    T old = *p;
    races::message(p, sizeof(T), true);
    if (memcmp(&old, &value, sizeof(T)) == 0) return yield(), old;
    *p = value;
    counted(p);
    return old;
}
}  // namespace emulation

template <class T> EMULATION_OWN T atomicAdd(T *p, typename emulation::same<T>::type v) {
    return emulation::update(p, T(*p + v));
}
template <class T> EMULATION_OWN T atomicSub(T *p, typename emulation::same<T>::type v) {
    return emulation::update(p, T(*p - v));
}
template <class T> EMULATION_OWN T atomicMin(T *p, typename emulation::same<T>::type v) {
    return emulation::update(p, v < *p ? v : *p);
}
template <class T> EMULATION_OWN T atomicMax(T *p, typename emulation::same<T>::type v) {
    return emulation::update(p, v > *p ? v : *p);
}
template <class T> EMULATION_OWN T atomicOr(T *p, typename emulation::same<T>::type v) {
    return emulation::update(p, T(*p | v));
}
template <class T> EMULATION_OWN T atomicAnd(T *p, typename emulation::same<T>::type v) {
    return emulation::update(p, T(*p & v));
}
template <class T> EMULATION_OWN T atomicExch(T *p, typename emulation::same<T>::type v) {
    return emulation::update(p, v);
}
template <class T>
EMULATION_OWN T atomicCAS(
    T *p, typename emulation::same<T>::type expected, typename emulation::same<T>::type v) {
    return emulation::update(p, *p == expected ? v : *p);
}

// --- arithmetic ----------------------------------------------------------------------------------

#define EMULATION_MINMAX(T) \
    inline T min(T a, T b) { return a < b ? a : b; } \
    inline T max(T a, T b) { return a > b ? a : b; }
EMULATION_MINMAX(int)
EMULATION_MINMAX(unsigned)
EMULATION_MINMAX(long long)
EMULATION_MINMAX(unsigned long long)
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

inline double rsqrt(double a) { return 1.0 / sqrt(a); }
inline float rsqrtf(float a) { return 1.0f / sqrtf(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline double __dsqrt_rn(double a) { return sqrt(a); }
inline float __frsqrt_rn(float a) { return 1.0f / sqrtf(a); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }

inline int __popc(unsigned a) { return __builtin_popcount(a); }
inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
inline int __ffs(int a) { return __builtin_ffs(a); }
inline int __ffsll(long long a) { return __builtin_ffsll(a); }
inline int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }
inline int __clzll(long long a) { return a ? __builtin_clzll((unsigned long long)a) : 64; }

namespace emulation {
template <class To, class From> To bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
}  // namespace emulation
inline int __float_as_int(float a) { return emulation::bits<int>(a); }
inline unsigned __float_as_uint(float a) { return emulation::bits<unsigned>(a); }
inline float __int_as_float(int a) { return emulation::bits<float>(a); }
inline float __uint_as_float(unsigned a) { return emulation::bits<float>(a); }
inline long long __double_as_longlong(double a) { return emulation::bits<long long>(a); }
inline double __longlong_as_double(long long a) { return emulation::bits<double>(a); }
inline int __double2hiint(double a) { return int(emulation::bits<long long>(a) >> 32); }
inline int __double2loint(double a) { return int(emulation::bits<long long>(a)); }
inline double __hiloint2double(int high, int low) {
    return emulation::bits<double>(
        (long long)(((unsigned long long)(unsigned)high << 32) | (unsigned)low));
}

#include "ptx.hpp"
