// Windows: rows of a small front in registers, a row per thread, for small_rows_lu.cuh and
// small_rows_ldl.cuh.
//
// The window of a row begins at the column to be eliminated. Each step shifts it by one column, so
// that one short loop body serves all columns: it stays in the instruction cache of a
// multiprocessor, while code unrolled over the columns of a front takes longer to fetch than to
// execute. L⁻¹ grows behind the front's columns: a pivot's row has a one there, in the column that
// the shift makes free.
#pragma once
#include "sparse/small_front.cuh"

// Bytes of registers for a row.
#ifndef WINDOW
#define WINDOW 256
#endif

// Return whether a front of up to ORDER rows fits in registers; with D, whose interchanges take
// more, not of complex<double>, of 64 rows only with twice the registers, nor if it shares a warp.
template <class T, int ORDER>
constexpr bool in_registers =
    !SIGNED && ORDER * sizeof(T) <= WINDOW &&
    (!LDL || (sizeof(T) < 16 && ORDER >= 32 && (ORDER == 32 || WINDOW > 256)));

// Columns of the windows of a front: `order` rounded up.
template <int ORDER, class F> __device__ inline void with_columns(int order, F f) {
    if constexpr (ORDER > 32) {
        if (order <= 3 * ORDER / 4) return f(Index<3 * ORDER / 4>());
    }
    f(Index<ORDER>());
}

// Shift columns FIRST…LAST−1 of a window by one column, and add `by`·row.
template <int FIRST, int LAST, class T, int N>
__device__ inline void shift_window(T (&a)[N], T by, const T *row) {
    broadcast<FIRST, LAST>(row, [&](int j, T v) {
        if (j > 0) a[j - 1] = fma_(by, v, a[j]);
    });
}

// Store a window in shared memory.
template <class T, int N> __device__ inline void put_window(T *row, const T (&a)[N]) {
    constexpr int count = Pack16<T>::count;
#pragma unroll
    for (int p = 0; p < N; p += count) {
        Pack16<T> pack;
#pragma unroll
        for (int e = 0; e < count; ++e) pack.v[e] = a[p + e];
        *reinterpret_cast<Pack16<T> *>(row + p) = pack;
    }
}
