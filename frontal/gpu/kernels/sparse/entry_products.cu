// Products of two blocks of vectors at the entries of a sparse matrix ("sampled dense-dense matrix
// products"): derivatives with respect to its values.
//
// Tile map: a thread owns entries. No shared memory; blocks do not wait for each other.
// Preconditions: R and C are n×k, column-major without gaps, k >= 1; 0 <= row, column < n.
#include "common/scalar.cuh"
#include "sparse/structs.cuh"

using T = SCALAR;
constexpr int threads = SYSTEM_THREADS;

// out[p] = factor · sum over c of R(row[p], c) C(column[p], c); the factor is `diagonal` if
// row[p] = column[p], else `beside`.
extern "C" __global__ void __launch_bounds__(threads)
    entry_products(long long count, int n, int k, const int *row, const int *column, const T *R,
        const T *C, double diagonal, double beside, T *out) {
    for (long long p = (long long)blockIdx.x * threads + threadIdx.x; p < count;
        p += (long long)gridDim.x * threads) {
        long long i = row[p], j = column[p];
        T sum = zero<T>();
        for (int c = 0; c < k; ++c) sum = sum + R[i + (long long)c * n] * C[j + (long long)c * n];
        out[p] = (real_t<T>)(i == j ? diagonal : beside) * sum;
    }
}
