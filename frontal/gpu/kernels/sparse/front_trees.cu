// Both substitutions for many systems of one pattern with only small fronts: the work of
// front_solve.cuh and system.cu for one matrix, by a team of TEAM warps for a whole system, whose
// vector stays in shared memory from the right-hand side to the residual.
//
// Tile map: a team takes every (number of teams)-th system. Its warps sweep through subtrees of
// their own, and the first one through the fronts above these, while the others wait. Shared memory
// of a team: WIDTH vectors of the system, in elimination order, each followed by the contributions
// of all warps except the first to the pivot rows of the fronts above; then for each warp WIDTH
// vectors of a front, SMALL_LD apart. Sums have a fixed order for any grid. A block is one team, or
// several teams of one warp.
#include "sparse/tree_sweeps.cuh"

// Write the maxima of a system over all threads, for one right-hand side, to sizes[0]…: 0: |r|, 1:
// |x|, 2: |b|, 3: |r| / (|op(A)||x| + |b|), 4: the same, which bounds rowwise errors from above.
__device__ inline void put_sizes(R (&size)[4], int step, double *sizes) {
    __shared__ R found[4][MOST / 32];
    int warp = threadIdx.x / 32;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
#pragma unroll
        for (int flip = 16; flip > 0; flip /= 2)
            size[q] = larger(size[q], shuffle_xor(size[q], flip));
        if (TEAM > 1 && threadIdx.x % 32 == 0) found[q][warp] = size[q];
    }
    if (TEAM > 1) __syncthreads();
    if (member() > 0) return;
#pragma unroll
    for (int q = 0; q < 4; ++q)
        for (int other = 1; other < TEAM; ++other) size[q] = larger(size[q], found[q][other]);
#pragma unroll
    for (int q = 0; q < 5; ++q, sizes += step) *sizes = (double)size[min(q, 3)];
}

// As system_enter: scale·given in elimination order; zeros beyond `width`, and in the contributions
// to rows of the fronts above.
__device__ inline void enter(const System &a, int width, const T *given) {
    long long total = (long long)a.of.n * a.of.systems;
    given += a.first();
    for (int r = member(); r < (TEAM - 1) * a.of.tops; r += members)
#pragma unroll
        for (int j = 0; j < W; ++j) a.whole[j * a.of.ld + a.of.n + r] = zero<T>();
#pragma unroll 1
    for (int r = member(); r < a.of.n; r += members) {
        int i = a.of.into[r];
#pragma unroll
        for (int j = 0; j < W; ++j) {
            T v = j < width ? given[j * total + i] : zero<T>();
            if (a.of.scale_into) v = times<T>(a.of.scale_into[a.first() + i], v);
            a.whole[j * a.of.ld + r] = a.of.conjugate ? conj(v) : v;
        }
    }
    meet();
}

// As system_leave, for one right-hand side: x = before + scale·y; y becomes x, still in elimination
// order. Returns the largest |x| of this thread.
__device__ inline R leave(const System &a, T *y, const T *before, T *x) {
    R most = 0;
#pragma unroll 2
    for (int r = member(); r < a.of.n; r += members) {
        int i = a.of.out[r];
        T v = a.of.conjugate ? conj(y[r]) : y[r];
        if (a.of.scale_out) v = times<T>(a.of.scale_out[a.first() + i], v);
        if (before) v = before[i] + v;
        x[i] = y[r] = v;
        most = larger(modulus(v), most);
    }
    meet();
    return most;
}

// Return the largest number of all threads of a system; NaN if one is NaN. All threads must call.
__device__ inline double largest_of_system(double a) {
    __shared__ double found[MOST / 32];
#pragma unroll
    for (int flip = 16; flip > 0; flip /= 2) a = larger(a, shuffle_xor(a, flip));
    if constexpr (TEAM > 1) {
        __syncthreads();
        if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = a;
        __syncthreads();
        for (int warp = 0; warp < TEAM; ++warp) a = larger(found[warp], a);
    }
    return a;
}

