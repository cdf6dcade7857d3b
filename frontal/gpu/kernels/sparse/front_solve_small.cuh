// Small fronts, one for a warp at a time, in the substitutions of front_solve.cuh.
#pragma once
#include "sparse/front_solve.cuh"

// The fronts of a warp, one after the other.
template <bool REVERSED, class T> using Turns = WarpTickets<warps, REVERSED, SolveTask, Solve<T>>;

// The rows of L, or with `upper` of the transpose of U, below the only pivot tile of a small front.
template <class T>
__device__ inline Matrix<T> rows_below(const SolveTask &t, const Front<T> &f, bool upper) {
    Matrix<T> a = upper ? f.upper(1) : f.lower(1);
    return {a.data, t.m, t.k, a.ld};
}
