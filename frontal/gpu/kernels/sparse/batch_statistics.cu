// Statistics of each system of one pattern, in a forest of all systems.
//
// Tile map: a warp takes every (number of warps)-th system. In maxima and minima NaN counts as
// beyond all numbers, so that results do not depend on the order.
#include "sparse/pivot_blocks.cuh"
#include "sparse/row_error.cuh"
#include "sparse/rows.cuh"
#include "common/ptx.cuh"

template <class S> __device__ inline real_t<S> part_of(S a) {
    if constexpr (is_complex<S>) return larger(modulus(a.re), modulus(a.im));
    else return modulus(a);
}
__device__ inline double largest_of_warp(double a) {
#pragma unroll
    for (int flip = 16; flip > 0; flip /= 2) a = larger(a, shuffle_xor(a, flip));
    return a;
}

// Return whether a system's values a and the values b of the transposed entries differ by at most
// SYMMETRY roundings of the smaller one of the largest moduli in the row and in the column of a: |a
// − b̄|, or |a − b| for the other symmetry. largest[j] becomes this limit for row and column j.
__device__ inline bool nearly_symmetric(
    int n, const int *pointer, const int *index, const int *mirror, const T *own, R *largest) {
    int lane = threadIdx.x % 32;
    for (int j = lane; j < n; j += 32) {
        R size = 0;
        for (int p = pointer[j]; p < pointer[j + 1]; ++p)
            size = larger(modulus(own[p]), larger(modulus(own[mirror[p]]), size));
        largest[j] = R(SYMMETRY * Precision<R>::eps) * size;
    }
    __syncwarp();
    bool good = true;
    for (int j = lane; j < n; j += 32)
        for (int p = pointer[j]; p < pointer[j + 1]; ++p) {
            R apart = modulus(own[p] - mirrored(own[mirror[p]]));
            good = good && apart <= largest[j] && apart <= largest[index[p]];
        }
    return __all_sync(~0u, good);
}

// found[s]: the largest part of a value of system s; found[s + systems]: 0 if the system is
// symmetric up to rounding (nearly_symmetric, with mirror[p] the transposed entry of entry p) or
// `mirror` is null, otherwise 1. pointer, index: the columns of one system. largest, (systems, n):
// scratch.
extern "C" __global__ void __launch_bounds__(threads)
    look_at_values(int systems, int entries, int n, const int *pointer, const int *index,
        const int *mirror, const T *values, R *largest, double *found) {
    int lane = threadIdx.x % 32, team = threads / 32;
    for (int s = blockIdx.x * team + threadIdx.x / 32; s < systems; s += gridDim.x * team) {
        const T *own = values + (long long)s * entries;
        R size = 0, gap = 0;
#pragma unroll 4
        for (int p = lane; p < entries; p += 32) {
            T a = own[p];
            size = larger(part_of(a), size);
            if (mirror) gap = larger(modulus(a - mirrored(own[mirror[p]])), gap);
        }
        double most = largest_of_warp(size), apart = largest_of_warp(gap);
        if (apart > 0)
            apart = !nearly_symmetric(n, pointer, index, mirror, own, largest + (long long)s * n);
        if (lane == 0) found[s] = most, found[s + (long long)systems] = apart;
    }
}

// found[s]: the infinity norm of op(A) of system s, by rows: pointers into, and positions among,
// the values of the first system (null position: in this order).
extern "C" __global__ void __launch_bounds__(threads)
    look_at_rows(int systems, int n, long long entries, const Position *pointer,
        const Position *position, const T *values, double *found) {
    int lane = threadIdx.x % 32, team = threads / 32;
    for (int s = blockIdx.x * team + threadIdx.x / 32; s < systems; s += gridDim.x * team) {
        const T *own = values + s * entries;
        double most = 0;
        for (int i = lane; i < n; i += 32) {
            double sum = 0;
            for (Position p = pointer[i]; p < pointer[i + 1]; ++p)
                sum += modulus(own[position ? position[p] : p]);
            most = larger(sum, most);
        }
        most = largest_of_warp(most);
        if (lane == 0) found[s] = most;
    }
}

// Statistics of the pivots d of each system, found[s + systems·q]. q = 0: the least |d|²/|a| for
// the entries a = values[own[c]] of pivots c (without Cholesky the least |d|); 1: the largest |d|;
// 2: 1 + the first pivot that is not positive, or 0; without Cholesky 3: the number of entries of
// `largest` beyond LIMIT, 4: the largest of them.
extern "C" __global__ void __launch_bounds__(threads)
    look_at_pivots(int systems, int fronts, int n, const SolveTask *tasks, T *factor, int entries,
        const int *own, const T *values, const float *largest, double *found) {
    int lane = threadIdx.x % 32, team = threads / 32;
    for (int s = blockIdx.x * team + threadIdx.x / 32; s < systems; s += gridDim.x * team) {
        long long first = (long long)s * n;
        double most = 0, lost = 0, growth = 0, weak = 0, bad = 0;
        for (int f = 0; f < fronts; ++f) {
            SolveTask t = tasks[(long long)s * fronts + f];
            Front<T> front;
            front.s = 0, front.tree = nullptr;
            front.set(t.k, t.m, factor + t.panel);
            for (int r = lane; r < t.k; r += 32) {
                T d = kept_pivot(front, r);
                int c = (int)(t.start - first) + r;
                double size = modulus(d);
                if (LU) size = 1 / size;
                double before =
                    CHOLESKY ? modulus(values[(long long)s * entries + own[c]]) / (size * size)
                             : 1 / size;
                lost = larger(before, lost), most = larger(size, most);
                if (CHOLESKY) bad = !(real(d) > 0) ? larger(double(n - c), bad) : bad;
                else {
                    double multiplier = largest[first + c];
                    growth = larger(multiplier, growth);
                    weak += !(multiplier <= LIMIT);
                }
            }
        }
        lost = largest_of_warp(lost), most = largest_of_warp(most);
        bad = largest_of_warp(bad), growth = largest_of_warp(growth);
#pragma unroll
        for (int flip = 16; flip > 0; flip /= 2) weak += shuffle_xor(weak, flip);
        if (lane) continue;
        double told[5] = {1 / lost, most, bad > 0 ? n + 1 - bad : 0, weak, growth};
        for (int q = 0; q < (CHOLESKY ? 3 : 5); ++q) found[s + (long long)systems * q] = told[q];
    }
}
