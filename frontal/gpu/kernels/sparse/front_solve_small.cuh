// Small fronts, one per warp at a time, in the substitutions of front_solve.cuh: up to 64 pivots
// and SMALL_ROWS rows in all, so that a front's vector fits the warp's part of shared memory.
#pragma once
#include "sparse/front_solve.cuh"

// The fronts of a warp, one after the other.
template <bool REVERSED, class T> using Turns = WarpTickets<warps, REVERSED, SolveTask, Solve<T>>;

// The address of a front's y, which replaces its right-hand side.
template <class T> __device__ inline T *place_of_y(const Solve<T> &s, const SolveTask &t) {
    return s.z + (long long)t.start * W;
}

// The rows of L or, if `upper`, of the transpose of U, below the only pivot tile of a small front.
// As in Front, with fewer registers.
template <class T>
__device__ inline Matrix<T> rows_below(const SolveTask &t, T *factor, bool upper) {
    int k = padded<T>(t.k), m = padded<T>(t.m);
    int first = upper ? t.k * (k + m) : LU ? k : 0, ld = LU && !upper ? k + m : m;
    return {factor + t.panel + first, t.m, t.k, ld};
}
// The inverse of its only diagonal tile.
template <class T>
__device__ inline Triangle<const T> inverse_of(const SolveTask &t, T *factor, bool upper) {
    int ld = padded<T>(t.k), m = padded<T>(t.m);
    if (LU) return inverse_within<const T>(factor + t.panel, t.k, ld + m, upper);
    const T *own = factor + t.panel + t.k * m;
    return CHOLESKY ? packed_inverse(own, t.k) : folded(Matrix<const T>{own, t.k, t.k, ld});
}
