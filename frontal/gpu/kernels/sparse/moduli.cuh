// Conversion and scaling of scalars, their moduli, and the largest of these.
#pragma once
#include "common/scalar.cuh"

template <class To, class From> __device__ inline To as(From a) {
    if constexpr (is_complex<From>) return To{(real_t<To>)a.re, (real_t<To>)a.im};
    else return (To)a;
}
// Multiply by a power of two in double precision, as NumPy does.
template <class To, class From> __device__ inline To times(double s, From a) {
    if constexpr (is_complex<From>) return To{(real_t<To>)(s * a.re), (real_t<To>)(s * a.im)};
    else return (To)(s * a);
}
__device__ inline float modulus(float a) { return fabsf(a); }
__device__ inline double modulus(double a) { return fabs(a); }
__device__ inline float modulus(complex<float> a) { return hypotf(a.re, a.im); }
__device__ inline double modulus(complex<double> a) { return hypot(a.re, a.im); }

// Return the larger number; NaN exceeds all.
template <class R> __device__ inline R larger(R a, R b) { return a > b || a != a ? a : b; }
