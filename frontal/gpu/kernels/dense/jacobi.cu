// SVD of matrices of at most 64 rows by one-sided Jacobi; the method is in jacobi.cuh.
//
// Tile map: one block per matrix; a group of GROUP lanes owns a pair of columns at a time, a lane
// every GROUP-th row of both. The number of rows is at least that of columns and at most ORDER.
// Dynamic shared memory: ORDER columns of ORDER elements and padding for A, which becomes U, and as
// much for V if vectors are computed. Blocks do not wait for each other.
//   order      the matrices; null for all in their own order
//   upper      A is upper triangular; entries below its diagonal are not read
//   exponents  exponents of the powers of two by which matrices were multiplied before; null for
//              none
//   info       written only on failure, if the entry is still 0
#include "dense/jacobi.cuh"

#ifndef ORDER
#define ORDER 32
#endif

#ifndef GROUP
#define GROUP 8
#endif

using T = SCALAR;
using R = real_t<T>;
using Block = JacobiBlock<ORDER, GROUP>;

template <template <class> class Source>
__device__ void jacobi(Source<T> a, Source<R> s, Source<T> u, Source<T> v, int upper, int vectors,
    const int *order, const int *exponents, int *info) {
    __shared__ JacobiState<Block, T> state;
    int b = order ? order[blockIdx.x] : blockIdx.x;
    Matrix<T> whole = a(b);
    Matrix<T> given = upper ? whole.at(0, 0, whole.cols) : whole;
    Matrix<T> left{nullptr, 0, 0, 1}, right = left;
    if (vectors) {
        left = upper ? u(b).at(0, 0, whole.cols, whole.cols) : u(b);
        right = v(b);
    }
    int found = jacobi_svd<Block>(given, upper != 0, exponents ? exponents[b] : 0, s(b), left,
        right, vectors != 0, shared_memory<T>(), state);
    if (threadIdx.x == 0 && found && !info[b]) info[b] = found;
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(Block::threads) \
        name(Source<T> a, Source<R> s, Source<T> u, Source<T> v, int upper, int vectors, \
            const int *order, const int *exponents, int *info) { \
        jacobi(a, s, u, v, upper, vectors, order, exponents, info); \
    }

ENTRY(jacobi_native, Native)
ENTRY(jacobi_batched, Batched)
ENTRY(jacobi_vbatched, Vbatched)