// r = b − op(A)·x for x in elimination order, a thread per row; `size`: see put_sizes.
__device__ inline void measure(
    const System &a, const T *values, const T *x, const T *b, T *r, R (&size)[4]) {
#pragma unroll 1
    for (int i = member(); i < a.of.n; i += members) {
        T sum = zero<T>(), given = b[i];
        R most = 0;
#pragma unroll 2
        for (int p = a.of.pointer[i]; p < a.of.pointer[i + 1]; ++p) {
            T v = values[a.of.position ? a.of.position[p] : p], other = x[a.of.column[p]];
            if (a.of.conjugate_matrix) v = conj(v);
            sum = fma_(v, other, sum);
            most = fma_(modulus(v), modulus(other), most);
        }
        T rest = given - sum;
        R left = modulus(rest), own = modulus(given);
        r[i] = rest;
        size[0] = larger(left, size[0]), size[2] = larger(own, size[2]);
        size[3] = larger(left == 0 ? left : left / (most + own), size[3]);
    }
}

// Write the row sums of |op(A)|, scaled and in elimination order, as a right-hand side.
__device__ inline void enter_row_sums(const System &a, const T *values, T *y) {
    for (int r = member(); r < a.of.n; r += members) {
        int i = a.of.into[r];
        R sum = 0;
        for (int p = a.of.pointer[i]; p < a.of.pointer[i + 1]; ++p)
            sum += modulus(values[a.of.position ? a.of.position[p] : p]);
        double by = a.of.scale_into ? a.of.scale_into[a.first() + i] : 1;
        y[r] = times<T>(by, from_real<T>(sum));
    }
    meet();
}

// Return a bound of ‖|op(A)⁻¹||op(A)|e‖ by the comparison matrix of op(A), or infinity; y is the
// unscaled solution for the row sums. See `certificate` of numeric/condition.py.
__device__ inline double certificate(const System &a, const T *values, T *y) {
    double most = 0, part = 1e300;
    for (int r = member(); r < a.of.n; r += members) {
        int i = a.of.out[r];
        if (a.of.scale_out) y[r] = times<T>(a.of.scale_out[a.first() + i], y[r]);
    }
    meet();
#pragma unroll 1
    for (int i = member(); i < a.of.n; i += members) {
        int own = a.of.place[i];
        double sum = 0, image = 0;
        for (int p = a.of.pointer[i]; p < a.of.pointer[i + 1]; ++p) {
            double v = modulus(values[a.of.position ? a.of.position[p] : p]);
            double product = v * modulus(y[a.of.column[p]]);
            sum += v, image += a.of.column[p] == own ? product : -product;
        }
        double size = modulus(y[own]);
        bool holds = isfinite(size) && image * LEAST_PART > sum;
        most = larger(size, most), part = holds ? fmin(image / sum, part) : -1;
        if (!holds) break;
    }
    most = largest_of_system(most), part = -largest_of_system(-part);
    return part > 0 ? most / part : __longlong_as_double(0x7ffll << 52);
}

// x = before + op(A)⁻¹·given by the factor, for each system; `before` may be null. Then r = b −
// op(A)·x and its sizes. With CERTIFY one vector more than `width` is solved for, and bound[s]
// becomes the certificate of system s.
extern "C" __global__ void __launch_bounds__(MOST, RESIDENTS)
    front_trees(const __grid_constant__ Solve<T> solve, const __grid_constant__ Trees of, T *factor,
        int width, const T *values, const T *given, const T *before, const T *b, T *x, T *r,
        double *sizes, double *bound) {
    int warp = threadIdx.x / 32, team = warp / TEAM, teams = blockDim.x / members;
    T *room = shared_memory<T>() + (long long)team * (of.ld + TEAM * SMALL_LD) * W;
    T *mine = room + (of.ld + warp % TEAM * SMALL_LD) * W;
    for (int number = blockIdx.x * teams + team; number < of.systems; number += gridDim.x * teams) {
        System a{solve, of, factor, room, mine, number};
        enter(a, width, given);
        if constexpr (CERTIFY)
            enter_row_sums(a, values + number * of.entries, a.whole + width * a.of.ld);
        solve_system(a);
#pragma unroll 1
        for (int j = 0; j < width; ++j) {
            long long at = (long long)j * of.n * of.systems + a.first();
            T *y = a.whole + j * of.ld;
            R size[4] = {};
            size[1] = leave(a, y, before ? before + at : nullptr, x + at);
            measure(a, values + number * of.entries, y, b + at, r + at, size);
            put_sizes(size, of.systems, sizes + number + 5LL * of.systems * j);
        }
        if constexpr (CERTIFY) {
            T *y = a.whole + width * a.of.ld;
            double found = certificate(a, values + number * of.entries, y);
            if (member() == 0) bound[number] = found;
        }
        meet();
    }
}
