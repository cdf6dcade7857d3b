// Bidiagonalization of matrices with at least as many rows as columns; the method is in gebrd.cuh.
//
// Tile map: one block per matrix. gebd2 holds the submatrix from row and column `from` on in
// dynamic shared memory, an odd number of elements per column: a warp owns four columns at a time,
// then four rows. labrd reduces NB columns and rows of the submatrix and reads the rest from global
// memory: 32 lanes along the rows by all warps over the columns, as in gemv.cuh, with 16 bytes of
// dynamic shared memory per thread. Blocks do not wait for each other. Matrices must be scaled so
// that squares of their entries are representable.
//   vx, yu  of labrd: 2·NB columns, with as many rows as A has rows (vx: V beside X) or columns
//           (yu: Y beside U), for the update of the rest, A − V·Yᴴ − X·Uᴴ
#include "dense/gebrd.cuh"

#ifndef NB
#define NB 32
#endif

using T = SCALAR;
using R = real_t<T>;
constexpr int gebrd_threads = 512;

// The outputs from entry `from` on; vectors from row `row` on: `from` for gebd2, 0 for labrd.
template <template <class> class Source>
__device__ inline Bidiagonal<T> bidiagonal(Source<R> d, Source<R> e, Source<T> tauq, Source<T> taup,
    Source<T> vq, Source<T> vp, int from, int row) {
    int b = blockIdx.x;
    return {d(b).data + from, e(b).data + from, tauq(b).data + from, taup(b).data + from,
        vq(b).at(row, from), vp(b).at(row, from)};
}

template <template <class> class Source>
__device__ void gebd2_entry(Source<T> source, int from, Source<R> d, Source<R> e, Source<T> tauq,
    Source<T> taup, Source<T> vq, Source<T> vp) {
    __shared__ R scratch[32];
    Matrix<T> a = source(blockIdx.x).at(from, from);
    if (a.cols == 0) return;
    Matrix<T> held{shared_memory<T>(), a.rows, a.cols, a.rows | 1};
    each_entry(a, [&](int i, int j) { held(i, j) = a(i, j); });
    __syncthreads();
    gebd2(held, bidiagonal(d, e, tauq, taup, vq, vp, from, from), scratch);
    Matrix<T> q = vq(blockIdx.x).at(0, from, from), p = vp(blockIdx.x).at(0, from, from);
    each_entry(q, [&](int i, int j) { q(i, j) = zero<T>(); });
    each_entry(p, [&](int i, int j) { p(i, j) = zero<T>(); });
}

template <template <class> class Source>
__device__ void labrd_entry(Source<T> source, int from, Source<R> d, Source<R> e, Source<T> tauq,
    Source<T> taup, Source<T> vq, Source<T> vp, Source<T> vx, Source<T> yu) {
    __shared__ PanelScratch<T, NB> scratch;
    int b = blockIdx.x;
    Matrix<T> a = source(b).at(from, from);
    if (a.cols == 0) return;
    Panel<T> panel{vx(b).at(from, 0), vx(b).at(from, NB), yu(b).at(from, 0), yu(b).at(from, NB)};
    labrd(a, panel, bidiagonal(d, e, tauq, taup, vq, vp, from, 0), from, scratch,
        shared_memory<Vector<T>>());
}

#define GEBD2(name, Source) \
    extern "C" __global__ void __launch_bounds__(gebrd_threads) name(Source<T> a, int from, \
        Source<R> d, Source<R> e, Source<T> tauq, Source<T> taup, Source<T> vq, Source<T> vp) { \
        gebd2_entry(a, from, d, e, tauq, taup, vq, vp); \
    }
#define ENTRY GEBD2

ENTRY(gebd2_native, Native)
ENTRY(gebd2_batched, Batched)
ENTRY(gebd2_vbatched, Vbatched)

#define LABRD(name, Source) \
    extern "C" __global__ void __launch_bounds__(gebrd_threads) \
        name(Source<T> a, int from, Source<R> d, Source<R> e, Source<T> tauq, Source<T> taup, \
            Source<T> vq, Source<T> vp, Source<T> vx, Source<T> yu) { \
        labrd_entry(a, from, d, e, tauq, taup, vq, vp, vx, yu); \
    }
#undef ENTRY
#define ENTRY LABRD

ENTRY(labrd_native, Native)
ENTRY(labrd_batched, Batched)
ENTRY(labrd_vbatched, Vbatched)
