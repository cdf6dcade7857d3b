// Householder reflectors by a block: H = I − tau·v·vᴴ with v(0) = 1, as in LAPACK.
#pragma once
#include "dense/reduce.cuh"

// Hᴴ·(alpha, x) = (beta, 0) and v = (1, scale·x), beta real.
template <class T> struct Reflector {
    real_t<T> beta;
    T tau, scale;
};

// Return the reflector of a vector from its first entry and the sum of |x|² of all others. If
// squares are not representable, H is the identity: tau = 0, and v is a unit vector.
template <class T> __device__ inline Reflector<T> reflector(T alpha, real_t<T> rest) {
    using R = real_t<T>;
    constexpr R floor = limits<R>::least / limits<R>::epsilon;
    R sum = abs2(alpha) + rest, re = real(alpha);
    if ((rest == 0 && imag(alpha) == 0) || sum < floor) return {re, zero<T>(), zero<T>()};
    R beta = re >= 0 ? -square_root(sum) : square_root(sum);
    T difference = alpha - from_real<T>(beta);
    return {beta, (-1 / beta) * difference, reciprocal(difference)};
}

// Return the reflector of column j of a from row i on. `scratch`: see block_sum.
template <class T>
__device__ inline Reflector<T> column_reflector(Matrix<T> a, int i, int j, real_t<T> *scratch) {
    real_t<T> part = 0;
    for (int k = i + 1 + thread_rank(); k < a.rows; k += thread_count())
        part = part + abs2(a(k, j));
    T alpha = a(i, j);
    return reflector(alpha, block_sum(part, scratch));
}

// Apply Hᴴ to columns from… of rows j…; v is column j, its first entry implicit. A warp takes four
// columns at a time and shuffles their sums together, a lane every 32nd row.
template <class T> __device__ inline void apply_left(Matrix<T> a, int j, int from, T tau) {
    constexpr int each = 4;
    int lane = thread_rank() % 32, warps = thread_count() / 32;
    const T *v = &a(0, j);
    for (int c = from + thread_rank() / 32; c < a.cols; c += each * warps) {
        T *x[each], dot[each];
#pragma unroll
        for (int u = 0; u < each; ++u) {  // beyond the last column: read the first, do not write
            x[u] = &a(0, c + u * warps < a.cols ? c + u * warps : c);
            dot[u] = lane == 0 ? x[u][j] : zero<T>();
        }
#pragma unroll 2
        for (int i = j + 1 + lane; i < a.rows; i += 32) {
            T factor = conj(v[i]);
#pragma unroll
            for (int u = 0; u < each; ++u) dot[u] = fma_(factor, x[u][i], dot[u]);
        }
#pragma unroll
        for (int u = 0; u < each; ++u) dot[u] = -(conj(tau) * lane_sum<32>(dot[u]));
#pragma unroll
        for (int u = 0; u < each; ++u) {
            if (c + u * warps >= a.cols) break;
            if (lane == 0) x[u][j] = x[u][j] + dot[u];
#pragma unroll 2
            for (int i = j + 1 + lane; i < a.rows; i += 32) x[u][i] = fma_(v[i], dot[u], x[u][i]);
        }
    }
}

// Replace column j of a by its reflector from row j on, with beta at (j, j), and apply it to the
// columns on the right; return it to all threads.
template <class T>
__device__ inline Reflector<T> eliminate_column(Matrix<T> a, int j, real_t<T> *scratch) {
    Reflector<T> h = column_reflector(a, j, j, scratch);
    for (int i = j + 1 + thread_rank(); i < a.rows; i += thread_count())
        a(i, j) = h.scale * a(i, j);
    if (thread_rank() == 0) a(j, j) = from_real<T>(h.beta);
    __syncthreads();
    apply_left(a, j, j + 1, h.tau);
    __syncthreads();
    return h;
}

// QR in place: R on and above the diagonal, reflectors below it, their scalars in tau.
template <class T> __device__ void qr_columns(Matrix<T> a, T *tau, real_t<T> *scratch) {
    for (int j = 0; j < min_(a.rows, a.cols); ++j) {
        Reflector<T> h = eliminate_column(a, j, scratch);
        if (thread_rank() == 0) tau[j] = h.tau;
    }
}

// Store the reflectors below the diagonal of a as columns of v: ones on its diagonal, zeros above.
template <class T> __device__ inline void store_reflectors(Matrix<T> a, Matrix<T> v) {
    each_entry(v, [&](int i, int j) { v(i, j) = i > j ? a(i, j) : i == j ? one<T>() : zero<T>(); });
}
