// Estimates of ‖op(A)⁻¹ diag(w)‖, except the solves: the weights w, and the steps of Higham,
// Tisseur, "A block algorithm for matrix 1-norm estimation, with an application to 1-norm
// pseudospectra" (2000). Either with two vectors that are solved for like any others, or with
// PROBES vectors in the columns of the factor's vectors, behind the first one; then the steps run
// without waits of the host.
//
// Each block stores its numbers of a step, and the host combines them in the order of the blocks:
// one grid gives one result. Blocks have `threads` threads and do not wait for each other.
#include "sparse/rows.cuh"

// w[i] = the largest scale[c]·(|op(A)| |x| + |b| + excess·|b - op(A) x|)[i] over the columns c of x
// and b with nonzero scale, for `count` systems of `order` unknowns each, the blocks of a block
// diagonal matrix. The scale of column c of system s is scale[c·count + s]; `excess` follows the
// last column in the same layout.
//
// Tile map: a plane of blocks takes systems, gridDim.z at a time; a team of threads takes a row of
// op(A), and its columns one by one.
extern "C" __global__ void __launch_bounds__(threads, 5) condition_weights(int order, int count,
    int width, int lanes, const Position *pointer, const int *index, const Position *position,
    int flags, const T *values, const V *x, const V *b, const double *scale, double *w) {
    for (int s = blockIdx.z; s < count; s += gridDim.z) {
        double excess = scale[(long long)width * count + s];
        Teams team(lanes);
        for (long long round = 0; round < team.rounds(order); ++round, team.row += team.step) {
            bool there = team.row < order;
            long long row = (long long)s * order + team.row, n = (long long)order * count;
            Position begin = there ? pointer[row] : 0, end = there ? pointer[row + 1] : 0;
            double most = 0;
            for (int c = 0; c < width; ++c) {
                const V *column = x + c * n;
                V sum = zero<V>();
                double size = 0;
                for (Position p = begin + team.lane; p < end; p += lanes) {
                    Position place = position ? position[p] : p;
                    if (flags & MIRRORED)
                        place = (Position)mirrored_place(pointer, index, (int)row, begin, p);
                    V a = as<V>(values[place]);
                    if (flags & CONJUGATED) a = conj(a);
                    V other = column[index[p]];
                    sum = fma_(a, other, sum);
                    size += (double)modulus(a) * modulus(other);
                }
                sum = sum_of_team(sum, lanes), size = sum_of_team(size, lanes);
                double by = scale[(long long)c * count + s];
                if (!there || team.lane || by == 0) continue;
                V given = b[c * n + row];
                size += modulus(given) + excess * modulus(given - sum);
                most = fmax(most, by * size);
            }
            if (there && !team.lane) w[row] = most;
        }
    }
}

// The scale of condition_weights for one solution with these norms, in the order of system_residual:
// 1/|x|, or 0 unless it is positive and finite, and 1 over the normwise error, which is at least
// eps. One thread works.
extern "C" __global__ void __launch_bounds__(threads)
    condition_scale(double eps, const double *norms, double *scale) {
    if (threadIdx.x) return;
    double residual = norms[0], solution = norms[1], product = norms[5] * solution + norms[2];
    double error = product > 0 ? residual / product : residual;
    scale[0] = solution > 0 && solution < __longlong_as_double(0x7ffll << 52) ? 1 / solution : 0;
    scale[1] = 1 / larger(error, eps);
}

// w[i] = the sum of row i of |op(A)|. Tile map: a team of threads per row.
extern "C" __global__ void __launch_bounds__(threads)
    condition_row_sums(int n, int lanes, const Position *pointer, const int *index,
        const Position *position, int flags, const T *values, double *w) {
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(n); ++round, team.row += team.step) {
        bool there = team.row < n;
        Position begin = there ? pointer[team.row] : 0, end = there ? pointer[team.row + 1] : 0;
        double size = 0;
        for (Position p = begin + team.lane; p < end; p += lanes) {
            Position place = position ? position[p] : p;
            if (flags & MIRRORED)
                place = (Position)mirrored_place(pointer, index, (int)team.row, begin, p);
            size += (double)modulus(values[place]);
        }
        size = sum_of_team(size, lanes);
        if (there && !team.lane) w[team.row] = size;
    }
}

// Write the least and the largest w[i]/other[i] of each block, both NaN if one ratio is NaN. A
// thread owns rows. Static shared memory: two numbers per thread.
extern "C" __global__ void __launch_bounds__(threads)
    condition_ratios(int n, const double *w, const double *other, double *found) {
    __shared__ double own[threads][2];
    double least = __longlong_as_double(0x7ffll << 52), most = 0;
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads) {
        double ratio = w[i] / other[i];
        least = -larger(-least, -ratio), most = larger(most, ratio);
    }
    int t = threadIdx.x;
    own[t][0] = least, own[t][1] = most;
    __syncthreads();
    for (int half = threads / 2; half > 0; half /= 2) {
        if (t < half) {
            own[t][0] = -larger(-own[t][0], -own[t + half][0]);
            own[t][1] = larger(own[t][1], own[t + half][1]);
        }
        __syncthreads();
    }
    if (t < 2) found[2 * (long long)blockIdx.x + t] = own[0][t];
}

