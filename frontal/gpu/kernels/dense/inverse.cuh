// The inverse of up to 32×32 in registers, a row per lane, from [A I] by Gauss-Jordan elimination
// with partial pivoting: each finished column of A yields its registers to a column of I.
//
// Rows are not interchanged: the pivot row of column k becomes row k of the inverse, and the unit
// column that enters at step k is that of the pivot row. Pivot rows are divided by their pivots
// only at the end.
// Gauss-Jordan elimination: Higham, "Accuracy and stability of numerical algorithms" (2002),
// chapter 14; small inverses on GPUs: Abdelfattah, Haidar, Tomov, Dongarra, "Factorization and
// inversion of a million matrices using GPUs: challenges and countermeasures" (2017).
#pragma once
#include "dense/getf2.cuh"

// Invert the n×n matrix whose row `lane` is a[0..N), n ≤ N ≤ LANES, by LANES lanes. The whole warp
// must call, each group of lanes with its own matrix. On return a[j] is entry (place, origin(j)) of
// the inverse: `place` is this lane's, and origin(j) is `origin` of lane j.
//   exchange  2*N elements of shared memory, aligned to 16 bytes
// Returns LAPACK's info; unless it is 0 the rows are meaningless.
template <int N, int LANES, class T>
__device__ inline int invert_rows(
    T (&a)[N], int lane, int n, int &place, int &origin, T *exchange) {
    int info = 0, most = LANES == 32 ? n : (int)__reduce_max_sync(full_warp, (unsigned)n);
    T scale = one<T>();
    place = -1, origin = 0;
    if (LANES < 32)  // unwritten rows are multiplied by zero
        for (int i = lane; i < 2 * N; i += LANES) exchange[i] = zero<T>();
    __syncwarp();
    columns<0, N>(most, [&](auto index) {
        constexpr int k = decltype(index)::value;
        if (k >= most) return;
        bool active = k < n, candidate = active && lane < n && place < 0;
        unsigned high;
        int winner = pivot_lane<real_t<T>, LANES>(candidate, magnitude(abs1(a[k])), lane, high);
        bool mine = candidate && lane == winner, good = is_pivot_magnitude<real_t<T>>(high);
        T *row = exchange + k % 2 * N, own = pivot_reciprocal(a[k]);
        if (mine) put_row<0>(row, a, a[0]), row[k] = own, scale = own, place = k;
        __syncwarp();
        T minus = active && good && !mine ? -(row[k] * a[k]) : zero<T>();
        broadcast<0, k>(row, [&](int j, T v) { a[j] = fma_(minus, v, a[j]); });
        broadcast<k + 1, N>(row, [&](int j, T v) { a[j] = fma_(minus, v, a[j]); });
        a[k] = mine ? one<T>() : minus;
        if (active && lane == k) origin = winner;
        if (active && !good && info == 0) info = k + 1;
    });
#pragma unroll
    for (int j = 0; j < N; ++j) a[j] = scale * a[j];
    return info;
}
