// Messages between blocks: numbers in global memory whose bits show whether they were sent.
//
// A message is unset while all its bits are set. No sent number has all bits set: this bit pattern
// is a NaN, and another NaN is sent instead. Messages therefore need no flags and no memory fence
// between two stores, and a reader waits only for the values that it reads. A complex message is
// two real ones. Readers poll; scheduler.cuh argues that the sender makes progress meanwhile.
#pragma once
#include "common/scalar.cuh"

__device__ inline bool unset(float v) { return __float_as_int(v) == -1; }
__device__ inline bool unset(double v) { return __double_as_longlong(v) == -1; }
__device__ inline float unset_like(float) { return __int_as_float(-1); }
__device__ inline double unset_like(double) { return __longlong_as_double(-1); }
__device__ inline float not_a_number(float) { return __int_as_float(0x7fc00000); }
__device__ inline double not_a_number(double) { return __longlong_as_double(0x7ff8000000000000); }

template <class R> __device__ inline bool unset(complex<R> v) { return unset(v.re) || unset(v.im); }
template <class R> __device__ inline R look(const R *p) { return *(const volatile R *)p; }
template <class R> __device__ inline complex<R> look(const complex<R> *p) {
    return {look(&p->re), look(&p->im)};
}

// Return the message at p as soon as it is sent; v is the value that was read first.
template <class T> __device__ inline T take(const T *p, T v) {
    while (unset(v)) {
        __nanosleep(20);
        v = look(p);
    }
    return v;
}
template <class T> __device__ inline T take(const T *p) { return take(p, look(p)); }
template <class R> __device__ inline void send(R *p, R v) {
    *(volatile R *)p = unset(v) ? not_a_number(v) : v;
}
template <class R> __device__ inline void send(complex<R> *p, complex<R> v) {
    send(&p->re, v.re), send(&p->im, v.im);
}
template <class R> __device__ inline void reset(R *p) { *p = unset_like(R(0)); }
template <class R> __device__ inline void reset(complex<R> *p) { reset(&p->re), reset(&p->im); }
