// What estimates of ‖op(A)⁻¹ diag(w)‖ take beside the solves: the weights w, and the steps of
// Higham, Tisseur, "A block algorithm for matrix 1-norm estimation, with an application to 1-norm
// pseudospectra" (2000), with two vectors.
//
// The numbers of a step are left by block, and put together on the host in the order of the blocks:
// one grid gives one result. Blocks are of `threads` threads and do not wait for each other.
#include "sparse/rows.cuh"

// w[i] = the largest scale[c]·(|op(A)| |x| + |b| + excess·|b - op(A) x|)[i] of the columns c of x
// and b whose scale is not 0.
//
// Tile map: a team of threads takes a row of op(A), and the columns one after the other.
extern "C" __global__ void __launch_bounds__(threads) condition_weights(int n, int width, int lanes,
    const long long *pointer, const int *index, const Position *position, int conjugate,
    const T *values, const V *x, const V *b, const double *scale, double excess, double *w) {
    Teams team(lanes);
    for (long long round = 0; round < team.rounds(n); ++round, team.row += team.step) {
        bool there = team.row < n;
        long long begin = there ? pointer[team.row] : 0, end = there ? pointer[team.row + 1] : 0;
        double most = 0;
        for (int c = 0; c < width; ++c) {
            const V *column = x + (long long)c * n;
            V sum = zero<V>();
            double size = 0;
            for (long long p = begin + team.lane; p < end; p += lanes) {
                V a = as<V>(values[position ? (long long)position[p] : p]);
                if (conjugate) a = conj(a);
                V other = column[index[p]];
                sum = fma_(a, other, sum);
                size += (double)modulus(a) * modulus(other);
            }
            sum = sum_of_team(sum, lanes), size = sum_of_team(size, lanes);
            if (!there || team.lane || scale[c] == 0) continue;
            V given = b[(long long)c * n + team.row];
            size += modulus(given) + excess * modulus(given - sum);
            most = fmax(most, scale[c] * size);
        }
        if (there && !team.lane) w[team.row] = most;
    }
}

// The two columns to begin with, a sum and an alternating one; or with first ≥ 0 columns `first`
// and `second` of the unit matrix. A thread owns rows.
extern "C" __global__ void __launch_bounds__(threads)
    condition_vectors(int n, int first, int second, V *x) {
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads) {
        double size = (1 + (double)i / (n - 1)) / (1.5 * n);
        double even = first < 0 ? 1.0 / n : i == first;
        double odd = first < 0 ? (i & 1 ? -size : size) : i == second;
        x[i] = from_real<V>((R)even), x[n + i] = from_real<V>((R)odd);
    }
}

// Sums over a block's threads, in thread 0. Static shared memory: N numbers a warp.
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

// y ← w·sign(w·y) for the two columns of y, sign(0) = 1 and of what has no inverse, too;
// sums[2·block + c]: of |w·y|. A thread owns rows.
extern "C" __global__ void __launch_bounds__(threads)
    condition_signs(int n, const double *w, V *y, double *sums) {
    double own[2] = {};
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads)
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            V &entry = y[(long long)c * n + i];
            double size = modulus(entry);
            own[c] += w[i] * size;
            if (size < 2.2250738585072014e-308) entry = from_real<V>((R)w[i]);
            else entry = times<V>(w[i], times<V>(1 / size, entry));
        }
    add_up(own);
    if (threadIdx.x == 0) sums[2 * blockIdx.x] = own[0], sums[2 * blockIdx.x + 1] = own[1];
}

// The two largest of some numbers, the larger first, and their rows, the smaller one of equals.
struct Peaks {
    double size[2] = {-1, -1};
    int row[2] = {0, 0};

    __device__ void take(double other, int i) {
        if (other > size[0] || (other == size[0] && i < row[0])) {
            size[1] = size[0], row[1] = row[0];
            size[0] = other, row[0] = i;
        } else if (other > size[1] || (other == size[1] && i < row[1])) size[1] = other, row[1] = i;
    }
};

template <class S> __device__ inline void add_parts(S a, double *to) {
    if constexpr (is_complex<S>) to[0] += a.re, to[1] += a.im;
    else to[0] += a;
}

// Of a block, in eight numbers: the two largest max(|z0|, |z1|) over rows, their rows, and the
// parts of zᴴx of both columns. A thread owns rows.
// Static shared memory: the peaks of all threads, and four numbers a warp.
extern "C" __global__ void __launch_bounds__(threads)
    condition_gains(int n, const V *z, const V *x, double *found) {
    __shared__ double size[threads][2];
    __shared__ int row[threads][2];
    double dots[4] = {};
    Peaks best;
    for (long long i = (long long)blockIdx.x * threads + threadIdx.x; i < n;
        i += (long long)gridDim.x * threads) {
        best.take(fmax((double)modulus(z[i]), (double)modulus(z[n + i])), (int)i);
#pragma unroll
        for (int c = 0; c < 2; ++c)
            add_parts(conj(z[(long long)c * n + i]) * x[(long long)c * n + i], dots + 2 * c);
    }
    add_up(dots);
    int t = threadIdx.x;
    for (int half = threads / 2; half > 0; half /= 2) {
        for (int k = 0; k < 2 && t < 2 * half; ++k)
            size[t][k] = best.size[k], row[t][k] = best.row[k];
        __syncthreads();
        for (int k = 0; k < 2 && t < half; ++k) best.take(size[t + half][k], row[t + half][k]);
    }
    if (t) return;
    double *out = found + 8 * (long long)blockIdx.x;
    for (int k = 0; k < 2; ++k) out[k] = best.size[k], out[2 + k] = best.row[k];
    for (int k = 0; k < 4; ++k) out[4 + k] = dots[k];
}
