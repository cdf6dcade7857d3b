// The rows of a matrix op(A) for operations with vectors: types, and the threads that read rows.
//
// Vectors are n×width, column-major without gaps, of type V: the factor's scalar T, or with WIDE
// its double-precision counterpart.
#pragma once
#include "common/scalar.cuh"
#include "sparse/moduli.cuh"
#include "sparse/structs.cuh"

#ifndef WIDE
#define WIDE 0
#endif
#ifndef LONG
#define LONG 0
#endif

using T = SCALAR;
template <class S> struct scalar_of {
    using wide = double;
};
template <class S> struct scalar_of<complex<S>> {
    using wide = complex<double>;
};
template <bool Wide> struct vector_of {
    using type = T;
};
template <> struct vector_of<true> {
    using type = scalar_of<T>::wide;
};
// The type of positions of entries of A: 64 bits if LONG, otherwise 32.
template <bool Long> struct position_of {
    using type = int;
};
template <> struct position_of<true> {
    using type = long long;
};
using V = vector_of<WIDE>::type;
using R = real_t<V>;
using Position = position_of<LONG>::type;

constexpr int threads = SYSTEM_THREADS;
constexpr int UNROLLED = 4;  // steps along a row whose loads are in flight together

template <class S> __device__ inline S sum_of_team(S a, int lanes) {
    for (int flip = lanes / 2; flip > 0; flip /= 2) {
        if constexpr (is_complex<S>) {
            S other{__shfl_xor_sync(~0u, a.re, flip), __shfl_xor_sync(~0u, a.im, flip)};
            a = a + other;
        } else a = a + __shfl_xor_sync(~0u, a, flip);
    }
    return a;
}

// Return the position of entry (r, c) of A, stored by columns, by bisection; negative without one.
__device__ inline long long position_of_entry(
    const Position *pointer, const int *index, int r, int c) {
    long long low = pointer[c], high = pointer[c + 1];
    while (low < high) {
        long long middle = (low + high) / 2;
        if (index[middle] < r) low = middle + 1;
        else high = middle;
    }
    return low < pointer[c + 1] && index[low] == r ? low : -1;
}

// Flags for reading values of op(A): CONJUGATED; and MIRRORED, from the transposed entries, in a
// symmetric pattern with short columns.
constexpr int CONJUGATED = 1, MIRRORED = 2;

// Return the position of the transposed entry of entry p of column r, whose entries begin at
// `first`. The guess is exact for similar columns: as far from the end of its column as p is from
// the beginning of its own.
__device__ inline long long mirrored_place(
    const Position *pointer, const int *index, int r, long long first, long long p) {
    int c = index[p];
    long long guess = pointer[c + 1] - 1 - (p - first);
    if (guess >= pointer[c] && index[guess] == r) return guess;
    return position_of_entry(pointer, index, r, c);
}

// The rows of op(A), one at a time per team of `lanes` threads, a power of two up to 32: row i has
// the entries pointer[i]..pointer[i+1], their columns, and their positions among the values of A
// (the same order if `position` is null). All threads of a warp make the same number of steps.
struct Teams {
    int lanes, lane;
    long long row, step;
    __device__ Teams(int lanes) : lanes(lanes), lane(threadIdx.x % lanes) {
        row = ((long long)blockIdx.x * blockDim.x + threadIdx.x) / lanes;
        step = (long long)gridDim.x * blockDim.x / lanes;
    }
    __device__ long long rounds(int n) const { return (n + step - 1) / step; }
};
