// Entries of a factor and of its matrix by their columns: pivots, and inverses of diagonal tiles.
#pragma once
#include "sparse/pivot_blocks.cuh"
#include "sparse/rows.cuh"

// Return the front that eliminates column c.
__device__ inline int front_of(const Fronts &tree, int fronts, int c) {
    int low = 0, high = fronts;  // start[low] <= c < start[high]
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (tree.start[middle] <= c) low = middle;
        else high = middle;
    }
    return low;
}

__device__ inline Front<T> front_with(const Fronts &tree, int fronts, int c, T *panels) {
    Front<T> f;
    f.set(tree, front_of(tree, fronts, c), panels);
    return f;
}

__device__ inline T entry_of(
    const Position *pointer, const int *index, const T *values, int r, int c) {
    long long p = position_of_entry(pointer, index, r, c);
    return p < 0 ? zero<T>() : values[p];
}

// Bounds of the moduli of pivot c of D: of a block of order 2 bounds of both eigenvalues, and
// nothing if c is its second column.
struct PivotSize {
    double small, large;
};
__device__ inline PivotSize pivot_size(const T *diagonal, const T *coupling, int c) {
    T a = diagonal[c], b = coupling[c];
    if (c > 0 && !(coupling[c - 1] == zero<T>())) return {1e308, 0};
    if (b == zero<T>()) return {modulus(a), modulus(a)};
    T g = diagonal[c + 1];
    real_t<T> norm = max_(modulus(a), modulus(g)) + modulus(b), scale = 1 / norm;
    T rest = (scale * a) * (scale * g) - (scale * b) * mirrored(scale * b);
    return {modulus(rest) * norm, norm};
}

// Call f for the entries of column j of the inverse of a lower triangle of up to 64 rows, with
// implicit ones on its diagonal if `unit`; by a warp.
template <class F>
__device__ inline void each_of_inverse(Triangle<T> lower, bool unit, int j, F f) {
    int lane = threadIdx.x % 32;
    T x[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) x[h] = lane + 32 * h == j ? one<T>() : zero<T>();
    for (int q = j; q < lower.rows; ++q) {
        T own = shuffle(q < 32 ? x[0] : x[1], q % 32);
        if (!unit) own = pivot_reciprocal(lower(q, q)) * own;
        f(own);
#pragma unroll
        for (int h = 0; h < 2; ++h)
            if (lane + 32 * h > q && lane + 32 * h < lower.rows)
                x[h] = fma_(-lower(lane + 32 * h, q), own, x[h]);
    }
}
