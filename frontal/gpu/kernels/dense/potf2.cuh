// Cholesky of up to 32×32 by one warp, or by 8 or 16 lanes of it, in registers: a row per lane.
//
// Internally A = M·D·Mᴴ with a unit lower M: the chain from one pivot to the next is a reciprocal,
// a product and a fused multiply-add, and every lane computes the next pivot itself from values
// that were exchanged one column earlier. Columns are broadcast through shared memory, where one
// 16-byte read serves all lanes; the square roots are taken at the end, one per lane. The inverse
// of the factor, if requested, grows row by row in the registers that finished columns free.
// Reciprocals and roots by Newton's method from the hardware's approximation: Markstein,
// "Computation of elementary functions on the IBM RISC System/6000 processor" (1990). One warp per
// small matrix, in registers: Abdelfattah, Haidar, Tomov, Dongarra, "Factorization and inversion of
// a million matrices using GPUs: challenges and countermeasures" (2017).
#pragma once
#include "common/matrix.cuh"
#include "common/ptx.cuh"

// 1/d of a pivot, accurate except for the last bit: the seed's error e becomes e³ (double) or e²
// (float).
__device__ inline double pivot_reciprocal(double d) {
    double x = reciprocal_seed(d), e = fma(-d, x, 1.0);
    return fma(x, fma(e, e, e), x);
}
__device__ inline float pivot_reciprocal(float d) {
    float x = reciprocal_seed(d);
    return fmaf(x, fmaf(-d, x, 1.0f), x);
}

// √d and 1/√d.
__device__ inline double pivot_root(double d, double &inverse) {
    double x = root_seed(d), e = fma(-d * x, x, 1.0);
    inverse = fma(x * e, fma(e, 0.375, 0.5), x);
    double root = d * inverse;
    return fma(fma(-root, root, d), 0.5 * inverse, root);
}
__device__ inline float pivot_root(float d, float &inverse) {
    float x = root_seed(d), e = fmaf(-d * x, x, 1.0f);
    inverse = fmaf(0.5f * x, e, x);
    float root = d * inverse;
    return fmaf(fmaf(-root, root, d), 0.5f * inverse, root);
}

// Return whether a pivot is acceptable: its reciprocal is a normal number; d is not NaN, Inf or ≤
// 0.
__device__ inline bool is_pivot(float d) { return d >= 1.17549435e-38f && d <= 8.5e37f; }
// By integer instructions, which overlap at no cost: 2^-1022 ≤ d < 2^1022.
__device__ inline bool is_pivot(double d) {
    return (unsigned)__double2hiint(d) - 0x00100000u < 0x7fd00000u - 0x00100000u;
}

template <class T> struct alignas(16) Pack16 {
    static constexpr int count = 16 / sizeof(T);
    T v[count];
};

// Call f(j, from[j]) for FIRST ≤ j < LAST, reading 16 bytes at a time; `from` is aligned to 16
// bytes.
template <int FIRST, int LAST, class T, class F>
__device__ inline void broadcast(const T *from, F f) {
    constexpr int count = Pack16<T>::count;
#pragma unroll
    for (int p = FIRST / count * count; p < LAST; p += count) {
        Pack16<T> pack = *reinterpret_cast<const Pack16<T> *>(from + p);
#pragma unroll
        for (int e = 0; e < count; ++e)
            if (p + e >= FIRST && p + e < LAST) f(p + e, pack.v[e]);
    }
}

template <int K> struct Index {
    static constexpr int value = K;
};

// Call f(Index<K>()) for K = FIRST, …, LAST-1, stopping before a multiple of 8 that is ≥ n.
template <int FIRST, int LAST, class F> __device__ inline void columns(int n, F f) {
    if constexpr (FIRST < LAST) {
        if (FIRST % 8 == 0 && FIRST >= n) return;
        f(Index<FIRST>());
        columns<FIRST + 1, LAST>(n, f);
    }
}

