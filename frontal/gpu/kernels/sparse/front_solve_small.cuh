// Small fronts, one for a warp at a time, in the substitutions of front_solve.cuh.
#pragma once
#include "sparse/front_solve.cuh"

// The fronts of a warp, one after the other, by tickets: the description of the next one is on its
// way while one is worked on. REVERSED goes through the list from its end.
template <bool REVERSED, class T> struct Turns {
    const Solve<T> &solve;
    SolveTask *mine;  // in shared memory
    int lane, next;
    int4 later;

    __device__ explicit Turns(const Solve<T> &solve) : solve(solve), lane(threadIdx.x % 32) {
        __shared__ SolveTask all[warps];
        mine = all + threadIdx.x / 32;
        ask();
        look_ahead();
    }
    __device__ void ask() {
        if (lane == 0) next = atomicAdd(solve.ticket, 1);
    }
    __device__ void look_ahead() {
        next = __shfl_sync(~0u, next, 0);
        const SolveTask *task = solve.tasks + (REVERSED ? solve.count - 1 - next : next);
        if (lane < 4 && next < solve.count) later = ((const int4 *)task)[lane];
    }
    // Go on to the next front, if there is one; `look_ahead` must follow.
    __device__ bool advance() {
        if (next >= solve.count) return false;
        __syncwarp();
        if (lane < 4) ((int4 *)mine)[lane] = later;
        __syncwarp();
        ask();
        return true;
    }
};

// The rows of L, or with `upper` of the transpose of U, below the only pivot tile of a small front.
template <class T>
__device__ inline Matrix<T> rows_below(const SolveTask &t, const Front<T> &f, bool upper) {
    Matrix<T> a = upper ? f.upper(1) : f.lower(1);
    return {a.data, t.m, t.k, a.ld};
}