// Return entry i of starting vector c, of order n. Signs: c = 0 positive, c = 1 pseudorandom, c = 2
// alternating. Moduli are pseudorandom, from 1/(3n) to 1/n. A product with such a vector is small
// only by chance: less than δ/3 of its largest term with probability δ. As cpu/probes.py.
__device__ inline double first_entry(int c, int i, int n) {
    unsigned long long h = (i + 1) * 0x9e3779b97f4a7c15ull + c * 0xd1b54a32d192ed03ull;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    h ^= h >> 31;
    double size = (0.5 + (double)(h >> 11) * 0x1p-53) / (1.5 * n);
    return (c == 2 ? i & 1 : c == 1 ? h & 1 : 0) ? -size : size;
}

// Write the first two starting vectors or, if first ≥ 0, columns `first` and `second` of the unit
// matrix. A thread owns rows.
extern "C" __global__ void __launch_bounds__(threads)
    condition_vectors(int n, int first, int second, V *x) {
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads) {
        double one = first < 0 ? first_entry(0, i, n) : i == first;
        double other = first < 0 ? first_entry(1, i, n) : i == second;
        x[i] = from_real<V>((R)one), x[n + i] = from_real<V>((R)other);
    }
}

// Sum over a block's threads, result in thread 0. Static shared memory: N numbers per warp.
template <int N> __device__ inline void add_up(double (&own)[N]) {
    __shared__ double of_warps[threads / 32][N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
        own[i] = sum_of_team(own[i], 32);
        if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32][i] = own[i];
    }
    __syncthreads();
    for (int i = 0; i < N && threadIdx.x == 0; ++i)
        for (int warp = 1; warp < threads / 32; ++warp) own[i] += of_warps[warp][i];
}

// w·sign(y), and |y|; sign(y) = 1 if y is zero or subnormal.
template <class S> __device__ inline S weighted_sign(double w, S y, double &size) {
    size = modulus(y);
    if (size < 2.2250738585072014e-308) return from_real<S>((real_t<S>)w);
    return times<S>(w, times<S>(1 / size, y));
}

// y ← w·sign(w·y) for the two columns of y; sums[2·block + c] = Σ|w·y|. A thread owns rows.
extern "C" __global__ void __launch_bounds__(threads)
    condition_signs(int n, const double *w, V *y, double *sums) {
    double own[2] = {}, size;
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            V &entry = y[(long long)c * n + i];
            entry = weighted_sign(w[i], entry, size);
            own[c] += w[i] * size;
        }
    add_up(own);
    if (threadIdx.x == 0) sums[2 * blockIdx.x] = own[0], sums[2 * blockIdx.x + 1] = own[1];
}

// The K largest of the numbers seen, in descending order, and their rows; the smaller row among
// equals.
template <int K> struct Peaks {
    double size[K];
    int row[K];

    __device__ Peaks() {
#pragma unroll
        for (int k = 0; k < K; ++k) size[k] = -1, row[k] = 0;
    }
    __device__ void take(double other, int i) {
#pragma unroll
        for (int k = 0; k < K; ++k)
            if (other > size[k] || (other == size[k] && i < row[k])) {
                double smaller = size[k];
                int its = row[k];
                size[k] = other, row[k] = i, other = smaller, i = its;
            }
    }
};

// Combine the peaks of a block's threads in thread 0. Static shared memory: the peaks of all
// threads.
template <int K> __device__ inline void highest(Peaks<K> &best) {
    __shared__ double size[threads][K];
    __shared__ int row[threads][K];
    int t = threadIdx.x;
    for (int half = threads / 2; half > 0; half /= 2) {
        for (int k = 0; k < K && t < 2 * half; ++k)
            size[t][k] = best.size[k], row[t][k] = best.row[k];
        __syncthreads();
        for (int k = 0; k < K && t < half; ++k) best.take(size[t + half][k], row[t + half][k]);
    }
}

template <class S> __device__ inline void add_parts(S a, double *to) {
    if constexpr (is_complex<S>) to[0] += a.re, to[1] += a.im;
    else to[0] += a;
}

// Write the K largest numbers of a block, then their rows.
template <int K> __device__ inline void leave_highest(Peaks<K> &best, double *out) {
    highest(best);
    for (int k = 0; k < K && threadIdx.x == 0; ++k) out[k] = best.size[k], out[K + k] = best.row[k];
}

