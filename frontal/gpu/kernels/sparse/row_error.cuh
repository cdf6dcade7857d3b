// The rowwise backward error, as numeric/backward_error.py defines it: Arioli, Demmel,
// Duff, "Solving sparse linear systems with sparse backward error" (1989).
#pragma once
#include "common/scalar.cuh"
#include "sparse/structs.cuh"

template <class S> struct Precision;
template <> struct Precision<double> {
    static constexpr double eps = 0x1p-52, smallest = 0x1p-1074;
};
template <> struct Precision<float> {
    static constexpr double eps = 0x1p-23, smallest = 0x1p-149;
};

// Return the rowwise error of a row of n unknowns: `left` is |b - A x|, `scale` is |A||x| + |b|,
// `component` their ratio, which is returned if it is small enough; `given` is |b|, `sum` the sum
// of |A| over the row's `entries`; `largest` is the largest |x| of the vector. NaN if an input is
// NaN.
template <class S>
__device__ inline double row_error(double component, double left, double scale, double given,
    double sum, double largest, long long entries, int n) {
    using P = Precision<real_t<S>>;
    if (component <= ACCEPTED * P::eps) return component;
    double all = sum * largest, tiny = (double)TINY_ROW * n * P::eps;
    if (tiny > 1. / TINY_ROW_BOUND) tiny = 1. / TINY_ROW_BOUND;
    // each product and sum may have lost the smallest number
    if (scale * scale <= P::smallest) {
        left -= P::smallest * ((double)entries + 1 + sum);
        if (left <= 0) return 0;
    }
    if (scale <= tiny * (all + given)) scale += all;
    if (entries > LONG_ROW) left /= sqrt((double)entries / LONG_ROW);
    return left / scale;
}