// Factor the leading n×n, n ≤ N ≤ LANES, of the matrix whose row `lane` is a[0..lane]. All other
// entries of a, above the diagonal or from row or column n on, are arbitrary and do not spread.
//   tile         shared memory, column k at tile + k*ld, aligned to 16 bytes: receives the factor,
//                column k not yet divided by the root of pivot k
//   inverse_row  with INVERT: 2*N elements of shared memory, aligned to 16 bytes
// Returns this lane's pivot. With INVERT, a[k], k ≤ lane, becomes the inverse's entry times the
// root of this lane's pivot.
template <int N, int LANES, bool INVERT, class T>
__device__ inline real_t<T> factor_rows(
    T (&a)[N], int lane, int n, T *tile, int ld, T *inverse_row) {
    using R = real_t<T>;
    R d = real(shuffle(a[0], 0, LANES)), pivot = d;
    columns<0, N>(n, [&](auto index) {
        constexpr int k = decltype(index)::value;
        T *column = tile + k * ld;
        column[lane] = a[k];
        T *row = inverse_row + k % 2 * N;
        if (INVERT && lane == k) {
#pragma unroll
            for (int j = 0; j < k; ++j) row[j] = a[j];
        }
        R follow = R(1);
        if constexpr (k + 1 < N) follow = real(shuffle(a[k + 1], k + 1, LANES));
        __syncwarp();
        R r = pivot_reciprocal(d);
        if (lane == k) pivot = d;
        T minus = lane > k ? -(r * a[k]) : zero<T>();
        if constexpr (k + 1 < N) {
            T first = column[k + 1];
            d = real(fma_(-(r * first), conj(first), from_real<T>(follow)));
            a[k + 1] = fma_(minus, conj(first), a[k + 1]);
            broadcast<k + 2, N>(column, [&](int j, T v) { a[j] = fma_(minus, conj(v), a[j]); });
        }
        if constexpr (INVERT) {
            broadcast<0, k>(row, [&](int j, T v) { a[j] = fma_(minus, v, a[j]); });
            a[k] = lane == k ? one<T>() : minus;
        }
    });
    return pivot;
}

// Return LAPACK's info, 0 or the first column without a pivot, of the LANES lanes with a matrix of
// n rows.
template <int LANES, class R> __device__ inline int first_failure(R pivot, int lane, int n) {
    unsigned votes = __ballot_sync(full_warp, lane < n && !is_pivot(pivot));
    votes >>= (threadIdx.x & 31) / LANES * LANES;
    return __ffs((int)(LANES == 32 ? votes : votes & ((1u << LANES % 32) - 1)));
}

constexpr int POTF2_SCRATCH = 3 * 32;  // elements of T that potf2 uses per warp

// Factor the n×n block, n ≤ N ≤ LANES, in shared memory by LANES lanes of a warp. The whole warp
// must call, each group of lanes with its own block, n and `scratch`. Element (i, j) is tile[i +
// j*ld]; the memory must have LANES×N elements, columns aligned to 16 bytes; entries outside the
// lower triangle of the block are overwritten. With INVERT, `inverse` receives the n×n inverse of
// the factor, with zeros above its diagonal (N columns of LANES elements are written). Returns
// LAPACK's info.
template <int N, int LANES, bool INVERT, class T>
__device__ inline int potf2(T *tile, int ld, int n, T *inverse, int inverse_ld, T *scratch) {
    int lane = threadIdx.x % LANES;
    T a[N];
#pragma unroll
    for (int j = 0; j < N; ++j) a[j] = tile[lane + j * ld];
    real_t<T> pivot = factor_rows<N, LANES, INVERT>(
                  a, lane, LANES == 32 ? n : N, tile, ld, scratch + LANES),
              scale;
    real_t<T> root = pivot_root(pivot, scale);
    scratch[lane] = from_real<T>(scale);
    __syncwarp();
#pragma unroll 4
    for (int k = 0; k < n; ++k) {
        T *entry = tile + lane + k * ld;
        if (lane < n) *entry = lane == k ? from_real<T>(root) : real(scratch[k]) * *entry;
    }
    if constexpr (INVERT) {
#pragma unroll
        for (int j = 0; j < N; ++j) inverse[lane + j * inverse_ld] = scale * a[j];
    }
    __syncwarp();
    return first_failure<LANES>(pivot, lane, n);
}