// Write eight numbers per block: the two largest max(|z0|, |z1|) over rows, their rows, and the
// parts of zᴴx of both columns. A thread owns rows. Static shared memory: the peaks of all threads,
// and four numbers per warp.
extern "C" __global__ void __launch_bounds__(threads)
    condition_gains(int n, const V *z, const V *x, double *found) {
    double dots[4] = {};
    Peaks<2> best;
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads) {
        best.take(fmax((double)modulus(z[i]), (double)modulus(z[n + i])), (int)i);
#pragma unroll
        for (int c = 0; c < 2; ++c)
            add_parts(conj(z[(long long)c * n + i]) * x[(long long)c * n + i], dots + 2 * c);
    }
    add_up(dots);
    leave_highest(best, found + 8 * (long long)blockIdx.x);
    for (int k = 0; k < 4 && threadIdx.x == 0; ++k)
        found[8 * (long long)blockIdx.x + 4 + k] = dots[k];
}

// --- probes in the columns of the factor's vectors -----------------------------------------------
// Rows have 1 + PROBES adjacent numbers, in the order `place`, scaled (unless `scale` is null) and
// conjugated as the solves require. Vectors of matrices have the factor's scalar type here. A
// thread owns rows.

constexpr int beside = 1 + PROBES;

// Write the starting vectors; if `alone`, with a column of zeros before them.
extern "C" __global__ void __launch_bounds__(threads)
    condition_begin(int n, const int *place, const double *scale, int alone, T *y) {
    for (long long e = (long long)blockIdx.x * threads + threadIdx.x; e < n;
        e += (long long)gridDim.x * threads) {
        int i = place[e];
        T *row = y + e * beside;
        if (alone) row[0] = zero<T>();
#pragma unroll
        for (int c = 0; c < PROBES; ++c)
            row[1 + c] = times<T>(scale ? scale[i] : 1, from_real<T>((R)first_entry(c, i, n)));
    }
}

// Turn solutions z of a system into right-hand sides of the adjoint one: y ← w·sign(w·z);
// sums[PROBES·block + c] = Σ|w·z|.
extern "C" __global__ void __launch_bounds__(threads) condition_turn(int n, const int *place,
    const double *scale, int solved, int given, const double *w, const T *z, T *y, double *sums) {
    double own[PROBES] = {}, size;
    for (long long e = (long long)blockIdx.x * threads + threadIdx.x; e < n;
        e += (long long)gridDim.x * threads) {
        int i = place[e];
        double by = scale ? scale[i] : 1;
        const T *solution = z + e * beside;
        T *row = y + e * beside;
        row[0] = zero<T>();
#pragma unroll
        for (int c = 0; c < PROBES; ++c) {
            T t = times<T>(by, solved ? conj(solution[1 + c]) : solution[1 + c]);
            t = times<T>(by, weighted_sign(w[i], t, size));
            row[1 + c] = given ? conj(t) : t;
            own[c] += w[i] * size;
        }
    }
    add_up(own);
    if (threadIdx.x) return;
    for (int c = 0; c < PROBES; ++c) sums[PROBES * blockIdx.x + c] = own[c];
}

// Write the largest entries of rows of solutions z of each block, and their rows; NaN counts as
// infinite. Static shared memory: the peaks of all threads.
extern "C" __global__ void __launch_bounds__(threads)
    condition_reach(int n, const int *place, const double *scale, const T *z, double *found) {
    Peaks<PROBES> best;
    for (long long e = (long long)blockIdx.x * threads + threadIdx.x; e < n;
        e += (long long)gridDim.x * threads) {
        int i = place[e];
        double by = scale ? scale[i] : 1, most = 0;
#pragma unroll
        for (int c = 0; c < PROBES; ++c)
            most = larger(most, (double)modulus(times<T>(by, z[e * beside + 1 + c])));
        best.take(most == most ? most : __longlong_as_double(0x7ffll << 52), i);
    }
    leave_highest(best, found + 2 * PROBES * (long long)blockIdx.x);
}

// Write the rows of the largest entries of all blocks. One block, whose threads own results of
// blocks.
extern "C" __global__ void __launch_bounds__(threads)
    condition_choose(int blocks, const double *found, int *rows) {
    Peaks<PROBES> best;
    for (int b = threadIdx.x; b < blocks; b += threads)
        for (int k = 0; k < PROBES; ++k)
            best.take(found[2 * PROBES * b + k], (int)found[2 * PROBES * b + PROBES + k]);
    highest(best);
    for (int k = 0; k < PROBES && threadIdx.x == 0; ++k) rows[k] = best.row[k];
}

// Write columns of the unit matrix.
extern "C" __global__ void __launch_bounds__(threads)
    condition_units(int n, const int *place, const double *scale, const int *rows, T *y) {
    for (long long e = (long long)blockIdx.x * threads + threadIdx.x; e < n;
        e += (long long)gridDim.x * threads) {
        int i = place[e];
        T *row = y + e * beside;
        row[0] = zero<T>();
#pragma unroll
        for (int c = 0; c < PROBES; ++c)
            row[1 + c] = times<T>(scale ? scale[i] : 1, from_real<T>(i == rows[c] ? 1 : 0));
    }
}
