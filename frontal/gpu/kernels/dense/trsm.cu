// TRSM entry points: op(A)·X = alpha·B (SIDE 0) or X·op(A) = alpha·B (SIDE 1), X over B, for one
// matrix or a batch.
//
// Tile map: a work item is a strip of WIDTH columns (SIDE 1: rows) of B, one block each, which
// loops over A's diagonal blocks of 32. A thread owns entries of the strip's 32×WIDTH accumulators;
// dynamic shared memory holds the inverses of diagonal blocks (one, or one per warp) and the slices
// of both operands (Solver::shared_elements). Only the triangle UPLO of A is read, without a unit
// diagonal. A must not overlap B; a zero on the diagonal gives infinity or NaN.
// The operation is that of the BLAS: Dongarra, Du Croz, Hammarling, Duff, "A set of level 3 basic
// linear algebra subprograms" (1990); the method is in trsm.cuh.
#include "dense/trsm.cuh"
#include "dense/gemm.cuh"

#ifndef SIDE
#define SIDE 1
#endif
#ifndef UPLO
#define UPLO 0
#endif
#ifndef TRANS
#define TRANS 2
#endif
#ifndef WIDTH
#define WIDTH 64
#endif
#ifndef GIVEN_INVERSES
#define GIVEN_INVERSES 1
#endif

using T = SCALAR;
using Solver = Trsm<T, (Side)SIDE, (Uplo)UPLO, (Trans)TRANS, WIDTH, GIVEN_INVERSES != 0>;

// Return the inverses of the diagonal blocks of matrix b.
__device__ inline const T *inverses_of(const Inverses<T> &made, int b) {
    long long number = (made.starts ? made.starts[b] : (long long)b * made.each) + made.skip;
    return made.values + number * tri_order * tri_order;
}

template <class Source>
__device__ void trsm_entry(T alpha, int diag, Source a, Window part_a, Inverses<T> inverses,
    Source b, Window part_b, const int4 *work, int period) {
    int4 w = work_item(work, period, blockIdx.x);
    Solver::solve(a(w.x).at(part_a), inverses_of(inverses, w.x), (Diag)diag, alpha,
        b(w.x).at(part_b), w.y + w.z, shared_memory<T>());
}

#define ENTRY(name, Source) \
    extern "C" __global__ void __launch_bounds__(Solver::threads, Solver::residents) \
        name(T alpha, int diag, Source<T> a, Window part_a, Inverses<T> inverses, Source<T> b, \
            Window part_b, const int4 *work, int period) { \
        trsm_entry(alpha, diag, a, part_a, inverses, b, part_b, work, period); \
    }

ENTRY(trsm_native, Native)
ENTRY(trsm_batched, Batched)
ENTRY(trsm_vbatched, Vbatched)
